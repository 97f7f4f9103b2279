// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are streams of one device.

#pragma once

#include <functional>
#include <interop/nccl_conformance.hpp>

namespace tersum::tests {

//! @brief What body(rank) returns on so many threads, in sum. Each has a stream, and their kernels run at the same time: on a GPU where it
//! has room for all of their blocks, on the simulated device in turns.
[[nodiscard]] int on_streams(int ranks, std::function<int(nccl_rank&)> const& body);

}  // namespace tersum::tests
