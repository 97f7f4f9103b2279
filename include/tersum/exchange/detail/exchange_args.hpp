// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What all kernels find by their arguments: keys, flags, and where a chunk lies in the payload.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/kernel_args.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>
#include <tersum/wire.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! The codec of what a stage works with: of `cpu_work`, of `launch_list`.
template <class Work>
using codec_of = typename std::remove_cvref_t<Work>::codec_type;

//! @brief Where a chunk lies in the payload: its level, 0 for not at all, and its first word.
struct payload_place {
  std::uint32_t level;
  std::uint64_t word;
};

template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE payload_place find_place(exchange_args<Codec, Element> const& args,
                                                     std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    std::uint32_t const place = args.selection.places[chunk];
    std::uint32_t const level = place & ((1u << place_shift) - 1);
    std::uint64_t const slot  = place >> place_shift;
    // What does not travel has no place: with one width all others have that of level 1.
    std::uint32_t const at = several_bits<Codec> ? level : 1u;
    return {level, args.selection.scratch->header.base[at] + slot * args.selection.rule.words[at]};
  } else {
    return {1, chunk * static_cast<std::uint64_t>(Codec::chunk_size / Codec::lanes::lanes)};
  }
}

//! Whether what is compressed as one is a chunk of coordinates. Matrices have no entry of this kind.
template <class Codec>
inline constexpr bool in_chunks =
  std::is_same_v<typename Codec::counts_type::entry_type, chunk_entry>;

//! The key of the signs of a step. Only chunks have signs.
template <class Codec>
[[nodiscard]] TERSUM_INLINE constexpr std::uint64_t key_of_signs(std::uint64_t step,
                                                                 std::uint64_t seed)
{
  return in_chunks<Codec> ? sign_key(step, seed) : 0;
}

//! The number that keys the signs and the dither of this step.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE dither_key key_of(exchange_args<Codec, Element> const& args)
{
  return {.seed = args.header->seed, .step = args.header->step, .rank = args.rank};
}

//! Sets the flag of this exchange: a rank's gradient was found not finite. Threads that race write the same value.
template <class Codec, class Element>
TERSUM_INLINE void raise_flag(exchange_args<Codec, Element> const& args)
{
  std::uint64_t const number = args.header->step + 1;
#if defined(__CUDA_ARCH__)
  // Threads of several blocks may store the same number at once, which only strong stores may do.
  *static_cast<std::uint64_t volatile*>(&args.header->non_finite_step) = number;
#else
  __atomic_store_n(&args.header->non_finite_step, number, __ATOMIC_RELAXED);
#endif
}

//! Whether the flag of this exchange is set: a rank's gradient was found not finite.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool step_is_poisoned(exchange_args<Codec, Element> const& args)
{
  return args.header->non_finite_step == args.header->step + 1;
}

//! @brief What a rank has measured of its own chunk. If it is not finite nothing is kept of this step, whatever the wire brings back.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float inspected(exchange_args<Codec, Element> const& args, float own)
{
  if (feeds_back<Codec> && !is_finite(own)) { raise_flag(args); }
  return own;
}

}  // namespace tersum::inline v0::detail
