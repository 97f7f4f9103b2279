// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What gradient_sets.hpp declares.

#include "gradient_sets.hpp"
#include "layers.hpp"
#include "npy.hpp"
#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

namespace compare_codecs {

namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the front, without leading zeros.
std::string_view take_digits(std::string_view& text)
{
  auto const end   = std::find_if_not(text.begin(), text.end(), is_digit);
  auto const count = static_cast<std::size_t>(end - text.begin());
  auto digits      = text.substr(0, count);
  text.remove_prefix(count);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

struct worker_file {
  std::string set{};
  std::uint64_t worker = 0;
};

std::optional<worker_file> parse_file_name(std::string_view name)
{
  constexpr std::string_view mark = "_worker";
  constexpr std::string_view end  = ".npy";
  if (!name.ends_with(end)) { return std::nullopt; }
  name.remove_suffix(end.size());
  auto const at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0) { return std::nullopt; }
  auto const digits = name.substr(at + mark.size());
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
    return std::nullopt;
  }
  // A number too large for 64 bits is a hole in the numbering like any other large number.
  auto const worker = parse_number<std::uint64_t>(digits);
  return worker_file{std::string{name.substr(0, at)},
                     worker.value_or(std::numeric_limits<std::uint64_t>::max())};
}

struct natural_order {
  bool operator()(std::string_view a, std::string_view b) const { return natural_less(a, b); }
};

// Whether a name that does not parse was meant to: `s_worker-1.npy`, `s_worker1.5.npy`, `_worker0.npy`.
bool misses_worker(std::string_view name)
{
  constexpr std::string_view mark = "_worker";
  auto const at                   = name.rfind(mark);
  if (at == std::string_view::npos || !name.ends_with(".npy")) { return false; }
  auto const number    = name.substr(at + mark.size(), name.size() - at - mark.size() - 4);
  auto const is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return std::any_of(number.begin(), number.end(), is_digit) &&
         std::none_of(number.begin(), number.end(), is_letter);
}

using files_by_worker = std::map<std::uint64_t, fs::path>;
using files_by_set    = std::map<std::string, files_by_worker, natural_order>;

or_error<files_by_set> find_worker_files(fs::path const& folder)
{
  or_error<files_by_set> found;
  std::error_code error;
  for (fs::directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    auto const parsed = parse_file_name(at->path().filename().string());
    if (!parsed && misses_worker(at->path().filename().string())) {
      found.error =
        at->path().string() + " is no worker's: files are named <set>_worker<k>.npy, k from 0";
      return found;
    }
    if (!parsed) { continue; }
    auto const [other, is_new] = found.value[parsed->set].emplace(parsed->worker, at->path());
    if (!is_new) {
      auto const names = std::minmax({other->second.string(), at->path().string()});
      found.error      = names.first + " and " + names.second + " are the same worker";
      return found;
    }
  }
  if (error) { found.error = "cannot list " + folder.string() + ": " + error.message(); }
  return found;
}

// One line of layers.csv; the name may hold commas, as the numbers are taken from the right.
std::optional<layer> parse_layer(std::string_view line)
{
  std::uint64_t numbers[3] = {};
  for (int field = 2; field >= 0; --field) {
    auto const comma = line.rfind(',');
    if (comma == std::string_view::npos) { return std::nullopt; }
    auto const number = parse_number<std::uint64_t>(line.substr(comma + 1));
    if (!number) { return std::nullopt; }
    numbers[field] = *number;
    line           = line.substr(0, comma);
  }
  bool const overflows =
    numbers[1] != 0 && numbers[0] > std::numeric_limits<std::uint64_t>::max() / numbers[1];
  if (overflows || numbers[0] == 0 || numbers[1] == 0) { return std::nullopt; }
  return layer{std::string{line}, numbers[0], numbers[1], numbers[2]};
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b)
{
  auto left  = a;
  auto right = b;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left[0]) && is_digit(right[0])) {
      auto const x = take_digits(left);
      auto const y = take_digits(right);
      if (x.size() != y.size()) { return x.size() < y.size(); }
      if (x != y) { return x < y; }
    } else {
      if (left[0] != right[0]) { return left.substr(0, 1) < right.substr(0, 1); }
      left.remove_prefix(1);
      right.remove_prefix(1);
    }
  }
  if (left.empty() != right.empty()) { return left.empty(); }
  return a < b;  // equal but for leading zeros
}

