// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! MPI as a transport. Host memory; link with MPI.

#pragma once

#include <tersum/interop/detail/mpi_duplicate.hpp>
#include <tersum/interop/mpi_op.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/status.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

namespace tersum::inline v0 {

//! @brief All ranks of an MPI communicator, which has one group (no intercommunicator).
//!
//! It works on a duplicate of the communicator, whose errors are returned instead of ending the program. Constructor
//! and destructor are collective; destroy it before MPI_Finalize. Sums and maxima of float and of integers are MPI's
//! own; other operations go in the wire as an `mpi_op`.
//!
//! The members are those that `transport` asks for. *Errors*, besides MPI's own in `status::native`: `unsupported` where 2^31
//! elements or more are moved at once.
//!
//! MPI has no time limits. With a `timeout` every call is made in MPI's nonblocking form, which is polled until it is
//! done or the time is over. A call that did not end in time cannot be cancelled, and MPI goes on using its memory.
//! After a timeout, as after any error, `check` fails; the program must keep the memory of the exchange and end without
//! MPI_Finalize. Launchers end the whole job when a rank dies, unless told otherwise (mpirun --enable-recovery).
//!
//! @par Example
//! @snippet examples/transports/mpi_all_reduce.cpp transport
class mpi_transport {
 public:
  //! Collective over the communicator. Allocates 16 bytes per rank, and 16 more, once.
  //! @param timeout  Of each call. 0: none, and MPI's blocking calls are used.
  explicit mpi_transport(MPI_Comm communicator, std::chrono::milliseconds timeout = {}) noexcept;
  mpi_transport(mpi_transport const&)            = delete;
  mpi_transport& operator=(mpi_transport const&) = delete;
  ~mpi_transport();

  [[nodiscard]] int rank() const noexcept { return own_.rank; }
  [[nodiscard]] int size() const noexcept { return own_.size; }
  [[nodiscard]] status check() const noexcept;
  void refuse(status const& why) const noexcept { refused_ = why; }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept;

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept;

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept;

  //! Reduces a round in the wire. Operations that depend on the position are not offered.
  template <reduce_op Op>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    all_reduce(wire<Op> const& round) const noexcept;

  //! Reduces a round and gives this rank its part.
  template <reduce_op Op, class Parts>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    reduce_scatter(summed_wire_of<Op, Parts> const& round) const noexcept;

 private:
  static constexpr std::size_t most = std::numeric_limits<int>::max();

  // Calls body(type, operation) with MPI's own, or with those of an `mpi_op`.
  template <class Op, class Body>
  [[nodiscard]] status with_op(Body const& body) const noexcept;
  [[nodiscard]] bool limited() const noexcept { return timeout_.count() > 0; }

  // Calls one of MPI's collectives: as it is or, with a timeout, in its nonblocking form.
  template <class Blocking, class Started, class... Args>
  [[nodiscard]] status call(Blocking blocking, Started started, Args... args) const noexcept;

  // Waits for requests, no longer than the timeout.
  [[nodiscard]] status finish(int error, MPI_Request* requests, int count) const noexcept;

  [[nodiscard]] status answer(int error) const noexcept;

  [[nodiscard]] static status too_large() noexcept;

  detail::mpi_duplicate own_;
  status made_;
  std::chrono::milliseconds timeout_;
  // Written by calls that are const: a transport is used by one thread.
  std::unique_ptr<int[]> counts_;
  std::unique_ptr<std::uint64_t[]> words_;  // sent and received
  mutable status refused_;
  mutable bool failed_ = false;  // whether a call has failed: MPI may still use its memory
};

static_assert(transport<mpi_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0

#include <tersum/interop/detail/mpi.ipp>
