// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Three processes over Gloo, the last of which is late, stopped, killed, or has another plan, in each way of exchange.
//! What must hold: nobody hangs or dies with it, all are told, and no gradient is lost. No verdict depends on a time, but
//! that each process has two minutes.
//!
//!     tersum.test.interop.gloo_faults [late|too_late|stopped|killed|refused|unlike]...

#include <tersum/interop/gloo.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <interop/faults.hpp>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace tersum;
using tests::way;
using namespace std::chrono_literals;

constexpr int ranks = 3, last = ranks - 1;

std::string store_folder;
// Ranks that are connected, and ranks whose exchange has ended: of all processes.
struct counts {
  std::atomic<int> connected{0}, ended{0};
};
counts* shared = nullptr;

std::shared_ptr<gloo::Context> connect(std::string const& name, int rank)
{
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device         = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore files(store_folder);
  gloo::rendezvous::PrefixStore store(name, files);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

// What one rank does; how many of its expectations failed.
int run(std::string_view fault, way how, int rank)
{
  alarm(120);
  int failures      = 0;
  auto const expect = [&](bool ok, char const* what, status const& got) {
    if (ok) { return; }
    ++failures;
    std::printf("%s, %s, rank %d: %s: \"%s\"\n",
                std::string(fault).c_str(),
                name_of(how),
                rank,
                what,
                got.message.data());
  };
  bool const asks_only =
    fault == "unlike" && how == way::agreement;  // which is answered, as a refusal
  bool const fails = fault != "late" && fault != "refused" && !asks_only;
  auto const name  = std::string(fault) + std::to_string(static_cast<int>(how));
  gloo_transport const one(connect(name + "-one", rank), fails ? 400ms : 60s);
  gloo_transport const two(connect(name + "-two", rank), fails ? 400ms : 60s);
  auto const first = tests::forget_type(one), second = tests::forget_type(two);
  // Nobody gives up while another one still connects.
  ++shared->connected;
  while (shared->connected < ranks) { std::this_thread::sleep_for(1ms); }
  auto const misbehave = [&] {
    if (rank != last) { return; }
    if (fault == "late") { std::this_thread::sleep_for(200ms); }
    if (fault == "stopped") { std::raise(SIGSTOP); }
    if (fault == "killed") { std::raise(SIGKILL); }
    while (fault == "too_late" && shared->ended < last) { std::this_thread::sleep_for(10ms); }
  };
  bool const odd = rank == last && (fault == "unlike" || fault == "refused");

  if (fault == "refused") {
    status const asked = agree(how, first, second, odd);
    expect(asked.code == error_code::invalid_argument, "unlike plans were accepted", asked);
  }
  auto const tried = exchange(how, first, second, odd, misbehave);
  ++shared->ended;
  expect(tried.kept, "a gradient was overwritten by an exchange that failed", tried.outcome);
  expect(tried.means, "an exchange that succeeded did not leave the mean", tried.outcome);
  if (fault == "late") {
    expect(tried.outcome.ok(), "a rank that is not too late was not waited for", tried.outcome);
    return failures;
  }
  if (fault == "refused" || asks_only) {
    expect(tried.outcome.code == error_code::invalid_argument, "it was not refused", tried.outcome);
    status const asked = agree(how, first, second, false);
    expect(asked.ok(), "equal plans are refused after unlike ones", asked);
    auto const next = exchange(how, first, second, false, [] {});
    expect(next.outcome.ok() && next.means, "nothing works after a refusal", next.outcome);
    return failures;
  }
  expect(tried.outcome.code == error_code::transport_failed, "nobody said so", tried.outcome);
  if (rank == last && fault == "killed") { std::raise(SIGKILL); }  // the others did not wait for it
  // What arrives late meets nothing: the transport is done with, and says so without waiting.
  expect(!one.check().ok(), "a transport that failed can be used", one.check());
  auto const again = exchange(how, first, second, odd, [] {});
  expect(again.outcome.code == error_code::transport_failed && again.kept,
         "an exchange over a transport that failed",
         again.outcome);
  return failures;
}

// One fault in one way, in three processes.
int in_processes(std::string_view fault, way how)
{
  shared->connected = 0;
  shared->ended     = 0;
  std::fflush(nullptr);
  pid_t process[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    process[rank] = fork();
    if (process[rank] == 0) {
      int const failures = run(fault, how, rank);
      std::fflush(nullptr);
      _exit(failures == 0 ? 0 : 1);
    }
  }
  int bad     = 0, ends[ranks]{};
  bool waited = false;
  if (fault == "stopped") {
    // It stops, or ends by itself where the others gave up before; it goes on when they have ended.
    waitpid(process[last], &ends[last], WUNTRACED);
    waited = !WIFSTOPPED(ends[last]);
  }
  for (int rank = 0; rank < last; ++rank) { waitpid(process[rank], &ends[rank], 0); }
  if (!waited) {
    kill(process[last], SIGCONT);
    waitpid(process[last], &ends[last], 0);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int const how_it_ended = ends[rank];
    bool const killed      = WIFSIGNALED(how_it_ended) && WTERMSIG(how_it_ended) == SIGKILL;
    bool const well        = WIFEXITED(how_it_ended) && WEXITSTATUS(how_it_ended) == 0;
    if (rank == last && fault == "killed" ? killed : well) { continue; }
    ++bad;
    std::printf("%s, %s: rank %d ended by %s %d\n",
                std::string(fault).c_str(),
                name_of(how),
                rank,
                WIFSIGNALED(how_it_ended) ? "signal" : "status",
                WIFSIGNALED(how_it_ended) ? WTERMSIG(how_it_ended) : WEXITSTATUS(how_it_ended));
  }
  return bad;
}

}  // namespace

int main(int argc, char** argv)
{
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  auto pattern = (std::filesystem::temp_directory_path() / "tersum-gloo-XXXXXX").string();
  void* const memory =
    mmap(nullptr, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mkdtemp(pattern.data()) == nullptr || memory == MAP_FAILED) {
    return std::printf("no temporary folder, or no memory\n"), 1;
  }
  shared       = new (memory) counts;
  store_folder = pattern;
  int bad      = 0;
  for (int k = 1; k < argc; ++k) {
    for (way const how : tests::all_forms) { bad += in_processes(argv[k], how); }
  }
  std::filesystem::remove_all(store_folder);
  if (bad == 0) { std::printf("%d ranks, each form: ok\n", ranks); }
  return bad == 0 ? 0 : 1;
}
