// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plot.hpp declares.

#include "labels.hpp"
#include "plot.hpp"
#include "svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace compare_codecs {

namespace {

constexpr double panel_width  = 620;
constexpr double panel_height = 560;
constexpr double title_height = 44;
constexpr double foot_height  = 34;
constexpr box margins{.left = 72, .top = 40, .right = 20, .bottom = 56};
constexpr std::string_view baseline = "fp16";
bool is_drawable(result const& one)
{
  return one.measured.bits_per_coordinate > 0 && std::isfinite(one.measured.bits_per_coordinate) &&
         one.measured.nmse >= 0 && std::isfinite(one.measured.nmse);
}

// The part of both axes to show: log2 of bits, log10 of the error.
struct axes {
  double bits_low   = 1;
  double bits_high  = 5;
  double error_low  = -8;
  double error_high = 0;
};

axes choose_axes(std::span<result const> results)
{
  constexpr double none = std::numeric_limits<double>::infinity();
  double bits_low = none, bits_high = -none, low = none, high = -none, marked = none;
  for (auto const& one : results) {
    if (!is_drawable(one)) { continue; }
    auto const bits  = std::log2(one.measured.bits_per_coordinate);
    auto const error = std::log10(one.measured.nmse);  // -infinity for a perfect result
    bits_low         = std::min(bits_low, bits);
    bits_high        = std::max(bits_high, bits);
    if (!std::isfinite(error)) { continue; }
    low  = std::min(low, error);
    high = std::max(high, error);
    if (one.codec == baseline) { marked = std::min(marked, error); }
  }
  axes chosen;
  if (bits_low <= bits_high) {
    chosen.bits_low  = bits_low - 0.8;
    chosen.bits_high = bits_high + 0.8;
  }
  if (low <= high) {
    chosen.error_high = std::ceil(high + 0.1);
    chosen.error_low  = std::isfinite(marked) ? std::floor(marked) - 1 : std::floor(low - 0.1);
    chosen.error_low  = std::clamp(chosen.error_low, chosen.error_high - 16, chosen.error_high - 1);
  }
  return chosen;
}

// One set: its results, its place in the picture, and the axes of all panels.
struct panel {
  std::span<result const> results;
  box area;
  axes shown;

  double x(double log_bits) const
  {
    auto const share = (log_bits - shown.bits_low) / (shown.bits_high - shown.bits_low);
    return area.left + share * (area.right - area.left);
  }

