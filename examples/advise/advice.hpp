// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Predicted steps, and what to make of them.

#pragma once

#include "known_codecs.hpp"

#include <tersum/model/step.hpp>

#include <optional>
#include <string>
#include <vector>

namespace advise {

//! @brief Where training runs.
struct setup {
  int ranks         = 4;
  int ranks_of_host = 1;  //!< That share the cores which encode.
  int cores         = 1;  //!< Of a host.
  tersum::model::computing work{.backward = 0, .overlap_slowdown = 1.07};
  tersum::model::network net{};
  double bucket_bytes = 25.0 * (1 << 20);  //!< Of float32 coordinates, as in PyTorch's DDP.
};

//! @brief A codec that may be chosen.
struct candidate {
  std::string name{};
  tersum::model::volume sent{};
  tersum::model::coding costs{};
  std::optional<double> error{};
};

//! @brief What the model says of a candidate.
struct prediction {
  double coding     = 0;  //!< Seconds of a step.
  double network    = 0;
  double traffic    = 0;  //!< Bytes that a rank sends.
  double plain      = 0;  //!< Seconds of a step without overlap.
  double overlapped = 0;  //!< Seconds of a step whose buckets travel during the backward pass.
  double break_even = 0;  //!< Bytes per second, above which fp16 is as fast, without overlap.
};

//! @brief Predicts a step. What is summed in the wire goes around a ring; coding takes from the backward pass, as both need the
//! same processors, and only the network's time overlaps with it.
//! @param fp16  What the break-even bandwidth is against.
[[nodiscard]] prediction predict(candidate const& codec, candidate const& fp16, setup const& in);

//! @brief The candidate with the shortest overlapped step among those that err at most so much; fp16 where none saves 2 % of it.
//! @param all  fp16 first.
[[nodiscard]] candidate const& best_of(std::vector<candidate> const& all,
                                       setup const& in,
                                       double most_error);

//! @brief One or two sentences: which codec, what it gains, and from which bandwidth and number of ranks on the answer changes.
[[nodiscard]] std::string answer(std::vector<candidate> const& all,
                                 setup const& in,
                                 double most_error);

}  // namespace advise
