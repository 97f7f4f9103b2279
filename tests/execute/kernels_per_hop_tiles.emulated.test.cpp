// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of per-hop codecs with tiles give the bytes of the CPU.

#include "support/compare_kernels.hpp"

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

using dynamiq = std::remove_cvref_t<decltype(presets::dynamiq_hop_4)>;
using one_width =
  per_hop_codec<fixed_chunks<512>, no_rotation, group_absmax<4, 32>, error_feedback>;

// Tiles whose chunks hold codes and scales at random, up to a block's worth of them, and one tile without chunks.
template <class Op>
std::vector<typename Op::element> draw_tiles(unsigned which)
{
  std::uint32_t x = which;
  std::vector<typename Op::element> tiles(3);
  for (std::uint32_t number = 0; number < tiles.size(); ++number) {
    std::uint32_t counts[Op::levels + 1] = {};
    for (int level = 1; level <= Op::levels; ++level) {
      counts[level] = number * static_cast<std::uint32_t>(4 - level);
    }
    auto& tile = tiles[number];
    tile.about = tile_head::make<Op::levels>(0x123456789abcdefull, number + 7, counts);
    detail::tile_counts<Op> const held = Op::counts_of(tile.about);
    for (std::uint32_t w = 0; w < held.place(held.chunks()).word; ++w) {
      tile.word[w] = x = x * 1664525u + 1013904223u;
    }
    for (std::uint32_t chunk = 0; chunk < held.chunks(); ++chunk) {
      tile.word[tile.scale_of(static_cast<int>(chunk))] = 0x3f800000u + (x >> 4) + (chunk << 21);
    }
  }
  return tiles;
}

TEST_CASE("[kernels] a hop of tiles writes what the definition says, all of it")
{
  using op     = dynamiq::payload_op;
  auto const a = draw_tiles<op>(1), b = draw_tiles<op>(2);
  std::vector<op::element> want, to(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) { want.push_back(op{}(a[i], b[i])); }
  auto const bytes = a.size() * sizeof(op::element);
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    std::memset(to.data(), 0xa5, bytes);
    REQUIRE(emulated_executor{order}.reduce(op{}, to.data(), a.data(), b.data(), a.size()) ==
            status{});
    CHECK(std::memcmp(to.data(), want.data(), bytes) == 0);
    to = b;
    REQUIRE(emulated_executor{order}.reduce(op{}, to.data(), a.data(), to.data(), a.size()) ==
            status{});
    CHECK(std::memcmp(to.data(), want.data(), bytes) == 0);
  }
}

TEST_CASE("[kernels] chunks of several widths that every hop decodes, adds and encodes")
{
  // All chunks have 8 bits where the budget is large, some 4 and none where it is not.
  compare_kernels<dynamiq, float>({.codec           = dynamiq{.chunker = {.bits = 64}},
                                   .gradient        = {.coordinates = 4353},
                                   .world           = 3,
                                   .steps           = 2,
                                   .non_finite_step = 1},
                                  emulator::thread_orders);
  compare_kernels<dynamiq, half>({.codec    = dynamiq{.chunker = {.bits = 6}},
                                  .gradient = {.coordinates = 20'011},
                                  .world    = 2,
                                  .steps    = 1});
}

TEST_CASE("[kernels] blocks with scales of their own in hops")
{
  compare_orders<bfloat16>(one_width{}, 2, true);
  compare_buckets<float>(one_width{});
}

}  // namespace
