// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which ranks a chunk is sent to under a sharded codec, or which rank publishes it under a values codec, and where in their
//! parts it lies. Part of the wire format.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/state.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A rank's part holds the chunks that its shard has a coordinate of, in the order of the gradient.
//!
//! The scales of the chunks come first, then zeros up to whole 16 bytes, then the codes. A chunk that a boundary cuts lies in
//! the parts of all ranks that it belongs to; its *first* rank is the one whose shard has its first coordinate.
struct shard_map {
  shard_record const* records;
  std::uint32_t world;
  std::uint32_t chunk_words;  //!< Of the codes of a chunk, a multiple of 4.

  [[nodiscard]] TERSUM_INLINE std::uint32_t parts() const { return world; }

  //! @brief The first word of a part in an array of parts.
  [[nodiscard]] TERSUM_INLINE std::uint64_t begin(std::uint64_t part) const
  {
    return records[part].word;
  }

  //! @brief The first word of what a rank sent of a part, among what all ranks sent of it.
  [[nodiscard]] TERSUM_INLINE std::uint64_t received(std::uint64_t rank, std::uint32_t part) const
  {
    return rank * of_index(part, chunks_of(part)).word;
  }

  //! @brief The place of a chunk in the part of its first rank. Every chunk has the level 1.
  [[nodiscard]] TERSUM_INLINE part_place of_slot(std::uint32_t, std::uint32_t chunk) const
  {
    // The ends of shards ascend: the first shard that ends after the chunk has begun.
    std::uint32_t least = 0;
    std::uint32_t most  = world - 1;
    while (least < most) {
      std::uint32_t const middle = least + (most - least) / 2;
      if (records[middle].first + records[middle].chunks > chunk) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return of_index(least, chunk - records[least].first);
  }

  //! @brief The place of number `index` of a part.
  [[nodiscard]] TERSUM_INLINE part_place of_index(std::uint32_t part, std::uint32_t index) const
  {
    std::uint64_t const scales = round_up(chunks_of(part), 4);
    return {1, part, index, scales + static_cast<std::uint64_t>(index) * chunk_words};
  }

  //! @brief The number in the gradient of number `index` of a part.
  [[nodiscard]] TERSUM_INLINE std::uint64_t chunk_of(std::uint32_t part, std::uint32_t index) const
  {
    return records[part].first + index;
  }

  //! @brief Chunks of a part.
  [[nodiscard]] TERSUM_INLINE std::uint32_t chunks_of(std::uint32_t part) const
  {
    return records[part].chunks;
  }

  //! @brief The words of a part between its scales and its codes.
  [[nodiscard]] TERSUM_INLINE part_rest rest_of(std::uint32_t part) const
  {
    return {chunks_of(part), round_up(chunks_of(part), 4)};
  }

  //! @brief The word of a part in which the scale of its chunk number `index` lies.
  [[nodiscard]] TERSUM_INLINE std::uint64_t scale_word(std::uint32_t index) const { return index; }
};

}  // namespace tersum::inline v0::detail
