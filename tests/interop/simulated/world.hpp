// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the ranks of a simulated communicator share: threads that meet.

#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tersum::simulator {

enum class nccl_call { send, receive, all_reduce, all_gather, reduce_scatter, reduce };

//! @brief One call of NCCL, as it is enqueued.
struct nccl_operation {
  nccl_call call;
  std::byte const* from;  //!< null for a receive
  std::byte* to;      //!< null for a send; of a reduction to one rank it counts on that rank alone
  std::size_t count;  //!< of a reduce-scatter the elements of one part
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int peer       = -1;  //!< of a reduction to one rank that rank
};

//! Bytes of an element; 0 for types that no rank here has.
[[nodiscard]] std::size_t nccl_bytes(ncclDataType_t type);

//! @brief What threads that are ranks exchange. A rank that waits longer than `patience` gives all of them up.
class nccl_world {
 public:
  explicit nccl_world(int ranks) : ranks_(ranks) {}

  [[nodiscard]] int ranks() const { return ranks_; }

  //! @brief A rank comes. @return  False where this rank is here already.
  [[nodiscard]] bool join(int rank);

  //! Whether all ranks have come, and none has gone.
  [[nodiscard]] bool complete() const;

  //! Waits for it.
  [[nodiscard]] bool wait_until_complete();

  //! A rank gives up: all that wait for it fail.
  void leave();

  //! @brief Does the operations of one rank that were called together; blocks until the other ranks have done their part.
  //! @param given_up  Whether the rank has aborted meanwhile; then it waits no longer.
  [[nodiscard]] ncclResult_t run(int rank,
                                 std::vector<nccl_operation> const& operations,
                                 std::atomic<bool> const& given_up);

  //! @brief Gives a pointer to all ranks and receives theirs, by rank; blocks until all have come. Empty where one has not.
  [[nodiscard]] std::vector<void*> share(int rank, void* mine);

  //! Wakes ranks that wait, to see that they have given up.
  void wake();

  static std::atomic<std::chrono::milliseconds> patience;
  static std::atomic<int> reach;  //!< How many ranks reach one another's memory.

 private:
  struct letter {
    nccl_operation sent;
    bool taken = false;
  };
  struct meeting {
    std::vector<nccl_operation> calls;
    int arrived = 0, left = 0;
    bool done = false;
  };
  using lock = std::unique_lock<std::mutex>;

  [[nodiscard]] bool await(lock& held,
                           std::function<bool()> const& here,
                           std::atomic<bool> const& given_up,
                           std::string const& what);
  [[nodiscard]] ncclResult_t fail(ncclResult_t error, std::string const& what);
  [[nodiscard]] ncclResult_t receive(lock& held,
                                     int rank,
                                     nccl_operation const& wanted,
                                     std::atomic<bool> const& given_up);
  [[nodiscard]] ncclResult_t meet(lock& held,
                                  int rank,
                                  nccl_operation const& call,
                                  std::atomic<bool> const& given_up);

  int ranks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> joined_;
  bool broken_ = false;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<letter>>> letters_;  // sender, receiver
  std::map<int, std::uint64_t> met_;  // calls of each rank
  std::map<std::uint64_t, meeting> meetings_;
  struct sharing {
    std::vector<void*> pointers;
    int arrived = 0;
  };
  std::map<int, std::uint64_t> shared_;  // calls of each rank
  std::map<std::uint64_t, sharing> sharings_;
};

}  // namespace tersum::simulator
