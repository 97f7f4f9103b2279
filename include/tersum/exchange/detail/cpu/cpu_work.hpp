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

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief What a stage works with: one rank's plan and memory, and how to work.
//!
//! `run_stage(stage, cpu_work)` is the stage on the CPU, found by its arguments: codecs with stages of their own bring
//! overloads along.
template <class Codec, class Element>
struct cpu_work {
  int threads;
  instruction_set instructions;
  tersum::plan<Codec> const& plan;
  exchange_args<Codec, Element> const& args;

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

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::initialize const& stage, cpu_work<Codec, Element> const& work)
{
  work.chunks().initialize(work.plan, stage.seed);
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::open, cpu_work<Codec, Element> const& work)
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

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::gather_bypass, cpu_work<Codec, Element> const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().encode_bypass(); }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::measure, cpu_work<Codec, Element> const& work)
{
  work.chunks().measure();
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::select, cpu_work<Codec, Element> const& work)
{
  work.chunks().select();
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::derive_steps, cpu_work<Codec, Element> const& work)
{
  work.chunks().derive_steps();
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  if constexpr (has_parts<Codec>) {
    work.parts().encode();
  } else {
    work.chunks().encode();
  }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::recompress, cpu_work<Codec, Element> const& work)
{
  work.parts().recompress();
  return {};
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::return_bypass, cpu_work<Codec, Element> const& work)
{
  if (work.plan.bypassed() > 0) { work.chunks().decode_bypass(); }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  if constexpr (has_parts<Codec>) {
    work.parts().decode();
  } else {
    work.chunks().decode();
  }
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::finish, cpu_work<Codec, Element> const& work)
{
  work.chunks().finish();
  return {};
}

}  // namespace tersum::inline v0::detail
