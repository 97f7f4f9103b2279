// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/chunk/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief One codec applied to one gradient by one world. Every rank makes the same plan but for its rank.
//!
//! Plans of all codecs, special as they may be, answer what is asked here of codec, gradient and ranks, counts, rounds and
//! bytes of memory; only offsets, parts and tiles are of some. Sizes are exact; a zero is a zero. `check` says whether the exchange can be made, and `all_reduce_mean` asks it first.
template <class Codec>
class plan {
 public:
  using codec_type = Codec;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.

  constexpr plan(Codec const& codec, layout const& gradient, world const& ranks);

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept;

  //! @name Counts
  //! Coordinates are those of the gradient: each is compressed, padding not counted, or bypasses the codec. Every tensor
  //! that is not empty has a record in the state.
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return tensors_; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return compressed_; }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  //! @}

  //! @name Rounds
  //! Elements and bytes that one rank gives to the all-reduce in each round.
  //! @{

  //! Norms, magnitudes, or what else the ranks agree on before they encode.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept;
  //! The agreed scalars, in whole elements of their reduction.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept;
  //! Codes, or values of a cast.
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept;
  //! Under per_hop: elements of the payload.
  [[nodiscard]] constexpr std::uint64_t tiles() const noexcept requires(recoding<Codec>);
  //! Under two_shot: what one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept requires(scattering<Codec>);
  //! Under two_shot with fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept requires(scattering<Codec>);
  //! Under two_shot: the most words of a part that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept requires(scattering<Codec>);
  //! Bypassed coordinates travel as float32.
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept;
  //! All rounds together.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept;
  //! Of chunkers that select: whether the budget pays for anything. If not, nothing travels and all decodes to zeros.
  [[nodiscard]] constexpr bool travels() const noexcept;
  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept;
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds: nothing in it survives an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept;
  //! Bytes that live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept;
  //! @brief What `state_header::layout` holds: a hash of tensors, weights and chunks, of whether there is feedback, and
  //! where owners of parts feed back of world and rank. Plans that differ in nothing else, as in bits, can go on with each
  //! other's state.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept { return fingerprint_; }
  //! @}

  //! @name Offsets in the workspace
  //! In bytes, ascending; the steps of the chunks come first. Of casts of all coordinates the bypassed ones do.
  //! @{

  //! Under full_hadamard: the rotated gradient, padded chunks of float32.
  [[nodiscard]] constexpr std::size_t rotated_offset() const noexcept;
  //! Of chunkers that select: header, histograms and counters.
  [[nodiscard]] constexpr std::size_t selection_offset() const noexcept;
  //! Of chunkers that select: four bytes a chunk, where it lies in the payload.
  [[nodiscard]] constexpr std::size_t places_offset() const noexcept;
  //! What this rank encodes.
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept;
  //! Under per_hop: what the all-reduce gets. Under two_shot: the parts that all ranks decode. With feedback, which needs
  //! what was sent until the end, they lie behind it, otherwise they take its place.
  [[nodiscard]] constexpr std::size_t gathered_offset() const noexcept
    requires(detail::has_parts<Codec>);
  //! Under two_shot: the parts for this rank to add.
  [[nodiscard]] constexpr std::size_t received_offset() const noexcept requires(scattering<Codec>);
  //! Bypassed coordinates, in the order of the gradient.
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept;
  //! Agreed scalars, also where the budget does not let them travel.
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept;
  //! @}

  //! @name Offsets in the state
  //! In bytes, ascending; the `state_header` comes first.
  //! @{

  //! One `tensor_record` a tensor.
  [[nodiscard]] constexpr std::size_t records_offset() const noexcept;
  //! One `chunk_entry` a chunk.
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept;
  //! Under two_shot with feedback and fixed chunks: what the owner keeps, whole chunks.
  [[nodiscard]] constexpr std::size_t owner_residual_offset() const noexcept;
  //! With feedback: a float32 a coordinate.
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept;
  //! @}

  //! @brief The records of the layout's tensors in order, one at a time, as `initialize` writes them.
  //!
  //! Empty tensors have none. Under `full_hadamard` a tensor is cut into pieces of descending powers of two of chunks,
  //! each rotated as a whole with its own record, so that only the last chunk is padded (as OptiReduce's THC does it).
  //! @param visit  visit(tensor_record const&).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const;

  //! @brief The rule by which chunks are chosen, the same on every rank.
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

#include <tersum/plan.ipp>
#include <tersum/plan_bytes.ipp>
