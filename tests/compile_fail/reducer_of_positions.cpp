// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reducer whose reduction asks where its words lie, which the payload of a codec does not tell it.
// expected: tersum: a reducer's op adds words of packed codes
// expected: it takes two of them wherever they lie

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cstddef>
#include <cstdint>

struct shifting {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::size_t) const { return a + b; }
  shifting from(std::size_t) const { return *this; }
  template <class Visitor>
  void for_each_part(std::size_t count, Visitor&& visit) const
  {
    visit(tersum::native_sum<std::uint32_t>{}, std::size_t{0}, count);
  }
};

struct shifting_sum {
  using op                         = shifting;
  static constexpr int lane_bits   = 8;
  static constexpr bool biased     = false;
  static constexpr bool saturating = false;
  static constexpr int max_world(int level) { return 127 / level; }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            tersum::no_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::nearest_quantizer<4>,
                            shifting_sum>;

int const size = codec::chunk_size;
