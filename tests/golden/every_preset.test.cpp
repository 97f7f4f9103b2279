// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The golden files hold every preset, and kernel bodies are held to them.

#include "support/golden_exchange.hpp"
#include "support/preset_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace tersum::tests;

TEST_CASE("[golden] every preset has its exchanges and its states in a golden file")
{
  auto held                            = all_golden_lines();
  std::vector<std::string> const names = preset_names();
  CHECK(names.size() > 50);
  for (std::string const& name : names) {
    for (char const* const element : {" float", " bfloat16"}) {
      CAPTURE(name + element);
      auto const line = held.find(name + element);
      REQUIRE(line != held.end());
      // Exchanges of three words, worlds, and states of three words or none.
      auto const words = 1 + std::ranges::count(line->second, ' ');
      CHECK((words == 7 || (words == 5 && line->second.ends_with(" refused"))));
      held.erase(line);
    }
  }
  // No digests of presets that are gone. What is no preset is named in several words before the element.
  for (auto const& held_line : held) {
    std::string const& line = held_line.first;
    CAPTURE(line);
    CHECK(std::ranges::count(line, ' ') > 1);
  }
}

TEST_CASE("[golden] kernel bodies of every list of presets are held to the golden files")
{
  std::string emulated;
  for (char const* const path :
       {"golden/kernels_sums", "golden/kernels_parts", "baselines/golden_kernels"}) {
    emulated += text_of(std::string{"tests/"} + path + ".emulated.test.cpp");
  }
  for (std::string const& line : lines_of(text_of("tests/support/preset_lists.hpp"))) {
    if (!line.starts_with("#define ")) { continue; }
    std::string const list = line.substr(8, line.find('(') - 8);
    CAPTURE(list);
    CHECK(emulated.find(list + "(TERSUM_HOLD, TERSUM_HOLD);") != std::string::npos);
  }
}
