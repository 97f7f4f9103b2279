// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Results as a table for people and as JSON for programs.

#pragma once

#include "codecs.hpp"

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace compare_codecs {

//! @brief One codec on one set.
struct result {
  std::string set{};
  std::string codec{};
  int ranks                 = 0;
  std::uint64_t coordinates = 0;
  measurement measured{};
};

//! @brief Prints one set in two tables, each with a heading and then a line for each codec: errors of the mean and times; what
//! an adaptive optimizer makes of the estimates.
//! @param results  Of one set.
void print_table(std::ostream& out, std::span<result const> results, run_settings const& settings);

//! @brief The text as a JSON string, quotes included.
[[nodiscard]] std::string json_string(std::string_view text);

//! @brief The shares as a JSON array of `{"tensor":..., "zeros_fraction":..., "zeros_fraction_of_mean":...}`.
[[nodiscard]] std::string json_tensors(std::span<tensor_zeros const> tensors);

//! @brief Writes all results: `{"version":..., "device":..., "results":[...]}`.
void write_json(std::ostream& out,
                std::string_view version,
                std::string_view device,
                std::span<result const> results);

}  // namespace compare_codecs
