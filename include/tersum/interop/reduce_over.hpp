// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All-reduces over a transport, for `all_reduce_mean`.
//!
//!     tersum::mpi_transport const mpi{MPI_COMM_WORLD};
//!     status = agree_on(mpi, plan, seed);                                        once: do all ranks have this plan?
//!     status = all_reduce_mean(exec, plan, gradient, state, workspace, reduce_over(mpi, exec, scratch));

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/interop/detail/moved_sums.hpp>
#include <tersum/interop/transport.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! How a payload is reduced.
enum class schedule : std::uint8_t {
  automatic,  //!< `in_wire` where the transport can, otherwise `direct`.
  in_wire,    //!< By the transport's own all-reduce, in the order of ranks that it has.
  //! All-to-all, a sum on each block's owner, all-gather; `reduction_order::direct`. Each of n ranks sends 2 (n - 1) / n times the payload.
  direct,
};

namespace detail {

//! @brief Bytes of codes that a rank adds. Parts that are only moved need no scratch memory: the workspace has room for them.
//! @{
template <class Codec>
[[nodiscard]] constexpr std::uint64_t summed_bytes(plan<Codec> const& plan) noexcept
{
  constexpr bool has_room = scattering<Codec> || sharding<Codec> || copying<Codec>;
  return has_room ? 0 : std::uint64_t{plan.payload_bytes()};
}
template <summing Codec>
[[nodiscard]] constexpr std::uint64_t summed_bytes(plan<Codec> const& plan) noexcept
{
  // The ranks' codes of the own part.
  return 4 * plan.part_words(plan.ranks().rank) * static_cast<std::uint64_t>(plan.ranks().size);
}
//! @}

}  // namespace detail

//! @brief Bytes of scratch memory that `reduce_over` needs for the exchanges of a plan: those of the largest round, and
//! one element more for each rank.
template <class Codec>
[[nodiscard]] constexpr std::size_t scratch_bytes(plan<Codec> const& plan) noexcept
{
  if (gathering<Codec> || publishing<Codec>) { return 0; }
  std::uint64_t const largest =
    detail::maximum(detail::maximum(std::uint64_t{plan.agreed_bytes()}, detail::summed_bytes(plan)),
                    std::uint64_t{plan.bypass_bytes()});
  // A rank's block exceeds the mean of all blocks by less than an element, of at most 8 bytes.
  return largest + 8 * static_cast<std::size_t>(plan.ranks().size);
}

//! @brief The collective that `all_reduce_mean` is given: made by `reduce_over`.
//!
//! Over NCCL all work is enqueued on the stream. Other transports have done their work when the call returns. It is called with one round
//! at a time, whose arrays it reads and writes as that kind of round says. *Errors*: those of the transport; a round of another number of
//! ranks than the transport has; scratch memory that is too small, null, misaligned or overlaps the round; an executor on another stream
//! than the transport's. After an argument's fault nothing was sent, and the other ranks wait as their transport does.
template <schedule Schedule, transport Transport, class Executor>
class transport_reduce {
 public:
  constexpr transport_reduce(Transport const& over,
                             Executor const& exec,
                             std::span<std::byte> scratch) noexcept
    : over_(&over), exec_(exec), scratch_(scratch)
  {
  }

  //! Reduces or gathers a round in place, exchanges its parts, or reduces it and scatters its parts, which differ in size.
  template <class Round>
  [[nodiscard]] status operator()(Round const& round) const
  {
    if (status const s = over_->check(); !s.ok()) { return s; }
    if (status const s = detail::check_ranks(round, over_->size()); !s.ok()) { return s; }
    if (status const s = detail::check_executor(*over_, exec_); !s.ok()) { return s; }
    return round.count == 0 ? status{} : move(round);
  }

 private:
  [[nodiscard]] bool alone() const noexcept { return over_->size() == 1; }

  template <reduce_op Op>
  [[nodiscard]] status move(wire<Op> const& round) const
  {
    return alone() ? status{} : sum(round);
  }

  template <class Round>
  requires requires(Round const& round) { round.gathered; }
  [[nodiscard]] status move(Round const& round) const
  {
    auto* const data = reinterpret_cast<std::byte*>(round.gathered);
    return alone() ? status{} : over_->all_gather(data, detail::blocks_of_parts(round));
  }

  template <class Round>
  requires requires(Round const& round) { round.sent; }
  [[nodiscard]] status move(Round const& round) const
  {
    if (alone()) { return exec_.copy(round.received, round.sent + round.begin(0), round.size(0)); }
    return over_->all_to_all(reinterpret_cast<std::byte const*>(round.sent),
                             detail::blocks_of_parts(round),
                             reinterpret_cast<std::byte*>(round.received));
  }

  template <class Op, class Parts>
  [[nodiscard]] status move(summed_wire_of<Op, Parts> const& round) const
  {
    static_assert(!has_combine_at<Op>,
                  "tersum: a reduce-scatter takes operations that do not depend on the position");
    return alone() ? exec_.copy(round.sum, round.data, round.count) : sum(round);
  }

  template <class Round>
  [[nodiscard]] status sum(Round const& round) const
  {
    constexpr bool chooses = Schedule == schedule::automatic;
    if constexpr (Schedule == schedule::in_wire ||
                  (chooses && detail::sums_in_wire<Transport, Round>)) {
      return detail::sum_in_wire(*over_, round);
    } else {
      return detail::sum_moved(*over_, exec_, scratch_, round);
    }
  }

  Transport const* over_;
  Executor exec_;
  std::span<std::byte> scratch_;
};

//! @brief Makes the collective for `all_reduce_mean` of a transport.
//!
//! @tparam Schedule  How to reduce. With `in_wire`, an operation that the transport cannot do is a compile error.
//! @param over       The transport, which must outlive the collective.
//! @param exec       The executor of the exchange. It adds what the transport only moves.
//! @param scratch    scratch_bytes(plan) bytes of the executor's memory, aligned to 16, apart from the workspace. Rounds
//!                   that are reduced `in_wire` do not use it.
//!
//! @par Example
//! @snippet examples/transports/mpi_all_reduce.cpp reduce_over
template <schedule Schedule = schedule::automatic, transport Transport, class Executor>
[[nodiscard]] constexpr auto reduce_over(Transport const& over,
                                         Executor const& exec,
                                         std::span<std::byte> scratch = {}) noexcept
{
  return transport_reduce<Schedule, Transport, Executor>{over, exec, scratch};
}

}  // namespace tersum::inline v0
