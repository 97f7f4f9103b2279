// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The names of all presets, read from the headers, for tests that look for each of them.

#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::tests {

[[nodiscard]] inline std::string text_of(std::filesystem::path const& path)
{
  std::ifstream file(path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

[[nodiscard]] inline std::vector<std::string> lines_of(std::string const& text)
{
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

//! The names that declarations `inline constexpr <type> <name>{...};` give to codecs, in all headers below include/ whose names
//! end in presets.hpp.
[[nodiscard]] inline std::vector<std::string> preset_names()
{
  constexpr std::string_view begins = "\ninline constexpr ";
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::recursive_directory_iterator("include")) {
    if (!entry.path().string().ends_with("presets.hpp")) { continue; }
    std::string const text = text_of(entry.path());
    for (std::size_t at = text.find(begins); at != std::string::npos; at = text.find(begins, at)) {
      at += begins.size();
      std::size_t const end   = text.find('{', at);
      std::size_t const space = text.find_last_of(" \n", end);
      REQUIRE(end < text.find(';', at));
      names.push_back(text.substr(space + 1, end - space - 1));
    }
  }
  return names;
}

}  // namespace tersum::tests
