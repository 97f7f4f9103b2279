// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Three processes over Gloo, the last of which is late, stopped, killed, or has another plan, in each way of exchange.
//! What must hold: nobody hangs or dies with it, all are told, and no gradient is lost. No verdict depends on a time, but
//! that each process has two minutes.
//!
//!     tersum.test.interop.gloo_faults [late|too_late|stopped|killed|refused|unlike]...

#include <tersum/interop/gloo.hpp>

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <interop/faults.hpp>
#include <interop/gloo_processes.hpp>
#include <new>
#include <string>
#include <thread>

namespace {

using namespace tersum;
using tests::way;
using namespace std::chrono_literals;

constexpr int ranks = 3, last = ranks - 1;

// Ranks that are connected, and ranks whose exchange has ended: of all processes.
struct counts {
  std::atomic<int> connected{0}, ended{0};
};
counts* shared = nullptr;

// What one rank does; how many of its expectations failed.
int run(tests::fault_name const& fault, way how, int rank)
{
  alarm(120);
  auto const timeout = tests::fails(fault, how) ? 400ms : 60s;
  auto const name    = fault + std::to_string(static_cast<int>(how));
  gloo_transport const one(tests::connect(name + "-one", rank, ranks), timeout);
  gloo_transport const two(tests::connect(name + "-two", rank, ranks), timeout);
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
  auto const usable = [&] {
    if (rank == last && fault == "killed") { std::raise(SIGKILL); }  // others did not wait for it
    return one.check().ok();
  };
  int const failures = tests::check_fault(
    fault, how, tests::forget_type(one), tests::forget_type(two), true, misbehave, usable);
  ++shared->ended;
  return failures;
}

// One fault in one way, in three processes.
int in_processes(tests::fault_name const& fault, way how)
{
  shared->connected  = 0;
  shared->ended      = 0;
  auto const process = tests::start_ranks(ranks, [&](int rank) { return run(fault, how, rank); });
  int bad            = 0, ends[ranks]{};
  bool waited        = false;
  if (fault == "stopped") {
    // It stops, or ends by itself where the others gave up before; it goes on when they have ended.
    waitpid(process[last], &ends[last], WUNTRACED);
    waited = !WIFSTOPPED(ends[last]);
  }
  for (int rank = 0; rank < last; ++rank) {
    waitpid(process[static_cast<std::size_t>(rank)], &ends[rank], 0);
  }
  if (!waited) {
    kill(process[last], SIGCONT);
    waitpid(process[last], &ends[last], 0);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int const end = ends[rank];
    if (tests::has_ended(end, rank == last && fault == "killed")) { continue; }
    ++bad;
    std::printf("%s, %s: rank %d ended by %s %d\n",
                fault.c_str(),
                name_of(how),
                rank,
                WIFSIGNALED(end) ? "signal" : "status",
                WIFSIGNALED(end) ? WTERMSIG(end) : WEXITSTATUS(end));
  }
  return bad;
}

}  // namespace

int main(int argc, char** argv)
{
  void* const memory =
    mmap(nullptr, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) { return std::printf("no memory\n"), 1; }
  shared = new (memory) counts;
  return tests::meeting([=] {
    int bad = 0;
    for (int k = 1; k < argc; ++k) {
      for (way const how : tests::all_forms) { bad += in_processes(argv[k], how); }
    }
    if (bad == 0) { std::printf("%d ranks, each form: ok\n", ranks); }
    return bad;
  });
}
