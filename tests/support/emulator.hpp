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
#include <random>

namespace tersum::emulator {

//! What a block may have on the largest device.
inline constexpr std::size_t max_shared_bytes = std::size_t{227} * 1024;

//! @brief Calls `body(context)` once for every thread of every block; the counterpart of a launch.
//!
//! Blocks run one after another, so a block that spins until another one acts never ends. Shared
//! memory holds NaNs when a block starts. Run a body in all of `thread_orders` and compare the
//! results: what differs depends on a barrier that is not there.
//!
//! @param body  Callable with a `host_context&`; called through a reference, never copied.
//! @throws failure  The shape is none that a device takes, the threads of a block diverged at a
//!                  barrier or a warp operation, or an access was misaligned. Later blocks did not
//!                  run, and nothing that the threads of this block hold is destroyed.
//! @throws Whatever `body` throws.
template <class Body>
void launch(launch_shape shape, thread_order order, Body const& body)
{
  if (shape.threads == 0 || shape.threads > block::max_threads ||
      shape.threads % block::warp_threads != 0) {
    throw make_failure("a block needs a multiple of 32 threads, at most 1024, not ", shape.threads);
  }
  if (shape.shared_bytes > max_shared_bytes) {
    throw make_failure(
      "a block has at most 227 KiB of shared memory, not ", shape.shared_bytes, " bytes");
  }
  block current{shape, order};
  std::mt19937_64 random{order.seed};
  visiting_order ranks{shape.blocks, order, random};
  for (unsigned const rank : ranks.next()) {
    current.run(rank, [&](unsigned thread) {
      host_context context{current, thread};
      body(context);
    });
  }
}

}  // namespace tersum::emulator
