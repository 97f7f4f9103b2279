// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels that choose chunks, in the emulator.

#include "in_the_emulator.hpp"
#include "select_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE(
  "[device] kernels that choose take the largest norms, of equal ones those whose turn it is",
  Norm,
  float,
  bfloat16)
{
  in_every_order([](auto const& on) {
    for (std::size_t const count : {0u, 1u, 997u}) { check_top_chunks<Norm>(on, count); }
    for (std::uint64_t const turn : {1u, 2u}) { check_top_chunks<Norm>(on, 997, turn); }
  });
}

TEST_CASE("[device] several blocks, which wait for each other, choose alike")
{
  // One block, then 9 blocks of one chunk a thread, and as many blocks as are resident, of 17 chunks a thread.
  for (std::size_t const count : {4096u, 4097u, (1u << 17) + 5}) {
    check_top_chunks<bfloat16>(emulated_placement{}, count, 0, count > 4097);
  }
  // Ties of many blocks: from amid one on to the end, and on from the beginning.
  for (std::uint64_t const turn : {1u, 3u, 4u}) {
    check_top_chunks<bfloat16>(emulated_placement{}, 5003, turn, true);
  }
}

TEST_CASE("[device] several blocks choose as one thread does")
{
  in_every_order([](auto const& on) { check_choice_as_cpu(on, 5003); });
}

namespace {

// Norms that count how often they are read, of chunks that are also listed.
struct counted_norms {
  std::uint64_t chunks;
  bfloat16 const* norms;
  std::uint32_t* reads;
  detail::ordered_selection_args selection;
};

template <class Context>
std::uint32_t selection_energy(Context const& ctx, counted_norms const& args, std::uint64_t chunk)
{
  ++args.reads[chunk];
  return detail::energy_bits(ctx.load(args.norms + chunk));
}

std::uint64_t selection_turn(counted_norms const&) { return 1; }

template <class Args, unsigned Levels>
struct counting_kernel {
  static constexpr auto threads = &cuda_tuning::select_threads;
  static constexpr int shared   = detail::select_shared;

  Args args;

  template <class Context>
  void operator()(Context const& ctx) const
  {
    detail::select_of<Levels>(ctx, args);
  }
};

}  // namespace

TEST_CASE("[device] a choice reads each norm once, and lists chunks by their levels")
{
  constexpr std::size_t chunks = 5003;
  auto const norms             = sample_norms<bfloat16>(chunks);
  std::vector<std::uint32_t> reads(chunks), places(chunks), order(chunks), sorted(chunks);
  std::vector<detail::selection_scratch> scratch(1);
  auto const rule = rule_of(allocated_chunks<256, 2, 4, 8>{}, saturating_sum<8>{}, 4, chunks * 16);
  emulated_executor const exec;
  for (std::uint64_t const blocks : {1u, 3u, 10u}) {
    CAPTURE(blocks);
    std::fill(reads.begin(), reads.end(), 0u);
    std::memset(scratch.data(), 0xa5, sizeof(scratch[0]));
    counted_norms const args{
      chunks, norms.data(), reads.data(), {{rule, scratch.data(), places.data()}, order.data()}};
    REQUIRE(detail::run_together(exec, counting_kernel<counted_norms, 3>{args}, blocks) ==
            status{});
    CHECK(std::all_of(reads.begin(), reads.end(), [](std::uint32_t n) { return n == 1; }));
    CHECK(scratch[0].header.count[3] > 0);
    // The highest level first, chunks that stay behind last.
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
      return places[a] % 8 > places[b] % 8;
    });
    CHECK(order == sorted);
    std::fill(order.begin(), order.end(), 0u);
  }
}

TEST_CASE("[device] kernels choose as an exchange does")
{
  in_every_order([](auto const& on) { check_choice_of_exchange(on, 20011); });
}

TEST_CASE("[device] launches that choose name the argument at fault and write nothing")
{
  check_select_arguments(emulated_placement{});
}
