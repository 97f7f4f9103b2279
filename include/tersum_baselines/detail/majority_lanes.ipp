// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stage that `majority_lanes` adds to an exchange, on the CPU and as a kernel.

#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

template <class Codec>
[[nodiscard]] TERSUM_INLINE std::uint32_t vote_outcome(std::uint32_t word, int world)
{
  constexpr int size = Codec::quantizer_type::max_level;
  return Codec::reducer_type::outcome(word, static_cast<std::uint32_t>(world * size));
}

//! @brief A thread has a word of votes.
template <class Codec, class Element, class Context>
TERSUM_BODY void take_majority(Context const& ctx,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t words)
{
  auto const i = std::uint64_t{ctx.block_rank()} * tuning_of<Context>.cuda.coordinate_threads +
                 ctx.thread_rank();
  if (i >= words) { return; }
  ctx.store(args.payload + i, vote_outcome<Codec>(ctx.load(args.payload + i), args.world));
}

struct take_majority_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  std::uint64_t words;
  TERSUM_RUNS(take_majority(ctx, args, words))
};

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::take_majority, cpu_work<Codec, Element> const& work)
{
  std::uint64_t const words   = work.plan.payload_bytes() / sizeof(std::uint32_t);
  std::uint64_t const stretch = work.numbers.coordinate_stretch;
  auto const& args            = work.args;
  parallel_for(work.threads, (words + stretch - 1) / stretch, [&](std::uint64_t part) {
    std::uint64_t const end = std::min(words, (part + 1) * stretch);
    for (std::uint64_t i = part * stretch; i < end; ++i) {
      args.payload[i] = vote_outcome<Codec>(args.payload[i], args.world);
    }
  });
  return {};
}

template <class Executor, class Codec, class Element>
void run_stage(stage::take_majority, launch_list<Executor, Codec, Element>& launches)
{
  std::uint64_t const words = launches.plan().payload_bytes() / sizeof(std::uint32_t);
  launches.threads(take_majority_kernel{{}, words}, words);
}

}  // namespace tersum::inline v0::detail
