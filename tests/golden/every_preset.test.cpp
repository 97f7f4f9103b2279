// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The golden files hold every preset, and kernel bodies are held to them.

#include "support/preset_names.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace tersum::tests;

namespace {

// What is named before the colon of the lines of some golden files.
std::set<std::string> held_in(std::string_view begin)
{
  std::set<std::string> held;
  for (auto const& entry : std::filesystem::directory_iterator("tests/golden")) {
    std::string const name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(".txt")) { continue; }
    for (std::string const& line : lines_of(text_of(entry.path()))) {
      CAPTURE(line);
      CHECK(held.insert(line.substr(0, line.find(':'))).second);
    }
  }
  return held;
}

// No digests of presets that are gone. What is no preset is named in several words before the element.
void check_rest(std::set<std::string> rest)
{
  std::erase_if(rest, [](std::string const& line) {
    std::string const second = line.substr(line.find(' '));
    return !second.starts_with(" float") && !second.starts_with(" bfloat16");
  });
  CHECK(rest.empty());
}

}  // namespace

TEST_CASE("[golden] every preset has its exchanges in a golden file")
{
  std::set<std::string> held           = held_in("presets_");
  std::vector<std::string> const names = preset_names();
  CHECK(names.size() > 50);
  for (std::string const& name : names) {
    for (char const* const element : {" float", " bfloat16"}) {
      CAPTURE(name + element);
      CHECK(held.erase(name + element) == 1);
      CHECK(held.erase(name + element + " worlds") == 1);
    }
  }
  check_rest(held);
}

TEST_CASE("[golden] every preset has its states in a golden file")
{
  std::set<std::string> held = held_in("states_");
  for (std::string const& name : preset_names()) {
    CAPTURE(name);
    CHECK(held.erase(name + " float 5 tensors") == 1);
    CHECK(held.erase(name + " bfloat16 2 vector") == 1);
  }
  check_rest(held);
}

TEST_CASE("[golden] kernel bodies of every preset are held to the golden files")
{
  std::string emulated;
  for (char const* const folder : {"tests/golden", "tests/baselines"}) {
    for (auto const& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().string().ends_with(".emulated.test.cpp")) {
        emulated += text_of(entry.path());
      }
    }
  }
  for (std::string const& name : preset_names()) {
    CAPTURE(name);
    CHECK((emulated.find("TERSUM_HOLD(" + name + ")") != std::string::npos ||
           emulated.find("TERSUM_HOLD_FACTORS(" + name + ")") != std::string::npos));
  }
}
