// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports over Gloo, in so many processes as the argument says; then one is killed in an exchange.

#include <tersum/interop/gloo.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <interop/conformance.hpp>
#include <interop/summed_shards.hpp>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tersum;

std::string store_folder;

std::shared_ptr<gloo::Context> connect(std::string const& name, int rank, int size)
{
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device         = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore files(store_folder);
  gloo::rendezvous::PrefixStore store(name, files);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

// Runs body(rank) in so many processes; how many of them ended other than with `0` or, if they shall, by SIGKILL.
template <class Body>
int in_processes(int size, int killed, Body body)
{
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    pid_t const process = fork();
    if (process == 0) {
      int const failures = body(rank);
      std::fflush(nullptr);
      _exit(failures == 0 ? 0 : 1);
    }
    processes.push_back(process);
  }
  int bad = 0;
  for (int rank = 0; rank < size; ++rank) {
    int how = 0;
    waitpid(processes[static_cast<std::size_t>(rank)], &how, 0);
    bool const as_expected = rank == killed ? WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
                                            : WIFEXITED(how) && WEXITSTATUS(how) == 0;
    if (!as_expected) { ++bad; }
  }
  return bad;
}

int conform(int rank, int size)
{
  gloo_transport const transport(connect("conform", rank, size));
  auto const any = tests::forget_type(transport);
  // Gloo's threads spin while they wait, which many ranks on few cores feel.
  return tests::check_presets(any, size > 2) + tests::check_agreement(any) +
         tests::check_summed_shards(transport, false);
}

// The last rank dies between the rounds of an exchange; the others go on without it.
int survive(int rank, int size, bool in_wire)
{
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds timeout{2};
  int failures      = 0;
  auto const expect = [&](bool ok, char const* what) {
    if (ok) { return; }
    std::printf("rank %d of %d, %s: %s\n", rank, size, in_wire ? "in the wire" : "direct", what);
    ++failures;
  };
  static int last = 0;
  static clock::time_point begin;
  last            = size - 1;
  bool kept       = false;
  auto const name = [&](char const* when) {
    return (in_wire ? "wire-" : "shots-") + std::string(when);
  };
  {
    gloo_transport const transport(connect(name("before"), rank, size), timeout);
    begin                = clock::now();
    status const outcome = tests::exchange_once(
      tests::forget_type(transport),
      in_wire,
      [](int me) {
        if (me == last) { std::raise(SIGKILL); }
        begin = clock::now();
      },
      kept);
    expect(outcome.code == error_code::transport_failed, "a rank is dead, and nobody said so");
    expect(kept, "a gradient was overwritten by an exchange that failed");
    // A rank waits for the dead one, or for one that does, which then leaves: two timeouts. What died before its last
    // words were read takes them along, so that the round before may fail, which has no more collectives than that. Two
    // seconds are for processes that share cores.
    expect(clock::now() - begin < 2 * timeout + std::chrono::seconds(2), "the timeout passed");
  }
  gloo_transport const transport(connect(name("after"), rank, size - 1), std::chrono::seconds(60));
  expect(tests::exchange_once(
           tests::forget_type(transport), in_wire, [](int) {}, kept)
           .ok(),
         "the next communicator does not work");
  expect(!kept, "the next exchange did nothing");
  return failures;
}

}  // namespace

int main(int argc, char** argv)
{
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  int const size = argc > 1 ? std::atoi(argv[1]) : 2;
  auto pattern   = (std::filesystem::temp_directory_path() / "tersum-gloo-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) { return std::printf("no temporary folder\n"), 1; }
  store_folder = pattern;
  int bad      = in_processes(size, -1, [&](int rank) { return conform(rank, size); });
  for (bool const in_wire : {false, true}) {
    if (size == 1) { continue; }  // nobody is left
    bad += in_processes(size, size - 1, [&](int rank) { return survive(rank, size, in_wire); });
  }
  std::filesystem::remove_all(store_folder);
  if (bad == 0) { std::printf("%d ranks: ok\n", size); }
  return bad == 0 ? 0 : 1;
}
