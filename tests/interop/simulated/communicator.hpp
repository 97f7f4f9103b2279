// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What `ncclComm_t` points to.

#pragma once

#include "world.hpp"

#include <atomic>
#include <memory>

//! @brief A rank's communicator.
struct ncclComm {
  std::shared_ptr<tersum::simulator::nccl_world> world;
  int rank      = 0;
  bool blocking = true;
  std::atomic<bool> given_up{false};
  std::atomic<bool> in_progress{false};  // one that does not block says so once after each call
  std::atomic<ncclResult_t> failed{ncclSuccess};
};

namespace tersum::simulator {

using communicator = std::shared_ptr<ncclComm>;

//! Null for one that never was, or is destroyed.
[[nodiscard]] communicator find(ncclComm_t handle);

}  // namespace tersum::simulator
