// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What text.hpp declares.

#include "text.hpp"

#include <cstddef>
#include <cstdint>

namespace compare_codecs {

namespace {

// Bytes of the well-formed UTF-8 sequence that `text` starts with, 0 if it starts with none.
std::size_t utf8_sequence(std::string_view text)
{
  auto const first         = static_cast<unsigned char>(text[0]);
  std::size_t const length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) { return 0; }
  std::uint32_t point = length == 1 ? first : first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    auto const next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0u) != 0x80u) { return 0; }
    point = point << 6 | (next & 0x3fu);
  }
  // Longer than needed, a surrogate, or beyond the last code point: not UTF-8.
  bool const overlong  = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  bool const surrogate = point >= 0xd800 && point < 0xe000;
  return overlong || surrogate || point > 0x10ffff ? 0 : length;
}

}  // namespace

std::string in_quotes(std::string_view text)
{
  constexpr std::size_t longest = 40;
  std::string result            = "'";
  for (char const c : text.substr(0, longest)) { result += c >= ' ' && c <= '~' ? c : '?'; }
  return result + (text.size() > longest ? "...'" : "'");
}

std::string to_utf8(std::string_view bytes)
{
  std::string result;
  while (!bytes.empty()) {
    auto const length = utf8_sequence(bytes);
    result += length == 0 ? "\xef\xbf\xbd" : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace compare_codecs
