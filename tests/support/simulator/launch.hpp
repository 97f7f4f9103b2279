// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Running the blocks of a grid.

#pragma once

#include "program.hpp"
#include "traffic.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tersum::simulator {

using extent = std::array<std::uint32_t, 3>;

struct launch_shape {
  extent grid;
  extent block;
  std::size_t dynamic_shared = 0;  //!< bytes
  //! Whether it may begin before the kernel before it has ended, so that its threads must wait for that.
  bool overlaps = false;
  //! Whether it is cooperative: all blocks are resident together, and count in a word of the launch's workspace.
  bool together                = false;
  std::uint64_t grid_workspace = 0;  //!< Its address, while it runs.
};

//! @brief What a launch did.
struct launch_counts {
  std::uint64_t instructions = 0;   //!< Statements of PTX that warps went through.
  std::uint64_t barriers     = 0;   //!< Barriers that blocks passed, each block for itself.
  access_counts loads{}, stores{};  //!< Of global memory, where they are asked for.
  shared_counts shared{};           //!< Likewise.
};

//! @brief Runs a kernel to its end: its blocks one after the other, or together where the launch is cooperative or has no more blocks than
//! `TERSUM_SIMULATED_TOGETHER` says in the environment; for a host thread that is a rank of `interleaved_ranks`, together with the kernels of
//! the other ranks. Throws `fault`, which names the kernel, the block and the thread.
//! @param counts_traffic  Whether accesses of memory are counted, which takes a while.
launch_counts run_kernel(program const& kernel,
                         launch_shape const& shape,
                         std::vector<std::byte> const& parameters,
                         bool counts_traffic = false);

class happens_before;
class grid_run;

//! @brief One block of a launch, whose warps run in pieces, beside those of other blocks.
class resident_block {
 public:
  //! @param number   of the block in its grid
  //! @param traffic  Counts accesses of memory; may be null.
  resident_block(program const& kernel,
                 launch_shape const& shape,
                 std::vector<std::byte> const& parameters,
                 std::uint32_t number,
                 int rank,
                 happens_before& order,
                 traffic_counter* traffic);
  resident_block(resident_block&&) noexcept;
  ~resident_block();

  [[nodiscard]] std::size_t warps() const;
  [[nodiscard]] bool finished() const;

  //! Whether a warp can go on: it has not left, and waits neither at a barrier nor for memory to change.
  [[nodiscard]] bool can_run(std::size_t warp) const;

  //! A piece of a warp of so many instructions; and the barrier, if all others stand there. Throws `fault`.
  void run(std::size_t warp, std::uint64_t instructions);

  //! Of the warps, in `happens_before`.
  [[nodiscard]] std::vector<std::uint32_t> numbers() const;

  //! Where a warp waits for memory to change, or "".
  [[nodiscard]] std::string waits_at() const;

  [[nodiscard]] launch_counts counts() const;

 private:
  std::unique_ptr<grid_run> run_;
  extent at_;
};

}  // namespace tersum::simulator
