// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tersum::inline v0 {

//! @brief One codec applied to one gradient by one world. Every rank makes the same plan but for its rank.
//!
//! Sizes are exact; a zero is a zero. `check` says whether the exchange can be made, and `all_reduce_mean` asks it first.
template <class Codec>
class plan {
 public:
  using codec_type = Codec;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.

  constexpr plan(Codec const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
    std::uint64_t end = 0;
    for (tensor const& t : layout_.tensors) {
      covers_ = covers_ && t.offset == end;
      end     = t.offset + t.size();
    }
    covers_ = covers_ && (layout_.tensors.empty() || end == layout_.coordinates);
    for_each_record([this](tensor_record const& record) {
      ++tensors_;
      chunks_ += record.chunks;
      (record.chunks == 0 ? bypassed_ : compressed_) += record.size;
    });
  }

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (world_.size < 1 || world_.size > 65534) {
      return {error_code::invalid_argument, "world.size must be between 1 and 65534"};
    }
    if (world_.rank < 0 || world_.rank >= world_.size) {
      return {error_code::invalid_argument, "world.rank must be between 0 and world.size - 1"};
    }
    if (!covers_) {
      return {error_code::invalid_argument,
              "layout.tensors must cover layout.coordinates without gaps, in ascending order"};
    }
    if (chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {error_code::invalid_argument, "layout.coordinates has more than 2^31 chunks"};
    }
    if constexpr (!Codec::casts) {
      using reducer = typename Codec::reducer_type;
      if (world_.size > reducer::max_world(Codec::quantizer_type::max_level)) {
        return {
          error_code::world_too_large,
          "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum"};
      }
    }
    return {};
  }

  //! @name Counts
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept
  {
    return tensors_;
  }  //!< Records of the state.
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept
  {
    return compressed_;
  }  //!< Without padding.
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  //! @}

  //! @name Rounds
  //! Elements and bytes that one rank gives to the all-reduce in each round.
  //! @{
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    if constexpr (Codec::casts) {
      return 0;
    } else if constexpr (Codec::per_tensor) {
      return tensors_;
    } else if constexpr (Codec::tracks &&
                         Codec::range_type::measurement == statistic::chunk_magnitude) {
      return chunks_ + tensors_;
    } else {
      return chunks_;
    }
  }

  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    if constexpr (Codec::casts) {
      return 0;
    } else {
      return agreed_scalars() * sizeof(typename Codec::range_type::scalar);
    }
  }

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    if constexpr (Codec::casts) {
      return compressed_ * sizeof(typename Codec::quantizer_type::element);
    } else {
      return chunks_ * (Codec::chunk_size / 8 * Codec::reducer_type::lane_bits);
    }
  }

  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return bypassed_ * sizeof(float);
  }

  //! All rounds together.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return agreed_bytes() + payload_bytes() + bypass_bytes();
  }

  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return coordinates() == 0
             ? 0.0
             : 8.0 * static_cast<double>(wire_bytes()) / static_cast<double>(coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds: nothing in it survives an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return agreed_offset() + agreed_bytes();
  }

  //! Bytes that live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return residual_offset() + (Codec::feeds_back ? coordinates() * sizeof(float) : 0);
  }
  //! @}

  //! @name Offsets
  //! Where things lie in workspace and state, in bytes.
  //! @{
  [[nodiscard]] constexpr std::size_t rotated_offset() const noexcept
  {
    return Codec::casts ? 0 : chunks_ * sizeof(chunk_step);  // the steps come first
  }
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept
  {
    if constexpr (Codec::casts) { return bypass_bytes(); }
    return rotated_offset() +
           (Codec::rotates_all ? chunks_ * Codec::chunk_size * sizeof(float) : 0);
  }
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept
  {
    return Codec::casts ? 0 : payload_offset() + payload_bytes();
  }
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept
  {
    return Codec::casts ? payload_offset() + payload_bytes() : bypass_offset() + bypass_bytes();
  }

  [[nodiscard]] constexpr std::size_t records_offset() const noexcept
  {
    return sizeof(state_header);
  }
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept
  {
    return records_offset() + tensors_ * sizeof(tensor_record);
  }
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept
  {
    return table_offset() + chunks_ * sizeof(chunk_entry);
  }
  //! @}

  //! @brief The records of the layout's tensors in order, one at a time, as `initialize` writes them.
  //!
  //! Empty tensors have none. Under `full_hadamard` a tensor is cut into pieces of descending powers of two of chunks,
  //! each rotated as a whole with its own record, so that only the last chunk is padded (as OptiReduce's THC does it).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    std::uint64_t first_chunk = 0;
    std::uint64_t bypass      = 0;
    auto const visit_tensor   = [&](std::uint64_t offset, std::uint64_t size, bool around) {
      while (size > 0) {
        std::uint64_t chunks = (size + Codec::chunk_size - 1) / Codec::chunk_size;
        std::uint64_t here   = size;
        if (Codec::rotates_all && !around) {
          chunks = std::bit_floor(chunks);
          here   = detail::minimum(size, chunks * Codec::chunk_size);
        }
        tensor_record record{};
        record.offset      = offset;
        record.size        = here;
        record.first_chunk = first_chunk;
        record.chunks      = around ? 0 : chunks;
        record.bypass      = bypass;
        record.ratio       = static_cast<float>(world_.size);
        visit(record);
        first_chunk += record.chunks;
        bypass += around ? here : 0;
        offset += here;
        size -= here;
      }
    };
    if (layout_.tensors.empty()) { visit_tensor(0, layout_.coordinates, false); }
    for (tensor const& t : layout_.tensors) {
      visit_tensor(t.offset, t.size(), layout_.bypasses(t));
    }
  }

 private:
  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_    = 0;
  std::uint64_t chunks_     = 0;
  std::uint64_t compressed_ = 0;
  std::uint64_t bypassed_   = 0;
  bool covers_              = true;
};

}  // namespace tersum::inline v0
