// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A law of codecs with feedback: residuals stay finite, whatever a gradient has and whatever a wire brings or loses, and drain.

#pragma once

#include "support/check_draining.hpp"
#include "support/exchange_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tersum::tests {

enum class wires { whole, damaged, damaged_codes };

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
  Executor const exec;
  exchange_case<Codec, float> const c{.codec = codec, .gradient = gradient, .seed = 7};
  exchange_run<host_buffer, Codec, float> run{exec, c};
  std::vector<std::vector<float>> means;
  for (int step = 0; step < 3 + quiet; ++step) {
    auto const in = c.given_by([&](int rank) {
      std::vector<float> values(gradient.coordinates);
      for (std::size_t i = 0; i < values.size() && step < 3; ++i) {
        values[i] = static_cast<float>(i * 7 % 19) - 9;
      }
      if (step == 1 && rank == 0) { values[1000] = bad; }
      return values;
    });
    means         = run.exchange(exec, in, [&](auto round, bool arrived) {
      if (!arrived || (step != 1 && step != 2)) { return; }
      run.for_each_piece(round, true, [&]<class T>(wire_piece<T> const& piece) {
        if (how == wires::damaged || (how == wires::damaged_codes && std::is_integral_v<T>)) {
          run.write(piece, byte_string(piece.bytes(), static_cast<std::byte>(byte)));
        }
      });
    });
    CAPTURE(step);
    for (std::size_t rank = 0; rank < run.size(); ++rank) {
      REQUIRE(std::ranges::all_of(residuals_of(run[rank].plan, run[rank].state),
                                  [](auto kept) { return std::isfinite(to_float(kept)); }));
    }
  }
  if (quiet < 100) { return; }
  for (auto const& of_rank : means) {
    // As in check_draining: a 2^8th of the norm of what three steps had, magnitudes of up to 9.
    for (float const mean : of_rank) { REQUIRE(std::abs(mean) < 3 * 9 * 64 * 0x1p-8f); }
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
