// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Streams of codes of unlike lengths: where they lie, and what is known of them while their steps are sought.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What a search for the step of a stream knows. All of it is zero before.
//!
//! Step number 0 has zeros only, and always fits. A search halves the numbers below `numbers` nine times, and goes to the upper
//! half if the codes of its first number fit. A pass of kernels halves them three times, and counts the bits of all seven
//! numbers that it may come to.
struct stream_search {
  static constexpr std::uint32_t numbers = 512;
  static constexpr std::uint32_t last =
    16 * 26;  //!< Steps beyond do not fit: magnitudes stay below 2^28.
  static constexpr std::uint32_t compared  = 7;
  static constexpr std::uint32_t passes    = 3;
  static constexpr std::uint32_t counters  = 64;
  static constexpr std::uint32_t a_counter = 65536;  //!< Chunks, of less than 2^16 bits each.

  std::uint32_t peak;     //!< The largest magnitude that is finite, as bits.
  std::uint32_t number;   //!< That of the finest step whose codes are known to fit.
  std::uint32_t arrived;  //!< Blocks that have counted.
  std::uint32_t
    finer;  //!< Chunks that have the next finer step, from one on that changes from exchange to exchange.
  std::uint32_t bits[compared][counters];  //!< Of codes, by chunks.
};

//! @brief Streams, and where they lie: the chunks that travel are dealt to `streams` of them like cards. A stream is two steps
//! as floats, a length in bits for each of its chunks in 16 bits, and the bits of its chunks one behind the other.
struct stream_set {
  std::uint64_t words;    //!< Of a stream.
  std::uint32_t head;     //!< Words of its steps and its lengths.
  std::uint32_t chunks;   //!< Of all streams.
  std::uint32_t streams;  //!< At least 1.
  std::uint32_t copies;   //!< Parts that are added to each stream, one behind the other.
  std::uint32_t slots;    //!< Room of a stream for chunks, a multiple of 32.

  static constexpr std::uint32_t not_finite =
    0xffff;  //!< The length of a chunk in which a value is not.

  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks_of(std::uint32_t stream) const
  {
    return (chunks + streams - 1 - stream) / streams;
  }
  //! The number among all chunks.
  [[nodiscard]] TERSUM_INLINE std::uint64_t chunk(std::uint32_t stream, std::uint32_t index) const
  {
    return std::uint64_t{index} * streams + stream;
  }
  //! Where a chunk of a stream comes in the order in which chunks get a finer step, in an exchange with this number.
  [[nodiscard]] TERSUM_INLINE std::uint32_t turn(std::uint32_t stream,
                                                 std::uint32_t index,
                                                 std::uint64_t step) const
  {
    std::uint32_t const count = chunks_of(stream);
    auto const share          = static_cast<std::uint32_t>(step) * 0x9e3779b9u;
    auto const first          = static_cast<std::uint32_t>(std::uint64_t{share} * count >> 32);
    return index < first ? index + count - first : index - first;
  }
  [[nodiscard]] TERSUM_INLINE std::uint64_t bits() const { return (words - head) * 32; }

  [[nodiscard]] static TERSUM_INLINE constexpr std::uint32_t head_of(std::uint64_t chunks)
  {
    return static_cast<std::uint32_t>(2 + (chunks + 1) / 2);
  }
};

//! @brief The memory of it.
struct stream_memory {
  float* values;  //!< A chunk for each slot of each stream.
  std::uint32_t*
    bits;  //!< Of each slot of each part: the largest magnitude, or where its bits begin.
  stream_search* searches;  //!< One for each stream.
};

}  // namespace tersum::inline v0::detail
