// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A line that says what is running, on a terminal only.

#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace compare_codecs {

//! @brief One line on stderr, redrawn in place; nothing at all when stderr is not a terminal.
class progress_line {
 public:
  progress_line() : enabled_{isatty(STDERR_FILENO) == 1 && !is_dumb()} {}
  progress_line(progress_line const&)            = delete;
  progress_line& operator=(progress_line const&) = delete;
  ~progress_line() { clear(); }

  //! @brief Replaces the line. Text beyond the usual width is cut, as a wrapped line cannot be
  //! redrawn.
  void show(std::string_view text)
  {
    if (!enabled_) { return; }
    constexpr std::size_t width = 79;
    auto const shown            = text.substr(0, width);
    std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(shown.size()), shown.data());
    std::fflush(stderr);
    drawn_ = true;
  }

  //! @brief Removes the line, before anything else is printed.
  void clear()
  {
    if (!drawn_) { return; }
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
  }

 private:
  static bool is_dumb()
  {
    char const* const terminal = std::getenv("TERM");
    return terminal == nullptr || std::string_view{terminal} == "dumb";
  }

  bool enabled_;
  bool drawn_ = false;
};

}  // namespace compare_codecs
