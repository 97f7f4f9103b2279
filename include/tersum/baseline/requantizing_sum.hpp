// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of two encodings, encoded again: what every hop does to the payload of a per-hop codec.

#pragma once

#include <tersum/baseline/detail/hop_chunk.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief Four chunks that travel together: their codes one after the other, then their scales, of which that of the first
//! chunk is the last word.
//!
//! Four scales are 16 bytes, so that a block needs no padding and the next one is aligned, too.
template <table_codebook Quantizer, int Size>
struct hop_block {
  static constexpr int chunks     = 4;
  static constexpr int head       = 0;                            //!< Words before the codes.
  static constexpr int code_words = Size / 32 * Quantizer::bits;  //!< Words of a chunk's codes.
  static constexpr int words      = chunks * (code_words + 1);

  std::uint32_t word[detail::extent(words)];

  //! The first word of a chunk's codes.
  [[nodiscard]] static constexpr int first_of(int chunk) noexcept { return chunk * code_words; }
  //! The word in which a chunk's scale lies.
  [[nodiscard]] static constexpr int scale_of(int chunk) noexcept { return words - 1 - chunk; }
};

//! @brief Decodes the chunks of two blocks, adds them, and encodes the sums: one hop. docs/wire_format.md has the
//! formulas.
//!
//! It is commutative to the last bit, but not associative: every hop loses what an encoding loses. All ranks have
//! rotated by the same signs, so nothing is rotated here. A chunk whose sum is not finite gets the scale NaN.
//!
//! This is the definition, for any transport that can call it; executors reduce arrays to the same bits with kernels.
//! @tparam Quantizer  `lloyd_max<q>`.
//! @tparam Size       Coordinates of a chunk.
template <table_codebook Quantizer, int Size>
struct requantizing_sum {
  using element                     = hop_block<Quantizer, Size>;
  using chunker_type                = fixed_chunks<Size>;
  using quantizer_type              = Quantizer;
  using dither                      = no_dither;
  static constexpr bool native      = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;
  using payload_kind          = payload::hops;  //!< Elements are decoded, added and encoded again.
  static constexpr bool tiles = false;
  static constexpr int chunk_size = Size;

  static_assert(sizeof(element) % 16 == 0 && std::is_trivially_copyable_v<element>);

  //! @name Its chunks, by the members that tiles have
  //! @{
  static constexpr int levels = 1;
  template <int>
  using quantizer_at = Quantizer;
  //! @}

  [[nodiscard]] element operator()(element const& a, element const& b) const noexcept
  {
    using chunk = detail::hop_chunk<Quantizer, Size>;
    element sum{};
    for (int k = 0; k < element::chunks; ++k) {
      int const first   = element::first_of(k);
      int const last    = element::scale_of(k);
      float const ours  = detail::bits_float(a.word[last]);
      float const other = detail::bits_float(b.word[last]);
      float v[detail::extent(Size)];
      for (int p = 0; p < Size; ++p) {
        v[p] = chunk::estimate(a.word + first, ours, p) + chunk::estimate(b.word + first, other, p);
      }
      sum.word[last] = detail::float_bits(chunk::encode(v, sum.word + first));
    }
    return sum;
  }
};

}  // namespace tersum::inline v0

#include <tersum/baseline/detail/requantize_array.hpp>
