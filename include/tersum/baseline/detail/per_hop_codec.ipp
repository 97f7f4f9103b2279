// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stage that `per_hop_codec` adds to an exchange, on the CPU and as a launch.

#include <tersum/baseline/detail/exchange_tiles.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/launch_list.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::keep_sent, cpu_work<Codec, Element> const& work)
{
  std::uint64_t const words = work.plan.payload_bytes() / sizeof(std::uint32_t);
  if (words > 0) { std::copy_n(work.args.payload, words, work.args.parts.gathered); }
  return {};
}

template <class Executor, class Codec, class Element>
[[nodiscard]] status run_stage(stage::keep_sent, launch_list<Executor, Codec, Element>& launches)
{
  std::uint64_t const words = launches.plan().payload_bytes() / sizeof(std::uint32_t);
  if (words > 0) { launches.copy(launches.args().parts.gathered, launches.args().payload, words); }
  return launches.result();
}

}  // namespace tersum::inline v0::detail
