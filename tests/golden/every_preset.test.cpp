// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The golden files hold every preset.

#include "support/preset_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

using namespace tersum::tests;

TEST_CASE("[golden] every preset has its exchanges in a golden file")
{
  std::set<std::string> held;
  for (auto const& entry : std::filesystem::directory_iterator("tests/golden")) {
    std::string const name = entry.path().filename().string();
    if (!name.starts_with("presets_") || !name.ends_with(".txt")) { continue; }
    for (std::string const& line : lines_of(text_of(entry.path()))) {
      CAPTURE(line);
      CHECK(held.insert(line.substr(0, line.find(':'))).second);
    }
  }
  std::vector<std::string> const names = preset_names();
  CHECK(names.size() > 50);
  for (std::string const& name : names) {
    for (char const* const element : {" float", " bfloat16"}) {
      for (char const* const ranks : {" 1", " 2", " 5"}) {
        for (char const* const gradient : {" vector", " tensors"}) {
          std::string const line = name + element + ranks + gradient;
          CAPTURE(line);
          CHECK(held.erase(line) == 1);
        }
      }
    }
  }
  // No digests of presets that are gone. What is no preset is named in several words.
  std::erase_if(held, [](std::string const& line) { return std::ranges::count(line, ' ') > 3; });
  CHECK(held.empty());
}
