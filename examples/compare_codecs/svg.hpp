// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The few SVG elements that a plot is made of. Positions are pixels, y downwards.

#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace compare_codecs {

//! @brief What marks a result.
enum class mark {
  dot,       //!< A codec: a filled circle.
  feedback,  //!< A codec with error feedback: a ring, which leaves a dot inside it visible.
  baseline,  //!< What all are compared with: a diamond in its own colour.
  below      //!< An error too small for the axis: a triangle that points down at its position.
};

//! @brief The style sheet of the classes used below.
[[nodiscard]] std::string_view svg_style();

//! @brief The number as SVG writes it, to a tenth of a pixel.
[[nodiscard]] std::string pixels(double value);

//! @brief The text with everything escaped that XML gives a meaning.
[[nodiscard]] std::string xml(std::string_view text);

//! @brief About what common sans-serif fonts need for a label.
[[nodiscard]] double text_width(std::string_view text);

//! @param style  Attributes, such as class='grid'.
void draw_line(
  std::ostream& out, double x1, double y1, double x2, double y2, std::string_view style);

//! @param style  Attributes.
//! @param text   XML.
void draw_text(
  std::ostream& out, double x, double y, std::string_view style, std::string_view text);

void draw_mark(std::ostream& out, mark kind, double x, double y);

}  // namespace compare_codecs
