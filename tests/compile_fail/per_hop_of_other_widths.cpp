// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Widths of a chunker of one's own, of which the tiles of hops know nothing.
// expected: tersum: tiles know the widths of allocated_chunks, not those of a chunker of one's own

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

struct two_widths {
  static constexpr int chunk_size    = 256;
  static constexpr bool by_norm      = true;
  static constexpr int level_count   = 2;
  static constexpr bool several_bits = true;
  static constexpr int widths[]{2, 4};
  float bits      = 3;
  float weighting = 1;
  std::uint32_t score(std::uint32_t energy, tersum::chunk_key const&) const { return energy; }
};

using codec =
  tersum::per_hop_codec<two_widths, tersum::partial_hadamard<256>, tersum::lloyd_max<4>>;

int const size = codec::chunk_size;
