// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where coordinates and their signs lie, for every size of a chunk.

#include "support/mismatches.hpp"

#include <tersum/block/chunk_order.hpp>
#include <tersum/chunk/fixed_chunks.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using tersum::chunk_order;
using tersum::tests::mismatches;

TEST_CASE_TEMPLATE("[chunk_order] positions and signs are bijections, for every size",
                   Order,
                   chunk_order<32>,
                   chunk_order<64>,
                   chunk_order<128>,
                   chunk_order<256>,
                   chunk_order<512>,
                   chunk_order<1024>,
                   chunk_order<2048>,
                   chunk_order<4096>,
                   chunk_order<8192>,
                   chunk_order<16384>,
                   chunk_order<32768>)
{
  constexpr int size = []<int Size>(chunk_order<Size>) { return Size; }(Order{});
  std::vector<int> taken(size), signs(size);
  mismatches inverse, definition;
  for (int i = 0; i < size; ++i) {
    int const position = Order::position(i);
    REQUIRE(position >= 0);
    REQUIRE(position < size);
    ++taken[static_cast<std::size_t>(position)];
    inverse.expect(Order::coordinate(position), i, i);
    inverse.expect(Order::position(Order::coordinate(i)), i, i);

    // A matrix of rows of eight coordinates, written column by column.
    int const block = size < 256 ? size : 256, first = i - i % block;
    int const row = (i - first) / 8, column = (i - first) % 8;
    definition.expect(position, first + column * (block / 8) + row, i);

    int const word = Order::sign_word(i), bit = Order::sign_bit(i);
    REQUIRE(word >= 0);
    REQUIRE(word < size / 32);
    REQUIRE(bit >= 0);
    REQUIRE(bit < 32);
    ++signs[static_cast<std::size_t>(32 * word + bit)];
  }
  CHECK(inverse.report() == "");
  CHECK(definition.report() == "");
  CHECK(taken == std::vector<int>(size, 1));
  CHECK(signs == std::vector<int>(size, 1));
}

TEST_CASE("[chunk_order] the examples of the wire format")
{
  using small = chunk_order<128>;
  using large = chunk_order<1024>;
  // Neighbours of a row of eight are a column apart: 16 of 128 positions, 32 of 256.
  static_assert(small::position(0) == 0 && small::position(1) == 16 && small::position(8) == 1);
  static_assert(small::position(127) == 127);
  static_assert(large::position(1) == 32 && large::position(8) == 1 && large::position(255) == 255);
  static_assert(large::position(256) == 256 && large::position(257) == 288);
  // A word of signs covers eight neighbours in each quarter of the chunk.
  static_assert(large::sign_word(7) == 0 && large::sign_bit(7) == 7);
  static_assert(large::sign_word(8) == 1 && large::sign_bit(8) == 0);
  static_assert(large::sign_word(256) == 0 && large::sign_bit(256) == 8);
  static_assert(large::sign_word(1023) == 31 && large::sign_bit(1023) == 31);
  CHECK(tersum::fixed_chunks<1024>::chunk_size == 1024);
}

}  // namespace
