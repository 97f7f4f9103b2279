// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Summed codes to the mean gradient, one pass: unpacking, inverse rotation, signs, scaling. Kernel body.

#pragma once

#include <tersum/chunk/block_source.hpp>
#include <tersum/random/sign_bits.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What a decoded word says of itself: squares of its codes, and lanes at a limit.
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
  if constexpr (Codec::tracks) {
    constexpr int interleaved = 8 / lanes::bits;
    TERSUM_UNROLL
    for (int s = 0; s < interleaved; ++s) {
      std::uint32_t const bytes =
        interleaved == 1 ? size : (size >> (lanes::bits * s)) & (0x01010101u * lanes::full);
      squares = Context::dot_bytes(bytes, bytes, squares);
    }
  }
}

//! @brief How the lanes of a thread become floats.
//!
//! Every register ends with the same offset, because lanes are made non-negative first. Where all wire butterflies are to
//! be done and lanes are narrow, three of them are done on packed bytes: between the lanes that share a byte, and between
//! words. The offset then doubles in sums and differences alike. All of it is integers below 2^24, so every order of
//! butterflies gives the same bits.
//! @tparam Mixed  Chunks of other widths share the warp: nothing is done on bytes, so that all go on alike.
template <class Codec, bool Mixed = false>
struct lane_values {
  using lanes    = typename Codec::lanes;
  using hadamard = typename chunk_share<Codec>::hadamard;

  static constexpr int interleaved =
    lanes::bits <= 8 ? 8 / lanes::bits : 1;  //!< Lanes that share a byte.
  static constexpr bool packed = !Mixed && Codec::rotates_chunks && !Codec::reducer_type::biased &&
                                 lanes::bits <= 4 && hadamard::wire_levels == 5;
  //! Butterflies done on bytes: bits of the register index, the lowest and the highest ones.
  static constexpr int low_levels  = packed ? log2_exact(interleaved) : 0;
  static constexpr int high_levels = packed ? log2_exact(lanes::bits) : 0;
  static constexpr int levels      = low_levels + high_levels;
  //! What the conversion to float adds: 2^23 or, for lanes of at most 4 bits, 2^7.
  static constexpr float exponent = lanes::bits == 16  ? 0.0f
                                    : lanes::bits == 8 ? 8388608.0f
                                                       : 128.0f;

  //! The value in a register that stands for zero.
  [[nodiscard]] TERSUM_BODY static float zero(int world)
  {
    int const lane =
      Codec::reducer_type::biased ? world * Codec::quantizer_type::max_level : lanes::limit + 1;
    return exponent + static_cast<float>(lane << levels);
  }

