// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codebook: four sizes at equal distances and a sign, in root mean squares of the chunk.

#pragma once

#include <tersum/tersum.hpp>

#include <limits>

struct even_codebook {
  static constexpr int bits       = 3;
  static constexpr int magnitudes = 4;  // levels of one sign
  static constexpr bool unbiased  = true;

  static constexpr float level[magnitudes]{.3f, .9f, 1.5f, 2.1f};
  static constexpr float end[magnitudes]{.6f, 1.2f, 1.8f, std::numeric_limits<float>::infinity()};

  static constexpr float const* levels() { return level; }
  static constexpr float const* boundaries() { return end; }
  // The error of normal values over their mean square.
  static constexpr float distortion() { return .038989f; }
};
static_assert(tersum::codebook<even_codebook>);
