// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's 32 codes, or their sums, as floats in the order of the wire, and what is counted of sums: how `block_codes` and the
//! library's kernels decode.

#pragma once

#include <tersum/block/thread_codes.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace tersum::inline v0::detail {

//! @brief Adds the squares of the codes of a word to a sum, and the number of its lanes at a limit to a count.
template <class Codec, class Context>
TERSUM_BODY void inspect_word(Context const&,
                              std::uint32_t word,
                              std::uint32_t& squares,
                              std::uint32_t& at_limit)
{
  using lanes               = typename Codec::lanes;
  std::uint32_t const minus = (word >> (lanes::bits - 1)) & lanes::ones;
  std::uint32_t const mask  = (minus << lanes::bits) - minus;  // bits is below 32
  std::uint32_t const size  = (word ^ mask) + minus;           // magnitudes, lane by lane
  at_limit += Context::population((size + lanes::ones) & lanes::signs);
  if constexpr (tracks<Codec>) {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes = thread_codes<lanes::bits>::bytes_at(size, s);
      squares                   = Context::dot_bytes(bytes, bytes, squares);
    }
  }
}

//! @brief Loads a thread's words, and adds up the squares of their codes and the lanes at a limit. Without `exists` it
//! reads nothing, and the words are zeros.
template <class Codec, std::size_t Bits, class Context>
TERSUM_BODY void load_words(Context const& ctx,
                            std::uint32_t const* from,
                            bool exists,
                            std::uint32_t (&words)[Bits],
                            std::uint32_t& squares,
                            std::uint32_t& at_limit)
{
  constexpr int bits = static_cast<int>(Bits);
  TERSUM_UNROLL
  for (int w = 0; w < bits; ++w) { words[w] = 0; }
  if (exists) { thread_codes<bits>::load(ctx, from, words); }
  if constexpr (saturates<Codec>) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
  }
}

//! @brief How the lanes of a thread become floats.
//!
//! Lanes are made non-negative first, so that every register ends with the same offset. Where all butterflies of the wire
//! arrangement follow, and lanes are narrow, three levels of them are done on packed bytes: between the lanes that share a
//! byte, and between words. Sums and differences then both have twice the offset. All values are integers below 2^24, so
//! that every order of the butterflies gives the same bits.
//! @tparam Mixed  Chunks of other widths share the warp. Then nothing is done on bytes, so that all threads go on alike.
template <class Codec, bool Mixed = false>
struct lane_values {
  using lanes    = typename Codec::lanes;
  using hadamard = block_hadamard<Codec::chunk_size, Codec::rotates_chunks>;

  static constexpr int interleaved =
    lanes::bits <= 8 ? 8 / lanes::bits : 1;  //!< Lanes that share a byte.
  static constexpr bool packed = !Mixed && Codec::rotates_chunks && !Codec::reducer_type::biased &&
                                 lanes::bits <= 4 && hadamard::wire_levels == 5;
  //! How many levels of butterflies are done on bytes: of the lowest and of the highest bits of the register index.
  static constexpr int low_levels  = packed ? log2_exact(interleaved) : 0;
  static constexpr int high_levels = packed ? log2_exact(lanes::bits) : 0;
  static constexpr int levels      = low_levels + high_levels;
  //! What the conversion to float adds: 2^23 or, for lanes of at most 4 bits, 2^7.
  static constexpr float exponent = lanes::bits >= 16  ? 0.0f
                                    : lanes::bits == 8 ? 8388608.0f
                                                       : 128.0f;

  //! The value in a register that stands for zero.
  [[nodiscard]] TERSUM_BODY static float zero(int world)
  {
    if constexpr (lanes::bits == 32) {
      return 0.0f;
    } else {
      int const lane =
        Codec::reducer_type::biased ? world * Codec::quantizer_type::max_level : lanes::limit + 1;
      return exponent + static_cast<float>(lane << levels);
    }
  }

  //! Makes eight words of bytes, none negative, of the words of a thread; numbered by the lane in the byte, then by the word.
  template <class Context>
  TERSUM_BODY static void spread(Context const&,
                                 std::uint32_t const (&words)[lanes::bits],
                                 std::uint32_t (&bytes)[8])
  {
    TERSUM_UNROLL
    for (int w = 0; w < lanes::bits; ++w) {
      std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
      TERSUM_UNROLL
      for (int s = 0; s < interleaved; ++s) {
        bytes[w * interleaved + s] = thread_codes<lanes::bits>::bytes_at(word, s);
      }
    }
  }

