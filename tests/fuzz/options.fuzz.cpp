// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes the command line of compare_codecs, one argument a line, and the text that it prints of what it was given.

#include "examples/compare_codecs/options.hpp"
#include "examples/compare_codecs/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  using namespace compare_codecs;
  std::string const text{reinterpret_cast<char const*>(data), size};
  auto const must = [](bool holds) {
    if (!holds) { std::abort(); }
  };

  std::string const utf8 = to_utf8(text);
  must(to_utf8(utf8) == utf8 && utf8.size() >= text.size());
  std::string const quoted = in_quotes(text);
  must(quoted.size() <= 45 &&
       std::ranges::all_of(quoted, [](char c) { return c >= ' ' && c <= '~'; }));
  if (auto const number = parse_number<std::uint64_t>(text)) {
    must(text.find_first_not_of("0123456789") == std::string::npos);
  }

  std::vector<std::string> lines(1);
  for (char const c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\0') {
      lines.back() += c;
    }
  }
  std::vector<char const*> arguments;
  for (auto const& line : lines) { arguments.push_back(line.c_str()); }
  auto const read = parse_options(arguments);
  if (!read) { return 0; }
  options const& o = read.value;
  must(o.help || o.list || !o.gradients.empty());
  must(o.steps >= 1 && o.threads >= 1 && o.repeat >= 1 && (!o.ranks || *o.ranks >= 1));
  return 0;
}
