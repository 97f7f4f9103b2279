// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange on the CPU: what `cpu_executor::perform` calls.

#pragma once

#include <tersum/exchange/detail/cpu/cpu_parts.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What a stage works with: one rank's plan and memory, and how to work.
//!
//! `run_stage(stage, cpu_work)` is the stage on the CPU, found by its arguments: codecs with stages of their own bring
//! overloads along.
template <class Codec, class Element>
struct cpu_work {
  using codec_type = Codec;

  int threads;
  instruction_set instructions;
  tersum::plan<Codec> const& plan;
  exchange_args<Codec, Element> const& args;
  cpu_tuning const& numbers;

  //! The stages of all chunks.
  [[nodiscard]] auto chunks() const
  {
    return cpu_stages<Codec, Element>{threads, instructions, args};
  }

  //! The stages of chunks that lie in parts.
  [[nodiscard]] auto parts() const
  {
    return cpu_parts<Codec, Element>{threads, instructions, args};
  }
};

template <class T>
inline constexpr bool is_cpu_work = false;
template <class Codec, class Element>
inline constexpr bool is_cpu_work<cpu_work<Codec, Element>> = true;

template <class T>
concept working_on_cpu = is_cpu_work<T>;

[[nodiscard]] status run_stage(stage::initialize const& stage, working_on_cpu auto const& work)
{
  work.chunks().initialize(work.plan, stage.seed);
  return {};
}

[[nodiscard]] status run_stage(stage::open, working_on_cpu auto const& work)
{
  state_header const& header = *work.args.header;
  auto const& plan           = work.plan;
  if (header.chunks != plan.chunks() || header.coordinates != plan.coordinates() ||
      header.tensors != plan.tensors() || header.layout != plan.state_fingerprint()) {
    return {error_code::invalid_argument,
            "state was not initialized for this plan: call initialize first"};
  }
  return {};
}

[[nodiscard]] status run_stage(stage::gather_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().encode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::measure, working_on_cpu auto const& work)
{
  work.chunks().measure();
  return {};
}

[[nodiscard]] status run_stage(stage::select, working_on_cpu auto const& work)
{
  work.chunks().select(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::derive_steps, working_on_cpu auto const& work)
{
  work.chunks().derive_steps(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::encode, working_on_cpu auto const& work)
{
  if constexpr (has_parts<codec_of<decltype(work)>>) {
    work.parts().encode();
  } else {
    work.chunks().encode();
  }
  return {};
}

[[nodiscard]] status run_stage(stage::recompress, working_on_cpu auto const& work)
{
  work.parts().recompress();
  return {};
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
[[nodiscard]] status run_stage(stage::return_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().decode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::decode, working_on_cpu auto const& work)
{
  if constexpr (sharding<codec_of<decltype(work)>>) {
    work.parts().add_shard();
  } else if constexpr (has_parts<codec_of<decltype(work)>>) {
    work.parts().decode();
  } else {
    work.chunks().decode();
  }
  return {};
}

[[nodiscard]] status run_stage(stage::finish, working_on_cpu auto const& work)
{
  work.chunks().finish();
  return {};
}

}  // namespace tersum::inline v0::detail
