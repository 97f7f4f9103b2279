// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a chunk in registers under a codebook, with a scale of its own.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/block/block_context.hpp>
#include <tersum/block/thread_codes.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>

namespace tersum::inline v0 {

//! @brief The values of a chunk rounded to levels of its root mean square, as `scaled_codes` sends them.
//!
//! Values are in the *wire* arrangement of `block_chunk`, and a thread's 32 codes take `words` words. The scale is the chunk's: what is
//! decoded has the projection onto the values that they have themselves, so that products with it are right in the mean over
//! rotations. It is 0 for a chunk of zeros, and NaN where a value is not finite.
//!
//! All threads of the warp (above 1024 coordinates, of the block) must call. Chunks of more than 1024 coordinates need
//! `storage_floats` of shared memory, which are in use until the next barrier; others none. On sm_90 a value takes 11 instructions to encode with
//! 2, 3 or 4 bits, whose levels lie in the lanes of a warp, and 3 to decode; under other widths each level is a comparison or two.
//!
//! @par Example
//! @snippet examples/kernels/kv_page.hpp levels
//! @tparam Size      Coordinates in a chunk.
//! @tparam Codebook  `lloyd_max<q>`, or one of your own.
template <int Size, codebook Codebook>
struct block_levels {
  using chunk = block_chunk<Size>;

  static constexpr int words = Codebook::bits;  //!< Of a thread.
  static constexpr int storage_floats =
    chunk::in_warp ? 0 : Size / 1024;  //!< Shared memory of a chunk.

  //! @brief Returns the scale of the chunk, on all its threads.
  //! @param storage  `storage_floats`, or nullptr.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float encode(Context const& ctx,
                                                chunk const& mine,
                                                float* storage,
                                                float const (&v)[32],
                                                std::uint32_t (&packed)[detail::extent(words)])
  {
    return detail::code_chunk<detail::in_lanes<Codebook>>(
      ctx, mine, storage, v, [&](float root, bool sound) {
        float const product = code(ctx, root, v, packed);
        TERSUM_UNROLL
        for (std::uint32_t& word : packed) { word = sound ? word : 0u; }
        return product;
      });
  }

  //! @brief What `encode` is made of: rounds a thread's values times `root`, one over the root mean square of the chunk. Returns the sum of
  //! |v| * level.
  template <block_context Context>
  [[nodiscard]] TERSUM_BODY static float code(Context const& ctx,
                                              float root,
                                              float const (&v)[32],
                                              std::uint32_t (&packed)[detail::extent(words)])
  {
    if constexpr (detail::in_lanes<Codebook>) {
      return detail::codebook_lanes<Codebook>::code_values(ctx, root, v, packed);
    } else {
      float product = 0.0f;
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        codes::put(packed, k, detail::code_value<Codebook>(v[k], root, product));
      }
      return product;
    }
  }

  //! @brief Adds scale times the levels of the codes to values.
  template <block_context Context>
  TERSUM_BODY static void add(Context const& ctx,
                              std::uint32_t const (&packed)[detail::extent(words)],
                              float scale,
                              float (&v)[32])
  {
    if constexpr (detail::in_lanes<Codebook>) {
      detail::codebook_lanes<Codebook>::add_codes(ctx, packed, scale, v);
    } else {
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        v[k] = Context::fma(detail::level_of_code<Codebook>(codes::get(packed, k)), scale, v[k]);
      }
    }
  }

  //! @brief This thread's words of the codes of all chunks, which lie one after the other, aligned to 16 bytes; zeros where the chunk does
  //! not exist.
  template <block_context Context>
  TERSUM_BODY static void load(Context const& ctx,
                               chunk const& mine,
                               std::uint32_t const* codes,
                               std::uint32_t (&packed)[detail::extent(words)])
  {
    TERSUM_UNROLL
    for (std::uint32_t& word : packed) { word = 0; }
    if (mine.exists()) { thread_codes<words>::load(ctx, codes + first(mine), packed); }
  }

  //! @brief Writes this thread's words there.
  template <block_context Context>
  TERSUM_BODY static void store(Context const& ctx,
                                chunk const& mine,
                                std::uint32_t const (&packed)[detail::extent(words)],
                                std::uint32_t* codes)
  {
    if (mine.exists()) { thread_codes<words>::store(ctx, packed, codes + first(mine)); }
  }

 private:
  using codes = thread_codes<words>;

  [[nodiscard]] TERSUM_BODY static std::uint64_t first(chunk const& mine)
  {
    return (mine.chunk * (Size / 32) + mine.thread) * words;
  }
};

}  // namespace tersum::inline v0
