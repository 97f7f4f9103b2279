// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The one door to the library: which codecs there are, and how one of them did on a gradient.

#pragma once

#include "errors.hpp"
#include "gradient_sets.hpp"
#include "or_error.hpp"

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace compare_codecs {

//! @brief A codec that can be run by name.
struct codec_entry {
  std::string_view name;      //!< As on the command line: letters, digits and underscores.
  std::string_view summary;   //!< One line.
  bool needs_layers = false;  //!< Works on the matrices of a gradient.
  bool cpu_only     = false;  //!< Not on a CUDA device.
};

//! @brief How to run a codec.
struct run_settings {
  int ranks   = 1;      //!< Ranks of the loopback all-reduce; as many as there are gradients.
  int steps   = 1;      //!< All-reduces in a row: the same gradients, fresh seeds.
  int threads = 1;      //!< Threads of the CPU executor and of the reference memcpy.
  bool cuda   = false;  //!< Run on the current CUDA device instead.
  int repeat  = 1;      //!< Times are the best of so many.
};

//! @brief What was measured. A quantity that a codec does not have is NaN: shown as '-', null in
//! JSON.
//!
//! Errors are |mean - estimate|^2 / |mean|^2 in double precision, of Adam's update as `update_error_of`
//! says. Times are for the whole gradient of one rank.
struct measurement {
  double bits_per_coordinate = 0;  //!< All-reduce input of all rounds, for each coordinate.
  //! Of a parameter server: what a worker pulls; `bits_per_coordinate` is what it pushes.
  double bits_pulled            = std::numeric_limits<double>::quiet_NaN();
  double nmse                   = 0;  //!< Error of the last step.
  double nmse_first_step        = 0;  //!< Error of the first step.
  double nmse_of_mean           = 0;  //!< Error of the average of all steps' estimates.
  double update_error           = 0;  //!< Of the last step; NaN for one rank.
  double update_error_of_mean   = 0;  //!< Of the average of all steps' estimates.
  double zeros_fraction         = 0;  //!< Zeros of the last step where the mean is not zero.
  double zeros_fraction_of_mean = 0;  //!< The same of the average: what no step has sent.
  //! Both shares of each tensor; none without layers.csv.
  std::vector<tensor_zeros> zeros_by_tensor{};
  double saturated_fraction = 0;      //!< Share of the coordinates that saturated in the sum.
  bool ranks_identical      = false;  //!< All ranks got equal bytes at every step.
  double encode_ns          = 0;
  double reduce_ns          = 0;
  double decode_ns          = 0;
  double memcpy_ns          = 0;  //!< The same floats copied, on the same number of threads.
};

//! @brief The measurement, or a sentence: why the codec cannot run with these settings.
using run_outcome = or_error<measurement>;

//! @brief All codecs in the order of the table.
[[nodiscard]] std::span<codec_entry const> list_codecs();

//! @brief All codecs, and then forms of exchange that are no codec of one collective: on two levels, and by a parameter server.
[[nodiscard]] std::span<codec_entry const> list_exchanges();

//! @brief Version of the library, such as "0.2.0".
[[nodiscard]] std::string_view library_version();

//! @brief Empty if the device can be used, otherwise a sentence that says why not.
[[nodiscard]] std::string device_problem(bool cuda);

//! @brief Runs one codec for `settings.steps` steps.
//! @param name       One of `list_exchanges()`.
//! @param gradients  One for each rank, equal lengths, finite.
//! @param layers     The matrices that make up a gradient, or none if that is not known.
[[nodiscard]] run_outcome run_codec(std::string_view name,
                                    std::vector<std::vector<float>> const& gradients,
                                    std::vector<layer> const& layers,
                                    run_settings const& settings);

}  // namespace compare_codecs
