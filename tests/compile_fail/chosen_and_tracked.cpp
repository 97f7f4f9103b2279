// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range of a user under a chunker that chooses, with a head-room that would compare what was sent with all there was.
// expected: tersum: where chunks are chosen, tracked_correlation compares their sums with their norms: use rms_range

#include <tersum/chunk/top_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <cstddef>

struct largest {
  using scalar                           = float;
  using op                               = tersum::native_max<float>;
  using headroom_type                    = tersum::tracked_correlation;
  static constexpr bool measures_rotated = false;

  float clip = 1;
  tersum::tracked_correlation headroom{};

  template <class Group, std::size_t Size>
  float measure(Group const& g, float const (&x)[Size], float (&)[Size]) const
  {
    return g.maximum(Size, [&](int i) { return x[i] < 0 ? -x[i] : x[i]; });
  }
  float rank_range(float agreed, int, float) const { return agreed; }
  float bound(float agreed, int, float coordinates) const { return agreed * coordinates; }
  float energy(float agreed, float) const { return agreed; }
};

using codec = tersum::codec<tersum::top_chunks<1024>,
                            tersum::no_rotation,
                            largest,
                            tersum::stochastic_quantizer<4>,
                            tersum::saturating_sum<4>>;

int const size = codec::chunk_size;
