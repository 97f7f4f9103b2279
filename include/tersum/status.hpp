// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The result of a call: an error class, and one sentence that names the argument at fault.

#pragma once

#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! The class of an error.
enum class error_code : std::uint8_t {
  ok,
  invalid_argument,  //!< A null or misaligned pointer, a size that does not match the plan.
  world_too_large,   //!< The lanes cannot hold the sum of so many ranks.
  unsupported,       //!< This device or transport cannot do what was asked.
  execution_failed,  //!< The CUDA runtime refused a launch; `native` holds its error number.
  transport_failed,  //!< The caller's collective failed; `native` holds its own error number.
};

//! @brief The result of every call that can fail. Nothing throws, prints or exits, but for the assertion that
//! `quantizer` (concepts.hpp) tells of.
//!
//! `message` is one sentence, empty if the call succeeded. It is a string literal: valid for ever and ended by a zero,
//! so that `printf("%s", message.data())` works. `native` is the error number of the CUDA runtime or of the transport
//! if one of them failed, otherwise 0.
struct [[nodiscard]] status {
  error_code code          = error_code::ok;
  std::string_view message = "";
  int native               = 0;

  [[nodiscard]] constexpr bool ok() const noexcept { return code == error_code::ok; }

  friend constexpr bool operator==(status const& a, status const& b) noexcept
  {
    return a.code == b.code && a.message == b.message && a.native == b.native;
  }
};

//! @brief The status for a caller's collective that failed with its own error number.
[[nodiscard]] constexpr status transport_error(int native) noexcept
{
  return {error_code::transport_failed, "the caller's collective returned an error", native};
}

}  // namespace tersum::inline v0
