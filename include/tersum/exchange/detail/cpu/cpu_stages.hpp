// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange on the CPU: what `cpu_executor::perform` calls, in the order of an exchange. Each stage does what the
//! kernel bodies of the same name do, to the same bits.

#pragma once

#include <tersum/exchange/detail/cpu/cpu_bypass.hpp>
#include <tersum/exchange/detail/cpu/cpu_casts.hpp>
#include <tersum/exchange/detail/cpu/cpu_codes.hpp>
#include <tersum/exchange/detail/cpu/cpu_initialize.hpp>
#include <tersum/exchange/detail/cpu/cpu_measure.hpp>
#include <tersum/exchange/detail/cpu/cpu_published.hpp>
#include <tersum/exchange/detail/cpu/cpu_select.hpp>
#include <tersum/exchange/detail/cpu/cpu_shards.hpp>
#include <tersum/exchange/detail/cpu/cpu_steps.hpp>
#include <tersum/exchange/detail/cpu/cpu_two_shot.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The stages on `threads` threads with one instruction set, each in the file of what it works on. Factors have stages of
//! their own, which their codec brings along: `lowrank/detail/cpu_low_rank.hpp`.
template <class Codec, class Element>
class cpu_stages {
 public:
  using args_type = exchange_args<Codec, Element>;

  cpu_stages(int threads, instruction_set set, args_type const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

  //! Fills header, records and table, clears the residual.
  void initialize(plan<Codec> const& plan, std::uint64_t seed) const
  {
    initialize_state(args_, plan, seed);
  }

  //! Copies what all ranks hold of this rank's shard.
  void recall() const { on<cpu_published>().recall(); }

  //! Gradient to agreed scalars.
  void measure() const
  {
    on<cpu_measure>().measure();
    if constexpr (tells_ratios<Codec>) {
      for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
        tell_ratio(args_, tensor);
      }
    }
  }

  //! Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
  void select(cpu_tuning const& numbers) const
  {
    if constexpr (selects<Codec>) { choose_chunks(threads_, args_, numbers); }
  }

  //! Agreed scalars to steps; of casts, only to the flag of what is not finite.
  void derive_steps(cpu_tuning const& numbers) const
  {
    derive_chunk_steps(threads_, args_, numbers);
  }

  //! Gradient to payload, and what it loses to the residual as far as that is known then.
  void encode() const
  {
    if constexpr (publishing<Codec>) {
      on<cpu_published>().publish();
    } else if constexpr (sharding<Codec>) {
      on<cpu_shards>().encode();
    } else if constexpr (has_parts<Codec>) {
      on<cpu_two_shot>().encode();
    } else if constexpr (has_steps<Codec>) {
      on<cpu_codes>().encode();
    } else {
      on<cpu_casts>().encode();
    }
  }

  //! Decodes what all ranks sent of this rank's part, adds it up, and encodes the mean.
  void recompress() const { on<cpu_two_shot>().recompress(); }

  //! Reduced payload to gradient.
  void decode() const
  {
    if constexpr (sharding<Codec>) {
      on<cpu_shards>().add_shard();
    } else if constexpr (has_parts<Codec>) {
      on<cpu_two_shot>().decode();
    } else if constexpr (summing<Codec>) {
      auto const whole = as_of_whole(args_);
      cpu_codes<Codec, Element>{threads_, set_, whole}.decode(whole.parts.first, whole.chunks);
    } else if constexpr (has_steps<Codec>) {
      on<cpu_codes>().decode();
    } else {
      on<cpu_casts>().decode();
    }
  }

  //! Bypassing tensors to the wire and back.
  void encode_bypass() const { detail::encode_bypass(args_); }
  void decode_bypass() const { detail::decode_bypass(args_); }

  //! Counts, measures the correlation, advances the step.
  void finish() const { finish_step(threads_, args_); }

 private:
  template <template <class, class> class Work>
  [[nodiscard]] Work<Codec, Element> on() const
  {
    return {threads_, set_, args_};
  }

  int threads_;
  instruction_set set_;
  args_type const& args_;
};

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

  [[nodiscard]] auto stages() const
  {
    return cpu_stages<Codec, Element>{threads, instructions, args};
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
  work.stages().initialize(work.plan, stage.seed);
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

[[nodiscard]] status run_stage(stage::recall, working_on_cpu auto const& work)
{
  work.stages().recall();
  return {};
}

[[nodiscard]] status run_stage(stage::gather_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.stages().encode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::measure, working_on_cpu auto const& work)
{
  work.stages().measure();
  return {};
}

[[nodiscard]] status run_stage(stage::select, working_on_cpu auto const& work)
{
  work.stages().select(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::derive_steps, working_on_cpu auto const& work)
{
  work.stages().derive_steps(work.numbers);
  return {};
}

[[nodiscard]] status run_stage(stage::encode, working_on_cpu auto const& work)
{
  work.stages().encode();
  return {};
}

[[nodiscard]] status run_stage(stage::recompress, working_on_cpu auto const& work)
{
  work.stages().recompress();
  return {};
}

//! Its flag stops residuals that move while a payload is decoded, so it comes before that.
[[nodiscard]] status run_stage(stage::return_bypass, working_on_cpu auto const& work)
{
  if (work.plan.bypassed() > 0) { work.stages().decode_bypass(); }
  return {};
}

[[nodiscard]] status run_stage(stage::decode, working_on_cpu auto const& work)
{
  work.stages().decode();
  return {};
}

[[nodiscard]] status run_stage(stage::finish, working_on_cpu auto const& work)
{
  work.stages().finish();
  return {};
}

}  // namespace tersum::inline v0::detail