  //! The words of a thread to floats in wire order, with the butterflies on bytes done.
  template <class Context>
  TERSUM_BODY static void unpack(Context const&,
                                 std::uint32_t const (&words)[lanes::bits],
                                 float (&v)[32])
  {
    if constexpr (lanes::bits == 16) {
      TERSUM_UNROLL
      for (int w = 0; w < 16; ++w) {
        std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
        v[2 * w]                 = static_cast<float>(word & 0xffffu);
        v[2 * w + 1]             = static_cast<float>(word >> 16);
      }
    } else {
      constexpr int count =
        interleaved * lanes::bits;  // 8 registers of bytes: lane within the byte, then word
      std::uint32_t bytes[count];
      TERSUM_UNROLL
      for (int w = 0; w < lanes::bits; ++w) {
        std::uint32_t const word = Codec::reducer_type::biased ? words[w] : words[w] ^ lanes::signs;
        TERSUM_UNROLL
        for (int s = 0; s < interleaved; ++s) {
          bytes[w * interleaved + s] =
            interleaved == 1 ? word : (word >> (lanes::bits * s)) & (0x01010101u * lanes::full);
        }
      }
      TERSUM_UNROLL
      for (int level = 0; level < levels; ++level) {
        std::uint32_t const offset =
          0x01010101u * (static_cast<std::uint32_t>(lanes::limit + 1) << (level + 1));
        TERSUM_UNROLL
        for (int i = 0; i < count; ++i) {
          if ((i >> level & 1) == 0) {
            std::uint32_t const a = bytes[i];
            std::uint32_t const b = bytes[i | 1 << level];
            bytes[i]              = a + b;
            bytes[i | 1 << level] = a - b + offset;
          }
        }
      }
      TERSUM_UNROLL
      for (int i = 0; i < count; ++i) {
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

//! @brief A thread's words to floats, and what they say of themselves. Reads nothing and counts zeros unless `exists`.
template <class Codec, class Values, class Context>
TERSUM_BODY void unpack_share(Context const& ctx,
                              std::uint32_t const* from,
                              bool exists,
                              float (&v)[32],
                              std::uint32_t& squares,
                              std::uint32_t& at_limit)
{
  constexpr int bits        = Codec::lanes::bits;
  std::uint32_t words[bits] = {};
  if (exists) {
    if constexpr (bits == 2) {
      std::uint64_t const both = ctx.load(reinterpret_cast<std::uint64_t const*>(from));
      words[0]                 = static_cast<std::uint32_t>(both);
      words[1]                 = static_cast<std::uint32_t>(both >> 32);
    } else {
      TERSUM_UNROLL
      for (int w = 0; w < bits; w += 4) {
        word4 const four = ctx.load(reinterpret_cast<word4 const*>(from + w));
        words[w]         = four.x;
        words[w + 1]     = four.y;
        words[w + 2]     = four.z;
        words[w + 3]     = four.w;
      }
    }
  }
  if constexpr (Codec::saturates) {
    TERSUM_UNROLL
    for (int w = 0; w < bits; ++w) { inspect_word<Codec>(ctx, words[w], squares, at_limit); }
  }
  Values::unpack(ctx, words, v);
}

//! @brief Decodes the chunks from `first_chunk` on; block and thread say which.
//!
//! Reads lane_bits/8 bytes a coordinate, writes the mean. Same launch as `encode_chunks`.
template <bool Edge, class Codec, class Element, class Context>
TERSUM_BODY void decode_chunks(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t first_chunk)
{
  using hadamard          = typename chunk_share<Codec>::hadamard;
  chunk_share<Codec> mine = find_share<Edge>(ctx, args, first_chunk);
  if (all_idle(ctx, mine)) { return; }
  float* const storage =
    static_cast<float*>(ctx.shared()) +
    (hadamard::in_warp ? ctx.thread_rank() / 32 * hadamard::storage_floats : 0);
  payload_place place{};
  if (!Codec::selects || mine.active) { place = find_place(args, mine.chunk); }

  std::uint32_t squares = 0, at_limit = 0;
  float v[32];
  if constexpr (Codec::several_bits) {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = 0.0f; }
    if (place.level > 0) {
      at_level(args.codec, place.level, [&](auto const& codec) {
        using level_codec   = std::remove_cvref_t<decltype(codec)>;
        using values        = lane_values<level_codec, true>;
        constexpr int words = level_codec::lanes::bits;
        unpack_share<level_codec, values>(
          ctx, args.payload + place.word + mine.thread * words, true, v, squares, at_limit);
        float const zero = values::zero(args.world);
        TERSUM_UNROLL
        for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
      });
    }
    hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
  } else {
    using lanes        = typename Codec::lanes;
    using values       = lane_values<Codec>;
    constexpr int bits = lanes::bits;
    unpack_share<Codec, values>(ctx,
                                args.payload + place.word + mine.thread * bits,
                                mine.active && (!Codec::selects || place.level > 0),
                                v,
                                squares,
                                at_limit);
    // Narrow lanes keep their offset through the inverse transform, which gathers it where the index bits of the
    // remaining butterflies are all zero. Threads hold index bits 3 upwards; bits 0 to 2 and the two highest are
    // registers.
    float const zero       = values::zero(args.world);
    constexpr bool gathers = Codec::rotates_chunks && bits <= 4;
    if constexpr (!gathers) {
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) { v[k] = Context::subtract(v[k], zero); }
    }
    hadamard::template to_loaded<values::low_levels, values::high_levels>(
      ctx, v, storage, mine.thread, mine.first);
    if constexpr (gathers) {
      constexpr unsigned done = ((1u << values::low_levels) - 1) |
                                (values::packed ? 0x1fu & ~(0x1fu >> values::high_levels) : 0u);
      constexpr float times = static_cast<float>(Codec::chunk_size >> values::levels);
      v[0] = Context::subtract(v[0], (mine.thread & ~done) == 0 ? zero * times : 0.0f);
    }
  }

  std::uint32_t step_bits =
    mine.active ? Context::bits(ctx.load(&args.steps[mine.chunk].decode)) : 0;
  if (Codec::selects && place.level == 0) {
    // Zeros, or NaN where a gradient was not finite.
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = 0.0f; }
  }
  std::uint32_t const word =
    Codec::rotates_chunks && (!Codec::selects || place.level > 0)
      ? sign_bits(mine.chunk * (Codec::chunk_size / 32) + mine.thread, args.header->sign_key)
      : 0;
  TERSUM_UNROLL
  for (int i = 0; i < 32; ++i) {
    v[i] =
      Context::multiply(v[i], Context::from_bits(step_bits ^ ((word << (31 - i)) & 0x80000000u)));
  }
  if constexpr (Codec::rotates_all) {
    store_share<false>(ctx, args.rotated, mine, v);
  } else {
    store_share<Edge>(ctx, args.gradient, mine, v);
  }

  if constexpr (Codec::saturates) {
    hadamard::synchronize(ctx);
    at_limit = chunk_sum(ctx, at_limit, mine, storage);
    if constexpr (Codec::tracks) { squares = chunk_sum(ctx, squares, mine, storage); }
    if (mine.active && mine.thread == 0) {
      ctx.store(&args.steps[mine.chunk].saturated, at_limit);
      if constexpr (Codec::tracks) { ctx.store(&args.steps[mine.chunk].square_sum, squares); }
    }
  }
}

}  // namespace tersum::inline v0::detail
