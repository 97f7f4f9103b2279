// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an operation has to move, and the counters of a result.

#pragma once

#include <tersum/plan.hpp>
#include <tersum/state.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

namespace tersum_bench {

//! @brief Bytes that every input of an operation has to be read and every output written once, for all coordinates.
//!
//! Passes over the same memory count once, so that the share of the copy's bandwidth says what they cost.
template <class Codec, class Element>
struct traffic {
  tersum::plan<Codec> const& plan;

  [[nodiscard]] double gradient() const
  {
    return static_cast<double>(plan.coordinates() * sizeof(Element));
  }
  [[nodiscard]] double agreed() const { return static_cast<double>(plan.agreed_bytes()); }
  [[nodiscard]] double payload() const { return static_cast<double>(plan.payload_bytes()); }

  //! What encoding reads of the gradient: where a codec chooses, what the payload has room for at its narrowest width.
  [[nodiscard]] double encoded() const
  {
    double coordinates = static_cast<double>(plan.coordinates());
    if constexpr (Codec::selects) {
      int bits = 0;
      if constexpr (Codec::several_bits) {
        bits = Codec::chunker_type::widths[0];
      } else if constexpr (Codec::casts) {
        bits = 8 * static_cast<int>(sizeof(typename Codec::quantizer_type::element));
      } else {
        bits = Codec::reducer_type::lane_bits;
      }
      coordinates = std::min(coordinates, 8 * payload() / bits);
    }
    return coordinates * sizeof(Element);
  }

  //! The table of chunks is read, their steps are written or read.
  [[nodiscard]] double steps() const
  {
    return static_cast<double>(plan.chunks() *
                               (sizeof(tersum::chunk_entry) + sizeof(tersum::chunk_step)));
  }
  [[nodiscard]] double rotated() const
  {
    return Codec::rotates_all ? static_cast<double>(plan.coordinates() * sizeof(float)) : 0;
  }
  [[nodiscard]] double residual() const
  {
    return Codec::feeds_back ? static_cast<double>(plan.coordinates() * sizeof(float)) : 0;
  }

  //! Local norms, and the rotation where it is of the whole vector.
  [[nodiscard]] double norms() const { return gradient() + residual() + rotated() + agreed(); }

  //! Agreed scalars to steps, gradient to codes.
  [[nodiscard]] double encode() const
  {
    if constexpr (!Codec::agrees) { return gradient() + payload(); }
    double const values = Codec::rotates_all ? rotated() : encoded();
    return agreed() + steps() + values + 2 * residual() + payload();
  }

  //! Summed codes to the mean.
  [[nodiscard]] double decode() const
  {
    return payload() + (Codec::agrees ? steps() : 0.0) + gradient();
  }
};

//! @brief Attaches the counters to a result.
//! @param moved    Bytes that the operation has to move.
//! @param copied   Bytes of what the reference copies.
//! @param work_ns  Best time of the operation.
//! @param copy_ns  Best time of the copy, measured between the runs of the operation.
inline void set_counters(benchmark::State& state,
                         std::uint64_t n,
                         double bits,
                         double moved,
                         double copied,
                         double work_ns,
                         double copy_ns)
{
  auto& counters           = state.counters;
  counters["n"]            = static_cast<double>(n);
  counters["bits"]         = bits;
  counters["bytes"]        = moved / static_cast<double>(n);
  counters["copied_bytes"] = copied / static_cast<double>(n);
  counters["best_ns"]      = work_ns;
  counters["copy_ns"]      = copy_ns;
  counters["over_copy"]    = work_ns / copy_ns;
  counters["of_copy"]      = moved / work_ns / (2 * copied / copy_ns);
}

}  // namespace tersum_bench
