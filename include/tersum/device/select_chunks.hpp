// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which chunks travel, and with how many bits, from their norms.

#pragma once

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief What a chunk's width may be, what each step to a greater width is worth, and what all of them may cost. Made by
//! `rule_of`, or by `plan::selection_rule` for what an exchange would choose.
using chunk_rule = detail::selection_rule;

//! @brief What was chosen: `count[l]` chunks on level l, 0 for those that stay, and `base[l]`, the first word of level l in a
//! payload that holds the widest chunks first.
using chosen_chunks = detail::selection_header;

//! @brief The rule of `top_chunks`: at most so many chunks, those of the largest norms, all on level 1.
template <int Size, class Scalar>
[[nodiscard]] constexpr chunk_rule rule_of(top_chunks<Size, Scalar> const& chunker,
                                           std::uint32_t most) noexcept;

//! @brief The rule of `allocated_chunks`: level l is the chunker's l-th width.
//! @param reducer  What adds the codes: its distortions say what a width is worth at this world.
//! @param words    Words of 32 bits that all codes together may take.
template <int Size, int... Widths, int Bits>
[[nodiscard]] constexpr chunk_rule rule_of(allocated_chunks<Size, Widths...> const& chunker,
                                           saturating_sum<Bits> const& reducer,
                                           int world,
                                           std::uint64_t words) noexcept;

//! @brief A chunk's level, and its number among the chunks of that level in ascending order (0 if it stays).
struct chunk_place {
  std::uint32_t level;
  std::uint32_t number;

  //! From what `select_chunks` wrote.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr chunk_place of(std::uint32_t place) noexcept
  {
    return {place & ((1u << detail::place_shift) - 1), place >> detail::place_shift};
  }
};

//! @brief Bytes of the workspace of `select_chunks`, whatever the number of chunks.
[[nodiscard]] constexpr std::size_t select_chunks_workspace_bytes() noexcept
{
  return sizeof(detail::selection_scratch);
}

//! @brief places[c] = the level of chunk c and its number there.
//!
//! *Reads* `norms`, *writes* `places` and the workspace, all in the executor's memory and apart from each other. *Needs*
//! `select_chunks_workspace_bytes()`, aligned to 16 bytes; afterwards it begins with a `chosen_chunks`. *Errors*: places.size()
//! is not norms.size(), 2^29 chunks or more, a rule with weights of tensors, a workspace that is too small, a null or
//! misaligned address, an overlap.
//!
//! Norms must not be negative; one that is not finite counts as infinite. Equal ones take turns: with `turn` 0 the lowest
//! index comes first, and with 0, 1, 2, ... each is chosen about as often as the others. Give all ranks the same number.
//! Nothing is sorted: two or three histograms find the threshold. The choice is that of an exchange after `turn` others, the
//! same on every executor. Enqueued on the executor: one launch, beyond 4096 chunks a cooperative one; does not synchronize.
//! @tparam Norm  float or bfloat16.
//!
//! @par Example
//! @snippet tests/device/select_cases.hpp select_chunks
template <executor Executor, gradient_element Norm>
[[nodiscard]] status select_chunks(Executor const& exec,
                                   chunk_rule const& rule,
                                   std::span<Norm const> norms,
                                   std::span<std::byte> workspace,
                                   std::span<std::uint32_t> places,
                                   std::uint64_t turn = 0);

}  // namespace tersum::inline v0

#include <tersum/device/detail/select_chunks.ipp>
