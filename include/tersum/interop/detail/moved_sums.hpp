// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sums of rounds over transports: by their own collectives, or of what they have moved.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/device/reduce.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/exchange/rank_blocks.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! At least the bytes of an element of a codec's rounds. A rank's block exceeds the mean of all blocks by less than that.
template <class Codec>
[[nodiscard]] constexpr std::size_t largest_element() noexcept
{
  std::size_t largest = 8;
  if constexpr (requires { typename Codec::payload_op::element; }) {
    largest = maximum(largest, sizeof(typename Codec::payload_op::element));
  }
  return largest;
}

//! @brief Whether an executor can add what a transport brings. A transport with a stream, such as `nccl_transport`, asks
//! for the same stream.
template <class Transport, class Executor>
[[nodiscard]] status check_executor([[maybe_unused]] Transport const& over,
                                    Executor const& exec) noexcept
{
  if (status const s = exec.check(); !s.ok()) { return s; }
  if constexpr (requires { over.check_stream(exec.stream); }) {
    return over.check_stream(exec.stream);
  } else {
    return {};
  }
}

//! @brief The parts of a round that differ in size, as blocks that transports move. The round must outlive them.
template <class Round>
[[nodiscard]] rank_blocks blocks_of_shards(Round const& round) noexcept
{
  return {.count         = round.begin(round.ranks),
          .element_bytes = sizeof(typename Round::element),
          .ranks         = round.ranks,
          .place         = [](void const* of, int block) -> rank_blocks::extent {
            auto const& parts = *static_cast<Round const*>(of);
            return {parts.begin(block), parts.size(block)};
          },
          .of = &round};
}

//! @brief The parts of a round that may differ in size. If they do not, and lie one after the other, they are blocks as all
//! collectives cut them, which a transport's own all-gather takes.
template <class Round>
[[nodiscard]] rank_blocks blocks_of_parts(Round const& round) noexcept
{
  std::size_t const size = round.size(0);
  for (int rank = 0; rank < round.ranks; ++rank) {
    if (round.size(rank) != size || round.begin(rank) != static_cast<std::size_t>(rank) * size) {
      return blocks_of_shards(round);
    }
  }
  return {.count         = size * static_cast<std::size_t>(round.ranks),
          .element_bytes = sizeof(typename Round::element),
          .ranks         = round.ranks};
}

//! @brief Adds up the blocks that `all_to_all` brought, in the order of the ranks, whatever order they came in: all of them at
//! once, as `reduce` of gathered payloads does.
//! @param op        The reduction, whose positions count from the block's first element.
//! @param sum       The block's place in the array.
//! @param received  The ranks' blocks of `count` elements each.
template <class Executor, reduce_op Op>
[[nodiscard]] status add_received(Executor const& exec,
                                  Op const& op,
                                  typename Op::element* sum,
                                  typename Op::element const* received,
                                  std::size_t count,
                                  int ranks)
{
  if (count == 0) { return {}; }
  return reduce_payloads(
    exec, op, {sum, count}, static_cast<std::size_t>(ranks), [=](std::size_t k) {
      return received + k * count;
    });
}

//! @brief The sum of a round over a transport that moves and does not add.
//! @tparam Round  `wire`, whose sums come to all ranks, or `summed_wire_of`, whose parts stay on theirs.
template <class Transport, class Executor, class Round>
class moved_sums {
  using op_type                    = typename Round::op_type;
  using element                    = typename Round::element;
  static constexpr bool everywhere = std::same_as<Round, wire<op_type>>;

 public:
  moved_sums(Transport const& over,
             Executor const& exec,
             std::span<std::byte> scratch,
             Round const& round) noexcept
    : over_(over), exec_(exec), scratch_(scratch), round_(round), n_(over.size()), me_(over.rank())
  {
    if constexpr (everywhere) {
      blocks_ = {.count = round.count, .element_bytes = sizeof(element), .ranks = n_};
    } else {
      blocks_ = blocks_of_shards(round);
    }
  }

  //! Each owner gets all ranks' codes of its block and adds them; where all want the sums, they are gathered.
  [[nodiscard]] status direct() const
  {
    std::size_t const size = blocks_.size(me_);
    auto* const data       = reinterpret_cast<std::byte*>(round_.data);
    if (status const s = check(blocks_.bytes(me_) * static_cast<std::size_t>(n_)); !s.ok()) {
      return s;
    }
    if (status const s = over_.all_to_all(data, blocks_, scratch_.data()); !s.ok()) { return s; }
    std::size_t const begin = blocks_.begin(me_);
    status const s          = add_received(exec_, op(begin), sum_of(begin), received(), size, n_);
    return s.ok() && everywhere ? over_.all_gather(data, blocks_) : s;
  }

