// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Times of one rank's work.

#pragma once

#include "codecs.hpp"
#include "measured_run.hpp"

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>

#include <cstddef>
#include <span>

namespace compare_codecs {

//! What a rank computes, in nanoseconds: what a codec does not do takes 0.
struct part_times {
  double encode = 0;
  double reduce = 0;
  double decode = 0;

  part_times& operator+=(part_times const& other)
  {
    encode += other.encode;
    reduce += other.reduce;
    decode += other.decode;
    return *this;
  }
};

//! Whether ranks add between encoding and decoding: others add as they decode.
template <class Codec>
inline constexpr bool adds_between =
  tersum::scattering<Codec> ||
  !(tersum::ending_in_shards<Codec> || tersum::copying<Codec> || tersum::gathering<Codec>);

//! @brief Times of one rank's work: encode, reduce and decode. `prepare` makes the gradient that is encoded. Another rank's payload
//! is what a reduction adds.
template <class Device, class Rank, class Prepare>
[[nodiscard]] part_times time_parts(measured_run<Device>& run,
                                    Rank const& one,
                                    [[maybe_unused]] Rank const& last,
                                    std::span<float> gradient,
                                    Prepare const& prepare)
{
  using namespace tersum;
  using codec           = typename Rank::codec_type;
  auto const& exec      = run.device().executor;
  auto const run_encode = [&] {
    run.keep(measure(exec, one.plan, gradient, one.state, one.workspace));
    run.keep(encode(exec, one.plan, gradient, one.state, one.workspace));
  };
  part_times times{.encode = run.best_ns(prepare, run_encode)};
  times.decode = run.best_ns(run_encode, [&] {
    if constexpr (ending_in_shards<codec>) {
      run.keep(decode_shard(exec, one.plan, one.got, one.state, one.workspace));
    } else {
      run.keep(decode(exec, one.plan, gradient, one.state, one.workspace));
    }
  });
  if constexpr (scattering<codec>) {
    times.reduce = run.best_ns(run_encode, [&] {
      run.keep(recompress(exec, one.plan, gradient, one.state, one.workspace));
    });
  } else if constexpr (adds_between<codec>) {
    // A ring reduce-scatter has each rank add (n - 1) / n of the payload.
    auto const payload       = payload_wire(one.plan, one.workspace);
    auto const n             = static_cast<std::size_t>(one.plan.ranks().size);
    std::size_t const shares = payload.count / n * (n - 1);
    times.reduce             = run.best_ns(run_encode, [&] {
      auto const other = payload_wire(last.plan, last.workspace);
      run.keep(exec.reduce(payload.op, payload.data, other.data, payload.data, shares));
    });
  }
  return times;
}

//! @brief Times of one rank of a codec of values: it encodes its shard and decodes all.
template <class Device, class Rank>
[[nodiscard]] part_times time_values(measured_run<Device>& run, Rank const& one)
{
  auto const& exec      = run.device().executor;
  auto const run_encode = [&] {
    run.keep(encode_shard(exec, one.plan, one.given, one.got, one.state, one.workspace));
  };
  part_times times{.encode = run.best_ns([] {}, run_encode)};
  times.decode = run.best_ns(run_encode, [&] {
    run.keep(decode_values(exec, one.plan, one.got, one.state, one.workspace));
  });
  return times;
}

}  // namespace compare_codecs
