// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The arithmetic of tensor cores, as the emulator and the simulator have it.

#pragma once

namespace tersum::tests {

//! @brief Element i of 4 that a lane has of a b + start, for tiles 16 x 16 and 16 x 8 of 16 bits.
//!
//! The lanes hold the tiles as PTX's section on the fragments of `mma.m16n8k16` says: two neighbours of a row of a, or of
//! a column of b, in a word. Products are exact, their sum is double, in the order of the columns of a.
//! @param value_at  value_at(lane, word, place) of words 0 to 3 of a, 4 and 5 of b
template <class ValueAt>
[[nodiscard]] double tile_element(unsigned lane, unsigned i, double start, ValueAt const& value_at)
{
  unsigned const row    = lane / 4 + i / 2 * 8;
  unsigned const column = lane % 4 * 2 + i % 2;
  for (unsigned k = 0; k < 16; ++k) {
    unsigned const in_group = k % 8 / 2;
    start += value_at(row % 8 * 4 + in_group, row / 8 + k / 8 * 2, k % 2) *
             value_at(column * 4 + in_group, 4 + k / 8, k % 2);
  }
  return start;
}

}  // namespace tersum::tests
