// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels of a form with parts are given besides.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/wire.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Divides numbers below 2^31 by a product and a shift (Granlund and Montgomery, PLDI'94).
//!
//! With s = ceil(log2(d)), the factor times d exceeds 2^(31 + s) by at most d, and d is at most 2^s. So a number below 2^31 times the
//! factor, over 2^(31 + s), exceeds the exact quotient by less than 1 / d, which does not reach the next integer.
struct divisor {
  std::uint32_t factor;  //!< floor(2^(31 + s) / d) + 1
  std::uint32_t shift;   //!< s

  [[nodiscard]] static TERSUM_INLINE constexpr divisor of(std::uint32_t by) noexcept
  {
    auto const shift = static_cast<std::uint32_t>(log2_exact(by));
    return {static_cast<std::uint32_t>((std::uint64_t{1} << (31 + shift)) / by + 1), shift};
  }

  [[nodiscard]] TERSUM_INLINE std::uint32_t quotient(std::uint32_t number) const noexcept
  {
#if defined(__CUDA_ARCH__)
    return __umulhi(number << 1, factor) >> shift;
#else
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) * factor >> 31 >> shift);
#endif
  }
};

//! @brief Parts of equal size, one for each rank. `payload` is what this rank sends.
template <class Residual>
struct part_args {
  std::uint32_t* received;   // of two_shot
  std::uint32_t* gathered;   // what all ranks decode
  Residual* owner_residual;  // chunk_size values for each owned chunk, or null
  std::uint64_t part_words;  // of two_shot
  divisor ranks;             // of numbers of chunks
  float share;               // 1 / ranks

  constexpr void take_mean_words(std::uint64_t) noexcept {}
};

//! @brief The same where the ways differ.
template <class Residual>
struct two_way_args : part_args<Residual> {
  std::uint64_t mean_words;  // of a part of the mean

  constexpr void take_mean_words(std::uint64_t words) noexcept { mean_words = words; }
};

}  // namespace tersum::inline v0::detail