  double y(double log_error) const
  {
    auto const share = (log_error - shown.error_low) / (shown.error_high - shown.error_low);
    return area.bottom - share * (area.bottom - area.top);
  }
};

void draw_frame(std::ostream& out, panel const& at)
{
  auto const& area  = at.area;
  auto const middle = (area.left + area.right) / 2;
  auto const& first = at.results.front();
  for (auto bits = std::ceil(at.shown.bits_low); bits <= at.shown.bits_high; ++bits) {
    std::array<char, 32> label{};
    std::snprintf(label.data(), label.size(), "%g", std::exp2(bits));
    draw_line(out, at.x(bits), area.top, at.x(bits), area.bottom, "class='grid'");
    draw_text(out, at.x(bits), area.bottom + 17, "class='middle'", label.data());
  }
  for (auto error = at.shown.error_low; error <= at.shown.error_high; ++error) {
    auto const label =
      "10<tspan dy='-5' font-size='8.5'>" + std::to_string(std::lround(error)) + "</tspan>";
    draw_line(out, area.left, at.y(error), area.right, at.y(error), "class='grid'");
    draw_text(out, area.left - 8, at.y(error) + 4, "class='end'", label);
  }
  out << "<rect x='" << pixels(area.left) << "' y='" << pixels(area.top) << "' width='"
      << pixels(area.right - area.left) << "' height='" << pixels(area.bottom - area.top)
      << "' class='frame'/>\n";
  draw_text(out, area.left, area.top - 12, "class='set'", xml(first.set));
  draw_text(out,
            area.right,
            area.top - 12,
            "class='end'",
            std::to_string(first.ranks) + (first.ranks == 1 ? " rank, " : " ranks, ") +
              std::to_string(first.coordinates) + " coordinates");
  draw_text(out, middle, area.bottom + 40, "class='middle'", "bits per coordinate");
  auto const center = (area.top + area.bottom) / 2;
  draw_text(out,
            0,
            0,
            "class='middle' transform='translate(" + pixels(area.left - 48) + ' ' + pixels(center) +
              ") rotate(-90)'",
            "NMSE of the last step");
}

void draw_panel(std::ostream& out, panel const& at)
{
  draw_frame(out, at);
  struct drawn {
    mark kind;
    std::string name;
  };
  std::vector<drawn> marks;
  std::vector<dot_label> dots;
  for (auto const& one : at.results) {
    if (!is_drawable(one)) { continue; }
    auto const error = std::log10(one.measured.nmse);
    bool const below = error < at.shown.error_low;
    auto const kind  = one.codec == baseline        ? mark::baseline
                       : below                      ? mark::below
                       : one.codec.ends_with("_ef") ? mark::feedback
                                                    : mark::dot;
    std::array<char, 32> value{};
    if (below) { std::snprintf(value.data(), value.size(), " (%.1g)", one.measured.nmse); }
    marks.push_back({kind, one.codec + value.data()});
    auto const y = below ? at.area.bottom - 8 : at.y(error);
    dots.push_back(
      {at.x(std::log2(one.measured.bits_per_coordinate)), y, text_width(marks.back().name)});
    if (kind == mark::baseline) {
      draw_line(out, at.area.left, y, at.area.right, y, "class='guide'");
      draw_line(out, dots.back().x, at.area.top, dots.back().x, at.area.bottom, "class='guide'");
    }
  }
  auto const places = place_labels(dots, at.area);
  for (std::size_t i = 0; i < dots.size(); ++i) {
    auto const& text  = places[i].text;
    auto const near_x = places[i].on_right ? text.left - 2 : text.right + 2;
    auto const middle = (text.top + text.bottom) / 2;
    if (places[i].leader) {
      draw_line(out, dots[i].x, dots[i].y, near_x, middle, "class='leader'");
    }
  }
  for (std::size_t i = 0; i < dots.size(); ++i) {
    auto const& [text, on_right, leader] = places[i];
    bool const below                     = marks[i].kind == mark::below;
    draw_mark(out, marks[i].kind, dots[i].x, dots[i].y + (below ? 8 : 0));
    std::string const style =
      marks[i].kind == mark::baseline ? "class='name baseline" : "class='name";
    draw_text(out,
              on_right ? text.left : text.right,
              text.bottom - 2.5,
              style + (on_right ? "'" : " end'"),
              xml(marks[i].name));
  }
}

void draw_legend(std::ostream& out, double y)
{
  struct item {
    mark kind;
    std::string_view text;
  };
  constexpr item items[] = {{mark::dot, "codec"},
                            {mark::feedback, "with feedback (_ef)"},
                            {mark::baseline, "fp16, the baseline"},
                            {mark::below, "error below the axis"}};
  double x               = margins.left + 6;
  for (auto const& [kind, text] : items) {
    draw_mark(out, kind, x, y - 4 + (kind == mark::below ? 4 : 0));
    draw_text(out, x + 12, y, "class='start'", text);
    x += text_width(text) + 34;
  }
}

}  // namespace

void write_svg(std::ostream& out, std::span<result const> results)
{
  std::vector<std::span<result const>> sets;
  for (std::size_t from = 0, to = 0; from < results.size(); from = to) {
    while (to < results.size() && results[to].set == results[from].set) { ++to; }
    sets.push_back(results.subspan(from, to - from));
  }
  auto const columns = std::clamp<std::size_t>(sets.size(), 1, 2);
  auto const rows    = (sets.size() + columns - 1) / columns;
  auto const width   = panel_width * static_cast<double>(columns);
  auto const height  = title_height + panel_height * static_cast<double>(rows) + foot_height;
  auto const shown   = choose_axes(results);

  out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << pixels(width) << "' height='"
      << pixels(height) << "' viewBox='0 0 " << pixels(width) << ' ' << pixels(height) << "'>\n"
      << "<title>Error of the compressed mean against bits</title>\n"
      << svg_style() << "<rect width='100%' height='100%' fill='#fff'/>\n";
  draw_text(out, margins.left, 28, "class='title'", "Error of the compressed mean against bits");
  for (std::size_t i = 0; i < sets.size(); ++i) {
    auto const left = panel_width * static_cast<double>(i % columns);
    auto const top  = title_height + panel_height * static_cast<double>(i / columns);
    draw_panel(out,
               {.results = sets[i],
                .area    = {.left   = left + margins.left,
                            .top    = top + margins.top,
                            .right  = left + panel_width - margins.right,
                            .bottom = top + panel_height - margins.bottom},
                .shown   = shown});
  }
  draw_legend(out, height - 16);
  out << "</svg>\n";
}

}  // namespace compare_codecs
