// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Runs kernel bodies on the host, one fiber a thread, in any order of threads.

#pragma once

#include "emulator/block.hpp"
#include "emulator/failure.hpp"
#include "emulator/host_context.hpp"
#include "emulator/thread_order.hpp"

#include <cstddef>
#include <cstdint>

namespace tersum::emulator {

//! What a block may have on the largest device.
inline constexpr std::size_t max_shared_bytes = std::size_t{227} * 1024;

//! Threads of all blocks that run together: more stacks would be more mappings of memory than the system allows.
inline constexpr std::uint64_t max_resident_threads = 8192;

//! @brief Calls `body(context)` once for every thread of every block; the counterpart of a launch.
//!
//! Blocks run one after another, so a block that spins until another one acts never ends, and one that waits for the grid fails. Shared
//! memory holds NaNs when a block starts. Run a body in all of `thread_orders` and compare the
//! results: what differs depends on a barrier that is not there.
//!
//! @throws failure  The shape is none that a device takes, the threads of a block diverged at a
//!                  barrier or a warp operation, or an access was misaligned. Later blocks did not
//!                  run, and nothing that the threads of this block hold is destroyed.
//! @throws Whatever `body` throws.
void launch(launch_shape shape, thread_order order, thread_body body);

//! @brief The counterpart of a cooperative launch: all blocks are resident, and may wait for each other (`arrive_grid`).
//! @throws failure  Also where they are more than `max_resident_threads`, or one ends while others wait for it.
void launch_together(launch_shape shape, thread_order order, thread_body body);

}  // namespace tersum::emulator
