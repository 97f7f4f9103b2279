// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an operation has to move, and the counters of a result.

#pragma once

#include "support/operation.hpp"

#include <tersum/block/chunk_step.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/tersum.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

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
  [[nodiscard]] double agreed() const
  {
    if constexpr (tersum::gathering<Codec>) {
      return 0;
    } else {
      return static_cast<double>(plan.agreed_bytes());
    }
  }
  [[nodiscard]] double payload() const
  {
    if constexpr (tersum::gathering<Codec>) {
      return static_cast<double>(plan.part_bytes());
    } else {
      return static_cast<double>(plan.payload_bytes());
    }
  }

  //! What encoding reads of the gradient: where a codec chooses, what the payload has room for at its narrowest width.
  [[nodiscard]] double encoded() const
  {
    double coordinates = static_cast<double>(plan.coordinates());
    if constexpr (tersum::selects<Codec>) {
      int bits = 0;
      if constexpr (tersum::several_bits<Codec>) {
        bits = Codec::chunker_type::widths[0];
      } else if constexpr (tersum::gathering<Codec>) {
        return gradient();
      } else if constexpr (tersum::casts<Codec>) {
        bits = 8 * static_cast<int>(sizeof(typename Codec::quantizer_type::element));
      } else {
        bits = Codec::reducer_type::lane_bits;
      }
      coordinates = std::min(coordinates, 8 * payload() / bits);
    }
    return coordinates * sizeof(Element);
  }

  //! The table of chunks is read; steps of chunks, where they have some, are written or read.
  [[nodiscard]] double steps() const
  {
    std::size_t const step = tersum::detail::has_steps<Codec> ? sizeof(tersum::chunk_step) : 0;
    return static_cast<double>(plan.chunks() * (sizeof(tersum::chunk_entry) + step));
  }
  [[nodiscard]] double rotated() const
  {
    return Codec::rotates_all ? static_cast<double>(plan.coordinates() * sizeof(float)) : 0;
  }
  [[nodiscard]] double residual() const
  {
    return tersum::feeds_back<Codec> ? static_cast<double>(plan.coordinates() * sizeof(float)) : 0;
  }

  //! Local norms, and the rotation where it is of the whole vector.
  [[nodiscard]] double norms() const { return gradient() + residual() + rotated() + agreed(); }

  //! Agreed scalars to steps, gradient to codes.
  [[nodiscard]] double encode() const
  {
    if constexpr (!tersum::agrees<Codec>) { return gradient() + 2 * residual() + payload(); }
    double const values = Codec::rotates_all ? rotated() : encoded();
    return agreed() + steps() + values + 2 * residual() + payload();
  }

  //! Codes to the mean, or to a shard of it.
  [[nodiscard]] double decode() const
  {
    auto const ranks    = static_cast<double>(plan.ranks().size);
    double const copies = tersum::copying<Codec> ? ranks : 1;
    double const shards = tersum::sharding<Codec> ? ranks : 1;
    return copies * payload() + (tersum::agrees<Codec> ? steps() : 0.0) + gradient() / shards;
  }

  //! All ranks' codes of a part to those of their mean.
  [[nodiscard]] double recompress() const
  {
    return payload() * (1 + 1.0 / static_cast<double>(plan.ranks().size));
  }

  [[nodiscard]] double of(part what) const
  {
    switch (what) {
      case part::norms: return norms();
      case part::encode:
      case part::encode_feedback: return encode();
      case part::local: return (tersum::agrees<Codec> ? norms() : 0.0) + encode();
      case part::recompress: return recompress();
      default: return decode();
    }
  }
};

//! What the runs of an operation took, and the copies between them.
class run_times {
 public:
  void add(double work_ns, double copy_ns)
  {
    work_ns_ = std::min(work_ns_, work_ns);
    copy_ns_ = std::min(copy_ns_, copy_ns);
    ratios_.push_back(work_ns / copy_ns);
  }

  //! @name The least of all runs
  //! @{
  [[nodiscard]] double work_ns() const { return work_ns_; }
  [[nodiscard]] double copy_ns() const { return copy_ns_; }
  //! @}

  //! The median of the runs' times over that of the copy before each: what they are beside other work on the machine.
  [[nodiscard]] double median_over_copy() const
  {
    std::vector<double> sorted = ratios_;
    auto const middle          = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return middle == sorted.end() ? std::numeric_limits<double>::quiet_NaN() : *middle;
  }

 private:
  double work_ns_ = std::numeric_limits<double>::infinity();
  double copy_ns_ = std::numeric_limits<double>::infinity();
  std::vector<double> ratios_;
};

//! @brief Attaches the counters to a result.
//! @param n       Coordinates.
//! @param bits    Bits that the codec sends for each.
//! @param moved   Bytes that the operation has to move.
//! @param copied  Bytes of what the reference copies.
inline void set_counters(benchmark::State& state,
                         std::uint64_t n,
                         double bits,
                         double moved,
                         double copied,
                         run_times const& times)
{
  auto& counters           = state.counters;
  counters["n"]            = static_cast<double>(n);
  counters["bits"]         = bits;
  counters["bytes"]        = moved / static_cast<double>(n);
  counters["copied_bytes"] = copied / static_cast<double>(n);
  counters["best_ns"]      = times.work_ns();
  counters["copy_ns"]      = times.copy_ns();
  counters["over_copy"]    = times.work_ns() / times.copy_ns();
  counters["median"]       = times.median_over_copy();
  counters["of_copy"]      = moved / times.work_ns() / (2 * copied / times.copy_ns());
}

template <class Codec>
void set_counters(benchmark::State& state,
                  tersum::plan<Codec> const& plan,
                  double moved,
                  double copied,
                  run_times const& times)
{
  set_counters(state, plan.coordinates(), plan.bits_per_coordinate(), moved, copied, times);
}

}  // namespace tersum_bench
