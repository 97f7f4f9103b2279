// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which accesses to global memory come before which, for warps of blocks that run at the same time.

#pragma once

#include "memory.hpp"
#include "program.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace tersum::simulator {

enum class access;

//! @brief What every warp knows to have happened, and races: accesses of two warps to a word, one a write, of which neither knows the other.
//!
//! A warp knows what its block did before the last barrier, what earlier kernels of its rank did, and what was released to it:
//! a strong read acquires what a store released, if the scope of both includes the other; fences with relaxed accesses do
//! the same. Of a warp each lane releases its own accesses and those before the last barrier of the warp, and has acquired
//! for itself alone until the next one. Lanes of one warp are not held against each other.
class happens_before {
 public:
  happens_before();

  //! @brief A warp begins. The same `index` of a rank gives the same number, and one launch follows another.
  [[nodiscard]] std::uint32_t begin(int rank,
                                    std::uint32_t index,
                                    std::uint32_t block,
                                    std::uint32_t warp_of_block);

  //! A kernel of a rank has ended: the next one knows what it did.
  void end_kernel(int rank, std::vector<std::uint32_t> const& warps);

  void warp_barrier(std::uint32_t warp);
  void block_barrier(std::vector<std::uint32_t> const& warps);
  void fence(std::uint32_t warp, lane_set lanes, memory_scope scope);

  //! An access to global memory; throws `fault` where it is a race.
  void reach(std::uint32_t warp,
             unsigned lane,
             instruction const& i,
             allocation const& in,
             std::uint64_t address,
             std::size_t bytes,
             access how);

  //! @name Changes of memory
  //! Who waits for one need not look again before the number is another.
  //! @{
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  void change() { ++changes_; }
  //! @}

 private:
  // Of the releases of a word: how many of them a warp has acquired, or observed, and whether any were meant for it.
  struct progress {
    std::size_t count = 0;
    bool any          = false;
  };
  struct taken {
    std::uint64_t list = 0;
    progress acquired{}, observed{};
  };

  // What is known of a warp: all before this turn, and of this turn what these lanes did up to a time.
  struct known {
    std::uint32_t turn = 0;
    lane_set lanes     = 0;
    std::uint32_t time = 0;
  };
  using knowledge = std::vector<known>;  // by number of the warp

  struct agent {
    int rank                                        = 0;
    std::uint32_t block                             = 0;
    std::uint32_t launch                            = 0;
    std::uint32_t warp                              = 0;
    std::uint32_t turn                              = 0;
    knowledge settled                               = {};
    knowledge acquired                              = {};  // in this turn, by these lanes
    lane_set acquired_lanes                         = 0;
    knowledge observed                              = {};  // by relaxed reads: a fence acquires it
    lane_set observed_lanes                         = 0;
    knowledge fenced                                = {};  // what relaxed stores release
    lane_set fenced_lanes                           = 0;
    memory_scope fence_scope                        = memory_scope::block;
    std::unordered_map<std::uint64_t, taken> so_far = {};  // by address of the word
  };

  struct mark {
    std::uint32_t warp = 0, turn = 0, time = 0;
    std::uint8_t lane = 0, bytes = 0;  // of the word, a bit each
    bool strong        = false;
    memory_scope scope = memory_scope::block;
  };
  struct word {
    mark write{};
    std::array<mark, 2> reads{};
    std::uint32_t next_read = 0;
    bool released           = false;
  };
  struct notes;

  struct release {
    std::uint32_t by;
    memory_scope scope;
    knowledge what;
  };
  struct release_list {
    std::uint64_t number = 0;
    std::vector<release> all{};
  };

  static void join(knowledge& to, knowledge const& from);
  [[nodiscard]] bool includes(agent const& of, memory_scope scope, agent const& other) const;
  [[nodiscard]] bool knows(agent const& who, unsigned lane, mark const& what) const;
  [[nodiscard]] bool meet(std::uint32_t warp, instruction const& i, mark const& other) const;
  [[nodiscard]] knowledge all_of(std::uint32_t warp, lane_set lanes) const;
  void note_read(word& at, mark const& one) const;
  void check(std::uint32_t warp,
             instruction const& i,
             mark const& now,
             mark const& other,
             char const* does,
             char const* did) const;
  void acquire(std::uint32_t warp, unsigned lane, instruction const& i, std::uint64_t address);
  void publish(std::uint32_t warp,
               unsigned lane,
               instruction const& i,
               word& at,
               std::uint64_t address,
               bool update);
  [[nodiscard]] std::string describe(std::uint32_t warp) const;

  std::uint64_t identity_;
  std::vector<agent> agents_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // by rank and index
  std::unordered_map<int, knowledge> of_rank_;                // what ended kernels knew and did
  std::unordered_map<int, std::uint32_t> launches_;
  std::unordered_map<std::uint64_t, release_list> releases_;  // by address of the word
  std::uint64_t lists_   = 0;
  std::uint32_t time_    = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace tersum::simulator
