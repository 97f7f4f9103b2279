// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The threads of a warp: their registers, where each of them is, and how they reach memory.

#pragma once

#include "fault.hpp"
#include "happens_before.hpp"
#include "launch.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "traffic.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::simulator {

inline constexpr unsigned warp_lanes = 32;
inline constexpr lane_set all_lanes  = ~lane_set{0};

enum class access { read, write, update };

//! @brief What the warps of a launch share.
struct launch_state {
  program const& kernel;
  std::vector<std::byte> const& parameters;
  shared_memory shared;
  std::uint32_t epoch = 0;  //!< begins with each block and each barrier
  std::uint32_t turns = 0;  //!< the last one given to a warp
  //! The allocation that each instruction found last; what it says of `generation` must still hold.
  std::vector<allocation const*> found{};
  std::uint64_t generation = 0;
  launch_counts counts{};
  traffic_counter* traffic = nullptr;  //!< where accesses of memory are counted
  happens_before* order    = nullptr;  //!< where blocks are interleaved
  bool overlaps            = false;    //!< `launch_shape::overlaps`
};

//! @brief Up to 32 threads. Each has a place of its own in the program; those that are at the same place run together.
class warp {
 public:
  warp(launch_state& home, std::uint32_t index, std::uint32_t threads);

  //! All threads of another block stand at the beginning.
  void begin();

  //! Runs until all threads have left or wait for the block. Throws `fault`.
  void run();

  //! @name Beside the warps of other blocks
  //! @{

  //! Runs, but no more than so many instructions, and no further than to a read of memory that it may wait for.
  void run_piece(std::uint64_t instructions);

  //! Whether it has looked in vain, again and again, for what only others can change, and they have not since.
  [[nodiscard]] bool waits() const;

  //! Its number in `launch_state::order`.
  std::uint32_t number = 0;
  //! @}

  [[nodiscard]] bool done() const { return living_ == 0; }

  //! @name A barrier of the block
  //! The number of the one that all threads wait at, or -1.
  //! @{
  [[nodiscard]] std::int64_t barrier() const { return barrier_; }
  void pass_barrier() { barrier_ = -1; }
  //! @}

  //! The values of a register, one a lane.
  [[nodiscard]] std::uint64_t* lanes(std::uint32_t slot)
  {
    return registers_.data() + std::size_t{slot} * warp_lanes;
  }

  [[nodiscard]] launch_state& home() { return home_; }

  //! What memory instruction `i` accesses for a lane. Throws `fault` where it must not.
  [[nodiscard]] std::byte* reach(
    instruction const& i, unsigned lane, std::uint64_t address, std::size_t bytes, access how);

  void fence(instruction const& i, lane_set active);

  //! @name Bulk copies of a lane
  //! Out of shared memory, which they read until `end_copies`. They write when the thread ends: it has no way to know before.
  //! @{
  void copy_out(unsigned lane, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void commit_copies(lane_set active);
  //! All but the last groups of copies have read, so many of them.
  void end_copies(unsigned lane, std::uint64_t left);
  void show_shared(lane_set active);
  //! @}

  //! These wait for the end of the kernel before, which has come: but they have to ask.
  void wait_for_kernel_before(lane_set active) { waited_ |= active; }

  //! Where it is, for people: the instruction that runs, and its lane if one is to blame.
  [[nodiscard]] std::string place() const;

 private:
  // Threads at one place. They wait where an instruction needs lanes that are elsewhere.
  struct group {
    std::uint32_t at;
    lane_set lanes;
    bool waits;
  };

  void step(group& current);
  void put(group added);
  void leave(lane_set lanes);
  void check_waited(lane_set lanes, char const* what);
  bool take_part(instruction const& i, lane_set active);
  [[nodiscard]] std::string deadlock() const;
  [[nodiscard]] std::vector<group>::iterator next_group();
  void touch(instruction const& i,
             std::uint64_t address,
             std::byte const* at,
             std::size_t bytes,
             access how);
  bool looked_in_vain(instruction const& i);
  [[nodiscard]] access_time now(unsigned lane) const;
  void finish_copies(lane_set lanes);

  // What a copy has read, once it has.
  struct bulk_copy {
    instruction const* issued;
    std::uint64_t to, from, bytes;
    std::vector<std::byte> row{};
  };
  struct lane_copies {
    std::vector<bulk_copy> open{};                 // in no group yet
    std::vector<std::vector<bulk_copy>> groups{};  // that may still read
    std::vector<bulk_copy> read{};
  };

  launch_state& home_;
  std::uint32_t index_;
  lane_set threads_;
  lane_set living_ = 0;
  lane_set waited_ = 0;  // for the kernel before, where the launch overlaps it
  std::vector<std::uint64_t> registers_;
  std::vector<group> groups_;  // in the order of their places, which are all different
  std::int64_t barrier_ = -1;
  std::uint32_t turn_   = 0;  // begins with each barrier of the warp
  std::vector<std::byte> local_;
  std::vector<std::uint8_t> local_written_;
  std::vector<lane_copies> copies_;  // of each lane, where there are any
  instruction const* current_ = nullptr;
  int lane_                   = -1;
  // Of pieces: what is left of one; what an instruction found where it may wait, and what it found before.
  struct found_word {
    std::byte const* at;
    std::size_t bytes;
    std::uint64_t value;
  };
  std::uint64_t left_ = ~std::uint64_t{0}, piece_ = 0, since_look_ = 0;
  std::vector<found_word> touched_;
  std::uint64_t found_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> found_before_;  // by instruction
  unsigned in_vain_              = 0;                              // looks without any news
  std::uint64_t changes_         = 0;                              // of memory, when it last looked
  std::uint32_t looked_at_place_ = 0;  // if it did so in vain, behind this instruction
};

//! @brief Calls each(l) for the lanes of a set, from 0 up.
template <class Each>
inline void for_lanes(lane_set active, Each const& each)
{
  if (active == all_lanes) {
    for (unsigned l = 0; l < warp_lanes; ++l) { each(l); }
  } else {
    for (; active != 0; active &= active - 1) {
      each(static_cast<unsigned>(std::countr_zero(active)));
    }
  }
}

}  // namespace tersum::simulator
