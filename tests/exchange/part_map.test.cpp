// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parts of two_shot against dealing chunks one by one.

#include <tersum/exchange/detail/part_map.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace tersum;
using detail::part_map;

namespace {

// Deals the chunks, widest first, and compares every place.
void check_against_dealing(part_map const& map)
{
  struct part {
    std::uint32_t chunks = 0;
    std::uint64_t words  = 0;
  };
  std::vector<part> parts(map.world);
  std::uint32_t position = 0;
  for (std::uint32_t level = detail::max_levels; level > 0; --level) {
    for (std::uint32_t slot = 0; slot < map.count[level]; ++slot, ++position) {
      std::uint32_t const owner = position % map.world;
      part& mine                = parts[owner];
      for (auto const& place : {map.of_slot(level, slot), map.of_index(owner, mine.chunks)}) {
        REQUIRE(place.level == level);
        REQUIRE(place.part == owner);
        REQUIRE(place.index == mine.chunks);
        REQUIRE(place.word == mine.words);
      }
      mine.chunks += 1;
      mine.words += map.words[level];
    }
  }
  std::uint64_t least = parts[0].words, most = 0;
  for (std::uint32_t owner = 0; owner < map.world; ++owner) {
    CHECK(map.chunks_of(owner) == parts[owner].chunks);
    CHECK(map.rest_of(owner).begin == parts[owner].words);
    least = std::min(least, parts[owner].words);
    most  = std::max(most, parts[owner].words);
  }
  // Dealt in descending order, parts differ by the widest chunk at most.
  CHECK(most - least <= map.words[detail::max_levels]);
}

}  // namespace

TEST_CASE("[part_map] chunks are dealt like cards, and every one has a place of its own")
{
  std::mt19937 random(3);
  for (unsigned const world : {1u, 2u, 3u, 4u, 16u, 61u}) {
    for (unsigned const most : {1u, 2u, 5u, 100u}) {
      CAPTURE(world);
      CAPTURE(most);
      part_map map{};
      map.world = world;
      for (int level = 1; level <= detail::max_levels; ++level) {
        map.count[level] = static_cast<std::uint32_t>(random() % most);
        map.words[level] = static_cast<std::uint32_t>(8 * level);
      }
      check_against_dealing(map);
    }
  }
  part_map const of_one_width{.world      = 4,
                              .by_world   = detail::divisor::of(4),
                              .part_words = 64,
                              .count      = {0, 9},
                              .words      = {0, 16}};
  CHECK(of_one_width.of_slot(1, 6).part == 2);
  CHECK(of_one_width.of_slot(1, 6).word == 16);
  for (std::uint32_t chunk = 0; chunk < 9; ++chunk) {
    auto const dealt = of_one_width.of_slot(1, chunk), found = of_one_width.of_chunk(chunk);
    CHECK(found.level == 1);
    CHECK(found.part == dealt.part);
    CHECK(found.index == dealt.index);
    CHECK(found.word == dealt.word);
  }
  CHECK(of_one_width.scale_word(1) == 62);
  CHECK(of_one_width.of_slot(0, 5).level == 0);
}

TEST_CASE("[parts] quotients by a product and a shift are those of a division")
{
  std::mt19937 random(5);
  constexpr std::uint32_t most = 0x7fffffffu;
  for (int i = 0; i < 20000; ++i) {
    std::uint32_t const drawn = i < 5000 ? 0u : static_cast<std::uint32_t>(random());
    std::uint32_t const by =
      i < 5000 ? static_cast<std::uint32_t>(i) + 1 : (drawn >> (1 + drawn % 31)) + 1;
    auto const divides       = detail::divisor::of(by);
    std::uint32_t const some = static_cast<std::uint32_t>(random()) & most;
    // Quotients change at multiples.
    for (std::uint32_t const number :
         {0u, some, some / by * by, some / by * by + (by - 1), most, most / by * by - 1}) {
      if (number > most) { continue; }
      CAPTURE(by);
      CAPTURE(number);
      REQUIRE(divides.quotient(number) == number / by);
    }
  }
}
