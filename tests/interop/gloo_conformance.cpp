// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports over Gloo, in so many processes as the argument says; then one is killed in an exchange.

#include <tersum/interop/gloo.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <interop/conformance.hpp>
#include <interop/gloo_processes.hpp>
#include <interop/summed_shards.hpp>
#include <string>

namespace {

using namespace tersum;

using tests::connect;

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
  int const size = argc > 1 ? std::atoi(argv[1]) : 2;
  return tests::meeting([size] {
    int bad = tests::run_ranks(size, -1, [size](int rank) { return conform(rank, size); });
    for (bool const in_wire : {false, true}) {
      if (size == 1) { continue; }  // nobody is left
      bad +=
        tests::run_ranks(size, size - 1, [=](int rank) { return survive(rank, size, in_wire); });
    }
    if (bad == 0) { std::printf("%d ranks: ok\n", size); }
    return bad;
  });
}
