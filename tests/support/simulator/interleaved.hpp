// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels of several ranks that run at the same time on one simulated device.

#pragma once

#include "happens_before.hpp"
#include "launch.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace tersum::simulator {

//! @brief Who goes next: warps in turn; always the first, or the last, that can go on, so that one rank is as far ahead of the
//! others as what it waits for allows; or at random by a seed.
struct taking_turns {
  enum class by { turn, first, last, chance };
  by next            = by::turn;
  std::uint64_t seed = 0;
  std::uint64_t most = 64;  //!< instructions of a warp at once; by chance, up to so many
};

//! @brief Ranks that are threads of the host. All blocks of the kernels that they launch are resident together; warps take turns.
//!
//! No warp runs while a rank that has neither gone nor launched a kernel might still launch one: so the same order gives
//! the same run, whatever the host's threads do. A kernel that waits for ever is an error as soon as no warp can go on, and so
//! are races of global memory, as `happens_before` sees them: of ranks as of devices apart, which only the scope of the system
//! joins. What the host does orders no ranks; what it writes belongs to nobody.
class interleaved_ranks {
 public:
  explicit interleaved_ranks(int ranks, taking_turns order = {});
  interleaved_ranks(interleaved_ranks const&)            = delete;
  interleaved_ranks& operator=(interleaved_ranks const&) = delete;

  //! @brief Makes the calling thread a rank, as long as it lives.
  class member {
   public:
    member(interleaved_ranks& on, int rank);
    member(member const&)            = delete;
    member& operator=(member const&) = delete;
    ~member();

    //! Null for a thread that is none.
    [[nodiscard]] static member* of_this_thread();

    //! As `run_kernel`.
    launch_counts run(program const& kernel,
                      launch_shape const& shape,
                      std::vector<std::byte> const& parameters,
                      bool counts_traffic = false);

   private:
    interleaved_ranks& on_;
    int rank_;
  };

  //! How long ranks wait for one that does not launch what it should.
  std::chrono::milliseconds patience = std::chrono::seconds(60);

 private:
  struct grid {
    std::vector<resident_block> blocks;
    bool done = false;
  };
  struct rank {
    grid* resident = nullptr;
    bool gone      = false;
  };
  struct place {
    grid* in;
    std::size_t block, warp;
  };

  [[nodiscard]] bool complete() const;
  [[nodiscard]] bool find_next(place& next);
  void run_until_one_ends();
  [[noreturn]] void give_up(std::string const& why);

  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<rank> ranks_;
  taking_turns order_;
  std::mt19937_64 chance_;
  std::size_t last_ = 0;  // who went last, among all warps
  happens_before happened_;
  std::string failed_;
};

}  // namespace tersum::simulator
