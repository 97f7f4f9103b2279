// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Bulk copies out of shared memory: what they do, what they count as, and what they must not do.

#include "run_ptx.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace tersum::simulator;

static std::string const store =
                           "mov.u32 %r1, memory; add.s32 %r2, %r1, %at; st.shared.u32 [%r2], %tid;",
                         show = "fence.proxy.async.shared::cta;", meet = "bar.warp.sync -1;",
                         elected = "elect.sync _|%p1, -1; @!%p1 bra $done;",
                         commit  = "cp.async.bulk.commit_group;",
                         wait = "cp.async.bulk.wait_group.read 0;", done = "$done:";

static std::string copy(std::string const& bytes = "128",
                        std::string const& from  = "%r1",
                        std::string const& to    = "%out")
{
  return "cp.async.bulk.global.shared::cta.bulk_group [" + to + "], [" + from + "], " + bytes + ";";
}

// A row that one thread of a warp copies.
static std::string row_with(std::string const& copies)
{
  return store + show + meet + elected + copies + done;
}

static bool says(std::string const& body, std::string const& part, std::uint32_t threads = 32)
{
  std::string const text = fault_of(body, threads);
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("[simulator] a bulk copy writes what threads of the warp have stored")
{
  auto const got = run_words(row_with(copy() + commit + wait), 32, 32, 256);
  for (std::uint32_t i = 0; i < 32; ++i) { CHECK(got[i] == i); }
  // Two groups, of which the first is waited for before the second.
  CHECK(fault_of(row_with(copy("64") + commit + "add.s32 %r3, %r1, 64; add.s64 %rd1, %out, 64;" +
                          copy("64", "%r3", "%rd1") + commit + "cp.async.bulk.wait_group.read 1;" +
                          wait)) == "");
}

TEST_CASE("[simulator] a bulk copy counts as the stores of full sectors that a warp would need")
{
  // 128 threads have 16 bytes each of a row of 2048, which is 64 sectors.
  std::string const row = "shl.b32 %r3, %tid, 4; mov.u32 %r1, memory; add.s32 %r2, %r1, %r3;"
                          "st.shared.v4.u32 [%r2], {%tid, %tid, %tid, %tid};" +
                          show + "bar.sync 0; setp.ne.u32 %p1, %tid, 5; @%p1 bra $done;" +
                          copy("2048") + commit + wait + done;
  launch_counts counts;
  auto const got = run_words(row, 128, 512, 2048, 1, &counts);
  for (std::uint32_t i = 0; i < 512; ++i) { CHECK(got[i] == i / 4); }
  CHECK(counts.stores.requests == 4);
  CHECK(counts.stores.sectors == 64);
  CHECK(counts.stores.distinct_sectors == 64);
  CHECK(counts.stores.bytes == 2048);
  CHECK(counts.loads.requests == 0);
}

TEST_CASE(
  "[simulator] what a bulk copy reads is behind a fence of its writers, and behind a barrier")
{
  std::string const copies = copy() + commit + wait;
  CHECK(says(store + meet + elected + copies + done, "with no fence of the proxy behind it"));
  CHECK(says(store + show + elected + copies + done, "wrote with no barrier between"));
  CHECK(
    says(store + meet + show + elected + copies + done, "no barrier behind the fence of thread"));
  CHECK(says(show + store + meet + elected + copies + done, "with no fence of the proxy"));
  // Half of the writers are not enough.
  CHECK(says(store + "setp.lt.u32 %p2, %tid, 16; @%p2 " + show + meet + elected + copies + done,
             "thread 16 wrote with no fence"));
  CHECK(says("mov.u32 %r1, memory;" + elected + copies + done, "nobody has written"));
  // The same of two warps, for which only a barrier of the block is one.
  std::string const one =
    "setp.ne.u32 %p1, %tid, 0; @%p1 bra $done;" + copy("256") + commit + wait + done;
  CHECK(fault_of(store + show + "bar.sync 0;" + one, 64) == "");
  CHECK(says(store + "bar.sync 0;" + show + one, "no barrier behind the fence of thread 1", 64));
}

TEST_CASE("[simulator] a bulk copy reads until it is waited for")
{
  std::string const again = "st.shared.u32 [%r2], %tid;";
  CHECK(says(row_with(copy() + commit), "ends while its copies may still read"));
  CHECK(says(row_with(copy() + wait), "ends while its copies"));
  CHECK(
    says(row_with(copy() + commit + "cp.async.bulk.wait_group.read 1;"), "ends while its copies"));
  CHECK(says(row_with(copy() + commit + again + wait), "that a copy of thread 31 still reads"));
  CHECK(says(row_with(copy() + commit + wait) + again, "read with no barrier between"));
  CHECK(fault_of(row_with(copy() + commit + wait) + meet + again) == "");
  // And writes by the end of the kernel, no sooner.
  CHECK(
    says(row_with(copy() + commit + wait + "ld.global.u32 %r3, [%out];"), "nobody has written"));
}

TEST_CASE("[simulator] a bulk copy moves whole pieces of 16 bytes between two allocations")
{
  std::string const ends = commit + wait;
  CHECK(says(row_with(copy("120") + ends), "not all multiples of 16"));
  CHECK(
    says(row_with("add.s32 %r3, %r1, 8;" + copy("64", "%r3") + ends), "not all multiples of 16"));
  CHECK(says(row_with("add.s64 %rd1, %out, 8;" + copy("64", "%r1", "%rd1") + ends),
             "not all multiples of 16"));
  CHECK(says(row_with(copy("8192") + ends), "bytes of shared memory at 0; the block has 4096"));
  CHECK(says(row_with("add.s64 %rd1, %out, 192;" + copy("128", "%r1", "%rd1") + ends),
             "accesses global memory at"));
  CHECK(says(row_with(copy("64", "%r1+64") + ends), "an offset where there are several addresses"));
}

TEST_CASE("[simulator] one lane of those that meet is elected")
{
  auto const got = run_words(
    "elect.sync %r1|%p1, -1; selp.b32 %r2, 100, 0, %p1; add.s32 %r3, %r1, %r2; st.global.u32 [%mine], %r3;",
    32,
    32);
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(got[i] == got[0] % 100 + (i == got[0] % 100 ? 100 : 0));
  }
  CHECK(says("elect.sync _|%p1, 1;", "do not name themselves"));
}
