// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs of parts ask of their policies alike: chunks in codes with scales of their own.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/quantize/detail/code_words.hpp>

#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief True, or a sentence of the compiler that says which policy does not fit.
template <chunker Chunker, rotator Rotator, part_quantizer Quantizer>
[[nodiscard]] constexpr bool suits_codebook_codec() noexcept
{
  static_assert(!selecting_chunker<Chunker> || has_several_bits<Chunker>(),
                "tersum: two_shot_codec takes fixed_chunks or allocated_chunks");
  static_assert(conversion<Quantizer> || (Quantizer::bits >= 1 && Quantizer::bits <= 16),
                "tersum: a code has 1 to 16 bits");
  if constexpr (has_magnitudes<Quantizer>) {
    static_assert(
      Quantizer::bits <= 8 && Quantizer::magnitudes == 1 << (Quantizer::bits - 1),
      "tersum: a code has 1 to 8 bits, one of them for the sign: magnitudes is 2^(bits - 1)");
  }
  if constexpr (block_quantizer<Quantizer>) {
    static_assert(Quantizer::block == 16 || Quantizer::block == 32 || Quantizer::block == 64 ||
                    Quantizer::block == 128,
                  "tersum: a block with numbers of its own has 16, 32, 64 or 128 coordinates");
    static_assert(Quantizer::block_bits == 8 || Quantizer::block_bits == 16 ||
                    Quantizer::block_bits == 32,
                  "tersum: the numbers of a block have 8, 16 or 32 bits");
  }
  static_assert(has_widths_of<Chunker, Quantizer>(),
                "tersum: two_shot_codec with allocated_chunks needs a quantizer "
                "with with_bits: lloyd_max");
  static_assert(
    !has_several_bits<Chunker>() || has_distortion<Quantizer>,
    "tersum: allocated_chunks weigh widths by the error of each: the quantizer needs distortion()");
  static_assert(Chunker::chunk_size >= 256, "tersum: two_shot_codec needs chunks of at least 256");
  static_assert(!codebook<Quantizer> || Rotator::rotation_size == Chunker::chunk_size ||
                  !has_packed_rotation<Rotator, Chunker::chunk_size>,
                "tersum: two_shot_codec rotates whole chunks for a codebook: use "
                "partial_hadamard of the chunk size");
  static_assert(codebook<Quantizer> || Rotator::rotation_size == 1,
                "tersum: two_shot_codec leaves blocks with scales of their own, and casts, "
                "where they are: use no_rotation");
  static_assert(scale_words<Quantizer>(Chunker::chunk_size) % 4 == 0,
                "tersum: two_shot_codec keeps block scales in whole 16 bytes: a "
                "chunk needs 16 blocks or a multiple");
  return true;
}

//! @brief True, or a sentence of the compiler that says why codes up and down do not go with the chunker.
template <chunker Chunker, part_quantizer Up, part_quantizer Down>
[[nodiscard]] constexpr bool suits_ways() noexcept
{
  static_assert(
    !has_several_bits<Chunker>() || std::is_same_v<Up, Down>,
    "tersum: ways<Up, Down> takes fixed_chunks: under allocated_chunks codes of the mean have the widths of those "
    "that ranks send");
  return true;
}

//! @brief The codec of chunks on a level, level 1 being the narrowest width: this one unless widths differ.
template <int Level, has_parts Codec>
[[nodiscard]] TERSUM_HOST_DEVICE constexpr auto codec_on_level(Codec const& codec) noexcept
{
  if constexpr (several_bits<Codec>) {
    constexpr int width = Codec::chunker_type::widths[Level - 1];
    using narrow        = typename Codec::quantizer_type::template with_bits<width>;
    return typename Codec::template with_codes<fixed_chunks<Codec::chunk_size>, narrow>{};
  } else {
    return codec;
  }
}

}  // namespace tersum::inline v0::detail
