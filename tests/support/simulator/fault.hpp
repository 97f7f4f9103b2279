// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the simulator says what a kernel did wrong.

#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tersum::simulator {

//! @brief A kernel did what it must not do, or what the simulator does not know; `what()` is a sentence.
struct fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[nodiscard]] std::string sentence(Parts const&... parts)
{
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(Parts const&... parts)
{
  throw fault{sentence(parts...)};
}

}  // namespace tersum::simulator
