// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotator without the way back: the compiler names the requirement.
// expected: r.backward(g, x, x, key)

#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>

struct half_a_rotation {
  static constexpr int rotation_size = 1024;
  template <class Group, class Chunk>
  void forward(Group const&, Chunk&, Chunk&, tersum::rotation_key const&) const
  {
  }
};

using codec = tersum::codec<tersum::fixed_chunks<1024>,
                            half_a_rotation,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::stochastic_quantizer<4>,
                            tersum::widening_sum<4, 8>>;

int const size = codec::chunk_size;
