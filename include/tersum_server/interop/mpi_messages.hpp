// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over MPI, for a parameter server and its workers. Host memory; link with MPI.

#pragma once

#include <tersum/interop/detail/mpi_duplicate.hpp>
#include <tersum/status.hpp>
#include <tersum_server/message_transport.hpp>

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <span>
#include <vector>

namespace tersum::inline v0 {

//! @brief All ranks of an MPI communicator, which has one group (no intercommunicator).
//!
//! It works on a duplicate of the communicator, whose errors are returned instead of ending the program. Constructor and destructor are
//! collective; destroy it before MPI_Finalize. What is sent is copied and goes by MPI_Isend; `receive` asks by MPI_Iprobe, so that a
//! rank that does not come to it in time is waited for by nobody. Messages are below 2^31 bytes. Launchers end the whole job when a rank
//! dies, unless told otherwise.
class mpi_messages {
 public:
  //! Collective over the communicator.
  explicit mpi_messages(MPI_Comm communicator);
  mpi_messages(mpi_messages const&)            = delete;
  mpi_messages& operator=(mpi_messages const&) = delete;
  //! Waits up to a second for what has been sent to go out.
  ~mpi_messages();

  [[nodiscard]] int rank() const noexcept { return own_.rank; }
  [[nodiscard]] int size() const noexcept { return own_.size; }
  [[nodiscard]] status check() const noexcept { return fault_; }

  [[nodiscard]] status send(int to, std::span<std::byte const> message);
  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what);

 private:
  struct letter {
    std::vector<std::byte> message;
    MPI_Request request;
  };

  // Forgets what has gone out.
  void forget_sent();
  [[nodiscard]] status answer(int error);

  detail::mpi_duplicate own_;
  status fault_;
  std::list<letter> sent_;
};

static_assert(message_transport<mpi_messages>, "tersum: must model tersum::message_transport");

}  // namespace tersum::inline v0

#include <tersum_server/interop/detail/mpi_messages.ipp>
