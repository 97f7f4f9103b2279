// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A range: `clip` times the mean magnitude of a chunk over all ranks, which a few large coordinates move less than the
//! root mean square.

#pragma once

#include <tersum/tersum.hpp>

struct mean_magnitude {
  using scalar                           = float;
  using op                               = tersum::native_sum<float>;  // how the ranks agree
  using headroom_type                    = tersum::fixed_headroom;
  static constexpr bool measures_rotated = true;
  constexpr tersum::description describe() const { return {"mean_magnitude", clip, headroom}; }

  float clip = 3;
  tersum::fixed_headroom headroom{};

  template <class Group, int Size>
  TERSUM_HOST_DEVICE float measure(Group const& group,
                                   float const (&x)[Size],
                                   float (&)[Size]) const
  {
    return Group::divide(group.sum(Size, [&](int i) { return x[i] < 0 ? -x[i] : x[i]; }), Size);
  }
  TERSUM_HOST_DEVICE float rank_range(float agreed, int world, float) const
  {
    return agreed / static_cast<float>(world);  // the mean of the ranks' means
  }
  // No coordinate is above the sum of all magnitudes.
  TERSUM_HOST_DEVICE float bound(float agreed, int, float coordinates) const
  {
    return agreed * coordinates;
  }
  // By which chunks are chosen, where they are: a number that grows with the chunk.
  TERSUM_HOST_DEVICE float energy(float agreed, float) const { return agreed; }
};
static_assert(tersum::quantization_range<mean_magnitude>);
