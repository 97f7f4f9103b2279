// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What each file of the program asks the library, to compare the answers.

#pragma once

#include <tersum/tersum.hpp>

#include <cstdint>

namespace odr {

//! Answers of inline functions and templates of the library, in its own types.
struct answers {
  int version;
  tersum::philox_block random;
  tersum::half rounded;
  tersum::status error;

  friend bool operator==(answers const&, answers const&) = default;
};

answers from_a();
answers from_b();
answers from_c();

}  // namespace odr

// A macro, so that every file compiles the calls itself.
#define TERSUM_ODR_ANSWERS                                                                         \
  odr::answers                                                                                     \
  {                                                                                                \
    TERSUM_VERSION_MAJOR * 10000 + TERSUM_VERSION_MINOR * 100 + TERSUM_VERSION_PATCH,              \
      tersum::philox4x32<10>({{1, 2, 3, 4}}, 5), tersum::to_half(0.1f), tersum::transport_error(7) \
  }
