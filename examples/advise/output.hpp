// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What advise prints and writes.

#pragma once

#include "options.hpp"

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace advise {

//! @brief All that is known when the answer is given.
struct report {
  options const& chosen;
  std::vector<layer> const& tensors;
  std::vector<candidate> const& candidates;
};

//! @brief A line for each candidate, the shortest overlapped step first.
void print_table(std::ostream& out, report const& what);

//! @brief Predictions at the given bandwidth, and steps of all candidates over bandwidths, for plot.py.
//! @return Whether the file could be written.
[[nodiscard]] bool write_json(std::filesystem::path const& file, report const& what);

//! @brief Tensors by what their gradients are like.
struct kinds_of_tensors {
  std::vector<layer> vectors{};  //!< One row or one column.
  std::vector<layer>
    sparse{};  //!< At least half of the rows are zeros on all ranks, as those of embeddings are.
  std::vector<layer> matrices{};  //!< The others.
};

//! @brief Sorts tensors.
//! @param real  Whether the gradients are those of the tensors; otherwise no tensor is taken to be sparse.
[[nodiscard]] kinds_of_tensors split(std::vector<layer> const& tensors,
                                     std::vector<std::vector<float>> const& gradients,
                                     bool real);

//! @brief Which codec a tensor has. docs/advisor.md has the format.
struct configuration {
  struct rule {
    std::string tensor{};  //!< Its name, not a pattern.
    std::string codec{};
  };
  std::string standard{};
  std::vector<rule> rules{};
};

//! @return Whether the file could be written.
[[nodiscard]] bool write_configuration(std::filesystem::path const& file,
                                       configuration const& config);

}  // namespace advise
