// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What `emulator::launch` throws when a kernel body breaks a rule of the device.

#pragma once

#include <sstream>
#include <stdexcept>

namespace tersum::emulator {

//! @brief A kernel body did what a device would not survive; `what()` says it in a sentence.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

//! The failure whose sentence is the parts, one after the other.
template <class... Parts>
[[nodiscard]] failure make_failure(Parts const&... parts)
{
  std::ostringstream sentence;
  sentence << "emulator: ";
  (sentence << ... << parts);
  return failure{sentence.str()};
}

}  // namespace tersum::emulator
