// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of a factored metric as launches.

#pragma once

#include <tersum/exchange/detail/block_line_squares.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/exchange/detail/line_items.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! One launch for up to 24 tensors.
template <class Executor, class Codec, class Element>
[[nodiscard]] status run_stage(stage::prepare_metric,
                               launch_list<Executor, Codec, Element>& launches)
{
  each_batch<prepare_lines<Codec, Element>>(
    launches.plan(), launches.args(), [&](auto const& item, std::uint64_t count) {
      launches.items(item, count);
    });
  return launches.result();
}

//! Four launches for up to 24 tensors.
template <class Executor, class Codec, class Element>
[[nodiscard]] status run_stage(stage::follow, launch_list<Executor, Codec, Element>& launches)
{
  each_batch<line_squares<Codec, Element>>(
    launches.plan(), launches.args(), [&](auto const& item, std::uint64_t blocks) {
      line_squares_kernel kernel{};
      kernel.batch = item.batch;
      launches(kernel, blocks);
    });
  follow_means(launches.plan(), launches.args(), [&](auto const& item, std::uint64_t count) {
    launches.items(item, count);
  });
  return launches.result();
}

}  // namespace tersum::inline v0::detail
