// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What output.hpp declares.

#include "output.hpp"

#include <algorithm>
#include <cmath>
#include <compare_codecs/report.hpp>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <utility>

namespace advise {

namespace {

std::string number(char const* format, double value)
{
  if (!std::isfinite(value)) { return "any"; }
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string json_number(double value)
{
  return std::isfinite(value) ? number("%.6g", value) : "null";
}

std::vector<std::pair<prediction, candidate const*>> best_first(report const& what)
{
  std::vector<std::pair<prediction, candidate const*>> rows;
  for (candidate const& one : what.candidates) {
    rows.emplace_back(predict(one, what.candidates.front(), what.chosen.where), &one);
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto const& a, auto const& b) {
    return a.first.overlapped < b.first.overlapped;
  });
  return rows;
}

// As a pattern that matches nothing else.
std::string as_pattern(std::string_view name)
{
  std::string pattern;
  for (char const c : name) {
    if (c == '*' || c == '?' || c == '[') {
      pattern += {'[', c, ']'};
    } else {
      pattern += c;
    }
  }
  return pattern;
}

}  // namespace

void print_table(std::ostream& out, report const& what)
{
  auto const& where = what.chosen.where;
  out << coordinates_of(what.tensors) << " coordinates in " << what.tensors.size() << " tensors, "
      << where.ranks << " ranks, " << number("%.3g", 8e-9 * where.net.bandwidth) << " Gbit/s, "
      << number("%.3g", 1e6 * where.net.latency) << " us; a step computes "
      << number("%.1f", 1e3 * where.work.seconds()) << " ms\n";
  char line[256];
  std::snprintf(line,
                sizeof(line),
                "%-22s %6s %9s %9s %10s %9s %9s %7s %11s %9s\n",
                "codec",
                "bits",
                "MB sent",
                "coding ms",
                "network ms",
                "step ms",
                "overlap",
                "x fp16",
                "pays below",
                "error");
  out << line;
  double const fp16 = predict(what.candidates.front(), what.candidates.front(), where).overlapped;
  for (auto const& [said, one] : best_first(what)) {
    bool const reference = one == &what.candidates.front();
    std::snprintf(line,
                  sizeof(line),
                  "%-22s %6.2f %9.2f %9.2f %10.2f %9.2f %9.2f %7.2f %11s %9s\n",
                  one->name.c_str(),
                  8 * one->sent.bytes() / std::max(1.0, one->sent.coordinates),
                  1e-6 * said.traffic,
                  1e3 * said.coding,
                  1e3 * said.network,
                  1e3 * said.plain,
                  1e3 * said.overlapped,
                  fp16 / said.overlapped,
                  reference ? "-" : (number("%.3g", 8e-9 * said.break_even) + " Gbit/s").c_str(),
                  one->error ? number("%.2g", *one->error).c_str() : "-");
    out << line;
  }
}

bool write_json(std::filesystem::path const& file, report const& what)
{
  std::ofstream out{file, std::ios::binary};
  using compare_codecs::json_string;
  auto const& where = what.chosen.where;
  out << "{\"version\":1,\"ranks\":" << where.ranks
      << ",\"coordinates\":" << coordinates_of(what.tensors)
      << ",\"bandwidth\":" << json_number(where.net.bandwidth)
      << ",\"latency\":" << json_number(where.net.latency)
      << ",\"computing\":" << json_number(where.work.seconds()) << ",\"codecs\":[";
  bool first = true;
  for (auto const& [said, one] : best_first(what)) {
    out << (first ? "\n" : ",\n") << "{\"codec\":" << json_string(one->name)
        << ",\"bytes\":" << json_number(one->sent.bytes())
        << ",\"traffic\":" << json_number(said.traffic)
        << ",\"coding\":" << json_number(said.coding)
        << ",\"network\":" << json_number(said.network) << ",\"step\":" << json_number(said.plain)
        << ",\"overlapped_step\":" << json_number(said.overlapped)
        << ",\"break_even\":" << json_number(said.break_even)
        << ",\"error\":" << (one->error ? json_number(*one->error) : "null") << ",\"steps\":[";
    first = false;
    for (int k = -8; k <= 12; ++k) {  // a factor of 64 below the bandwidth to 2048 Gbit/s
      auto with          = where;
      with.net.bandwidth = std::exp2(k) / 8e-9;
      auto const at      = predict(*one, what.candidates.front(), with);
      out << (k == -8 ? "[" : ",[") << json_number(with.net.bandwidth) << ','
          << json_number(at.overlapped) << ']';
    }
    out << "]}";
  }
  out << "\n]}\n";
  out.close();
  return bool{out};
}

kinds_of_tensors split(std::vector<layer> const& tensors,
                       std::vector<std::vector<float>> const& gradients,
                       bool real)
{
  kinds_of_tensors kinds;
  for (layer const& one : tensors) {
    if (one.rows == 1 || one.columns == 1) {
      kinds.vectors.push_back(one);
      continue;
    }
    std::uint64_t empty = 0;
    for (std::uint64_t row = 0; real && row < one.rows; ++row) {
      auto const begin = static_cast<std::ptrdiff_t>(one.offset + row * one.columns);
      auto const end   = begin + static_cast<std::ptrdiff_t>(one.columns);
      empty += std::all_of(gradients.begin(), gradients.end(), [&](auto const& gradient) {
        return std::all_of(
          gradient.begin() + begin, gradient.begin() + end, [](float x) { return x == 0; });
      });
    }
    (2 * empty >= one.rows && real ? kinds.sparse : kinds.matrices).push_back(one);
  }
  return kinds;
}

bool write_configuration(std::filesystem::path const& file, configuration const& config)
{
  std::ofstream out{file, std::ios::binary};
  using compare_codecs::json_string;
  out << "{\"version\": 1,\n \"default\": " << json_string(config.standard) << ",\n \"rules\": [";
  for (auto const& one : config.rules) {
    out << (&one == &config.rules.front() ? "\n" : ",\n")
        << "   {\"pattern\": " << json_string(as_pattern(one.tensor))
        << ", \"codec\": " << json_string(one.codec) << '}';
  }
  out << "\n ]}\n";
  out.close();
  return bool{out};
}

}  // namespace advise
