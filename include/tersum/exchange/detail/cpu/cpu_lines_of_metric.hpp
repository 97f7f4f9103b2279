// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of a factored metric on the CPU.

#pragma once

#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/line_items.hpp>
#include <tersum/execute/detail/host_memory.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! Runs items on the threads of the CPU, `stretch` at a time.
template <class Codec, class Element>
[[nodiscard]] auto on_threads(cpu_work<Codec, Element> const& work, std::uint64_t stretch)
{
  return [&work, stretch](auto const& item, std::uint64_t count) {
    parallel_for(work.threads, (count + stretch - 1) / stretch, [&](std::uint64_t i) {
      std::uint64_t const end = minimum((i + 1) * stretch, count);
      for (std::uint64_t at = i * stretch; at < end; ++at) { item(host_memory{}, at); }
    });
  };
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::prepare_metric, cpu_work<Codec, Element> const& work)
{
  each_batch<prepare_lines<Codec, Element>>(work.plan, work.args, on_threads(work, 256));
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::follow, cpu_work<Codec, Element> const& work)
{
  follow_means(work.plan, work.args, on_threads(work, 256));
  return {};
}

}  // namespace tersum::inline v0::detail
