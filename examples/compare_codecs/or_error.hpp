// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A value or the sentence that says why there is none: how the parts of this program report.

#pragma once

#include <string>

namespace compare_codecs {

//! @brief What a function found, or what was wrong. `value` means nothing while `error` is set.
template <typename T>
struct or_error {
  T value{};
  std::string error{};  //!< Empty, or a sentence for the user without a final full stop.

  [[nodiscard]] explicit operator bool() const noexcept { return error.empty(); }
};

}  // namespace compare_codecs
