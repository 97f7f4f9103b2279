// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels that wait for one another: of one rank's blocks, and of several ranks.

#include "interleaved.hpp"
#include "run_ptx.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

using namespace tersum::simulator;

namespace {

constexpr std::size_t room = 128;  // words, at first zeros

struct outcome {
  std::vector<std::uint32_t> words;
  std::string wrong;
};

// What each rank launches, one kernel after the other, each with so many blocks of so many threads.
struct shape {
  std::uint32_t blocks = 1, threads = 1;
};
using rank_kernels = std::vector<std::string>;

outcome run_ranks(std::vector<rank_kernels> const& ranks,
                  taking_turns order                 = {},
                  shape of                           = {},
                  std::chrono::milliseconds patience = std::chrono::seconds(60))
{
  auto* const memory =
    static_cast<std::uint32_t*>(global_memory::get().allocate(4 * room, memory_kind::managed));
  std::memset(memory, 0, 4 * room);
  interleaved_ranks device{static_cast<int>(ranks.size()), order};
  device.patience = patience;
  std::vector<std::string> wrong(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      interleaved_ranks::member const here{device, static_cast<int>(r)};
      try {
        for (auto const& body : ranks[r]) {
          loaded_module module{one_kernel(body)};
          auto const address = reinterpret_cast<std::uint64_t>(memory);
          std::vector<std::byte> parameters(sizeof(address));
          std::memcpy(parameters.data(), &address, sizeof(address));
          run_kernel(module.kernel("k"), {{of.blocks, 1, 1}, {of.threads, 1, 1}, 0}, parameters);
        }
      } catch (fault const& f) {
        wrong[r] = f.what();
      }
    });
  }
  for (auto& t : threads) { t.join(); }
  outcome result{{memory, memory + room}, {}};
  global_memory::get().free(memory);
  for (auto const& w : wrong) {
    if (w.find("of another rank") == std::string::npos) { result.wrong += w; }
  }
  return result;
}

std::vector<taking_turns> const orders = {{},
                                          {.most = 1},
                                          {.next = taking_turns::by::first, .most = 4096},
                                          {.next = taking_turns::by::last, .most = 4096},
                                          {.next = taking_turns::by::chance, .seed = 1, .most = 8},
                                          {.next = taking_turns::by::chance, .seed = 2, .most = 8}};

// What is wrong in every order that there is; in all of them the same word of memory comes out.
std::string in_all_orders(std::vector<rank_kernels> const& ranks,
                          std::uint32_t word,
                          std::uint32_t value,
                          shape of = {})
{
  std::string wrong;
  for (auto const& order : orders) {
    auto const got = run_ranks(ranks, order, of);
    if (got.wrong.empty() && got.words[word] != value) { wrong += "another value; "; }
    if (wrong.find(got.wrong) == std::string::npos) { wrong += got.wrong; }
  }
  return wrong;
}

bool says(std::string const& text, std::string const& part)
{
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

// Word 0 is a flag, word 1 what it stands for, word 2 what came over.
std::string const gives = "mov.u32 %r1, 42; st.global.u32 [%out+4], %r1; mov.u32 %r2, 1;";
std::string const keeps = "ld.global.u32 %r4, [%out+4]; st.global.u32 [%out+8], %r4;";

std::string sets(std::string const& how) { return "st" + how + ".global.u32 [%out], %r2;"; }
std::string waits(std::string const& how)
{
  return "again: ld" + how + ".global.u32 %r3, [%out]; setp.eq.u32 %p1, %r3, 0; @%p1 bra again;";
}

// Two blocks of one rank, of which the second does the second.
std::string blocks(std::string const& first, std::string const& second)
{
  return "mov.u32 %r9, %ctaid.x; setp.ne.u32 %p9, %r9, 0; @%p9 bra second;" + first +
         "bra end; second: " + second + "end:";
}

}  // namespace

TEST_CASE("[simulator] a flag hands a word over, between ranks and between blocks")
{
  for (auto const& way :
       {std::pair{sets(".release.sys"), waits(".acquire.sys")},
        {"fence.acq_rel.sys;" + sets(".relaxed.sys"), waits(".relaxed.sys") + "fence.acq_rel.sys;"},
        {"membar.sys;" + sets(".volatile"), waits(".volatile") + "membar.sys;"}}) {
    auto const& set  = way.first;
    auto const& wait = way.second;
    CAPTURE(set);
    CHECK(in_all_orders({{gives + set}, {wait + keeps}}, 2, 42) == "");
    CHECK(in_all_orders({{wait + keeps}, {gives + set}}, 2, 42) == "");
    CHECK(in_all_orders({{blocks(gives + set, wait + keeps)}}, 2, 42, {.blocks = 2}) == "");
  }
  std::string const device = blocks(gives + sets(".release.gpu"), waits(".acquire.gpu") + keeps);
  CHECK(in_all_orders({{device}}, 2, 42, {.blocks = 2}) == "");
}

