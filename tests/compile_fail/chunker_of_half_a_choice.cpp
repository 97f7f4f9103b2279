// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunker with a budget that does not say how it chooses: it is not taken for one that sends all.
// expected: tersum: a chunker that chooses needs bits, by_norm, score, level_count and several_bits

#include <tersum/codec.hpp>
#include <tersum/types.hpp>

struct half_a_choice {
  static constexpr int chunk_size = 128;
  float bits                      = 2;
};

using codec = tersum::cast_codec<tersum::half, half_a_choice>;

int const size = codec::chunk_size;
