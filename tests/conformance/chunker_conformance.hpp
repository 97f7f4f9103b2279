// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of the chunker role, for every chunker of the library and of its users.

#pragma once

#include "support/loopback_run.hpp"

#include <tersum/codec.hpp>
#include <tersum/concepts.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tersum::tests {

//! @brief Checks every law of the role.
//!
//! - A chunk has a power of two of coordinates, from 32 to 32768.
//! - Scores lie below 2^31. Those of a chunker by norm do not fall when the energy rises; others do not depend on it.
//! - In an exchange whole chunks travel or stay, the same on all ranks, no more than the bits pay for, and at least one.
template <chunker Chunker>
void check_chunker_laws([[maybe_unused]] Chunker const& chunker = {})
{
  constexpr std::size_t size = Chunker::chunk_size;
  static_assert(size >= 32 && size <= 32768 && (size & (size - 1)) == 0);
  if constexpr (selecting_chunker<Chunker>) {
    for (std::uint64_t number = 0; number < 100; ++number) {
      chunk_key const key{.chunk = number, .step = number / 7, .random = number * 77};
      std::uint32_t last = chunker.score(0, key);
      for (std::uint32_t energy = 1; energy < 0x7f000000u; energy += energy / 3 + 1) {
        std::uint32_t const score = chunker.score(energy, key);
        REQUIRE(score < 1u << 31);
        REQUIRE((Chunker::by_norm ? score >= last : score == last));
        last = score;
      }
    }
    if constexpr (!Chunker::several_bits) {
      using codec              = codec<Chunker, no_rotation, cast<half>, in_wire>;
      std::size_t const chunks = 50;
      loopback_run<codec> run{codec{.chunker = chunker}, layout{chunks * size}, 2, 3};
      std::vector<std::vector<float>> const in(2, std::vector<float>(chunks * size, 1.0f));
      for (int step = 0; step < 3; ++step) {
        auto const& out       = run.exchange(in);
        std::size_t travelled = 0;
        CHECK(out[0] == out[1]);
        for (std::size_t i = 0; i < out[0].size(); i += size) {
          for (std::size_t j = i; j < i + size; ++j) { REQUIRE(out[0][j] == out[0][i]); }
          travelled += out[0][i] == 1 ? 1 : 0;
        }
        CHECK(travelled > 0);
        CHECK(static_cast<double>(travelled * 16) <=
              static_cast<double>(chunker.bits) * static_cast<double>(chunks));
      }
    }
  }
}

}  // namespace tersum::tests
