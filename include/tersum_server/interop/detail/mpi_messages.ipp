// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of mpi_messages.hpp.

#include <algorithm>
#include <limits>
#include <thread>

namespace tersum::inline v0 {

inline mpi_messages::mpi_messages(MPI_Comm communicator) : fault_(own_.make(communicator)) {}

inline mpi_messages::~mpi_messages()
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

inline status mpi_messages::answer(int error)
{
  if (error != MPI_SUCCESS) { fault_ = detail::mpi_duplicate::of(error); }
  return fault_;
}

inline void mpi_messages::forget_sent()
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

inline status mpi_messages::send(int to, std::span<std::byte const> message)
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

inline status mpi_messages::receive(std::span<std::byte> memory,
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

}  // namespace tersum::inline v0
