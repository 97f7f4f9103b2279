// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA tests compare every preset with the CPU executor.

#include "support/preset_names.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace tersum::tests;

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
    std::string const named = "(presets::" + name;
    CHECK((compared.find(named + ')') != std::string::npos ||
           compared.find(named + ',') != std::string::npos));
  }
}
