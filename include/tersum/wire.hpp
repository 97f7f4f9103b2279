// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One round of an exchange: an array that the caller's all-reduce sums in place.

#pragma once

#include <tersum/concepts.hpp>

#include <cstddef>
#include <cstdint>

// Members that only other kinds of rounds have are private, so that `requires { round.op; }` tells rounds apart, and a
// collective that was written for another kind of round reads first which round it got.
#define TERSUM_LACKS                                                                                          \
  [[deprecated(                                                                                               \
    "tersum: this kind of round lacks the member: docs/transports.md says what it must do")]] static detail:: \
    this_kind_of_round_lacks_the_member

namespace tersum::inline v0 {

namespace detail {

struct this_kind_of_round_lacks_the_member {};

}  // namespace detail

//! @brief A round that reduces: every rank holds `count` elements at `data`, and the caller's collective replaces them
//! by the reduction over the ranks. An all-reduce in place.
//!
//! After the collective every rank must hold the same bits. `native` says whether transports have the reduction built
//! in, `associative` whether any order of the ranks gives the same bits, `exact` whether the sum loses nothing.
//! @tparam Op  The reduction: a function object on two elements. Only `saturating_segments`, for which positions
//!             matter, has state.
template <reduce_op Op>
struct wire {
  using element = typename Op::element;  //!< Type of one element; a reduction never cuts it.
  using op_type = Op;

  static constexpr bool native      = Op::native;
  static constexpr bool associative = Op::associative;
  static constexpr bool exact       = Op::exact;

  element* data     = nullptr;    //!< In the memory of the executor: the host's or the device's.
  std::size_t count = 0;          //!< Elements, the same on every rank.
  [[no_unique_address]] Op op{};  //!< The reduction of this round.
  int ranks = 0;                  //!< Those of the plan's world; 0: of any.

  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return count * sizeof(element); }

 private:
  TERSUM_LACKS gathered, sent, received;
};

//! @brief A round that gathers: rank r's part is the `count` elements from gathered + r count on. Before the collective a
//! rank has its own part, after it all parts. An all-gather in place.
template <class T>
struct gather_wire {
  using element = T;

  element* gathered = nullptr;  //!< ranks * count elements, in the memory of the executor.
  std::size_t count = 0;        //!< Elements of one rank's part, the same on every rank.
  int ranks         = 0;        //!< Those of the plan's world.

  //! The first element of a part.
  [[nodiscard]] constexpr std::size_t begin(int rank) const noexcept
  {
    return static_cast<std::size_t>(rank) * count;
  }
  //! Elements of a part.
  [[nodiscard]] constexpr std::size_t size(int) const noexcept { return count; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return count * sizeof(element); }

 private:
  using op_type = detail::this_kind_of_round_lacks_the_member;
  TERSUM_LACKS op, data, sent, received;
};

//! @brief A round that scatters: the ranks' parts lie one after the other in both arrays. A rank sends part r to rank
//! r, and receives its own part from every rank, in the order of the ranks. An all-to-all.
template <class T>
struct scatter_wire {
  using element = T;

  element const* sent = nullptr;  //!< ranks * count elements, in the memory of the executor.
  element* received   = nullptr;  //!< As many; must not overlap `sent`.
  std::size_t count   = 0;        //!< Elements of a part, the same on every rank.
  int ranks           = 0;        //!< Those of the plan's world.

  //! The first element of a part in `sent`.
  [[nodiscard]] constexpr std::size_t begin(int rank) const noexcept
  {
    return static_cast<std::size_t>(rank) * count;
  }
  //! Elements of a part.
  [[nodiscard]] constexpr std::size_t size(int) const noexcept { return count; }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return count * sizeof(element); }

 private:
  using op_type = detail::this_kind_of_round_lacks_the_member;
  TERSUM_LACKS op, data, gathered;
};

//! @brief A round that scatters parts of unlike sizes: part r of what a rank sends is the size(r) elements from `sent` +
//! begin(r) on. A rank sends part r to rank r, and receives its own part from every rank, in the order of the ranks, one
//! after the other. An all-to-all of which every rank knows all sizes.
//! @tparam Parts  What says where the parts lie: the counts of a plan.
template <class T, class Parts>
struct shards_wire_of {
  using element = T;

