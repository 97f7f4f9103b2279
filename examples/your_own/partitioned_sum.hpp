// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A reducer: lanes of any width in words, which a partitioned addition sums, so that no carry leaves a lane.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

template <int Bits>
struct partitioned_add {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;  // transports call it
  static constexpr bool associative = true;
  static constexpr bool exact       = true;

  TERSUM_HOST_DEVICE constexpr std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const
  {
    constexpr std::uint32_t signs = ~0u / ((1u << Bits) - 1) << (Bits - 1);
    return ((a & ~signs) + (b & ~signs)) ^ ((a ^ b) & signs);
  }
};

template <int Bits>
struct partitioned_sum {
  using op                         = partitioned_add<Bits>;
  static constexpr int lane_bits   = Bits;
  static constexpr bool biased     = false;  // lanes are two's complement
  static constexpr bool saturating = false;
  constexpr tersum::description describe() const { return {"partitioned_sum", Bits}; }

  // The most ranks whose codes, of magnitudes up to `max_level`, a lane can sum.
  static constexpr int max_world(int max_level) { return ((1 << (Bits - 1)) - 1) / max_level; }
};
static_assert(tersum::reducer<partitioned_sum<16>>);
