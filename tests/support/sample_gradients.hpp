// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The real gradients of examples/gradients/lm: tests run in the project's root folder.

#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tersum::tests {

using gradients = std::vector<std::vector<float>>;

//! @brief One rank's gradient of a set, "step20" or "step300" of lm. A .npy file of version 1 is ten bytes, the last two the
//! length of the header, header, values.
[[nodiscard]] inline std::vector<float> sample_gradient(std::string const& set,
                                                        int rank,
                                                        std::string const& folder = "lm")
{
  std::ifstream file("examples/gradients/" + folder + "/" + set + "_worker" + std::to_string(rank) +
                       ".npy",
                     std::ios::binary);
  std::string const bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() > 128);
  std::size_t const begin =
    10 + static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  std::vector<float> values((bytes.size() - begin) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + begin, values.size() * sizeof(float));
  REQUIRE((folder != "lm" || values.size() == 391008));
  return values;
}

//! @brief All four ranks of a set.
[[nodiscard]] inline gradients sample_gradients(std::string const& set)
{
  gradients all;
  for (int rank = 0; rank < 4; ++rank) { all.push_back(sample_gradient(set, rank)); }
  return all;
}

}  // namespace tersum::tests