or_error<std::vector<gradient_set>> list_gradient_sets(fs::path const& folder,
                                                       std::optional<int> ranks)
{
  auto found = find_worker_files(folder);
  if (!found) { return {.error = std::move(found.error)}; }
  if (found.value.empty()) {
    return {.error = folder.string() + " has no file named <set>_worker<k>.npy"};
  }
  or_error<std::vector<gradient_set>> sets;
  for (auto const& [name, by_worker] : found.value) {
    gradient_set set{.name = name};
    for (auto const& [worker, file] : by_worker) {
      if (worker != set.files.size()) {
        auto const lacking = name + "_worker" + std::to_string(set.files.size()) + ".npy";
        return {.error = (folder / lacking).string() + " is missing, as there is " +
                         file.filename().string()};
      }
      set.files.push_back(file);
    }
    if (ranks) {
      auto const wanted = static_cast<std::size_t>(*ranks);
      if (set.files.size() < wanted) {
        return {.error = "the set " + (folder / name).string() + " has " +
                         std::to_string(set.files.size()) + " worker files, --ranks asks for " +
                         std::to_string(wanted)};
      }
      set.files.resize(wanted);
    }
    sets.value.push_back(std::move(set));
  }
  return sets;
}

or_error<std::vector<std::vector<float>>> read_gradient_set(gradient_set const& set)
{
  or_error<std::vector<std::vector<float>>> gradients;
  for (auto const& file : set.files) {
    auto read = read_npy(file);
    if (!read) { return {.error = std::move(read.error)}; }
    auto const length = read.value.size();
    if (length == 0) { return {.error = file.string() + " has no coordinates"}; }
    auto const expected = gradients.value.empty() ? length : gradients.value[0].size();
    if (length != expected) {
      return {.error = file.string() + " has " + std::to_string(length) + " coordinates, " +
                       set.files[0].filename().string() + " has " + std::to_string(expected)};
    }
    gradients.value.push_back(std::move(read.value));
  }
  return gradients;
}

or_error<std::vector<layer>> read_layers(fs::path const& folder, std::uint64_t coordinates)
{
  auto const file = folder / "layers.csv";
  std::error_code error;
  if (!fs::exists(fs::status(file, error))) { return {}; }
  auto layers = read_layers_file(file);
  if (!layers) { return layers; }
  auto const& last = layers.value.back();
  if (auto const end = last.offset + last.rows * last.columns; end != coordinates) {
    return {.error = file.string() + " covers " + std::to_string(end) +
                     " coordinates, a gradient has " + std::to_string(coordinates)};
  }
  return layers;
}

or_error<std::vector<layer>> read_layers_file(fs::path const& file)
{
  auto const name = file.string();
  std::ifstream in{file};
  if (!in) { return {.error = name + " cannot be opened: " + std::strerror(errno)}; }

  or_error<std::vector<layer>> layers;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.ends_with('\r')) { line.pop_back(); }
    if (number == 1) {
      if (line != "name,rows,columns,offset") {
        return {.error = name + " does not start with the line name,rows,columns,offset"};
      }
    } else if (!line.empty()) {
      auto parsed = parse_layer(line);
      if (!parsed) {
        return {.error = name + " line " + std::to_string(number) +
                         " is not a name, positive rows and columns, and an offset"};
      }
      layers.value.push_back(std::move(*parsed));
    }
  }
  if (!in.eof() || layers.value.empty()) { return {.error = name + " has no layers"}; }

  std::stable_sort(layers.value.begin(), layers.value.end(), [](auto const& a, auto const& b) {
    return a.offset < b.offset;
  });
  std::uint64_t end = 0;
  for (auto const& one : layers.value) {
    auto const size = one.rows * one.columns;
    if (one.offset != end || size > std::numeric_limits<std::uint64_t>::max() - end) {
      return {.error = name + ": layer " + in_quotes(one.name) + " at offset " +
                       std::to_string(one.offset) + " leaves a gap or overlaps another"};
    }
    end += size;
  }
  return layers;
}

}  // namespace compare_codecs
