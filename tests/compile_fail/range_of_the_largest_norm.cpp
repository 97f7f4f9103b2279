// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range that takes the maximum of norms whose sum is asked for: its steps would be too small by the root of the world.
// expected: tersum: the ranks sum the norms of chunks (native_sum)

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

struct largest_norm : tersum::rms_range<tersum::no_headroom> {
  using op = tersum::native_max<float>;
};
}
;

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            largest_norm,
                            tersum::nearest_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
