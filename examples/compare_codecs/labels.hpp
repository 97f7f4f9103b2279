// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Finds room for the names beside the dots of a plot.

#pragma once

#include <vector>

namespace compare_codecs {

//! @brief A rectangle in the coordinates of a picture, y downwards.
struct box {
  double left   = 0;
  double top    = 0;
  double right  = 0;
  double bottom = 0;
};

//! @brief A dot and the width of its name.
struct dot_label {
  double x     = 0;
  double y     = 0;
  double width = 0;
};

//! @brief Where a name goes: its box, and whether it is far enough from its dot to need a line.
struct label_place {
  box text{};
  bool on_right = true;
  bool leader   = false;
};

inline constexpr double label_height = 13;  //!< Of one line of text, in pixels.
inline constexpr double dot_radius   = 6;   //!< Of the largest mark.

//! @brief Gives each label the nearest free place right or left of its dot, from the top down.
//!
//! Greedy: a place once given stays. A label that finds no free place takes the one that overlaps
//! least. The answer is in the order of `dots` and depends on nothing else.
//!
//! @param area  Where labels may be.
[[nodiscard]] std::vector<label_place> place_labels(std::vector<dot_label> const& dots,
                                                    box const& area);

}  // namespace compare_codecs