  //! Each block travels once around and collects all ranks. It ends where it belongs, or its sum travels on to those who lack it.
  [[nodiscard]] status ring() const
  {
    std::size_t largest = 0;
    for (int rank = 0; rank < n_; ++rank) { largest = maximum(largest, blocks_.bytes(rank)); }
    if (status const s = check(largest); !s.ok()) { return s; }
    int const late   = everywhere ? 0 : 1;
    auto const moved = [&](int hop) { return block((me_ - hop - late + 2 * n_) % n_); };
    for (int hop = 0; hop < (everywhere ? 2 : 1) * (n_ - 1); ++hop) {
      bool const adds          = hop < n_ - 1;
      auto const sent          = std::as_bytes(moved(hop));
      auto const arriving      = moved(hop + 1);
      std::byte* const arrives = adds ? scratch_.data() : std::as_writable_bytes(arriving).data();
      if (status const s = over_.send_receive((me_ + 1) % n_,
                                              sent.data(),
                                              sent.size(),
                                              (me_ + n_ - 1) % n_,
                                              arrives,
                                              arriving.size_bytes());
          !s.ok()) {
        return s;
      }
      if (!adds || arriving.empty()) { continue; }
      auto const begin  = static_cast<std::size_t>(arriving.data() - round_.data);
      element* const to = hop == n_ - 2 ? sum_of(begin) : arriving.data();
      if (status const s =
            exec_.reduce(op(begin), to, received(), arriving.data(), arriving.size());
          !s.ok()) {
        return s;
      }
    }
    return {};
  }

 private:
  [[nodiscard]] status check(std::size_t needed) const
  {
    std::size_t const bytes = round_.count * sizeof(element);
    if (!are_apart(scratch_.data(), minimum(needed, scratch_.size()), round_.data, bytes)) {
      return {error_code::invalid_argument, "scratch overlaps the round: it is no workspace"};
    }
    return check_memory(scratch_,
                        needed,
                        "scratch is smaller than scratch_bytes(plan)",
                        "scratch is a null pointer",
                        "scratch is not aligned to 16 bytes");
  }
  [[nodiscard]] element const* received() const
  {
    return reinterpret_cast<element const*>(scratch_.data());
  }
  [[nodiscard]] std::span<element> block(int rank) const
  {
    return {round_.data + blocks_.begin(rank), blocks_.size(rank)};
  }
  //! The operation from an element of the round on.
  [[nodiscard]] op_type op(std::size_t begin) const
  {
    if constexpr (everywhere) {
      return op_from(round_.op, begin);
    } else {
      return {};
    }
  }
  //! Where the sum of an own element of the round goes.
  [[nodiscard]] element* sum_of(std::size_t begin) const
  {
    if constexpr (everywhere) {
      return round_.data + begin;
    } else {
      return round_.sum + (begin - blocks_.begin(me_));
    }
  }

  Transport const& over_;
  Executor const& exec_;
  std::span<std::byte> scratch_;
  Round const& round_;
  int n_, me_;
  rank_blocks blocks_{};
};

//! @name A round by the transport's own collective
//! @{
template <class Transport, class Op>
[[nodiscard]] status sum_in_wire(Transport const& over, wire<Op> const& round)
{
  if constexpr (has_combine_at<Op>) {
    // One all-reduce for each of its parts: in host memory only.
    status outcome;
    round.op.for_each_part(
      round.count, [&]<class Part>(Part const&, std::size_t begin, std::size_t end) {
        static_assert(reduces_in_wire<Transport, Part>,
                      "tersum: this transport's all-reduce cannot do this operation: use "
                      "schedule::direct");
        wire<Part> const part{.data = round.data + begin, .count = end - begin};
        if (outcome.ok()) { outcome = over.all_reduce(part); }
      });
    return outcome;
  } else {
    static_assert(reduces_in_wire<Transport, Op>,
                  "tersum: this transport's all-reduce cannot do this operation: use "
                  "schedule::direct, or schedule::automatic, which falls back to it");
    return over.all_reduce(round);
  }
}

template <class Transport, class Op, class Parts>
[[nodiscard]] status sum_in_wire(Transport const& over, summed_wire_of<Op, Parts> const& round)
{
  static_assert(scatters_sums<Transport, summed_wire_of<Op, Parts>>,
                "tersum: this transport's reduce-scatter cannot do this operation: use "
                "schedule::direct, or schedule::automatic, which falls back to it");
  return over.reduce_scatter(round);
}

template <class Transport, class Round>
inline constexpr bool sums_in_wire = false;
template <class Transport, class Op>
inline constexpr bool sums_in_wire<Transport, wire<Op>> =
  !has_combine_at<Op> && reduces_in_wire<Transport, Op>;
template <class Transport, class Op, class Parts>
inline constexpr bool sums_in_wire<Transport, summed_wire_of<Op, Parts>> =
  scatters_sums<Transport, summed_wire_of<Op, Parts>>;
//! @}

}  // namespace tersum::inline v0::detail
