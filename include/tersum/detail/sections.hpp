// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The caller's memory as a list of named sections, from which sizes and offsets follow.

#pragma once

#include <tersum/detail/bits.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What workspaces and states are made of. A codec lists those that it has, in the order of memory.
enum class section {
  // Workspace
  steps,      //!< A `chunk_step` per chunk.
  rotated,    //!< Under `full_hadamard`: the rotated gradient, padded chunks of float32.
  selection,  //!< Of chunkers that choose: header, histograms and counters.
  places,  //!< Of chunkers that choose: where each chunk lies in the payload; behind them, by tensor, mean energies.
  order,  //!< Of parts whose chunks differ in width: their numbers by width, the widest first, then those that stay.
  poisoned,  //!< Low rank: whether a reduced factor of a matrix is not finite.
  agreed,    //!< The scalars that the ranks agree on; of paired factors P.
  payload,   //!< What this rank encodes.
  gathered,  //!< What all ranks decode, where that is not the payload.
  received,  //!< Two shots: the parts that this rank adds.
  held,      //!< Values in differences: what all ranks hold of this rank's shard, in float32.
  even_factor,  //!< Low rank: factors in float32. Of a paired exchange P, else what the turn starts from.
  odd_factor,  //!< Low rank: factors in float32. Of a paired exchange Q, else what the turn sends.
  slice_sums,  //!< Low rank: sums of slices of the terms of products, in float32.
  bypass,      //!< The coordinates that bypass the codec, in the order of the gradient.
  sent,        //!< Under `sent_values`: a float32 per coordinate.
  inner,  //!< The workspace of another codec: of quantized factors, of each exchange on two levels.
  largest_scales,  //!< Of factors in a metric: the bits of the largest scale of each matrix.
  shard,           //!< Two levels: the mean of this rank's shard, in float32.
  // State
  header,          //!< The `state_header`.
  records,         //!< A `tensor_record` per tensor.
  shards,          //!< Codecs of shards: a `shard_record` per rank.
  table,           //!< A `chunk_entry` per chunk; of low rank a `matrix_record` per matrix.
  scales,          //!< In a metric: a float32 or bfloat16 per coordinate.
  gain,            //!< Feedback whose weight depends on the step: four times the same float.
  owner_residual,  //!< Two shots with feedback: what the owner of chunks keeps.
  warm,            //!< Low rank: what the next exchange starts from.
  residual,  //!< With feedback: a float32 or bfloat16 per coordinate; of values per coordinate of the shard.
  even_inner,  //!< Quantized low rank: the state of the codec of P.
  odd_inner,   //!< Quantized low rank: the state of the codec of Q, or of the one factor.
  scatter_state,  //!< Two levels: the state of the first exchange within hosts; that of the last one is `header`.
  between_state  //!< Two levels: the state of the exchange between hosts.
};

//! One section: an array, or another name for a section that is listed before it.
struct section_entry {
  section name;
  std::uint64_t bytes;
  std::size_t alignment;  //!< It begins at a multiple of this, even if it is empty.
  section place;          //!< The section in whose place it lies: itself, or the other one.
};

//! @brief A section of `count` elements.
template <class Element>
[[nodiscard]] constexpr section_entry holds(section name,
                                            std::uint64_t count,
                                            std::size_t alignment = alignof(Element)) noexcept
{
  return {name, count * sizeof(Element), alignment, name};
}

//! @brief A section that takes the place of another one, which is not needed any more or not at the same time.
[[nodiscard]] constexpr section_entry in_place_of(section other, section name) noexcept
{
  return {name, 0, 1, other};
}

//! @brief Sections in the order of memory, one after the other.
template <std::size_t Count>
struct section_list {
  section_entry entries[Count];

  //! The first byte of a section; 0 for one that is not listed, which has no bytes.
  [[nodiscard]] constexpr std::size_t offset(section name) const noexcept
  {
    std::size_t end = 0;
    for (section_entry const& e : entries) {
      end = round_up(end, e.alignment);
      if (e.name == name) { return e.place == name ? end : offset(e.place); }
      end += e.bytes;
    }
    return 0;
  }

  //! Bytes of all sections and of the gaps between them.
  [[nodiscard]] constexpr std::size_t size() const noexcept
  {
    std::size_t end = 0;
    for (section_entry const& e : entries) { end = round_up(end, e.alignment) + e.bytes; }
    return end;
  }

  //! The list with more sections at its end.
  template <class... Entry>
  [[nodiscard]] constexpr section_list<Count + sizeof...(Entry)> then(
    Entry const&... more) const noexcept
  {
    section_list<Count + sizeof...(Entry)> out{};
    std::size_t at = 0;
    for (section_entry const& e : entries) { out.entries[at++] = e; }
    ((out.entries[at++] = more), ...);
    return out;
  }
};

template <class... Entry>
section_list(Entry...) -> section_list<sizeof...(Entry)>;

}  // namespace tersum::inline v0::detail
