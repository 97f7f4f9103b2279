// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where chunks lie in tiles, against filling them one after the other, and that a plan's tiles hold them all.

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace tersum;

namespace {

using blocks   = group_absmax<8, 16, geometric_levels<23, 10>, byte_scale>;
using three    = requantizing_tiles<blocks, 256, 2, 4, 8>;
using one      = requantizing_tiles<group_absmax<4, 32>, 512>;
using seven    = requantizing_tiles<lloyd_max<8>, 512, 1, 2, 3, 4, 5, 6, 8>;
using unheaded = requantizing_sum<lloyd_max<4>, 1024>;

template <class Op, int... Level>
std::array<std::uint32_t, sizeof...(Level) + 1> words_of(std::integer_sequence<int, Level...>)
{
  return {0, detail::requantized_words<Op, Level + 1>...};
}

// Fills tiles, widest first, and compares every place. Returns how many tiles it takes.
template <class Op>
std::uint32_t check_against_filling(detail::tile_map<Op> const& map)
{
  auto const words = words_of<Op>(std::make_integer_sequence<int, Op::levels>{});
  std::vector<detail::tile_counts<Op>> tiles(1);
  std::uint32_t used = 0, index = 0;
  for (std::uint32_t level = Op::levels; level > 0; --level) {
    for (std::uint32_t slot = 0; slot < map.count[level]; ++slot) {
      if (map.room - used < words[level]) {
        tiles.emplace_back();
        used = index = 0;
      }
      auto const place = map.of_slot(level, slot);
      REQUIRE(place.level == level);
      REQUIRE(place.part == tiles.size() - 1);
      REQUIRE(place.index == index);
      REQUIRE(place.word == used - index);  // a scale of one word each lies at the end
      used += words[level];
      ++index;
      ++tiles.back().count[level];
    }
  }
  for (std::uint32_t tile = 0; tile < tiles.size() + 2; ++tile) {
    auto const got   = map.counts_of(tile);
    auto const want  = tile < tiles.size() ? tiles[tile] : detail::tile_counts<Op>{};
    std::uint32_t at = 0, word = 0;
    for (std::uint32_t level = Op::levels; level > 0; --level) {
      REQUIRE(got.count[level] == want.count[level]);
      for (std::uint32_t i = 0; i < want.count[level]; ++i, ++at, word += words[level] - 1) {
        REQUIRE(got.place(at).level == level);
        REQUIRE(got.place(at).word == word);
      }
    }
    REQUIRE(got.chunks() == at);
    REQUIRE(got.place(at).level == 0);
    REQUIRE(map.rest_of(tile).begin == word);
    REQUIRE(map.rest_of(tile).end == map.room - at);
  }
  return static_cast<std::uint32_t>(tiles.size());
}

template <class Op>
void check_random(unsigned most)
{
  std::mt19937 random(most);
  for (int trial = 0; trial < 20; ++trial) {
    detail::tile_map<Op> map{};
    for (int level = 1; level <= Op::levels; ++level) {
      map.count[level] = static_cast<std::uint32_t>(random() % most);
    }
    check_against_filling(map);
  }
}

}  // namespace

TEST_CASE("[tile_map] chunks fill one tile after the other, and every one has a place of its own")
{
  for (unsigned const most : {1u, 2u, 40u, 700u}) {
    CAPTURE(most);
    check_random<three>(most);
    check_random<one>(most);
    check_random<seven>(most);
    check_random<unheaded>(most);
  }
}

TEST_CASE("[tile_map] tiles are large enough to lose little, and of whole vectors")
{
  // 2 bits: 64 bytes of codes, 16 of scales, 4 of one scale more; 4 and 8 bits: 128 and 256 bytes of codes.
  CHECK(detail::requantized_words<three, 1> == 21);
  CHECK(detail::requantized_words<three, 2> == 37);
  CHECK(detail::requantized_words<three, 3> == 69);
  // 31 of the widest, 58 and 102 of the others leave 9, 2 and 6 of 2148 words free.
  CHECK(sizeof(three::element) == 4 * (8 + 2148));
  CHECK(three::element::room - 31 * 69 == 9);
  CHECK(three::shape::size.lost == 9);
  CHECK(three::element::chunks == 102);
  // 64 words of codes, 4 of scales of 16 blocks, 1.
  CHECK(sizeof(one::element) == 4 * (8 + 16 * 69));
  CHECK(one::element::chunks == 16);
  CHECK(sizeof(seven::element) % 16 == 0);
}

TEST_CASE("[tile_map] what a plan has room for fits its tiles, whatever widths are chosen")
{
  std::mt19937 random(11);
  auto const check = [&]<class Codec>(Codec const& codec, std::uint64_t d) {
    using op         = typename Codec::payload_op;
    auto const words = words_of<op>(std::make_integer_sequence<int, op::levels>{});
    auto const plan  = codec.plan(layout{d}, {.size = 3});
    REQUIRE(plan.check() == status{});
    REQUIRE(plan.bits_per_coordinate() <= static_cast<double>(codec.chunker.bits));
    std::uint32_t const capacity = plan.selection_rule().capacity;
    REQUIRE(capacity > 0);
    // Chunks of random widths, until the budget is spent but for less than the narrowest.
    for (int trial = 0; trial < 50; ++trial) {
      detail::tile_map<op> map{};
      std::array<std::uint32_t, op::levels + 1> weight{};
      for (std::uint32_t& w : weight) { w = static_cast<std::uint32_t>(random() % 4); }
      std::uint32_t left = capacity;
      for (std::uint32_t level = op::levels; level > 0; --level) {
        std::uint32_t const most = left / words[level];
        map.count[level] =
          level == 1 ? most : static_cast<std::uint32_t>(random() % (most + 1)) * weight[level] / 3;
        map.count[level] = std::min(map.count[level], most);
        left -= map.count[level] * words[level];
      }
      REQUIRE(check_against_filling(map) <= plan.tiles());
    }
  };
  check(presets::dynamiq_hop_4, 17'900);
  check(presets::dynamiq_hop_4, 391'008);
  check(presets::dynamiq_hop_5, 100'000);
  using codec =
    per_hop_codec<allocated_chunks<512, 1, 2, 3, 4, 5, 6, 8>, partial_hadamard<512>, lloyd_max<8>>;
  check(codec{.chunker = {.bits = 3}}, 200'000);
}
