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

// What a codec does not have is NaN.
std::string table_known(double value) { return std::isnan(value) ? "-" : table_error(value); }

// Of a foreign name the end, which tells tensors apart better than the beginning.
std::string table_name(std::string_view name)
{
  constexpr std::size_t longest = 40;
  constexpr std::string_view cut{"..."};
  std::string shown{name};
  if (name.size() > longest) { shown.replace(0, name.size() - longest + cut.size(), cut); }
  for (char& c : shown) { c = c >= ' ' && c <= '~' ? c : '?'; }
  return shown;
}

using table_row = std::vector<std::string>;

table_row cost_row(result const& one)
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

table_row update_row(result const& one)
{
  auto const& m    = one.measured;
  auto const worst = std::max_element(
    m.zeros_by_tensor.begin(), m.zeros_by_tensor.end(), [](auto const& a, auto const& b) {
      return a.fraction_of_mean < b.fraction_of_mean;
    });
  bool const any = worst != m.zeros_by_tensor.end() && worst->fraction_of_mean > 0;
  return {one.codec,
          table_number("%.3f", m.bits_per_coordinate),
          table_known(m.update_error),
          table_known(m.update_error_of_mean),
          table_number("%.2f", 100 * m.zeros_fraction),
          table_number("%.2f", 100 * m.zeros_fraction_of_mean),
          any ? table_number("%.2f", 100 * worst->fraction_of_mean) : "-",
          any ? table_name(worst->tensor) : "-"};
}

// Columns to the right but for the first, and for the last if it is text.
void print_rows(std::ostream& out, std::vector<table_row> const& rows, bool ends_in_text)
{
  std::vector<std::size_t> widths(rows[0].size());
  for (auto const& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) { widths[c] = std::max(widths[c], row[c].size()); }
  }
  for (auto const& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      bool const last = ends_in_text && c + 1 == row.size();
      std::string const padding(last ? 0 : widths[c] - row[c].size(), ' ');
      out << (c == 0 ? row[c] + padding : "  " + padding + row[c]);
    }
    out << '\n';
  }
}

std::string json_number(double value)
{
  return std::isfinite(value) ? print("%.9g", value) : "null";
}

}  // namespace

void print_table(std::ostream& out, std::span<result const> results, run_settings const& settings)
{
  if (results.empty()) { return; }
  std::vector<table_row> costs{{"codec",
                                "bits",
                                "nmse",
                                "first step",
                                "of mean",
                                "saturated %",
                                "identical",
                                "encode x",
                                "reduce x",
                                "decode x"}};
  std::vector<table_row> updates{
    {"codec", "bits", "update", "of mean", "zeros %", "of mean", "worst %", "worst tensor"}};
  for (auto const& one : results) {
    costs.push_back(cost_row(one));
    updates.push_back(update_row(one));
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
  print_rows(out, costs, false);
  out << '\n'
      << first.set << ": error of Adam's update, and coordinates that became zeros, of step "
      << settings.steps << " and of the mean of all steps\n";
  print_rows(out, updates, true);
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

std::string json_tensors(std::span<tensor_zeros const> tensors)
{
  std::string text = "[";
  for (auto const& one : tensors) {
    if (text.size() > 1) { text += ','; }
    text += "{\"tensor\":" + json_string(one.tensor) +
            ",\"zeros_fraction\":" + json_number(one.fraction) +
            ",\"zeros_fraction_of_mean\":" + json_number(one.fraction_of_mean) + '}';
  }
  return text + ']';
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
        << ",\"bits_pulled\":" << json_number(m.bits_pulled) << ",\"nmse\":" << json_number(m.nmse)
        << ",\"nmse_first_step\":" << json_number(m.nmse_first_step)
        << ",\"nmse_of_mean\":" << json_number(m.nmse_of_mean)
        << ",\"update_error\":" << json_number(m.update_error)
        << ",\"update_error_of_mean\":" << json_number(m.update_error_of_mean)
        << ",\"zeros_fraction\":" << json_number(m.zeros_fraction)
        << ",\"zeros_fraction_of_mean\":" << json_number(m.zeros_fraction_of_mean)
        << ",\"zeros_by_tensor\":" << json_tensors(m.zeros_by_tensor)
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
