// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is asked of chunks of parts one value after the other, once for the CPU and for kernels.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief How many parts hold codes of each chunk of the mean: the owner's, or those of all ranks, which are to be added.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t copies_of_mean(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (copying<Codec>) { return static_cast<std::uint32_t>(args.world); }
  return 1;
}

//! @brief By what codes in these parts are multiplied. Owners have sent means.
template <class Arithmetic, class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float share_of_copy(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (copying<Codec>) { return Arithmetic::divide(1.0f, static_cast<float>(args.world)); }
  return 1.0f;
}

//! @brief The scale of a chunk that does not travel: zero, or NaN where a gradient was not finite.
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic, class Memory, class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float scale_of_unsent(
  [[maybe_unused]] Memory const& memory,
  [[maybe_unused]] exchange_args<Codec, Element> const& args,
  [[maybe_unused]] std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    using scalar = typename Codec::norm_scalar;
    return Arithmetic::multiply(
      0.0f, to_float(memory.load(static_cast<scalar const*>(args.agreed) + chunk)));
  }
  return 0.0f;
}

}  // namespace tersum::inline v0::detail
