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
  explicit mpi_transport(MPI_Comm communicator, std::chrono::milliseconds timeout = {}) noexcept
    : timeout_(timeout)
  {
    made_   = own_.make(communicator);
    failed_ = made_.code == error_code::transport_failed;
    counts_.reset(new (std::nothrow) int[4 * static_cast<std::size_t>(size())]);
    words_.reset(new (std::nothrow) std::uint64_t[2]{});
  }
  mpi_transport(mpi_transport const&)            = delete;
  mpi_transport& operator=(mpi_transport const&) = delete;
  ~mpi_transport()
  {
    if (failed_) {
      static_cast<void>(counts_.release());  // perhaps still read
      static_cast<void>(words_.release());   // and written
    } else if (own_.comm != MPI_COMM_NULL) {
      MPI_Comm_free(&own_.comm);
    }
  }

  [[nodiscard]] int rank() const noexcept { return own_.rank; }
  [[nodiscard]] int size() const noexcept { return own_.size; }
  [[nodiscard]] status check() const noexcept
  {
    if (!made_.ok()) { return made_; }
    if (counts_ == nullptr || words_ == nullptr) {
      return {error_code::transport_failed, "no memory for the counts of MPI's collectives"};
    }
    if (failed_) {
      return {error_code::transport_failed,
              "an earlier call of MPI failed or did not end in time: make a new transport"};
    }
    return refused_;
  }
  void refuse(status const& why) const noexcept { refused_ = why; }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    // Into memory that stays: otherwise a word that comes after the timeout would be written to the caller's stack.
    words_[0] = value;
    MPI_Request both[2]{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int error = MPI_Irecv(&words_[1], 1, MPI_UINT64_T, from, 0, own_.comm, &both[0]);
    if (error == MPI_SUCCESS) {
      error = MPI_Isend(&words_[0], 1, MPI_UINT64_T, to, 0, own_.comm, &both[1]);
    }
    status const s = finish(error, both, 2);
    if (s.ok()) { received = words_[1]; }
    return s;
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    auto const ranks = static_cast<std::size_t>(size());
    if (blocks.count > most - ranks || blocks.size(rank()) > most / ranks) { return too_large(); }
    mpi_element_type const element(blocks.element_bytes);
    if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
    int* const sizes   = lay_out(blocks);
    int* const offsets = sizes + size();
    int* const here    = offsets + size();
    int* const places  = here + size();
    for (int k = 0; k < size(); ++k) {
      here[k]   = sizes[rank()];
      places[k] = k * here[k];
    }
    MPI_Datatype const type = element.get();
    return call(
      MPI_Alltoallv, MPI_Ialltoallv, data, sizes, offsets, type, received, here, places, type);
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    if (blocks.count > most - static_cast<std::size_t>(size())) { return too_large(); }
    mpi_element_type const element(blocks.element_bytes);
    if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
    int* const sizes        = lay_out(blocks);
    int* const offsets      = sizes + size();
    MPI_Datatype const type = element.get(), none = MPI_DATATYPE_NULL;
    return call(MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, none, data, sizes, offsets, type);
  }

  //! Reduces a round in the wire. Operations that depend on the position are not offered.
  template <reduce_op Op>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    all_reduce(wire<Op> const& round) const noexcept
  {
    return with_op<Op>([&](MPI_Datatype type, MPI_Op op) {
      constexpr std::size_t piece = std::size_t{1} << 30;  // MPI counts in int
      status outcome;
      for (std::size_t begin = 0; begin < round.count && outcome.ok(); begin += piece) {
        auto const here = static_cast<int>(std::min(round.count - begin, piece));
        outcome =
          call(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, round.data + begin, here, type, op);
      }
      return outcome;
    });
  }

  //! Reduces a round and gives this rank its part.
  template <reduce_op Op, class Parts>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    reduce_scatter(summed_wire_of<Op, Parts> const& round) const noexcept
  {
    return with_op<Op>([&](MPI_Datatype type, MPI_Op op) {
      if (round.count > most) { return too_large(); }
      int* const sizes = counts_.get();
      for (int k = 0; k < size(); ++k) { sizes[k] = static_cast<int>(round.size(k)); }
      return call(MPI_Reduce_scatter, MPI_Ireduce_scatter, round.data, round.sum, sizes, type, op);
    });
  }

 private:
  static constexpr std::size_t most = std::numeric_limits<int>::max();

  // The sizes of all blocks, and behind them where they begin, as MPI is told them.
  [[nodiscard]] int* lay_out(rank_blocks const& blocks) const noexcept
  {
    for (int k = 0; k < size(); ++k) {
      counts_[static_cast<unsigned>(k)]          = static_cast<int>(blocks.size(k));
      counts_[static_cast<unsigned>(size() + k)] = static_cast<int>(blocks.begin(k));
    }
    return counts_.get();
  }

  // Calls body(type, operation) with MPI's own, or with those of an `mpi_op`.
  template <class Op, class Body>
  [[nodiscard]] status with_op(Body const& body) const noexcept
  {
    if (status const s = check(); !s.ok()) { return s; }
    if constexpr (mpi_knows<Op>) {
      return body(mpi_native_type<typename Op::element>(), Op::maximum ? MPI_MAX : MPI_SUM);
    } else {
      mpi_element_type const element(sizeof(typename Op::element));
      mpi_op<Op> const op;
      if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
      if (op.error() != MPI_SUCCESS) { return answer(op.error()); }
      return body(element.get(), op.get());
    }
  }
  [[nodiscard]] bool limited() const noexcept { return timeout_.count() > 0; }

  // Calls one of MPI's collectives: as it is or, with a timeout, in its nonblocking form.
  template <class Blocking, class Started, class... Args>
  [[nodiscard]] status call(Blocking blocking, Started started, Args... args) const noexcept
  {
    if (!limited()) { return answer(blocking(args..., own_.comm)); }
    MPI_Request request = MPI_REQUEST_NULL;
    int const error     = started(args..., own_.comm, &request);
    return finish(error, &request, 1);
  }

  // Waits for requests, no longer than the timeout.
  [[nodiscard]] status finish(int error, MPI_Request* requests, int count) const noexcept
  {
    if (error == MPI_SUCCESS && !limited()) {
      return answer(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    }
    auto const end = std::chrono::steady_clock::now() + timeout_;
    int done       = 0;
    while (error == MPI_SUCCESS && done == 0 && std::chrono::steady_clock::now() < end) {
      error = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    }
    if (error == MPI_SUCCESS && done == 0) {
      failed_ = true;
      return {error_code::transport_failed,
              "MPI did not end within the timeout: a rank is gone or late"};
    }
    return answer(error);
  }

  [[nodiscard]] status answer(int error) const noexcept
  {
    if (error != MPI_SUCCESS) { failed_ = true; }
    return detail::mpi_duplicate::of(error);
  }

  [[nodiscard]] static status too_large() noexcept
  {
    return {error_code::unsupported,
            "MPI moves at most 2^31 - 1 elements at once: exchange the gradient in parts"};
  }

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
