// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small pieces of text: numbers read strictly, foreign bytes made fit to print.

#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace compare_codecs {

//! @brief The decimal number that is the whole of `text`; no sign, no space, no overflow.
template <typename Unsigned>
[[nodiscard]] std::optional<Unsigned> parse_number(std::string_view text)
{
  Unsigned number{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool const whole        = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{number} : std::nullopt;
}

//! @brief The text in single quotes, other than printable ASCII as '?', cut after 40 characters.
[[nodiscard]] std::string in_quotes(std::string_view text);

//! @brief The same text as valid UTF-8: each byte that is not part of it becomes U+FFFD.
//!
//! File names are bytes, JSON is UTF-8.
[[nodiscard]] std::string to_utf8(std::string_view bytes);

}  // namespace compare_codecs
