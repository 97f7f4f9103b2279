// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Buckets of many tensors: the kernel bodies equal the CPU executor bit for bit.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"

#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

using tracked_global = tests::
  rotated_sums<256, global_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>;

using wide = tests::rotated_sums<2048,
                                 absmax_range<tracked_correlation>,
                                 stochastic_quantizer<8>,
                                 saturating_sum<8>,
                                 error_feedback>;

TEST_CASE("[kernels] tensors of a bucket")
{
  SUBCASE("rotated_sat4") { compare_buckets<float>(presets::rotated_sat4); }
  SUBCASE("rotated_sat2_ef") { compare_buckets<float>(presets::rotated_sat2_ef); }
  SUBCASE("rotated_sat4_ef of bfloat16") { compare_buckets<bfloat16>(presets::rotated_sat4_ef); }
  SUBCASE("thc_wide4_partial of half") { compare_buckets<half>(presets::thc_wide4_partial); }
  SUBCASE("one norm a tensor") { compare_buckets<float>(tracked_global{}); }
  SUBCASE("a chunk a block") { compare_buckets<float>(wide{}); }
}

// All that a block must know to find its chunks.
struct numbered_block {
  std::uint32_t number;
  [[nodiscard]] std::uint32_t block_rank() const { return number; }
};

TEST_CASE("[kernels] every chunk of every tensor is in the subtree of one block, and in its sum")
{
  using counts = std::vector<std::uint64_t>;
  for (counts const& of_tensors : {counts{1},
                                   counts{1024},
                                   counts{2047},
                                   counts{2048},
                                   counts{1023, 0, 3072, 1, 2049, 1025, 0, 5000, 2047, 6144},
                                   counts{4096, 4096, 1024, 1024, 1024, 3}}) {
    std::vector<tensor_record> records;
    std::vector<chunk_entry> table;
    for (std::uint64_t const chunks : of_tensors) {
      tensor_record record{};
      record.first_chunk = table.size();
      record.chunks      = chunks;
      auto const number  = static_cast<std::uint32_t>(records.size());
      table.resize(table.size() + chunks, {.offset = 0, .length = 256, .tensor = number});
      records.push_back(record);
    }
    detail::exchange_args<tracked_global, float> args{};
    args.records = records.data();
    args.table   = table.data();
    args.tensors = records.size();
    args.chunks  = table.size();
    std::vector<int> seen(table.size());
    counts blocks(records.size());
    std::uint64_t const all = detail::tensor_blocks(args.tensors, args.chunks);
    for (std::uint32_t block = 0; block < all; ++block) {
      auto const mine = detail::find_subtree(numbered_block{block}, args);
      if (mine.subtrees == 0) { continue; }
      auto const& record = records[mine.tensor];
      ++blocks[mine.tensor];
      CHECK(mine.subtrees == std::max<std::uint64_t>(record.chunks / 1024, 1));
      CHECK((mine.subtrees == 1 || mine.chunks >= 1024));
      CHECK(mine.chunks < 2048);
      for (std::uint64_t i = 0; i < mine.chunks; ++i) {
        REQUIRE(table[mine.first + i].tensor == mine.tensor);
        ++seen[mine.first + i];
      }
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(seen.size()));
    for (std::size_t i = 0; i < records.size(); ++i) {
      auto const& record = records[i];
      CHECK(blocks[i] == std::max<std::uint64_t>(record.chunks / 1024, 1));
      double const sum = detail::tensor_sum(record, [](double before, std::uint64_t chunk) {
        return before + static_cast<double>(chunk);
      });
      std::uint64_t const twice =
        record.chunks == 0 ? 0 : record.chunks * (2 * record.first_chunk + record.chunks - 1);
      CHECK(sum == static_cast<double>(twice) / 2);
    }
  }
}

// Notes down what would be launched for edges.
struct noting_executor {
  std::uint64_t* edges;
  std::uint64_t* blocks;

  template <class Kernel, class Args>
  [[nodiscard]] status run([[maybe_unused]] Kernel const& kernel,
                           [[maybe_unused]] std::uint64_t count,
                           Args const&) const
  {
    if constexpr (std::is_same_v<Kernel, detail::encode_kernel<true>>) {
      *edges  = kernel.first;
      *blocks = count;
    }
    return {};
  }
};

