// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA tests compare every preset with the CPU executor.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string text_of(std::filesystem::path const& path)
{
  std::ifstream file(path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(std::string const& text)
{
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

//! The names that lines `inline constexpr <type> <name>{...};` declare.
std::vector<std::string> preset_names()
{
  constexpr std::string_view begins = "inline constexpr ";
  std::vector<std::string> names;
  for (std::string const& line : lines_of(text_of("include/tersum/presets.hpp"))) {
    if (!line.starts_with(begins)) { continue; }
    std::size_t const end   = line.find('{');
    std::size_t const space = line.rfind(' ', end);
    names.push_back(line.substr(space + 1, end - space - 1));
  }
  return names;
}

TEST_CASE("[presets] every preset is compared on CUDA")
{
  std::string compared;
  for (char const* const folder : {"tests/execute", "tests/lowrank"}) {
    for (auto const& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.path().string().ends_with(".cuda.test.cu")) { continue; }
      for (std::string const& line : lines_of(text_of(entry.path()))) {
        // A graph is compared with direct calls, not with the CPU executor.
        if (line.find("compare_graph") == std::string::npos) { compared += line + '\n'; }
      }
    }
  }
  std::vector<std::string> const names = preset_names();
  CHECK(names.size() > 50);
  for (std::string const& name : names) {
    CAPTURE(name);
    CHECK(compared.find("(presets::" + name + ")") != std::string::npos);
  }
}

}  // namespace
