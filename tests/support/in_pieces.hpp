// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An executor that recompresses in pieces, and holds `part_recompression` to what it says of them.

#pragma once

#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief Another executor whose `recompress` is given a part piece by piece: what has not arrived is poisoned, and what
//! may have gone on must stay as it is.
template <class Executor>
struct in_pieces : Executor {
  std::uint64_t pieces = 3;

  template <class Codec, class Element>
  [[nodiscard]] status recompress(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> args) const
  {
    std::uint64_t const count  = plan.part_bytes() / sizeof(std::uint32_t);
    std::uint64_t const scales = std::min(plan.owned_chunks(), count);
    std::uint64_t const world  = static_cast<std::uint64_t>(args.world);
    std::vector<std::uint32_t> const sent(args.parts.received, args.parts.received + world * count);
    std::fill_n(args.parts.received, world * count, 0xffc0ffeeU);
    auto const arrive = [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        for (std::uint64_t word = begin; word < end; ++word) {
          args.parts.received[rank * count + word] = sent[rank * count + word];
        }
      }
    };
    std::uint64_t const means      = plan.mean_part_bytes() / sizeof(std::uint32_t);
    std::uint32_t const* const own = args.parts.gathered + args.rank * means;
    part_recompression<int> const between{
      scales,
      plan.chunk_words(),
      0,
      ways_differ<Codec> && !several_bits<Codec> ? plan.mean_chunk_words() : 0};
    std::vector<std::uint32_t> gone;
    arrive(count - scales, count);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      std::uint64_t const begin = count * piece / pieces;
      std::uint64_t const end   = count * (piece + 1) / pieces;
      arrive(begin, std::min(end + plan.chunk_words(), count));
      args.parts.recompressed = {.begin = begin,
                                 .end   = piece + 1 == pieces ? part_range{}.end : end};
      if (status const s = Executor::recompress(plan, args); !s.ok()) { return s; }
      CHECK(std::equal(gone.begin(), gone.end(), own));
      gone.assign(own, own + std::min(between.ready(end), means - scales));
    }
    return {};
  }
};

}  // namespace tersum::tests
