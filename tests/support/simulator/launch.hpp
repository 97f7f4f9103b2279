// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Running the blocks of a grid.

#pragma once

#include "program.hpp"

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

//! @brief Runs a kernel to its end, blocks one after the other. Throws `fault`, which names the kernel, the block and the
//! thread.
void run_kernel(program const& kernel,
                launch_shape const& shape,
                std::vector<std::byte> const& parameters);

}  // namespace tersum::simulator
