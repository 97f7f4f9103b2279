// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange does, as a list: the stages that one rank works through, and the rounds in which ranks meet.
//!
//! Every codec has a type `stages`, a `stage_list` in the order of time. `all_reduce_mean`, its parts `measure`,
//! `encode`, `recompress` and `decode`, and `loopback_exchange` walk that list, on every executor. `codec` writes
//! the list once, and its form puts the rounds into it. A codec with a list of its own, such as `low_rank_codec`, has
//! `detail::run_stage` for the stages that it does in a way of its own.

#pragma once

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! The call in which a stage is done when a caller takes an exchange in parts.
enum class exchange_part : std::uint8_t { measure, encode, recompress, decode };

//! @brief What one rank does alone. A stage is a type; `executor::perform` does it.
namespace stage {

//! @brief A stage of one part of an exchange.
template <exchange_part Part>
struct of_part {
  static constexpr exchange_part part = Part;
};

// clang-format off
struct open           : of_part<exchange_part::measure> {};     //!< Checks that the state was initialized for the plan, where the host can read it.
struct recall         : of_part<exchange_part::measure> {};     //!< Copies what all ranks hold of this rank's shard, to which the difference is made.
struct gather_bypass  : of_part<exchange_part::measure> {};     //!< Copies the coordinates that bypass the codec to their wire.
struct measure        : of_part<exchange_part::measure> {};     //!< Computes the scalars that the ranks agree on, from the gradient; of low-rank factors P.
struct select         : of_part<exchange_part::encode> {};      //!< Chooses the chunks that travel, from the agreed norms or from the seed.
struct derive_steps   : of_part<exchange_part::encode> {};      //!< Computes the quantization step of each chunk from the agreed scalars, and flags what is not finite.
struct orthonormalize : of_part<exchange_part::encode> {};      //!< Makes the columns of the factors that products start from orthonormal.
struct encode         : of_part<exchange_part::encode> {};      //!< Makes the payload; feedback keeps what it loses, unless that has to wait for `decode`.
struct recompress     : of_part<exchange_part::recompress> {};  //!< Decodes and adds the ranks' codes of this rank's part, and encodes the mean.
struct return_bypass  : of_part<exchange_part::decode> {};      //!< Writes the means of the coordinates that bypassed to the gradient.
struct receive        : of_part<exchange_part::decode> {};      //!< Makes means of reduced factors, and flags what is not finite.
struct decode         : of_part<exchange_part::decode> {};      //!< Makes the mean of the payload, in place of the gradient.
struct finish         : of_part<exchange_part::decode> {};      //!< Measures the correlation of the ranks, counts saturated lanes, and numbers the next step.
// clang-format on

//! Fills a state for its first exchange. Once, before all lists.
struct initialize {
  std::uint64_t seed;
};

}  // namespace stage

//! @brief Where ranks meet: a wire that the caller's collective is called with.
namespace rounds {

//! @brief A round that follows the stages of one part.
template <exchange_part Part>
struct of_part : stage::of_part<Part> {
  static constexpr bool is_round = true;
};

// clang-format off
struct agree          : of_part<exchange_part::measure> {};     //!< `agreed_wire`.
struct sum_bypass     : of_part<exchange_part::measure> {};     //!< `bypass_wire`.
struct reduce_payload : of_part<exchange_part::encode> {};      //!< `payload_wire`.
struct scatter_parts  : of_part<exchange_part::encode> {};      //!< `scattered_wire`.
struct scatter_shards : of_part<exchange_part::encode> {};      //!< `shards_wire`.
struct sum_shards     : of_part<exchange_part::encode> {};      //!< `summed_wire`.
struct publish_bypass : of_part<exchange_part::encode> {};      //!< `published_bypass_wire`.
struct publish_parts  : of_part<exchange_part::encode> {};      //!< `published_wire`.
struct gather_parts   : of_part<exchange_part::recompress> {};  //!< `gathered_wire`.
// clang-format on

}  // namespace rounds

//! Whether an entry of a list is a round. `wire_of(round, plan, workspace)` is its wire.
template <class Entry>
concept is_round = Entry::is_round;

//! @brief Stages and rounds in the order of time. Stages of one part lie together.
template <class... Entries>
struct stage_list {
  static_assert(
    [] {
      exchange_part last = exchange_part::measure;
      bool ascending     = true;
      ((ascending = ascending && last <= Entries::part, last = Entries::part), ...);
      return ascending;
    }(),
    "tersum: the stages of a list are in the order of the parts of an exchange");
};

namespace detail {

template <class List, class... Rest>
struct join {
  using type = List;
};

template <class... First, class Entry, class... Rest>
struct join<stage_list<First...>, Entry, Rest...> : join<stage_list<First..., Entry>, Rest...> {
};

template <class... First, class... Entries, class... Rest>
struct join<stage_list<First...>, stage_list<Entries...>, Rest...>
  : join<stage_list<First..., Entries...>, Rest...> {
};

}  // namespace detail

//! A list of entries and of lists.
template <class... Entries>
using join_stages = typename detail::join<stage_list<>, Entries...>::type;

namespace detail {

//! @brief Stages that a policy adds: a rotator of whole tensors before the gradient is measured and after it was decoded, a reducer after
//! the payload was reduced. Most policies add none.
template <class Policy>
struct added_stages {
  using before = stage_list<>;
  using after  = stage_list<>;
};

template <class Policy>
requires requires
{
  typename Policy::stages_before;
  typename Policy::stages_after;
}
struct added_stages<Policy> {
  using before = typename Policy::stages_before;
  using after  = typename Policy::stages_after;
};

template <class Policy>
using stages_before = typename added_stages<Policy>::before;
template <class Policy>
using stages_after = typename added_stages<Policy>::after;

}  // namespace detail

//! The entries, if the condition holds.
template <bool Condition, class... Entries>
using stages_if = std::conditional_t<Condition, stage_list<Entries...>, stage_list<>>;

}  // namespace tersum::inline v0
