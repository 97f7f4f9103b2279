// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What options.hpp declares.

#include "options.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

namespace compare_codecs {

namespace {

constexpr std::string_view usage_text =
  R"(usage: compare_codecs --gradients DIR [options]

Sends the gradients of DIR/<set>_worker<k>.npy (1-D, float32 or float16, one
file for each rank) through an all-reduce with each codec, and prints bits,
error and cost, and what an adaptive optimizer makes of it.

  --gradients DIR    where the files lie; layers.csv in it names the matrices
  --codecs all|A,B   which codecs to run (all that can: without layers.csv none
                     that works on matrices, and on two levels none that has
                     not several hosts)
  --ranks N          use the first N files of each set (every file)
  --steps S          all-reduces in a row, with fresh seeds (10)
  --threads T        threads of the CPU (1)
  --device cpu|cuda  where the codecs run (cpu; hosts*_ and served_ there only)
  --repeat R         times are the best of R (3)
  --json FILE        write the results as JSON, for table.py
  --list             name the codecs and stop
  --help             print this and stop

Errors are |mean - estimate|^2 / |mean|^2: of the mean itself (nmse), and of
Adam's update, which divides each coordinate by the root of its second moment.
They are of the last step; "of mean" are those of the average of all steps'
estimates. Zeros are coordinates that became zero although their mean is not;
those of the average are what no step has sent. The worst tensor of layers.csv
has the largest share of those, and the JSON has the shares of all. For a
training with an adaptive optimizer look at the update and at the zeros of the
average of ten steps, about as many as Adam averages, rather than at nmse. One
rank alone shows no second moments, and no update (-).

Exit status: 0 if every codec ran, 1 if anything failed or an error is not
finite, 2 for wrong usage.
)";

// Every option that takes a number, with the largest that makes sense.
struct number_option {
  std::string_view name;
  int most;
};

constexpr number_option number_options[] = {
  {"--ranks", 65536}, {"--steps", 1000000}, {"--threads", 1024}, {"--repeat", 1000000}};

constexpr std::string_view text_options[] = {"--gradients", "--codecs", "--device", "--json"};

// A sentence if the value is wrong.
std::string set_number(options& result, std::string_view name, int most, std::string_view value)
{
  auto const number = parse_number<unsigned>(value);
  if (!number || *number < 1 || *number > static_cast<unsigned>(most)) {
    return std::string{name} + " needs a whole number from 1 to " + std::to_string(most) +
           ", not " + in_quotes(value);
  }
  auto const accepted = static_cast<int>(*number);
  if (name == "--ranks") {
    result.ranks = accepted;
  } else if (name == "--steps") {
    result.steps = accepted;
  } else if (name == "--threads") {
    result.threads = accepted;
  } else {
    result.repeat = accepted;
  }
  return {};
}

std::string set_codecs(options& result, std::string_view value)
{
  result.codecs.clear();
  for (std::size_t from = 0; from <= value.size();) {
    auto const to   = std::min(value.find(',', from), value.size());
    auto const name = value.substr(from, to - from);
    if (name.empty()) { return "--codecs has an empty name in " + in_quotes(value); }
    result.codecs.emplace_back(name);
    from = to + 1;
  }
  return {};
}

std::string set_text(options& result, std::string_view name, std::string_view value)
{
  if (value.empty()) { return std::string{name} + " needs a value"; }
  if (name == "--gradients") {
    result.gradients = value;
  } else if (name == "--json") {
    result.json = value;
  } else if (name == "--codecs") {
    return set_codecs(result, value);
  } else if (value != "cpu" && value != "cuda") {
    return "--device is cpu or cuda, not " + in_quotes(value);
  } else {
    result.cuda = value == "cuda";
  }
  return {};
}

// Letters to insert, delete or replace to turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b)
{
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal            = row[j + 1];
      row[j + 1]          = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string describe_unknown_codec(std::string_view name, std::span<codec_entry const> available)
{
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (auto const& entry : available) {
    auto const distance = edit_distance(name, entry.name);
    if (distance <= std::max<std::size_t>(2, name.size() / 3)) {
      near.emplace_back(distance, entry.name);
    }
  }
  std::stable_sort(
    near.begin(), near.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
  near.resize(std::min<std::size_t>(near.size(), 4));
  std::string sentence = "there is no codec " + in_quotes(name);
  for (auto const& candidate : near) {
    sentence += &candidate == &near.front() ? "; similar: " : ", ";
    sentence += candidate.second;
  }
  return sentence + "; --list names them all";
}

}  // namespace

std::string_view usage() { return usage_text; }

or_error<options> parse_options(std::span<char const* const> arguments)
{
  options result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view const argument = arguments[i];
    auto const equal                = argument.find('=');
    auto const name                 = argument.substr(0, equal);

    bool const is_flag   = name == "--help" || name == "--list";
    auto const number    = std::find_if(std::begin(number_options),
                                     std::end(number_options),
                                     [name](auto const& option) { return option.name == name; });
    bool const is_number = number != std::end(number_options);
    bool const is_text =
      std::find(std::begin(text_options), std::end(text_options), name) != std::end(text_options);
    if (!is_flag && !is_number && !is_text) {
      bool const dashed = name.starts_with("-");
      return {.error = (dashed ? "there is no option " : "unexpected argument ") + in_quotes(name)};
    }
    if (is_flag) {
      if (equal != std::string_view::npos) {
        return {.error = std::string{name} + " takes no value"};
      }
      (name == "--help" ? result.help : result.list) = true;
      if (result.help) { return {.value = std::move(result)}; }
      continue;
    }
    std::string_view value;
    if (equal != std::string_view::npos) {
      value = argument.substr(equal + 1);
    } else if (i + 1 < arguments.size() && !std::string_view{arguments[i + 1]}.starts_with("--")) {
      value = arguments[++i];
    } else {
      return {.error = std::string{name} + " needs a value"};
    }
    auto error =
      is_number ? set_number(result, name, number->most, value) : set_text(result, name, value);
    if (!error.empty()) { return {.error = std::move(error)}; }
  }
  if (result.gradients.empty() && !result.list) { return {.error = "--gradients DIR is missing"}; }
  return {.value = std::move(result)};
}

bool names_all(std::span<std::string const> wanted)
{
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), "all") != wanted.end();
}

or_error<std::vector<std::string_view>> choose_codecs(std::span<std::string const> wanted,
                                                      std::span<codec_entry const> available)
{
  or_error<std::vector<std::string_view>> chosen;
  if (names_all(wanted)) {
    for (auto const& entry : available) { chosen.value.push_back(entry.name); }
  }
  for (auto const& name : wanted) {
    if (name == "all") { continue; }
    auto const entry = std::find_if(
      available.begin(), available.end(), [&name](auto const& one) { return one.name == name; });
    if (entry == available.end()) { return {.error = describe_unknown_codec(name, available)}; }
    bool const is_new =
      std::find(chosen.value.begin(), chosen.value.end(), name) == chosen.value.end();
    if (is_new) { chosen.value.push_back(entry->name); }
  }
  return chosen;
}

}  // namespace compare_codecs
