// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief One codec applied to one gradient by one world. All ranks make the same plan, apart from `world::rank`.
//!
//! Made by `codec.plan(layout, world)`. `check` says whether the exchange can be made; `all_reduce_mean` asks it first.
//! All sizes are exact; what a codec does not have is 0. Plans of all codecs have these members, apart from offsets,
//! parts and tiles, which only some have.
//!
//! @par Example
//! @snippet examples/mpi_all_reduce.cpp plan
template <class Codec>
class plan {
 public:
  using codec_type = Codec;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.

  constexpr plan(Codec const& codec, layout const& gradient, world const& ranks);

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence names the argument that is at fault.
  [[nodiscard]] constexpr status check() const noexcept;

  //! @name Counts
  //! Each coordinate of the gradient is either compressed or bypasses the codec; padding is not counted. `tensors`
  //! counts the tensors that are not empty, each of which has a record in the state.
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return tensors_; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return compressed_; }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  //! @}

  //! @name Rounds
  //! What one rank gives to the caller's collective in each round.
  //! @{

  //! The scalars (norms or magnitudes) that the ranks agree on before they encode.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept;
  //! Bytes of the agreed scalars, rounded up to whole elements of their reduction.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept;
  //! Bytes of the codes, or of the converted values.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept;
  //! Under `per_hop_codec`: elements of the payload.
  [[nodiscard]] constexpr std::uint64_t tiles() const noexcept requires(requantizing<Codec>);
  //! Under `two_shot_codec`: bytes that one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept requires(scattering<Codec>);
  //! Under `two_shot_codec` with fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept requires(scattering<Codec>);
  //! Under `two_shot_codec`: the most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept requires(scattering<Codec>);
  //! Bytes of the coordinates that bypass, as float32.
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept;
  //! Bytes of all rounds.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept;
  //! Of chunkers that choose: whether the budget pays for anything. If not, nothing is sent and the mean is zeros.
  [[nodiscard]] constexpr bool travels() const noexcept;
  //! Bits of all rounds per coordinate of the gradient: 8 wire_bytes() / coordinates().
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept;
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds. Nothing in it needs to survive an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept;
  //! Bytes that must live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept;
  //! @brief What `state_header::layout` holds: a hash of tensors, weights and chunks, of whether there is feedback, and,
  //! where owners of parts feed back, of world and rank. Plans that differ in other things only, such as bits, can go on
  //! with each other's state.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept { return fingerprint_; }
  //! @}

  //! @name Offsets in the workspace
  //! In bytes, ascending. The steps of the chunks come first; under casts of all coordinates, the bypassed ones.
  //! @{

  //! Under `full_hadamard`: the rotated gradient, padded chunks of float32.
  [[nodiscard]] constexpr std::size_t rotated_offset() const noexcept;
  //! Of chunkers that choose: header, histograms and counters.
  [[nodiscard]] constexpr std::size_t selection_offset() const noexcept;
  //! Of chunkers that choose: four bytes per chunk, which say where it lies in the payload.
  [[nodiscard]] constexpr std::size_t places_offset() const noexcept;
  //! What this rank encodes.
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept;
  //! Under `per_hop_codec`: what the all-reduce gets. Under `two_shot_codec`: the parts that all ranks decode. Without
  //! feedback they take the place of what was sent; with feedback, which needs that until the end, they lie behind it.
  [[nodiscard]] constexpr std::size_t gathered_offset() const noexcept
    requires(detail::has_parts<Codec>);
  //! Under `two_shot_codec`: the parts that this rank adds.
  [[nodiscard]] constexpr std::size_t received_offset() const noexcept requires(scattering<Codec>);
  //! Bypassed coordinates, in the order of the gradient.
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept;
  //! Agreed scalars, even if the budget is too small to send them.
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept;
  //! @}

  //! @name Offsets in the state
  //! In bytes, ascending; the `state_header` comes first.
  //! @{

  //! One `tensor_record` per tensor.
  [[nodiscard]] constexpr std::size_t records_offset() const noexcept;
  //! One `chunk_entry` per chunk.
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept;
  //! Under `two_shot_codec` with feedback and fixed chunks: what the owner keeps, in whole chunks.
  [[nodiscard]] constexpr std::size_t owner_residual_offset() const noexcept;
  //! With feedback: a float32 per coordinate.
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept;
  //! @}

  //! @brief The records of the layout's tensors in order, one at a time, as `initialize` writes them.
  //!
  //! Empty tensors have none. Under `full_hadamard` a tensor is cut into pieces whose numbers of chunks are descending
  //! powers of two. Each is rotated as a whole and has its own record; only the last chunk is padded (as OptiReduce's
  //! THC does it).
  //! @param visit  visit(tensor_record const&).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const;

  //! @brief The rule by which chunks are chosen; the same on every rank.
  [[nodiscard]] constexpr detail::selection_rule selection_rule() const noexcept
    requires(Codec::selects);

 private:
  //! Whether tensors have weights other than 1.
  [[nodiscard]] constexpr bool weighted() const noexcept;
  //! Words of a chunk on the highest level.
  [[nodiscard]] static constexpr std::uint64_t widest_words() noexcept;
  //! Units that all chunks can use.
  [[nodiscard]] constexpr std::uint64_t most_units() const noexcept;
  //! What `scalars` agreed scalars take, in whole elements.
  [[nodiscard]] static constexpr std::uint64_t agreed_size(std::uint64_t scalars) noexcept;
  //! Agreed scalars are measured even where the budget does not let them travel.
  [[nodiscard]] constexpr std::size_t agreed_room() const noexcept;
  //! The units that the bits pay for once the norms are paid, at most what all chunks can use.
  [[nodiscard]] constexpr std::uint32_t affordable_units() const noexcept;

  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_     = 0;
  std::uint64_t chunks_      = 0;
  std::uint64_t compressed_  = 0;
  std::uint64_t bypassed_    = 0;
  std::uint64_t fingerprint_ = 0;
  std::uint32_t capacity_    = 0;
  bool covers_               = true;
};

}  // namespace tersum::inline v0

#include <tersum/detail/plan.ipp>
#include <tersum/detail/plan_bytes.ipp>
