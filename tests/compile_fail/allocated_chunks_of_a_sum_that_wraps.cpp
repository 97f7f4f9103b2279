// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Widths for every chunk with a reducer of one's own: the lanes would saturate all the same.
// expected: tersum: codes of allocated_chunks are added in saturating lanes: use saturating_sum

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

#include <cstdint>

template <int Bits>
struct wrapping_sum : tersum::saturating_sum<Bits> {
  using op = tersum::native_sum<std::uint32_t>;
  template <int Other>
  using with_bits = wrapping_sum<Other>;
};

using codec = tersum::codec<tersum::allocated_chunks<256, 2, 4, 8>,
                            tersum::partial_hadamard<256>,
                            tersum::rms_range<>,
                            tersum::stochastic_quantizer<8>,
                            wrapping_sum<8>>;

int const size = codec::chunk_size;
