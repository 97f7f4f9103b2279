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

//! @brief The parts of a round, which may differ in size, as blocks that transports move. The round must outlive them.
template <class Round>
[[nodiscard]] rank_blocks blocks_of_parts(Round const& round) noexcept
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

//! @brief Brings the ranks' codes of this rank's block to it, and adds all of them at once, in the order of the ranks, whatever
//! order they came in.
//! @param op   The reduction, whose positions count from the block's first element.
//! @param sum  The block's place in the array.
template <class Transport, class Executor, reduce_op Op, class Round>
[[nodiscard]] status sum_block(Transport const& over,
                               Executor const& exec,
                               std::span<std::byte> scratch,
                               Round const& round,
                               rank_blocks const& blocks,
                               Op const& op,
                               typename Op::element* sum)
{
  using element            = typename Op::element;
  std::size_t const size   = blocks.size(over.rank());
  auto const ranks         = static_cast<std::size_t>(over.size());
  std::size_t const needed = size * ranks * sizeof(element);
  if (!are_apart(scratch.data(),
                 minimum(needed, scratch.size()),
                 round.data,
                 round.count * sizeof(element))) {
    return {error_code::invalid_argument, "scratch overlaps the round: it is no workspace"};
  }
  if (status const s = check_memory(scratch,
                                    needed,
                                    {"scratch is smaller than scratch_bytes(plan)",
                                     "scratch is a null pointer",
                                     "scratch is not aligned to 16 bytes"});
      !s.ok()) {
    return s;
  }
  auto const* const data = reinterpret_cast<std::byte const*>(round.data);
  status const s         = over.all_to_all(data, blocks, scratch.data());
  if (!s.ok() || size == 0) { return s; }
  auto const* const received = reinterpret_cast<element const*>(scratch.data());
  std::span<element const> const gathered{received, size * ranks};
  return tersum::reduce(exec, op, std::span<element>{sum, size}, gathered, over.size());
}

//! @name The sum of a round over a transport that moves and does not add
//! @{
//! The sums of all blocks come to all ranks.
template <class Transport, class Executor, class Op>
[[nodiscard]] status sum_moved(Transport const& over,
                               Executor const& exec,
                               std::span<std::byte> scratch,
                               wire<Op> const& round)
{
  rank_blocks const blocks{
    .count = round.count, .element_bytes = sizeof(typename Op::element), .ranks = over.size()};
  std::size_t const begin = blocks.begin(over.rank());
  status const s =
    sum_block(over, exec, scratch, round, blocks, op_from(round.op, begin), round.data + begin);
  return s.ok() ? over.all_gather(reinterpret_cast<std::byte*>(round.data), blocks) : s;
}

//! The sum of each part stays on its rank.
template <class Transport, class Executor, class Op, class Parts>
[[nodiscard]] status sum_moved(Transport const& over,
                               Executor const& exec,
                               std::span<std::byte> scratch,
                               summed_wire_of<Op, Parts> const& round)
{
  return sum_block(over, exec, scratch, round, blocks_of_parts(round), Op{}, round.sum);
}
//! @}

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
inline constexpr bool sums_in_wire = scatters_sums<Transport, Round> ||
                                     requires(Transport const& t, Round const& round)
{
  t.all_reduce(round);
};
//! @}

}  // namespace tersum::inline v0::detail
