// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What svg.hpp declares.

#include "svg.hpp"
#include "text.hpp"

#include <array>
#include <cstdio>

namespace compare_codecs {

namespace {

constexpr auto baseline_color = "#d9480f";
constexpr auto codec_color    = "#1c5d99";

constexpr std::string_view style_sheet = R"(<style>
text { font: 11px 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #333 }
.title { font-size: 16px; font-weight: bold; fill: #111 }
.set { font-size: 13px; font-weight: bold; fill: #111 }
.middle { text-anchor: middle }
.end { text-anchor: end }
.name { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round; fill: #123 }
.baseline { fill: #d9480f; font-weight: bold }
.grid { stroke: #e6e6e6 }
.frame { stroke: #888; fill: none }
.guide { stroke: #d9480f; stroke-dasharray: 5 4; stroke-opacity: .6 }
.leader { stroke: #9ab; stroke-width: .8 }
</style>
)";

}  // namespace

std::string_view svg_style() { return style_sheet; }

std::string pixels(double value)
{
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string xml(std::string_view text)
{
  std::string escaped;
  for (char const c : to_utf8(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      default: escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return escaped;
}

double text_width(std::string_view text)
{
  return 6.3 * static_cast<double>(text.size());  // enough for DejaVu Sans, a wide font
}

void draw_line(
  std::ostream& out, double x1, double y1, double x2, double y2, std::string_view style)
{
  out << "<line x1='" << pixels(x1) << "' y1='" << pixels(y1) << "' x2='" << pixels(x2) << "' y2='"
      << pixels(y2) << "' " << style << "/>\n";
}

void draw_text(std::ostream& out, double x, double y, std::string_view style, std::string_view text)
{
  out << "<text x='" << pixels(x) << "' y='" << pixels(y) << "' " << style << '>' << text
      << "</text>\n";
}

void draw_mark(std::ostream& out, mark kind, double x, double y)
{
  auto const color = kind == mark::baseline ? baseline_color : codec_color;
  if (kind == mark::dot || kind == mark::feedback) {
    out << "<circle cx='" << pixels(x) << "' cy='" << pixels(y)
        << (kind == mark::dot ? "' r='4.5' fill='"
                              : "' r='6' stroke-width='1.5' fill='none' stroke='")
        << color << "'/>\n";
    return;
  }
  auto const shape =
    kind == mark::baseline ? "m0 -6.5 l6.5 6.5 -6.5 6.5 -6.5 -6.5z'" : "m0 -8 l5 0 -5 8 -5 -8z'";
  out << "<path d='M" << pixels(x) << ' ' << pixels(y) << ' ' << shape << " fill='" << color
      << "'/>\n";
}

}  // namespace compare_codecs
