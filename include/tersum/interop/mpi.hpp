// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! MPI as a transport. Host memory; link with MPI.

#pragma once

#include <tersum/interop/mpi_op.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/status.hpp>

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

namespace tersum::inline v0 {

//! @brief All ranks of an MPI communicator.
//!
//! Works on a duplicate of it, whose errors are returned rather than ending the program; making the object and ending it
//! are collective, and the latter comes before MPI_Finalize. Native: sums and maxima of float and of integers. Through an
//! `mpi_op`: all else in the wire.
//!
//! MPI itself has no time limits. With a `timeout` every call is one of MPI's nonblocking forms, asked again and again
//! whether it is done. What did not end in time cannot be taken back: MPI goes on using its memory, so that after a
//! timeout, as after any error, `check` fails, and the program must keep the memory of the exchange and end without
//! MPI_Finalize. Launchers end the whole job when a rank dies, unless told otherwise (mpirun --enable-recovery).
class mpi_transport {
 public:
  //! Collective over the communicator. Allocates 16 bytes a rank, once.
  //! @param timeout  Of each call; 0 for none, and MPI's blocking calls.
  explicit mpi_transport(MPI_Comm communicator, std::chrono::milliseconds timeout = {}) noexcept
    : timeout_(timeout)
  {
    error_ = MPI_Comm_dup(communicator, &comm_);
    if (error_ == MPI_SUCCESS) { error_ = MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN); }
    if (error_ == MPI_SUCCESS) { error_ = MPI_Comm_rank(comm_, &rank_); }
    if (error_ == MPI_SUCCESS) { error_ = MPI_Comm_size(comm_, &size_); }
    counts_.reset(new (std::nothrow) int[4 * static_cast<std::size_t>(size_)]);
  }
  mpi_transport(mpi_transport const&)            = delete;
  mpi_transport& operator=(mpi_transport const&) = delete;
  ~mpi_transport()
  {
    if (failed_) {
      static_cast<void>(counts_.release());  // perhaps still read
    } else if (comm_ != MPI_COMM_NULL) {
      MPI_Comm_free(&comm_);
    }
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] status check() const noexcept
  {
    if (error_ == MPI_SUCCESS && counts_ == nullptr) {
      return {error_code::transport_failed, "no memory for the counts of MPI's collectives"};
    }
    if (failed_) {
      return {error_code::transport_failed,
              "an earlier call of MPI failed or did not end in time: make a new transport"};
    }
    return answer(error_);
  }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    return send_receive(to,
                        reinterpret_cast<std::byte const*>(&value),
                        sizeof value,
                        from,
                        reinterpret_cast<std::byte*>(&received),
                        sizeof received);
  }

  [[nodiscard]] status send_receive(int to,
                                    std::byte const* sent,
                                    std::size_t sent_bytes,
                                    int from,
                                    std::byte* received,
                                    std::size_t received_bytes) const noexcept
  {
    if (sent_bytes > most || received_bytes > most) { return too_large(); }
    MPI_Request both[2]{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int error =
      MPI_Irecv(received, static_cast<int>(received_bytes), MPI_BYTE, from, 0, comm_, &both[0]);
    if (error == MPI_SUCCESS) {
      error = MPI_Isend(sent, static_cast<int>(sent_bytes), MPI_BYTE, to, 0, comm_, &both[1]);
    }
    return finish(error, both, 2);
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const noexcept
  {
    if (blocks.count > most - static_cast<std::size_t>(size_)) { return too_large(); }
    mpi_element_type const element(blocks.element_bytes);
    if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
    int* const sizes   = counts_.get();
    int* const offsets = sizes + size_;
    int* const here    = offsets + size_;
    int* const places  = here + size_;
    for (int k = 0; k < size_; ++k) {
      sizes[k]   = static_cast<int>(blocks.size(k));
      offsets[k] = static_cast<int>(blocks.begin(k));
      here[k]    = static_cast<int>(blocks.size(rank_));
      places[k]  = k * here[k];
    }
    if (!limited()) {
      return answer(MPI_Alltoallv(
        data, sizes, offsets, element.get(), received, here, places, element.get(), comm_));
    }
    MPI_Request request = MPI_REQUEST_NULL;
    int const error     = MPI_Ialltoallv(
      data, sizes, offsets, element.get(), received, here, places, element.get(), comm_, &request);
    return finish(error, &request, 1);
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
  {
    if (blocks.count > most - static_cast<std::size_t>(size_)) { return too_large(); }
    mpi_element_type const element(blocks.element_bytes);
    if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
    int* const sizes   = counts_.get();
    int* const offsets = sizes + size_;
    for (int k = 0; k < size_; ++k) {
      sizes[k]   = static_cast<int>(blocks.size(k));
      offsets[k] = static_cast<int>(blocks.begin(k));
    }
    if (!limited()) {
      return answer(MPI_Allgatherv(
        MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, sizes, offsets, element.get(), comm_));
    }
    MPI_Request request = MPI_REQUEST_NULL;
    int const error     = MPI_Iallgatherv(
      MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, sizes, offsets, element.get(), comm_, &request);
    return finish(error, &request, 1);
  }

  //! Every operation but those that depend on the position.
  template <reduce_op Op>
  requires(!has_combine_at<Op>) [[nodiscard]] status
    all_reduce(wire<Op> const& round) const noexcept
  {
    if constexpr (mpi_knows<Op>) {
      return reduce(round, mpi_native_type<typename Op::element>(), mpi_native_op<Op>());
    } else {
      mpi_element_type const element(sizeof(typename Op::element));
      mpi_op<Op> const op;
      if (element.error() != MPI_SUCCESS) { return answer(element.error()); }
      if (op.error() != MPI_SUCCESS) { return answer(op.error()); }
      return reduce(round, element.get(), op.get());
    }
  }

 private:
  static constexpr std::size_t most = std::numeric_limits<int>::max();

  // MPI counts in int, so that long arrays go in pieces.
  template <class Op>
  [[nodiscard]] status reduce(wire<Op> const& round, MPI_Datatype type, MPI_Op op) const noexcept
  {
    constexpr std::size_t piece = std::size_t{1} << 30;
    for (std::size_t begin = 0; begin < round.count; begin += piece) {
      std::size_t const here = round.count - begin < piece ? round.count - begin : piece;
      if (status const s = reduce(round.data + begin, static_cast<int>(here), type, op); !s.ok()) {
        return s;
      }
    }
    return {};
  }

  [[nodiscard]] status reduce(void* data, int count, MPI_Datatype type, MPI_Op op) const noexcept
  {
    if (!limited()) { return answer(MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, comm_)); }
    MPI_Request request = MPI_REQUEST_NULL;
    int const error     = MPI_Iallreduce(MPI_IN_PLACE, data, count, type, op, comm_, &request);
    return finish(error, &request, 1);
  }

  [[nodiscard]] bool limited() const noexcept { return timeout_.count() > 0; }

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
    if (error == MPI_SUCCESS) { return {}; }
    failed_ = true;
    return {error_code::transport_failed, "MPI returned an error", error};
  }

  [[nodiscard]] static status too_large() noexcept
  {
    return {
      error_code::unsupported,
      "MPI moves at most 2^31 - 1 elements, or bytes in a ring, at once: exchange the gradient in parts"};
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_      = 0;
  int size_      = 1;
  int error_     = MPI_SUCCESS;
  std::chrono::milliseconds timeout_;
  // Written by calls that are const: a transport is used by one thread.
  std::unique_ptr<int[]> counts_;
  mutable bool failed_ = false;  // a call; its memory may still be in use
};

static_assert(transport<mpi_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
