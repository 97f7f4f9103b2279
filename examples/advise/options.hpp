// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The command line.

#pragma once

#include "advice.hpp"

#include <compare_codecs/or_error.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace advise {

//! @brief What was asked for.
struct options {
  std::filesystem::path tensors{};             //!< See read_tensors.
  std::filesystem::path gradients{};           //!< A folder of <set>_worker<k>.npy, or nothing.
  std::vector<std::string> codecs{};           //!< fp16 first.
  std::vector<std::filesystem::path> rates{};  //!< Results of benchmarks.
  setup where{};
  double most_error = .1;   //!< |mean - estimate|^2 / |mean|^2.
  std::string probe{};      //!< mpi, gloo, or nothing.
  int rank            = 0;  //!< Of a probe over Gloo.
  std::string address = "127.0.0.1";
  std::filesystem::path store{};
  std::filesystem::path json{};
  std::filesystem::path config{};
  bool help = false;
};

//! @brief What `--help` prints.
[[nodiscard]] std::string_view usage();

//! @brief Reads the arguments that follow the program's name, --x v or --x=v; or a sentence about the first mistake.
[[nodiscard]] or_error<options> parse_options(std::span<char const* const> arguments);

}  // namespace advise
