// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Items of work that do not know each other: kernel body.

#pragma once

#include <tersum/config.hpp>
#include <tersum/tuning.hpp>

#include <cstddef>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int item_threads = tuning_of<Context>.cuda.item_threads;

//! @brief One item a thread, `count` of them.
template <class Item, class Context>
TERSUM_BODY void each_item(Context const& ctx, Item const& item, std::size_t count)
{
  std::size_t const at =
    static_cast<std::size_t>(ctx.block_rank()) * item_threads<Context> + ctx.thread_rank();
  if (at < count) { item(ctx, at); }
}

}  // namespace tersum::inline v0::detail
