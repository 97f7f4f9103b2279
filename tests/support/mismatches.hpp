// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Millions of comparisons as one assertion that names the first one that failed.

#pragma once

#include <cstdint>
#include <ios>
#include <sstream>
#include <string>

namespace tersum::tests {

//! @brief Counts answers that differ from a reference. `CHECK(wrong.report() == "")` prints the first of them.
class mismatches {
 public:
  //! Compares one answer; `inputs` are what it was asked, integers or floating point.
  template <class T, class... Inputs>
  void expect(T const& got, T const& want, Inputs const&... inputs)
  {
    ++compared_;
    if (got == want) { return; }
    if (++differ_ == 1) {
      std::ostringstream text;
      text << std::hexfloat << "got " << +got << ", want " << +want << " for";
      ((text << ' ' << +inputs), ...);
      first_ = text.str();
    }
  }

  //! Empty when something was compared and nothing differed.
  [[nodiscard]] std::string report() const
  {
    if (compared_ == 0) { return "nothing was compared"; }
    if (differ_ == 0) { return {}; }
    return std::to_string(differ_) + " of " + std::to_string(compared_) +
           " differ, first: " + first_;
  }

 private:
  std::uint64_t compared_ = 0;
  std::uint64_t differ_   = 0;
  std::string first_;
};

}  // namespace tersum::tests
