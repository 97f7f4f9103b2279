// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunker: every k-th chunk travels, and in the next step the chunk after it, so that each has its turn.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

template <int Size, int Every>
struct every_kth_chunk {
  static constexpr int chunk_size    = Size;
  static constexpr bool by_norm      = false;  // the ranks need not agree on norms
  static constexpr int level_count   = 1;      // a chunk travels or not
  static constexpr bool several_bits = false;  // all that travel have the same width
  constexpr tersum::description describe() const { return {"every_kth_chunk", Size, Every, bits}; }

  float bits = 16.0f / Every;  // what pays for one in k of 16 bits

  // The chunks with the largest scores travel, as many as the bits pay for.
  TERSUM_HOST_DEVICE std::uint32_t score(std::uint32_t, tersum::chunk_key const& key) const
  {
    return (key.chunk + Every - key.step % Every) % Every == 0 ? 2 : 1;
  }
};
static_assert(tersum::selecting_chunker<every_kth_chunk<128, 4>>);