// Four chunks of 256 coordinates lie in a group, four groups in a block.
void check_edge_groups(bucket const& tensors, std::size_t misplaced)
{
  CAPTURE(misplaced);
  plan<tracked_global> const plan{
    tracked_global{}, tensors.gradient(), world{.size = 1, .rank = 0}};
  alignas(16) static float memory[1 << 21];
  detail::exchange_args<tracked_global, float> args{};
  std::vector<tensor_record> records;
  std::vector<chunk_entry> table(plan.chunks());
  std::vector<int> wanted((plan.chunks() + 3) / 4), visits(wanted.size());
  std::uint64_t edge_chunks = 0;
  args.gradient             = memory + misplaced;
  plan.for_each_record([&](tensor_record const& record) {
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      std::uint64_t const chunk = record.first_chunk + i;
      bool const is_edge = (misplaced + record.offset) % 4 != 0 || record.size - i * 256 < 256;
      edge_chunks += is_edge ? 1 : 0;
      wanted[chunk / 4] |= is_edge ? 1 : 0;
      table[chunk] = {.offset = record.offset + i * 256,
                      .length = 256,
                      .tensor = static_cast<std::uint32_t>(records.size())};
    }
    records.push_back(record);
  });
  args.records        = records.data();
  args.table          = table.data();
  args.tensors        = plan.tensors();
  args.chunks         = plan.chunks();
  std::uint64_t edges = 0, blocks = 0;
  noting_executor const exec{&edges, &blocks};
  detail::launch_list<noting_executor, tracked_global, float> launches{exec, plan, args};
  launches.chunks<detail::encode_kernel>();
  for (std::uint32_t slot = 0; slot < 4 * blocks; ++slot) {
    std::uint64_t const chunk = detail::edge_group<4>(args, edges, slot);
    if (chunk >= plan.chunks()) { continue; }
    REQUIRE(chunk % 4 == 0);
    ++visits[chunk / 4];
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(visits[i] >= wanted[i]);
    CHECK(visits[i] <= 1);
  }
  CHECK((blocks == 0) == (edge_chunks == 0));
  if (misplaced == 0 && plan.tensors() < 20) {
    // A group for each tensor and, of those that are not aligned, one for each four chunks.
    CHECK(blocks <= (plan.tensors() + edge_chunks / 4 + 2 + 3) / 4);
  }
}

TEST_CASE(
  "[kernels] a kernel of edges goes through each group with an edge once, and through few others")
{
  std::vector<bucket::shape> small;
  for (unsigned i = 0; i < 300; ++i) { small.push_back({4 + i % 5, 60 + i % 29}); }
  for (std::size_t const misplaced : {0u, 1u}) {
    check_edge_groups(bucket{{{64, 256}}}, misplaced);
    check_edge_groups(bucket{{{64, 257}}}, misplaced);
    check_edge_groups(
      bucket{{{64, 256}, {7, 256}, {400, 257}, {1, 4}, {3, 100}, {4, 90}, {90, 256}}}, misplaced);
    check_edge_groups(bucket{{{64, 256}, {1, 3}, {700, 256}}}, misplaced);
    check_edge_groups(odd_bucket(), misplaced);
    check_edge_groups(bucket{small}, misplaced);
  }
}

// What lanes access at once is as many neighbours, in whatever order, and all accesses together are the row.
template <unsigned Lanes>
void check_lane_row()
{
  CAPTURE(Lanes);
  std::vector<int> moved(Lanes * 8);
  for (unsigned k = 0; k < 8; ++k) {
    for (unsigned lane = 0; lane < Lanes; ++lane) {
      using row         = detail::lane_row<Lanes>;
      unsigned const at = row::owner(lane, k) * 8 + row::element(lane, k);
      // Four lanes have halves of eights in turn.
      REQUIRE(at / Lanes == (Lanes == 4 ? k % 4 * 2 + k / 4 : k));
      ++moved[at];
    }
  }
  CHECK(std::count(moved.begin(), moved.end(), 1) == static_cast<std::ptrdiff_t>(moved.size()));
}

TEST_CASE("[kernels] lanes that move an element each of chunks at edges move neighbours")
{
  check_lane_row<4>();
  check_lane_row<8>();
  check_lane_row<16>();
  check_lane_row<32>();
}

TEST_CASE("[kernels] blocks add up the chunks of one tensor together")
{
  compare_kernels<tracked_global, float>(
    {.gradient = deep_bucket<256>().gradient(), .world = 1, .steps = 2});
}

TEST_CASE("[kernels] more tensors than one launch of initialize takes")
{
  std::vector<bucket::shape> shapes;
  for (unsigned i = 0; i < 70; ++i) { shapes.push_back({1 + i % 5, 9 + i % 7}); }
  bucket const many{shapes};
  compare_kernels<tracked_global, float>({.gradient = many.gradient(), .world = 1, .steps = 1});
}

TEST_CASE("[kernels] buckets in which everything bypasses, or nothing is")
{
  bucket const vectors{{{1, 5}, {300, 1}, {3, 3}}};
  bucket const nothing{{{0, 5}, {7, 0}}};
  for (bucket const* const all : {&vectors, &nothing}) {
    compare_kernels<tracked_global, float>({.gradient = all->gradient(), .world = 3, .steps = 2},
                                           emulator::thread_orders);
  }
}

}  // namespace
