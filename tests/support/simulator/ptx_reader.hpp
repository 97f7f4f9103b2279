// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reading a text word by word.

#pragma once

#include "fault.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tersum::simulator {

[[nodiscard]] inline bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

//! @brief Where a reader is in a text. Words are separated by spaces; each of the signs that end things is a word.
class reader {
 public:
  reader(std::string_view text, unsigned line) : text_{text}, line_{line} {}

  [[nodiscard]] bool at_end()
  {
    skip_spaces();
    return at_ == text_.size();
  }
  [[nodiscard]] unsigned line() const { return line_; }
  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] char next()
  {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void skip(std::size_t characters)
  {
    for (std::size_t const end = std::min(at_ + characters, text_.size()); at_ < end; ++at_) {
      if (text_[at_] == '\n') { ++line_; }
    }
  }

  //! The next word, without moving past it.
  [[nodiscard]] std::string_view peek()
  {
    skip_spaces();
    std::size_t end = at_;
    auto const is   = [&](std::size_t at, std::string_view signs) {
      return at < text_.size() && signs.find(text_[at]) != std::string_view::npos;
    };
    while (end < text_.size() && !is_space(text_[end])) {
      std::size_t const colons =
        is(end, ":") && is(end + 1, ":") ? 2 : 0;  // of a state space in an opcode
      if (colons == 0 && is(end, "(){}[]<>;:,=\"")) { break; }
      end += std::max<std::size_t>(colons, 1);
    }
    return text_.substr(at_, end == at_ && at_ < text_.size() ? 1 : end - at_);
  }
  std::string_view word()
  {
    std::string_view const result = peek();
    skip(result.size());
    return result;
  }

  //! What lies before the next `sign`, which is passed.
  std::string_view until(char sign)
  {
    std::size_t const end = text_.find(sign, at_);
    if (end == std::string_view::npos) { fail("PTX line ", line_, ": no ", sign, " follows"); }
    auto const result = text_.substr(at_, end - at_);
    skip(end - at_ + 1);
    return result;
  }

  //! What a pair of brackets holds, whose first one is next.
  std::string_view bracketed(char open, char close)
  {
    if (next() != open) { fail("PTX line ", line_, ": expected ", open); }
    std::size_t const begin = at_;
    int depth               = 0;
    for (std::size_t end = begin; end < text_.size(); ++end) {
      if (text_[end] == open) { ++depth; }
      if (text_[end] == close && --depth == 0) {
        skip(end + 1 - begin);
        return text_.substr(begin + 1, end - begin - 1);
      }
    }
    fail("PTX line ", line_, ": ", open, " is never closed");
  }

 private:
  void skip_spaces()
  {
    while (at_ < text_.size() && is_space(text_[at_])) { skip(1); }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned line_;
};

}  // namespace tersum::simulator
