// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over MPI, for a parameter server and its workers. Host memory; link with MPI.

#pragma once

#include <tersum/interop/detail/mpi_duplicate.hpp>
#include <tersum/status.hpp>
#include <tersum_server/message_transport.hpp>

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <list>
#include <span>
#include <thread>
#include <utility>
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
  explicit mpi_messages(MPI_Comm communicator) : fault_(own_.make(communicator)) {}
  mpi_messages(mpi_messages const&)            = delete;
  mpi_messages& operator=(mpi_messages const&) = delete;
  //! Waits up to a second for what has been sent to go out.
  ~mpi_messages()
  {
    if (own_.comm == MPI_COMM_NULL) { return; }
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    forget_sent();
    while (!sent_.empty() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      forget_sent();
    }
    if (sent_.empty()) {
      MPI_Comm_free(&own_.comm);
    } else {
      // MPI goes on reading them.
      static_cast<void>(new std::list<letter>(std::move(sent_)));
    }
  }

  [[nodiscard]] int rank() const noexcept { return own_.rank; }
  [[nodiscard]] int size() const noexcept { return own_.size; }
  [[nodiscard]] status check() const noexcept { return fault_; }

  [[nodiscard]] status send(int to, std::span<std::byte const> message)
  {
    if (status const s = check(); !s.ok()) { return s; }
    if (to < 0 || to >= size()) {
      return {error_code::invalid_argument, "to must be a rank of the communicator"};
    }
    if (message.size() > std::numeric_limits<int>::max()) {
      return {error_code::unsupported, "a message over MPI has less than 2^31 bytes"};
    }
    forget_sent();
    sent_.push_back({{message.begin(), message.end()}, MPI_REQUEST_NULL});
    letter& l = sent_.back();
    return answer(MPI_Isend(
      l.message.data(), static_cast<int>(message.size()), MPI_BYTE, to, 0, own_.comm, &l.request));
  }
  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what)
  {
    what = {};
    if (status const s = check(); !s.ok()) { return s; }
    patience         = std::min<std::chrono::microseconds>(patience, detail::longest_wait);
    auto const begin = std::chrono::steady_clock::now();
    MPI_Status found{};
    for (int there = 0; there == 0;) {
      forget_sent();
      if (status const s = answer(MPI_Iprobe(MPI_ANY_SOURCE, 0, own_.comm, &there, &found));
          !s.ok()) {
        return s;
      }
      if (there != 0) { break; }
      auto const waited = std::chrono::steady_clock::now() - begin;
      if (waited >= patience) { return {}; }
      // Who has waited for long leaves the processor to others.
      if (waited > std::chrono::microseconds(200)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      } else {
        std::this_thread::yield();
      }
    }
    int bytes = 0;
    if (status const s = answer(MPI_Get_count(&found, MPI_BYTE, &bytes)); !s.ok()) { return s; }
    auto const length = static_cast<std::size_t>(std::max(bytes, 0));
    std::vector<std::byte> dropped(length > memory.size() ? length : 0);
    std::byte* const to = length > memory.size() ? dropped.data() : memory.data();
    int const error =
      MPI_Recv(to, bytes, MPI_BYTE, found.MPI_SOURCE, 0, own_.comm, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS) { what = {found.MPI_SOURCE, length}; }
    return answer(error);
  }

 private:
  struct letter {
    std::vector<std::byte> message;
    MPI_Request request;
  };

  // Forgets what has gone out.
  void forget_sent()
  {
    for (auto l = sent_.begin(); l != sent_.end();) {
      int done = 0;
      if (MPI_Test(&l->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
        ++l;
      } else {
        l = sent_.erase(l);
      }
    }
  }
  [[nodiscard]] status answer(int error)
  {
    if (error != MPI_SUCCESS) { fault_ = detail::mpi_duplicate::of(error); }
    return fault_;
  }

  detail::mpi_duplicate own_;
  status fault_;
  std::list<letter> sent_;
};

static_assert(message_transport<mpi_messages>, "tersum: must model tersum::message_transport");

}  // namespace tersum::inline v0
