// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How policies say what they need of each other, so that the compiler refuses a codec with a sentence and a program can ask for it.

#pragma once

#include <tersum/detail/std.hpp>

//! @brief Within a function template that has `bool Ask` and returns a sentence: if the condition does not hold the function returns
//! this one, or, where it is not asked, does not compile and says it.
#define TERSUM_NEEDS(sentence, ...)                                                                \
  do {                                                                                             \
    if constexpr (!(__VA_ARGS__)) {                                                                \
      if constexpr (Ask) {                                                                         \
        return sentence;                                                                           \
      } else {                                                                                     \
        static_assert((__VA_ARGS__), sentence);                                                    \
      }                                                                                            \
    }                                                                                              \
  } while (false)
