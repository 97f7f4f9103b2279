// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What `drawn_coordinates::place` says of many groups of neighbours at once.

//! @brief Of `count` groups of `stride` neighbours from number `first` on the coordinates that travel, counted from the first one of
//! group `first`. Writes whole vectors.
//! @param key  Of `sign_bits`.
TERSUM_TARGET inline void draw_places(std::uint32_t first,
                                      std::uint32_t count,
                                      std::uint32_t stride,
                                      std::uint64_t key,
                                      std::uint32_t* to)
{
  std::uint32_t const high = mix32(static_cast<std::uint32_t>(key >> 32));
  for (std::uint32_t i = 0; i < count; i += width) {
    words const group                = lane_index() + i;
    vector_value<words> const number = group + first;
    words const bits = mix32(mix32(number ^ static_cast<std::uint32_t>(key)) + high).v;
    longs const even = multiply_lower((longs)bits, stride) >> 32;
    longs const odd  = multiply_lower((longs)bits >> 32, stride) >> 32;
    store(to + i, merge_lower(even, odd) + group * stride);
  }
}
