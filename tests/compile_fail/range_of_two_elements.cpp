// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range whose scalars are written as float and added as half.
// expected: tersum: a range's scalar is float or bfloat16, and the element of its op

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/types.hpp>

struct halved_range : tersum::rms_range<tersum::no_headroom> {
  using op = tersum::native_sum<tersum::half>;
};
}
;

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            halved_range,
                            tersum::nearest_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
