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
  // Digests of shards, of values and of the catalogue stand in the tests themselves.
  std::string const of_tests =
    text_of("tests/golden/presets_gathered.test.cpp") + text_of("tests/golden/catalogue.test.cpp");
  std::vector<std::string> const names = preset_names();
  CHECK(names.size() > 50);
  for (std::string const& name : names) {
    CAPTURE(name);
    if (of_tests.find("presets::" + name + ')') != std::string::npos) { continue; }
    // Values have a digest with feedback, and votes are held to a model: baselines/catalogue.test.cpp.
    if (name == "values_4" || name == "sign_majority") { continue; }
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
