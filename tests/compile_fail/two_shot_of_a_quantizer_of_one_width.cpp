// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of several widths, and a codebook of one.
// expected: tersum: two_shot_codec with allocated_chunks needs a quantizer

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/plan.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

struct one_bit {
  static constexpr int bits       = 1;
  static constexpr int magnitudes = 1;
  static constexpr bool unbiased  = true;
  static constexpr float level    = .8f;
  static constexpr float beyond   = 1e30f;
  static constexpr float const* levels() { return &level; }
  static constexpr float const* boundaries() { return &beyond; }
  static constexpr float distortion() { return .57f; }
};

using codec = tersum::
  two_shot_codec<tersum::allocated_chunks<256, 1, 2>, tersum::partial_hadamard<256>, one_bit>;

auto const bytes = codec{}.plan({.coordinates = 1000}, {}).wire_bytes();
