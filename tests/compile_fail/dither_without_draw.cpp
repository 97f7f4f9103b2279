// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A source of dither that does not say which numbers it draws: the compiler names the requirement.
// expected: counter(block, key)

#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>

struct half_a_dither {
  static constexpr int rounds = 7;
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::stochastic_quantizer<4, half_a_dither>,
                            tersum::widening_sum<4, 8>>;

int const size = codec::chunk_size;