  //! Butterflies over the bits First .. Last-1 of the number of a word of bytes. Each level doubles the offset.
  template <int First, int Last, class Context>
  TERSUM_BODY static void transform_bytes(Context const&, std::uint32_t (&bytes)[8])
  {
    TERSUM_UNROLL
    for (int level = First; level < Last; ++level) {
      std::uint32_t const offset =
        0x01010101u * (static_cast<std::uint32_t>(lanes::limit + 1) << (level - First + 1));
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        if ((i >> level & 1) == 0) {
          std::uint32_t const a = bytes[i];
          std::uint32_t const b = bytes[i | 1 << level];
          bytes[i]              = a + b;
          bytes[i | 1 << level] = a - b + offset;
        }
      }
    }
  }

  //! Turns the words of a thread into floats in wire order, after the butterflies on bytes.
  template <class Context>
  TERSUM_BODY static void unpack(Context const& ctx,
                                 std::uint32_t const (&words)[lanes::bits],
                                 float (&v)[32])
  {
    if constexpr (lanes::bits == 32) {
      TERSUM_UNROLL
      for (int w = 0; w < 32; ++w) {
        v[w] = static_cast<float>(static_cast<std::int32_t>(words[w]));
      }
    } else if constexpr (lanes::bits == 16) {
      TERSUM_UNROLL
      for (int w = 0; w < 16; ++w) {
        std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
        v[2 * w]                 = static_cast<float>(word & 0xffffu);
        v[2 * w + 1]             = static_cast<float>(word >> 16);
      }
    } else {
      std::uint32_t bytes[8];
      spread(ctx, words, bytes);
      transform_bytes<0, levels>(ctx, bytes);
      TERSUM_UNROLL
      for (int i = 0; i < 8; ++i) {
        TERSUM_UNROLL
        for (unsigned j = 0; j < 4; ++j) {
          int const k =
            i / interleaved * lanes::lanes + static_cast<int>(j) * interleaved + i % interleaved;
          v[k] =
            lanes::bits == 8
              ? Context::from_bits(Context::select_bytes(bytes[i], 0x4b000000u, 0x7650u | j))
              : Context::from_bits(Context::select_bytes(bytes[i], 0x43000000u, 0x7044u | j << 8));
        }
      }
    }
  }
};

//! @brief The codes of a thread, or sums of codes, whose width is that of the thread's chunk: a byte each in the order of the wire,
//! so that threads with chunks of different widths go on alike.
struct byte_codes {
  static constexpr std::uint32_t ones  = 0x01010101u;
  static constexpr std::uint32_t signs = 0x80808080u;

  //! 128 more than the codes. Zeros at first.
  std::uint32_t bytes[8] = {signs, signs, signs, signs, signs, signs, signs, signs};
  std::uint32_t limit    = 127;  //!< Of the lanes.

  //! Takes words of two's-complement lanes.
  template <class Lanes, class Context>
  TERSUM_BODY void take(Context const&, std::uint32_t const (&words)[Lanes::bits])
  {
    constexpr int in_byte = 8 / Lanes::bits;
    // Codes that are not negative become 128 more by what is added to them, in whatever lane.
    constexpr std::uint32_t more = ones * (127u - Lanes::limit);
    limit                        = Lanes::limit;
    TERSUM_UNROLL
    for (int w = 0; w < Lanes::bits; ++w) {
      std::uint32_t
        part[static_cast<std::size_t>(in_byte)];  // the lanes that share a byte with others
      TERSUM_UNROLL
      for (int s = 0; s < in_byte; ++s) {
        part[s] = thread_codes<Lanes::bits>::bytes_at(words[w] ^ Lanes::signs, s) + more;
      }
      std::uint32_t* const to = bytes + w * in_byte;
      if constexpr (in_byte == 1) {
        to[0] = part[0];
      } else if constexpr (in_byte == 2) {
        to[0] = Context::select_bytes(part[0], part[1], 0x5140u);
        to[1] = Context::select_bytes(part[0], part[1], 0x7362u);
      } else {
        TERSUM_UNROLL
        for (int k = 0; k < 2; ++k) {
          unsigned const pair      = k == 0 ? 0x5140u : 0x7362u;
          std::uint32_t const even = Context::select_bytes(part[0], part[1], pair);
          std::uint32_t const odd  = Context::select_bytes(part[2], part[3], pair);
          to[2 * k]                = Context::select_bytes(even, odd, 0x5410u);
          to[2 * k + 1]            = Context::select_bytes(even, odd, 0x7632u);
        }
      }
    }
  }

  //! As `inspect_word`, of all codes.
  template <class Context>
  TERSUM_BODY void inspect(Context const&, std::uint32_t& squares, std::uint32_t& at_limit) const
  {
    std::uint32_t const to_sign = ones * (128u - limit);
    std::uint32_t reached       = 0;  // a bit for each code
    TERSUM_UNROLL
    for (int i = 0; i < 8; ++i) {
      std::uint32_t const minus = ~(bytes[i] >> 7) & ones;
      std::uint32_t const mask  = (minus << 8) - minus;
      std::uint32_t const size  = (bytes[i] ^ signs ^ mask) + minus;
      reached                   = reached >> 1 | ((size + to_sign) & signs);
      squares                   = Context::dot_bytes(size, size, squares);
    }
    at_limit += Context::population(reached);
  }

  //! The codes as floats, in the order of the wire, each with `zero` added to it.
  template <class Context>
  TERSUM_BODY void to_floats(Context const&, float (&v)[32]) const
  {
    TERSUM_UNROLL
    for (unsigned k = 0; k < 32; ++k) {
      v[k] = Context::from_bits(
        Context::select_bytes(bytes[k / 4], 0x47000000u, 0x7604u | (k % 4) << 4));
    }
  }
  static constexpr float zero = 32768.0f + 128.0f;
};

}  // namespace tersum::inline v0::detail
