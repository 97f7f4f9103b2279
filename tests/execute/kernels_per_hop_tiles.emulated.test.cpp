// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernel bodies of per-hop codecs with tiles give the bytes of the CPU.

#include "support/compare_kernels.hpp"

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/device/reduce.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
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

TEST_CASE("[kernels] tiles of several ranks are added one after the other, in one launch")
{
  using op = dynamiq::payload_op;
  std::vector<op::element> ranks[4];
  for (unsigned rank = 0; rank < 4; ++rank) { ranks[rank] = draw_tiles<op>(rank + 1); }
  auto want = ranks[0];
  for (unsigned rank = 1; rank < 4; ++rank) {
    for (std::size_t i = 0; i < want.size(); ++i) { want[i] = op{}(want[i], ranks[rank][i]); }
  }
  std::vector<op::element const*> const addresses{
    ranks[0].data(), ranks[1].data(), ranks[2].data(), ranks[3].data()};
  auto const bytes = want.size() * sizeof(op::element);
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    std::vector<op::element> to(want.size());
    std::memset(to.data(), 0xa5, bytes);
    REQUIRE(tersum::reduce(emulated_executor{order}, op{}, std::span{to}, addresses) == status{});
    CHECK(std::memcmp(to.data(), want.data(), bytes) == 0);
  }
  // In place of the first.
  REQUIRE(tersum::reduce(emulated_executor{}, op{}, std::span{ranks[0]}, addresses) == status{});
  CHECK(std::memcmp(ranks[0].data(), want.data(), bytes) == 0);
}

TEST_CASE("[kernels] a hop refuses arrays that are not aligned to 16 bytes, and writes nothing")
{
  using op      = dynamiq::payload_op;
  using element = op::element;
  host_buffer const to{sizeof(element), 0, std::byte{0x77}}, a{sizeof(element), 0, std::byte{0}},
    b{sizeof(element), 0, std::byte{0}}, late{sizeof(element), 4, std::byte{0}};
  auto const at = [](host_buffer const& buffer) {
    return reinterpret_cast<element*>(buffer.contents().data());
  };
  emulated_executor const exec;
  for (status const& s : {exec.reduce(op{}, at(late), at(a), at(b), 1),
                          exec.reduce(op{}, at(to), at(late), at(b), 1),
                          exec.reduce(op{}, at(to), at(a), at(late), 1)}) {
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find("aligned to 16 bytes") != std::string_view::npos);
  }
  CHECK(to.read(0, sizeof(element)) == byte_string(sizeof(element), std::byte{0x77}));
}

// Before the tile and behind it lies what must not change; ASan sees what is read there.
TEST_CASE(
  "[kernels] a tile whose head names more chunks than fit holds none, and nothing beside it is touched")
{
  using op         = dynamiq::payload_op;
  using element    = op::element;
  element const as = draw_tiles<op>(1)[2], bs = draw_tiles<op>(2)[2];
  int empty = 0;
  for (unsigned bit = 0; bit < 128; ++bit) {
    CAPTURE(bit);
    host_buffer const a{sizeof(element), 0, std::byte{0}}, b{sizeof(element), 0, std::byte{0}},
      to{sizeof(element), 0, std::byte{0x77}};
    element wrong = as;
    wrong.about.word[4 + bit / 32] ^= 1u << bit % 32;
    // The wire format's words of a chunk: 21, 37 and 69 with 2, 4 and 8 bits, of 2148 behind the head.
    bool const fits =
      21 * wrong.about.count(1) + 37 * wrong.about.count(2) + 69 * wrong.about.count(3) <= 2148;
    a.write(std::as_bytes(std::span{&wrong, 1}));
    b.write(std::as_bytes(std::span{&bs, 1}));
    auto const at = [](host_buffer const& buffer) {
      return reinterpret_cast<element*>(buffer.contents().data());
    };
    element const want = op{}(*at(a), *at(b));
    CHECK(std::memcmp(&want.about, &wrong.about, sizeof(tile_head)) == 0);
    if (!fits) {
      ++empty;
      CHECK(std::all_of(std::begin(want.word), std::end(want.word), [](auto w) { return w == 0; }));
    }
    REQUIRE(cpu_executor{}.reduce(op{}, at(to), at(a), at(b), 1) == status{});
    CHECK(std::memcmp(at(to), &want, sizeof(element)) == 0);
    REQUIRE(emulated_executor{}.reduce(op{}, at(to), at(a), at(b), 1) == status{});
    CHECK(std::memcmp(at(to), &want, sizeof(element)) == 0);
  }
  CHECK(empty > 24);  // those of 2^7 chunks and above, of three levels
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
  compare_kernels<dynamiq, float>({.codec    = dynamiq{.chunker = {.bits = 6}},
                                   .gradient = {.coordinates = 20'011},
                                   .hostile  = true});
}

TEST_CASE("[kernels] blocks with scales of their own in hops")
{
  compare_orders<bfloat16>(one_width{}, 2, true);
  compare_buckets<float>(one_width{});
}

}  // namespace
