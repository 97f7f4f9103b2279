// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which chunks travel, and with how many bits, from their norms.

#pragma once

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/detail/block_selection.hpp>
#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

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
                                           std::uint32_t most) noexcept
{
  chunk_rule rule{};
  rule.capacity   = most;
  rule.unit_words = 1;
  detail::level_costs<top_chunks<Size, Scalar>, void>::add_steps(rule, chunker, 1, 1);
  return rule;
}

//! @brief The rule of `allocated_chunks`: level l is the chunker's l-th width.
//! @param reducer  What adds the codes: its distortions say what a width is worth at this world.
//! @param words    Words of 32 bits that all codes together may take.
template <int Size, int... Widths, int Bits>
[[nodiscard]] constexpr chunk_rule rule_of(allocated_chunks<Size, Widths...> const& chunker,
                                           [[maybe_unused]] saturating_sum<Bits> const& reducer,
                                           int world,
                                           std::uint64_t words) noexcept
{
  using allocated              = allocated_chunks<Size, Widths...>;
  using widths                 = detail::summed_widths<saturating_sum<Bits>>;
  constexpr std::uint32_t unit = widths::template unit_words<allocated>;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  chunk_rule rule{};
  rule.capacity   = static_cast<std::uint32_t>(detail::minimum(words / unit, most));
  rule.unit_words = unit;
  detail::level_costs<allocated, widths>::add_steps(rule, chunker, world, 1);
  return rule;
}

//! @brief Bytes of the workspace of `select_chunks`, whatever the number of chunks.
[[nodiscard]] constexpr std::size_t select_chunks_workspace_bytes() noexcept
{
  return sizeof(detail::selection_scratch);
}

namespace detail {

//! What the kernels of a selection are given.
template <class Norm>
struct norm_selection {
  std::uint64_t chunks;
  Norm const* norms;
  selection_args selection;
  std::uint64_t turn;
};

template <class Norm, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         norm_selection<Norm> const& args,
                                                         std::uint64_t chunk)
{
  return energy_bits(ctx.load(args.norms + chunk));
}

template <class Norm>
[[nodiscard]] TERSUM_INLINE std::uint64_t selection_turn(norm_selection<Norm> const& args)
{
  return args.turn;
}

template <unsigned Levels, class Norm>
struct select_chunks_kernel {
  static constexpr auto threads = &cuda_tuning::select_threads;
  static constexpr int shared   = select_shared;

  norm_selection<Norm> args;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    select_of<Levels>(ctx, args);
  }
};

}  // namespace detail

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
                                   std::uint64_t turn = 0)
{
  static_assert(!std::is_same_v<Norm, half>,
                "tersum: squared norms underflow and overflow in half: use float or bfloat16");
  std::size_t const bytes = select_chunks_workspace_bytes();
  status const s =
    detail::argument_check{}
      .require(places.size() == norms.size(), "places has not one element for each norm")
      .require(norms.size() < std::size_t{1} << 29, "norms has 2^29 chunks or more")
      .require(rule.weighted == 0, "rule has weights of tensors, which an array of norms has not")
      .require(workspace.size() >= bytes,
               "workspace is smaller than select_chunks_workspace_bytes()")
      .address(norms, alignof(Norm), "norms is a null pointer, or not aligned to its elements")
      .address(places, alignof(std::uint32_t), "places is a null pointer, or not aligned to words")
      .address(workspace, 16, "workspace is a null pointer, or not aligned to 16 bytes")
      .require(detail::are_disjoint(norms, places), "places overlaps norms")
      .require(detail::are_disjoint(workspace, norms) && detail::are_disjoint(workspace, places),
               "workspace overlaps norms or places")
      .result();
  if (!s.ok()) { return s; }
  auto* const scratch = reinterpret_cast<detail::selection_scratch*>(workspace.data());
  detail::norm_selection<Norm> const args{
    norms.size(), norms.data(), {rule, scratch, places.data()}, turn};
  return detail::perform(
    exec,
    [&](int threads, auto) {
      detail::chunk_selection{threads, rule, norms.size(), scratch->histogram[0], places.data()}
        .run([&](std::uint64_t chunk) { return detail::energy_bits(norms[chunk]); },
             scratch->header,
             turn);
    },
    [&](auto const& on) -> status {
      bool one_level = true;
      for (std::uint32_t step = 0; step < rule.steps; ++step) {
        one_level = one_level && rule.level[step] == 1;
      }
      std::uint64_t const blocks = detail::maximum<std::uint64_t>(
        detail::select_blocks(norms.size(), detail::tuning_of<Executor>.cuda), 1);
      return one_level ? run_together(on, detail::select_chunks_kernel<1, Norm>{args}, blocks)
                       : run_together(on,
                                      detail::select_chunks_kernel<detail::max_levels, Norm>{args},
                                      blocks);
    });
}

}  // namespace tersum::inline v0
