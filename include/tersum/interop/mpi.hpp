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

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

namespace tersum::inline v0 {

//! @brief All ranks of an MPI communicator.
//!
//! Works on a duplicate of it, whose errors are returned rather than ending the program; making the object and ending it
//! are collective, and the latter comes before MPI_Finalize. A peer that dies ends the job under most launchers: MPI has
//! no time limits. Native: sums and maxima of float and of integers. Through an `mpi_op`: all else in the wire.
class mpi_transport {
 public:
  //! Collective over the communicator. Allocates 16 bytes a rank, once.
  explicit mpi_transport(MPI_Comm communicator) noexcept
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
    if (comm_ != MPI_COMM_NULL) { MPI_Comm_free(&comm_); }
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] status check() const noexcept
  {
    if (error_ == MPI_SUCCESS && counts_ == nullptr) {
      return {error_code::transport_failed, "no memory for the counts of MPI's collectives"};
    }
    return answer(error_);
  }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const noexcept
  {
    return answer(MPI_Sendrecv(&value,
                               1,
                               MPI_UINT64_T,
                               to,
                               0,
                               &received,
                               1,
                               MPI_UINT64_T,
                               from,
                               0,
                               comm_,
                               MPI_STATUS_IGNORE));
  }

  [[nodiscard]] status send_receive(int to,
                                    std::byte const* sent,
                                    std::size_t sent_bytes,
                                    int from,
                                    std::byte* received,
                                    std::size_t received_bytes) const noexcept
  {
    if (sent_bytes > most || received_bytes > most) { return too_large(); }
    return answer(MPI_Sendrecv(sent,
                               static_cast<int>(sent_bytes),
                               MPI_BYTE,
                               to,
                               0,
                               received,
                               static_cast<int>(received_bytes),
                               MPI_BYTE,
                               from,
                               0,
                               comm_,
                               MPI_STATUS_IGNORE));
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
    return answer(MPI_Alltoallv(
      data, sizes, offsets, element.get(), received, here, places, element.get(), comm_));
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
    return answer(MPI_Allgatherv(
      MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, sizes, offsets, element.get(), comm_));
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
      int const error =
        MPI_Allreduce(MPI_IN_PLACE, round.data + begin, static_cast<int>(here), type, op, comm_);
      if (error != MPI_SUCCESS) { return answer(error); }
    }
    return {};
  }

  [[nodiscard]] static status answer(int error) noexcept
  {
    if (error == MPI_SUCCESS) { return {}; }
    return {error_code::transport_failed, "MPI returned an error", error};
  }

  [[nodiscard]] static status too_large() noexcept
  {
    return {error_code::unsupported,
            "MPI moves at most 2^31 - 1 elements, or bytes in a ring, at once: cut the gradient"};
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_      = 0;
  int size_      = 1;
  int error_     = MPI_SUCCESS;
  std::unique_ptr<int[]>
    counts_;  // written by each call that needs them: a transport is used by one thread
};

static_assert(transport<mpi_transport>, "tersum: must model tersum::transport");

}  // namespace tersum::inline v0
