// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Finds gradient files by name: `<set>_worker<k>.npy`, one file for each rank of a set.

#pragma once

#include "or_error.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace compare_codecs {

//! @brief One matrix of a gradient, row-major at `offset` in the flat vector.
struct layer {
  std::string name{};
  std::uint64_t rows    = 0;
  std::uint64_t columns = 0;
  std::uint64_t offset  = 0;
};

//! @brief The files of one set; rank k reads `files[k]`.
struct gradient_set {
  std::string name{};
  std::vector<std::filesystem::path> files{};
};

//! @brief Whether `a` comes before `b` when digits are read as numbers: step20 before step300.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

//! @brief Lists the sets of a folder in natural order; files of other names are ignored.
//! @param ranks  How many files of each set to keep, the first ones; all if not given.
//! @return At least one set, the workers 0..n-1 of each, or a sentence.
[[nodiscard]] or_error<std::vector<gradient_set>> list_gradient_sets(
  std::filesystem::path const& folder, std::optional<int> ranks);

//! @brief Reads every file of a set.
//! @return One vector a rank, of equal length, not empty, or a sentence.
[[nodiscard]] or_error<std::vector<std::vector<float>>> read_gradient_set(gradient_set const& set);

//! @brief Reads `layers.csv` (name,rows,columns,offset) of a folder.
//! @param coordinates  Length of the gradient; the layers must cover it without gap or overlap.
//! @return The layers by rising offset, none if the folder has no such file, or a sentence.
[[nodiscard]] or_error<std::vector<layer>> read_layers(std::filesystem::path const& folder,
                                                       std::uint64_t coordinates);

}  // namespace compare_codecs