TEST_CASE("[simulator] a flag without release, or for too few, is a race")
{
  // Of the word, and where the scope is too small of the flag itself.
  std::string const race = "global memory that warp 0 of block 0 of rank ";
  for (auto const& way : {std::pair{sets(".relaxed.sys"), waits(".acquire.sys")},
                          {sets(".release.sys"), waits(".relaxed.sys")},
                          {"fence.acq_rel.sys;" + sets(".relaxed.sys"), waits(".relaxed.sys")},
                          {sets(".release.gpu"), waits(".acquire.sys")},
                          {sets(".release.sys"), waits(".acquire.gpu")},
                          {"fence.acq_rel.gpu;" + sets(".relaxed.sys"), waits(".acquire.sys")}}) {
    auto const& set  = way.first;
    auto const& wait = way.second;
    CAPTURE(set);
    for (auto const& order : orders) {
      CHECK(says(run_ranks({{gives + set}, {wait + keeps}}, order).wrong, race));
    }
  }
  std::string const block = blocks(gives + sets(".release.cta"), waits(".acquire.gpu") + keeps);
  CHECK(says(in_all_orders({{block}}, 2, 42, {.blocks = 2}), race));
  CHECK(says(in_all_orders({{gives}, {keeps}}, 2, 42), "a race"));
  // A flag that is no strong access, and one that is set before what it stands for.
  CHECK(says(run_ranks({{gives + sets("")}, {waits(".acquire.sys") + keeps}}).wrong, "a race"));
  std::string const too_early = "mov.u32 %r2, 1;" + sets(".release.sys") + gives;
  CHECK(says(in_all_orders({{too_early}, {waits(".acquire.sys") + keeps}}, 2, 42), "a race"));
}

TEST_CASE("[simulator] a thread releases its own accesses, and those before a barrier")
{
  // Each thread writes a word; thread 0 sets the flag for all, and so does the reading side.
  auto const writes = [](std::string const& barrier) {
    return "st.global.u32 [%mine+64], %tid; " + barrier +
           "mov.u32 %r2, 1; setp.eq.u32 %p2, %tid, 0; @%p2 st.release.sys.global.u32 [%out], %r2;";
  };
  auto const reads = [](std::string const& barrier) {
    return "setp.ne.u32 %p3, %tid, 0; @%p3 bra past;" + waits(".acquire.sys") + "past: " + barrier +
           "ld.global.u32 %r4, [%mine+64]; setp.eq.u32 %p4, %tid, 33;"
           "@%p4 st.global.u32 [%out+8], %r4;";
  };
  std::string const of_block = "bar.sync 0;", of_warp = "bar.warp.sync -1;";
  shape const two_warps{.threads = 34}, warp{.threads = 32};
  CHECK(in_all_orders({{writes(of_block)}, {reads(of_block)}}, 2, 33, two_warps) == "");
  CHECK(in_all_orders({{writes(of_warp)}, {reads(of_warp)}}, 2, 0, warp) == "");
  CHECK(says(in_all_orders({{writes("")}, {reads(of_block)}}, 2, 33, two_warps), "a race"));
  CHECK(says(in_all_orders({{writes(of_block)}, {reads("")}}, 2, 33, two_warps), "a race"));
  CHECK(says(in_all_orders({{writes(of_warp)}, {reads(of_block)}}, 2, 33, two_warps), "a race"));
  CHECK(says(in_all_orders({{writes("")}, {reads(of_warp)}}, 2, 0, warp), "a race"));
  CHECK(says(in_all_orders({{writes(of_warp)}, {reads("")}}, 2, 0, warp), "a race"));
}

TEST_CASE("[simulator] what another still reads must not be overwritten, by a later kernel either")
{
  std::string const later = "mov.u32 %r1, 43; st.global.u32 [%out+4], %r1;";
  std::string const reads = waits(".acquire.sys") + keeps;
  CHECK(says(in_all_orders({{gives + sets(".release.sys"), later}, {reads}}, 2, 42), "a race"));
  // Rank 1 says when it has read.
  std::string const done    = "mov.u32 %r5, 1; st.release.sys.global.u32 [%out+12], %r5;";
  std::string const is_done = "until: ld.acquire.sys.global.u32 %r6, [%out+12];"
                              "setp.eq.u32 %p2, %r6, 0; @%p2 bra until;";
  CHECK(in_all_orders({{gives + sets(".release.sys") + is_done, later}, {reads + done}}, 2, 42) ==
        "");
}

