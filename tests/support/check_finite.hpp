// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A law of codecs with feedback: residuals stay finite, whatever a gradient has and whatever a wire brings or loses, and drain.

#pragma once

#include "support/check_draining.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::tests {

enum class wires { whole, damaged, damaged_codes };

// Writes one byte over all that a round brings, or over codes alone.
template <class Base>
struct damaging : Base {
  wires now = wires::whole;
  int byte  = 0;

  template <class Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    status const done = Base::reduce(op, to, a, b, count);
    damage(to, count);
    return done;
  }
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    status const done = Base::copy(to, from, count);
    damage(to, count);
    return done;
  }

 private:
  template <class T>
  void damage(T* to, std::size_t count) const
  {
    bool const hit =
      now == wires::damaged || (now == wires::damaged_codes && std::is_integral_v<T>);
    if (hit && count > 0) { std::memset(static_cast<void*>(to), byte, count * sizeof(T)); }
  }
};

template <class Codec>
struct fed_back_rank {
  plan<Codec> of;
  std::vector<float> in, out;
  std::vector<word4> state, workspace;

  [[nodiscard]] std::span<std::byte> kept() { return std::as_writable_bytes(std::span{state}); }
  [[nodiscard]] auto rank()
  {
    auto const work = std::as_writable_bytes(std::span{workspace});
    if constexpr (publishing<Codec> || ending_in_shards<Codec>) {
      return loopback_shard<Codec, float>{of, in, out, kept(), work};
    } else {
      return loopback_rank<Codec, float>{of, in, kept(), work};
    }
  }
};

// Whether all that feedback keeps is finite.
template <class Codec>
bool keeps_finite(fed_back_rank<Codec>& one)
{
  using kept              = residual_element<Codec>;
  std::size_t const first = [&] {
    if constexpr (owner_feeds_back<Codec>) { return one.of.offset("owner_residual"); }
    return one.of.offset("residual");
  }();
  auto const* const values = reinterpret_cast<kept const*>(one.kept().data() + first);
  return std::all_of(values, values + (one.of.state_bytes() - first) / sizeof(kept), [](kept v) {
    return std::isfinite(to_float(v));
  });
}

// A step like others; one of which rank 0 has a value that is not as others, and one of which it has none, over damaged wires; and
// steps of zeros, after which nothing is left to send.
template <class Executor, class Codec>
void exchange_bad(Codec const& codec, float bad, wires how, int byte, int quiet)
{
  CAPTURE(bad);
  CAPTURE(static_cast<int>(how));
  CAPTURE(byte);
  layout gradient{.coordinates = 63 * 65, .tensors = drained_tensors};
  if (!codec.plan(gradient, {.size = 2, .rank = 0}).check().ok()) { gradient.tensors = {}; }
  damaging<Executor> exec;
  std::vector<fed_back_rank<Codec>> all;
  for (int rank = 0; rank < 2; ++rank) {
    auto const of = codec.plan(gradient, {.size = 2, .rank = rank});
    REQUIRE(of.check() == status{});
    std::size_t in = of.coordinates(), out = in;
    if constexpr (publishing<Codec>) { in = of.shard_size(); }
    if constexpr (ending_in_shards<Codec>) { out = of.shard_size(); }
    all.push_back({of,
                   std::vector<float>(in),
                   std::vector<float>(out),
                   std::vector<word4>(of.state_bytes() / sizeof(word4) + 1),
                   std::vector<word4>(of.workspace_bytes() / sizeof(word4) + 1)});
    REQUIRE(initialize(exec, of, all.back().kept(), 7) == status{});
  }
  using rank_type = decltype(all[0].rank());
  for (int step = 0; step < 3 + quiet; ++step) {
    std::vector<rank_type> ranks;
    for (auto& one : all) {
      for (std::size_t i = 0; i < one.in.size(); ++i) {
        one.in[i] = step < 3 ? static_cast<float>(i * 7 % 19) - 9 : 0.0f;
      }
      ranks.push_back(one.rank());
    }
    if (step == 1) { all[0].in[1000] = bad; }
    exec.now  = step == 1 || step == 2 ? how : wires::whole;
    exec.byte = byte;
    REQUIRE(loopback_exchange(exec, ranks) == status{});
    CAPTURE(step);
    for (auto& one : all) { REQUIRE(keeps_finite(one)); }
  }
  if (quiet < 100) { return; }
  for (auto& one : all) {
    auto const& means = publishing<Codec> || ending_in_shards<Codec> ? one.out : one.in;
    // As in check_draining: a 2^8th of the norm of what three steps had, magnitudes of up to 9.
    for (float const mean : means) { REQUIRE(std::abs(mean) < 3 * 9 * 64 * 0x1p-8f); }
  }
}

template <class Executor = cpu_executor, class Codec>
void check_finite(Codec const& codec, int quiet = 400)
{
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 3e38f}) {
    exchange_bad<Executor>(codec, bad, wires::whole, 0, quiet);
    // Numbers that look sound, numbers near the largest float, and NaNs.
    for (int const byte : {0x3f, 0x7e, 0xff}) {
      int const few = std::isnan(bad) && byte == 0x3f ? quiet : 1;
      exchange_bad<Executor>(codec, bad, wires::damaged, byte, few);
      exchange_bad<Executor>(codec, bad, wires::damaged_codes, byte, few);
    }
  }
}

}  // namespace tersum::tests
