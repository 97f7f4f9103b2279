// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gradients that an exchange may meet.

#pragma once

#include "exchange_ranks.hpp"
#include "number_source.hpp"

#include <array>
#include <string_view>

namespace tersum::tests {

enum class gradient_kind {
  normal,       //!< Independent, normal.
  correlated,   //!< A common normal vector, and a third as much of each rank's own.
  heavy_tails,  //!< Cauchy, ended at 1e4 times the median.
  zeros,        //!< Nothing but zeros.
  sparse,       //!< Normal, 15 of 16 coordinates exactly zero.
  one_large,    //!< Tiny, and one coordinate of one rank 1e4 times as large.
  constant,     //!< One value everywhere.
  alternating,  //!< The same magnitude with alternating signs.
  opposite,     //!< Odd ranks hold what even ranks hold, negated.
  identical,    //!< All ranks hold the same.
  one_rank,     //!< All ranks but one hold zeros.
  denormal,     //!< Subnormal floats.
  tiny,         //!< Magnitudes near 1e-30.
  huge,         //!< Finite, up to the largest of the type.
  with_nan,     //!< Normal, with a NaN in one rank.
  with_inf,     //!< Normal, with an infinity in one rank.
};

inline constexpr std::array<std::string_view, 16> kind_names{"normal",
                                                             "correlated",
                                                             "heavy_tails",
                                                             "zeros",
                                                             "sparse",
                                                             "one_large",
                                                             "constant",
                                                             "alternating",
                                                             "opposite",
                                                             "identical",
                                                             "one_rank",
                                                             "denormal",
                                                             "tiny",
                                                             "huge",
                                                             "with_nan",
                                                             "with_inf"};

//! @brief Makes the gradients of all ranks.
//! @param largest  Of the elements' type.
[[nodiscard]] gradients make_gradients(
  gradient_kind kind, std::size_t coordinates, int world, float largest, number_source& source);

}  // namespace tersum::tests