TEST_CASE(
  "[simulator] updates hand over what several wrote, and locks what one after the other writes")
{
  std::string const counts =
    "st.global.u32 [%mine+64], %tid; red.release.sys.global.add.u32 [%out], 1;";
  std::string const waits_for_two =
    "again: ld.acquire.sys.global.u32 %r3, [%out]; setp.ne.u32 %p1, %r3, 2; @%p1 bra again;"
    "ld.global.u32 %r4, [%out+68]; st.global.u32 [%out+8], %r4;";
  std::string const second = "add.s64 %mine, %mine, 4; mov.u32 %tid, 7;" + counts;
  CHECK(in_all_orders({{counts}, {second}, {waits_for_two}}, 2, 7) == "");

  auto const adds = [](std::string const& order) {
    return "again: atom." + order +
           ".sys.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra again;"
           "ld.global.u32 %r2, [%out+8]; add.u32 %r2, %r2, 1; st.global.u32 [%out+8], %r2;"
           "mov.u32 %r3, 0; st.release.sys.global.u32 [%out], %r3;";
  };
  CHECK(in_all_orders({{adds("acquire")}, {adds("acquire")}, {adds("acquire")}}, 2, 3) == "");
  CHECK(says(in_all_orders({{adds("relaxed")}, {adds("relaxed")}}, 2, 2), "a race"));
}

TEST_CASE("[simulator] a deadlock of ranks or blocks is an error")
{
  std::string const never = waits(".acquire.sys");
  for (auto const& order : orders) {
    auto const wrong = run_ranks({{never}, {never}}, order).wrong;
    CHECK(says(wrong, "a deadlock: all wait for memory that nobody changes: rank 0"));
    CHECK(says(wrong, "ld.acquire.sys.global.u32"));
  }
  // One that has gone will set no flag; a lock that nobody gives back.
  CHECK(says(run_ranks({{never}, {gives}}).wrong, "a deadlock"));
  std::string const lock = "again: atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;"
                           "setp.ne.u32 %p1, %r1, 0; @%p1 bra again;";
  CHECK(says(run_ranks({{lock}}, {}, {.blocks = 2}).wrong, "a deadlock"));
  // Some threads of a block wait for a flag that is set behind the barrier at which the others stand.
  std::string const crossed = "setp.ne.u32 %p3, %tid, 0; @%p3 bra past;" + never +
                              "past: bar.sync 0; mov.u32 %r2, 1;" + sets(".release.sys");
  CHECK(says(run_ranks({{crossed}}, {}, {.threads = 64}).wrong, "a deadlock"));
}

// What each block of a cooperative launch of two does; with the barrier of the grid, as cooperative groups have it, in the place of `|`.
static std::string of_grid(std::string body, bool together = true)
{
  std::string const barrier = R"(
    barrier.sync 0;
    setp.ne.u32 %p1, %tid, 0; @%p1 bra $past#;
    mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {%r2, %r1};
    setp.eq.s64 %p2, %rd1, 0; @%p2 trap;
    mov.u32 %r3, %nctaid.x; sub.u32 %r3, 2147483649, %r3;
    mov.u32 %r4, %ctaid.x; setp.eq.u32 %p3, %r4, 0; selp.b32 %r3, %r3, 1, %p3;
    atom.add.release.gpu.u32 %r5, [%rd1+4], %r3;
    $again#: ld.acquire.gpu.u32 %r6, [%rd1+4]; xor.b32 %r6, %r6, %r5;
    setp.ge.s32 %p4, %r6, 0; @%p4 bra $again#;
    $past#: barrier.sync 0;)";
  for (char number = '0'; body.find('|') != std::string::npos; ++number) {
    auto own = barrier;
    while (own.find('#') != std::string::npos) { own.replace(own.find('#'), 1, 1, number); }
    body.replace(body.find('|'), 1, own);
  }
  loaded_module module{one_kernel(body)};
  device_words const memory{room};
  std::vector<std::byte> parameters(sizeof(std::uint64_t));
  auto const address = reinterpret_cast<std::uint64_t>(memory.data());
  std::memcpy(parameters.data(), &address, sizeof(address));
  try {
    launch_counts const counts =
      run_kernel(module.kernel("k"),
                 {.grid = {2, 1, 1}, .block = {64, 1, 1}, .together = together},
                 parameters,
                 true);
    // Each block has read what the other one has written, 64 words further.
    return counts.loads.bytes >= 512 && memory.read()[0] == 100 ? "" : "another value";
  } catch (fault const& f) {
    return f.what();
  }
}

