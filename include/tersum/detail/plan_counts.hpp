// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of all codecs hold.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

template <class Codec, class Element>
struct exchange_args;

//! @brief What launches ask of the records that have chunks.
struct record_facts {
  bool whole          = false;  //!< One that is aligned has a whole chunk.
  bool cut            = false;  //!< One that is aligned has a short chunk.
  std::uint64_t ends  = 0;      //!< The chunks behind those that are, all bits together.
  std::uint64_t begin = ~std::uint64_t{0};  //!< From the first chunk of those that are not aligned
  std::uint64_t end   = 0;                  //!< to behind their last one.

  constexpr void add(tensor_record const& record, std::uint64_t chunk_size, bool aligned) noexcept
  {
    if (record.chunks == 0) { return; }
    std::uint64_t const after = record.first_chunk + record.chunks;
    if (aligned) {
      whole = whole || record.size >= chunk_size;
      cut   = cut || record.size % chunk_size != 0;
      ends |= after;
    } else {
      begin = minimum(begin, record.first_chunk);
      end   = after;
    }
  }
};

//! @brief What plans of all codecs hold. `Codec::counts_type` derives from it: it counts while it is constructed, checks
//! the arguments, says how many bytes each round has, and takes sections of workspace and state (take_workspace, take_state) to
//! which it has kernels' arguments point.
template <class Codec>
class plan_counts {
 public:
  using selection_type = nothing;  // what kernels are given of a choice, and of parts
  using parts_type     = nothing;
  using entry_type     = chunk_entry;  // what a state has of each of chunks()
  static constexpr std::size_t alignment =
    section_list::alignment;  //!< Of workspace and state, bytes.

  constexpr plan_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
  }

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @name Counts
  //! Each coordinate of the gradient is either compressed or bypasses the codec; padding is not counted. `tensors`
  //! counts the tensors that are not empty, each of which has a record in the state; `chunks` counts what is compressed
  //! as one: chunks, of low rank matrices, of TopK coordinates.
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return tensors_; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return compressed_; }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  //! Those of them that this rank gives.
  [[nodiscard]] constexpr std::uint64_t own_bypassed() const noexcept { return bypassed_; }
  [[nodiscard]] constexpr bool all_bypass() const noexcept { return compressed_ == 0; }
  [[nodiscard]] constexpr bool travels() const noexcept { return true; }
  //! Whether the codec was asked for rounds of whatever length: otherwise a bucket that it would enlarge bypasses it.
  static constexpr bool may_grow = false;
  //! @}

  //! Of records that are aligned at multiples of four coordinates, or of eight.
  [[nodiscard]] constexpr record_facts const& facts(bool in_fours) const noexcept
  {
    return in_fours ? in_fours_ : in_eights_;
  }

  //! What kernels are given besides memory.
  constexpr void fill(auto& args) const noexcept
  {
    args.codec   = codec_;
    args.chunks  = chunks_;
    args.tensors = tensors_;
    args.world   = world_.size;
    args.rank    = static_cast<std::uint32_t>(world_.rank);
  }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept { return 0; }
  //! Coordinates of which this rank keeps a residual.
  [[nodiscard]] constexpr std::uint64_t own_coordinates() const noexcept { return coordinates(); }
  //! What a form keeps of shards: nothing where there are none.
  constexpr void for_each_shard(auto const&) const noexcept {}
  constexpr void for_each_boundary(auto const&) const noexcept {}
  constexpr void for_each_record(auto const&) const noexcept {}
  constexpr void for_each_matrix(auto const&) const noexcept {}

 protected:
  constexpr void add_facts(tensor_record const& record) noexcept
  {
    in_fours_.add(record, Codec::chunk_size, record.offset % 4 == 0);
    in_eights_.add(record, Codec::chunk_size, record.offset % 8 == 0);
  }

  //! Of what this rank keeps of its own part.
  [[nodiscard]] constexpr std::uint64_t own_part() const noexcept
  {
    return mix(static_cast<std::uint64_t>(world_.size), static_cast<std::uint64_t>(world_.rank));
  }

  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_    = 0;
  std::uint64_t chunks_     = 0;
  std::uint64_t compressed_ = 0;
  std::uint64_t bypassed_   = 0;
  record_facts in_fours_{}, in_eights_{};
};

}  // namespace tersum::inline v0::detail
