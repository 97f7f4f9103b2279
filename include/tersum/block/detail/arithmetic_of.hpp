// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The arithmetic of items of `executor::each`, the same on the CPU and in kernels.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/group.hpp>
#include <tersum/execute/detail/host_memory.hpp>

namespace tersum::inline v0::detail {

//! @brief The arithmetic of what an item is given: operations are rounded alike, whatever a caller's compiler is told of fast math.
//! @tparam Memory  `host_memory`, or a block context.
template <class Memory>
struct arithmetic_of : context_arithmetic<Memory> {
};
template <>
struct arithmetic_of<host_memory> : host_group {
};

}  // namespace tersum::inline v0::detail
