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
#include <vector>

namespace tersum::simulator {

using extent = std::array<std::uint32_t, 3>;

struct launch_shape {
  extent grid;
  extent block;
  std::size_t dynamic_shared = 0;  //!< bytes
};

//! @brief What a launch did.
struct launch_counts {
  std::uint64_t instructions = 0;   //!< Statements of PTX that warps went through.
  std::uint64_t barriers     = 0;   //!< Barriers that blocks passed, each block for itself.
  access_counts loads{}, stores{};  //!< Of global memory, where they are asked for.
  shared_counts shared{};           //!< Likewise.
};

//! @brief Runs a kernel to its end, blocks one after the other. Throws `fault`, which names the kernel, the block and the
//! thread.
//! @param counts_traffic  Whether accesses of memory are counted, which takes a while.
launch_counts run_kernel(program const& kernel,
                         launch_shape const& shape,
                         std::vector<std::byte> const& parameters,
                         bool counts_traffic = false);

}  // namespace tersum::simulator
