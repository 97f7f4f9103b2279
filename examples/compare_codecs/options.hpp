// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The command line.

#pragma once

#include "codecs.hpp"
#include "or_error.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compare_codecs {

//! @brief What was asked for.
struct options {
  std::filesystem::path gradients{};  //!< Empty only with `help` or `list`.
  std::vector<std::string> codecs{};  //!< In the order given; none, or `all` among them: all.
  std::optional<int> ranks{};         //!< First so many files of each set.
  int steps   = 10;                   //!< See `run_settings`.
  int threads = 1;                    //!< See `run_settings`.
  int repeat  = 3;                    //!< See `run_settings`.
  bool cuda   = false;                //!< Device: CUDA instead of CPU.
  std::optional<std::filesystem::path> json{};  //!< Where to write the results.
  bool list = false;                            //!< Only name the codecs.
  bool help = false;                            //!< Only explain the options.
};

//! @brief What `--help` prints.
[[nodiscard]] std::string_view usage();

//! @brief Reads the arguments that follow the program's name.
//!
//! Both `--x v` and `--x=v`; of an option given twice the last one counts; a value that starts
//! with two dashes needs the second form.
//!
//! @return The options, or a sentence about the first mistake.
[[nodiscard]] or_error<options> parse_options(std::span<char const* const> arguments);

//! @brief Checks the wanted names, and drops repetitions.
//! @param wanted     Names from the command line; none, or `all` among names that there are: all.
//! @param available  What there is.
//! @return The names to run, or a sentence that offers similar ones.
[[nodiscard]] or_error<std::vector<std::string_view>> choose_codecs(
  std::span<std::string const> wanted, std::span<codec_entry const> available);

//! Whether no names, or `all` among them, mean all codecs.
[[nodiscard]] bool names_all(std::span<std::string const> wanted);

}  // namespace compare_codecs
