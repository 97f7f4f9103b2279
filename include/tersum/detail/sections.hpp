// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The caller's memory as a list of named sections, from which sizes and offsets follow.

#pragma once

#include <tersum/detail/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tersum::inline v0::detail {

//! @brief The hash of a name: FNV-1a.
[[nodiscard]] constexpr std::uint64_t named(std::string_view name) noexcept
{
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char const c : name) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u; }
  return hash;
}

//! @brief What workspaces and states are made of. A codec lists those that it has, in the order of memory. Fingerprints
//! have their names, and so stay what they are where this list changes.
// clang-format off
enum class section : std::uint64_t {
  // Workspace
  steps           = named("steps"),            //!< A `chunk_step` per chunk.
  rotated         = named("rotated"),          //!< Of rotators of whole tensors: the rotated gradient, padded chunks of float32.
  selection       = named("selection"),        //!< Of chunkers that choose: header, histograms and counters.
  places          = named("places"),           //!< Of chunkers that choose: where each chunk lies in the payload.
  order           = named("order"),            //!< Of parts whose chunks differ in width: their numbers by width, the widest first, then those that stay.
  poisoned        = named("poisoned"),         //!< Low rank: whether a reduced factor of a matrix is not finite.
  agreed          = named("agreed"),           //!< The scalars that the ranks agree on; of paired factors P.
  payload         = named("payload"),          //!< What this rank encodes.
  gathered        = named("gathered"),         //!< What all ranks decode, where that is not the payload.
  received        = named("received"),         //!< Two shots: the parts that this rank adds.
  held            = named("held"),             //!< Values in differences: what all ranks hold of this rank's shard, in float32.
  even_factor     = named("even_factor"),      //!< Low rank: factors in float32. Of a paired exchange P, else what the turn starts from.
  odd_factor      = named("odd_factor"),       //!< Low rank: factors in float32. Of a paired exchange Q, else what the turn sends.
  slice_sums      = named("slice_sums"),       //!< Low rank: sums of slices of the terms of products, in float32.
  bypass          = named("bypass"),           //!< The coordinates that bypass the codec, in the order of the gradient.
  largest_scales  = named("largest_scales"),   //!< Of factors in a metric: the bits of the largest scale of each matrix.
  // State
  header          = named("header"),           //!< The `state_header`.
  records         = named("records"),          //!< A `tensor_record` per tensor.
  shards          = named("shards"),           //!< Codecs of shards: a `shard_record` per rank.
  table           = named("table"),            //!< A `chunk_entry` per chunk; of low rank a `matrix_record` per matrix.
  scales          = named("scales"),           //!< In a metric: a float32 or bfloat16 per coordinate.
  gain            = named("gain"),             //!< Feedback whose weight depends on the step: four times the same float.
  owner_residual  = named("owner_residual"),   //!< Two shots with feedback: what the owner of chunks keeps.
  warm            = named("warm"),             //!< Low rank: what the next exchange starts from.
  residual        = named("residual")          //!< With feedback: a float32 or bfloat16 per coordinate; of values per coordinate of the shard.
};
// clang-format on

//! One section: an array, or another name for a section that is listed before it.
struct section_entry {
  section name;
  std::uint64_t bytes;
  std::size_t alignment;  //!< It begins at a multiple of this, even if it is empty.
  section place;          //!< The section in whose place it lies: itself, or the other one.
  std::size_t element;    //!< Bytes of what it is an array of.
};

//! @brief A section of `count` elements.
template <class Element>
[[nodiscard]] constexpr section_entry holds(section name,
                                            std::uint64_t count,
                                            std::size_t alignment = alignof(Element)) noexcept
{
  return {name, count * sizeof(Element), alignment, name, sizeof(Element)};
}

//! @brief A section that takes the place of another one, which is not needed any more or not at the same time.
[[nodiscard]] constexpr section_entry in_place_of(section other, section name) noexcept
{
  return {name, 0, 1, other, 0};
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

  //! @brief A hash of the sections: of their names, elements, sizes and begins.
  //! @param hash  That of what comes before them.
  [[nodiscard]] constexpr std::uint64_t fingerprint(std::uint64_t hash) const noexcept
  {
    std::size_t end = 0;
    for (section_entry const& e : entries) {
      end = round_up(end, e.alignment);
      hash =
        mix(mix(hash, static_cast<std::uint64_t>(e.name)), static_cast<std::uint64_t>(e.place));
      hash = mix(mix(mix(hash, e.element), e.bytes), end);
      end += e.bytes;
    }
    return hash;
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
