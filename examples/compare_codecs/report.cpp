// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What report.hpp declares.

#include "report.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace compare_codecs {

namespace {

std::string print(char const* format, double value)
{
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string table_number(char const* format, double value)
{
  return std::isfinite(value) ? print(format, value) : "-";
}

// An error that is not finite is a result, and no missing one.
std::string print_lost(double value) { return std::isnan(value) ? "nan" : "inf"; }

// Equally wide whatever the size, so that a column can be read downwards.
std::string table_error(double value)
{
  if (!std::isfinite(value)) { return print_lost(value); }
  return value == 0 ? "0" : table_number(std::abs(value) >= 1e-3 ? "%.6f" : "%.2e", value);
}

std::string table_ratio(double time, double reference)
{
  return reference > 0 ? table_number("%.2f", time / reference) : "-";
}

constexpr std::size_t column_count = 10;
using table_row                    = std::array<std::string, column_count>;

table_row make_row(result const& one)
{
  auto const& m = one.measured;
  return {one.codec,
          table_number("%.3f", m.bits_per_coordinate),
          table_error(m.nmse),
          table_error(m.nmse_first_step),
          table_error(m.nmse_of_mean),
          table_number("%.3f", 100 * m.saturated_fraction),
          m.ranks_identical ? "yes" : "no",
          table_ratio(m.encode_ns, m.memcpy_ns),
          table_ratio(m.reduce_ns, m.memcpy_ns),
          table_ratio(m.decode_ns, m.memcpy_ns)};
}

std::string json_number(double value)
{
  return std::isfinite(value) ? print("%.9g", value) : "null";
}

}  // namespace

void print_table(std::ostream& out, std::span<result const> results, run_settings const& settings)
{
  if (results.empty()) { return; }
  std::vector<table_row> rows{{"codec",
                               "bits",
                               "nmse",
                               "first step",
                               "of mean",
                               "saturated %",
                               "ranks identical",
                               "encode x",
                               "reduce x",
                               "decode x"}};
  for (auto const& one : results) { rows.push_back(make_row(one)); }
  std::array<std::size_t, column_count> widths{};
  for (auto const& row : rows) {
    for (std::size_t c = 0; c < column_count; ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }

  auto const& first      = results.front();
  auto const plural      = [](int count) { return count == 1 ? "" : "s"; };
  std::string const unit = first.ranks == 1 ? " rank, " : " ranks, ";
  out << first.set << ": " << first.ranks << unit << first.coordinates
      << " coordinates, nmse of step " << settings.steps << "; times x memcpy ("
      << table_number("%.3g", first.measured.memcpy_ns * 1e-3) << " us, ";
  if (settings.cuda) {
    out << "cuda)\n";
  } else {
    out << settings.threads << " thread" << plural(settings.threads) << ")\n";
  }
  for (auto const& row : rows) {
    for (std::size_t c = 0; c < column_count; ++c) {
      std::string const padding(widths[c] - row[c].size(), ' ');
      out << (c == 0 ? row[c] + padding : "  " + padding + row[c]);
    }
    out << '\n';
  }
}

std::string json_string(std::string_view text)
{
  std::string escaped = "\"";
  for (char const c : to_utf8(text)) {
    auto const byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      escaped += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      escaped += c;
    }
  }
  return escaped + '"';
}

void write_json(std::ostream& out,
                std::string_view version,
                std::string_view device,
                std::span<result const> results)
{
  out << "{\"version\":" << json_string(version) << ",\"device\":" << json_string(device)
      << ",\"results\":[";
  for (auto const& one : results) {
    auto const& m = one.measured;
    out << (&one == &results.front() ? "\n" : ",\n")  //
        << "{\"set\":" << json_string(one.set)        //
        << ",\"codec\":" << json_string(one.codec)    //
        << ",\"ranks\":" << one.ranks                 //
        << ",\"coordinates\":" << one.coordinates     //
        << ",\"bits_per_coordinate\":" << json_number(m.bits_per_coordinate)
        << ",\"nmse\":" << json_number(m.nmse)
        << ",\"nmse_first_step\":" << json_number(m.nmse_first_step)
        << ",\"nmse_of_mean\":" << json_number(m.nmse_of_mean)
        << ",\"saturated_fraction\":" << json_number(m.saturated_fraction)
        << ",\"ranks_identical\":" << (m.ranks_identical ? "true" : "false")
        << ",\"encode_ns\":" << json_number(m.encode_ns)
        << ",\"reduce_ns\":" << json_number(m.reduce_ns)
        << ",\"decode_ns\":" << json_number(m.decode_ns)
        << ",\"memcpy_ns\":" << json_number(m.memcpy_ns) << '}';
  }
  out << "\n]}\n";
}

}  // namespace compare_codecs
