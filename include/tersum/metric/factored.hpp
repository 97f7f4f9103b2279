// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Errors count in units of a scale for each coordinate, which is a product of one of its row and one of its column.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/metric/detail/line_piece.hpp>

#include <cmath>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief The library keeps a root mean square of each row, of each column and of the whole of each matrix, from the means that it decoded.
//!
//! The scale of a coordinate is row * column / whole, the second moment of Adafactor (Shazeer & Stern, ICML'18), so the state has rows +
//! columns + 1 floats of each tensor. Of a vector every coordinate is a row, so that its scales are its own. Before a tensor's first mean
//! that is not zero its scales are 1. This mean's own mean square, of the whole tensor, is what all lines start from; it counts as
//! `prior` - 1 means of one coordinate, so that long lines soon forget it. Every mean after that counts as one, and old ones are
//! forgotten in about `horizon` steps. Every rank decodes the same means, so all hold the same scales. A step in which a rank's
//! gradient is not finite leaves them as they were.
//!
//! Kernels and CPU make a scale of its lines where they load or store the coordinate. Before the exchange reads the gradient, columns
//! are divided by the whole into the workspace, and 32 bytes for each chunk say where it lies among rows and columns. The lines follow
//! the means in one more read of what was decoded, two where a matrix has few columns; `kept_diagonal` needs none.
//!
//! Under `low_rank_codec` rows and columns multiply the elements of factors instead, so no scale of a coordinate is made, and `floor` raises
//! rows to a part of the largest row and columns to one of the largest column.
struct kept_factors {
  static constexpr bool scaled   = true;
  static constexpr bool factored = true;

  float floor   = 0x1p-8f;  //!< As of `given_diagonal`.
  float prior   = 8.0f;     //!< Coordinates times steps, 1 or above.
  float horizon = 100.0f;   //!< Steps, 1 or above; Adam's beta_2 is 1 - 1 / horizon.

  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float least(Arithmetic const&, float largest) const
  {
    return Arithmetic::multiply(floor, largest);
  }
  //! @brief The root mean square of a line after one more mean: sqrt(k + (square - k) / n) with k = before^2 and n = min(t + 1 +
  //! (prior - 1) / length, horizon). The products are exact in double, so that no contraction changes a bit.
  //! @param square  The mean of the squares of the line's decoded coordinates.
  //! @param before  The root mean square that the line had.
  //! @param length  The coordinates of the line, 1 or above.
  //! @param steps   Exchanges before this one.
  [[nodiscard]] TERSUM_HOST_DEVICE float follow(double square,
                                                float before,
                                                std::uint64_t length,
                                                std::uint64_t steps) const
  {
    double const kept   = static_cast<double>(before);
    double const extra  = (static_cast<double>(prior) - 1) / static_cast<double>(length);
    double const all    = static_cast<double>(steps) + 1 + extra;
    double const n      = all < static_cast<double>(horizon) ? all : static_cast<double>(horizon);
    double const change = detail::add_product(-kept, kept, square) / n;
    return static_cast<float>(::sqrt(detail::add_product(kept, kept, change)));
  }
  //! What the root mean square of a row is multiplied by, in a column, to be the scale of a coordinate; from the root mean squares of
  //! the column and of the tensor.
  template <class Arithmetic>
  [[nodiscard]] TERSUM_HOST_DEVICE float share(Arithmetic const&, float column, float whole) const
  {
    return Arithmetic::divide(column, whole);
  }
};

static_assert(metric<kept_factors>, "tersum: must model tersum::metric");

}  // namespace tersum::inline v0