TEST_CASE("[simulator] blocks of a cooperative launch wait for each other")
{
  // A block leaves a word a thread at 4 (64 r + t), and reads those of the other one.
  std::string const leaves = "mov.u32 %r20, %ctaid.x; mad.wide.u32 %rd5, %r20, 256, %mine;"
                             "mov.u32 %r21, 100; st.global.u32 [%rd5], %r21;",
                    takes  = "sub.u32 %r22, 1, %r20; mad.wide.u32 %rd6, %r22, 256, %mine;"
                             "ld.global.u32 %r23, [%rd6];";
  CHECK(of_grid(leaves + "|" + takes) == "");
  CHECK(of_grid(leaves + "|" + takes + "|" + leaves + "|" + takes) == "");
  CHECK(says(of_grid(leaves + takes), "nobody has written"));
  CHECK(says(of_grid(leaves + "bar.sync 0;" + takes), "a race"));
  CHECK(says(of_grid(leaves + "|" + takes + leaves), "a race"));  // while others still read
  CHECK(says(of_grid(leaves + "setp.eq.u32 %p9, %r20, 1; @%p9 ret; |" + takes), "a deadlock"));
  CHECK(says(of_grid(leaves + "|" + takes, false), "the kernel gives up"));
}

TEST_CASE("[simulator] orders differ, and each is the same again")
{
  std::string const first = "mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, 1;"
                            "atom.relaxed.gpu.global.cas.b32 %r2, [%out], 0, %r1;";
  auto const winner       = [&](taking_turns order) {
    return run_ranks({{first}}, order, {.blocks = 9}).words[0];
  };
  CHECK(winner({.next = taking_turns::by::first}) == 1);
  CHECK(winner({.next = taking_turns::by::last}) == 9);
  std::vector<std::uint32_t> winners;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    taking_turns const order{.next = taking_turns::by::chance, .seed = seed, .most = 4};
    winners.push_back(winner(order));
    CHECK(winners.back() == winner(order));
  }
  CHECK(std::adjacent_find(winners.begin(), winners.end(), std::not_equal_to<>{}) != winners.end());
}

TEST_CASE("[simulator] lanes of a warp wait for one another, and for a rank that stays away")
{
  // The lane that waits is behind the one that sets its flag.
  std::string const within = "setp.ne.u32 %p3, %tid, 0; @%p3 bra sets;" + waits(".acquire.sys") +
                             "bra end; sets: mov.u32 %r2, 1;" + sets(".release.sys") + "end:";
  CHECK(in_all_orders({{within}}, 0, 1, {.threads = 2}) == "");

  interleaved_ranks device{2};
  device.patience = std::chrono::milliseconds(50);
  interleaved_ranks::member const here{device, 0};
  CHECK(says(fault_of("ret;"), "a rank neither launches a kernel nor goes"));
}

TEST_CASE("[simulator] a race between the blocks of an ordinary launch")
{
  auto const found = [](std::string const& body, std::uint32_t blocks) {
    return fault_of(body, 32, 64, 4096, blocks);
  };
  // A word for each block, and one that is the same for all.
  std::string const own = "mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd1, %r1, 4, %out;";
  std::string const shared =
    "setp.ne.u32 %p1, %tid, 0; @%p1 bra end; st.global.u32 [%out], %tid; end:";
  std::string const apart =
    own + "setp.ne.u32 %p1, %tid, 0; @%p1 bra end; st.global.u32 [%rd1], %tid; end:";
  CHECK(found(shared, 3) == "");
  setenv("TERSUM_SIMULATED_TOGETHER", "3", 1);
  CHECK(says(found(shared, 3), "a race"));
  CHECK(found(apart, 3) == "");
  // A block that reads what another one writes may come before it.
  std::string const zero = "ld.global.u32 %r3, [%out];";
  CHECK(says(found(apart + zero, 3), "global memory that nobody has written"));
  // More blocks than the limit run one after the other.
  CHECK(found(shared, 4) == "");
  unsetenv("TERSUM_SIMULATED_TOGETHER");
}