  element const* sent = nullptr;  //!< In the memory of the executor.
  element* received   = nullptr;  //!< ranks * size(own rank) elements; must not overlap `sent`.
  std::size_t count   = 0;        //!< Elements of all parts together, the same on every rank.
  int ranks           = 0;        //!< Those of the plan's world.
  Parts parts;

  //! The first element of a part in `sent`. Between parts there may be elements that do not travel.
  [[nodiscard]] constexpr std::size_t begin(int r) const noexcept { return parts.part_word(r); }
  //! Elements of a part.
  [[nodiscard]] constexpr std::size_t size(int r) const noexcept { return parts.part_words(r); }
  [[nodiscard]] constexpr std::size_t bytes(int r) const noexcept
  {
    return size(r) * sizeof(element);
  }

 private:
  using op_type = detail::this_kind_of_round_lacks_the_member;
  TERSUM_LACKS op, data, gathered;
};

//! @brief A round that reduces, and of which each rank gets its own part: the size(r) elements from `data` + begin(r) on, of all
//! ranks, reduced to `sum` on rank r. A reduce-scatter of which every rank knows all sizes. Parts lie one after the other, and
//! the collective may overwrite `data`.
//! @tparam Op     As of `wire`.
//! @tparam Parts  What says where the parts lie: the counts of a plan.
template <reduce_op Op, class Parts>
struct summed_wire_of {
  using element = typename Op::element;
  using op_type = Op;

  element* data     = nullptr;  //!< In the memory of the executor.
  element* sum      = nullptr;  //!< size(own rank) elements; must not overlap `data`.
  std::size_t count = 0;        //!< Elements of all parts together, the same on every rank.
  int ranks         = 0;        //!< Those of the plan's world.
  Parts parts;

  //! The first element of a part in `data`; of rank `ranks` the number of all elements.
  [[nodiscard]] constexpr std::size_t begin(int r) const noexcept
  {
    return parts.part_word(r) * sizeof(std::uint32_t) / sizeof(element);
  }
  //! Elements of a part.
  [[nodiscard]] constexpr std::size_t size(int r) const noexcept
  {
    return parts.part_words(r) * sizeof(std::uint32_t) / sizeof(element);
  }
  [[nodiscard]] constexpr std::size_t bytes(int r) const noexcept
  {
    return size(r) * sizeof(element);
  }

 private:
  TERSUM_LACKS op, gathered, sent, received;
};

//! @brief A round that gathers parts of unlike sizes: rank r's part is the size(r) elements from gathered + begin(r) on. Before the
//! collective a rank has its own part, after it all parts. An all-gather in place of which every rank knows all sizes.
//! @tparam Parts  What says where the parts lie.
template <class T, class Parts>
struct gather_wire_of {
  using element = T;

  element* gathered = nullptr;  //!< In the memory of the executor.
  std::size_t count = 0;        //!< Elements of all parts together, the same on every rank.
  int ranks         = 0;        //!< Those of the plan's world.
  Parts parts;

  //! The first element of a part. Between parts there may be elements that do not travel.
  [[nodiscard]] constexpr std::size_t begin(int r) const noexcept { return parts.part_word(r); }
  //! Elements of a part.
  [[nodiscard]] constexpr std::size_t size(int r) const noexcept { return parts.part_words(r); }
  [[nodiscard]] constexpr std::size_t bytes(int r) const noexcept
  {
    return size(r) * sizeof(element);
  }

 private:
  using op_type = detail::this_kind_of_round_lacks_the_member;
  TERSUM_LACKS op, data, sent, received;
};

namespace detail {

//! The reduction of the elements from `index` on.
template <reduce_op Op>
[[nodiscard]] constexpr Op op_from(Op const& op, std::size_t index) noexcept
{
  if constexpr (has_combine_at<Op>) {
    return op.from(index);
  } else {
    return op;
  }
}

}  // namespace detail

}  // namespace tersum::inline v0

#undef TERSUM_LACKS
