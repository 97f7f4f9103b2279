// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! compare_codecs: bits, error and cost of every codec on the gradients in a folder.

#include "codecs.hpp"
#include "gradient_sets.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace compare_codecs {

namespace {

namespace fs = std::filesystem;

int misused(std::string_view sentence)
{
  std::cerr << "compare_codecs: " << sentence << '\n' << usage();
  return 2;
}

int fail(std::string_view sentence)
{
  std::cerr << "compare_codecs: " << sentence << '\n';
  return 1;
}

// Output that is lost (a full disk, a closed pipe) is a failure, not a detail.
int finish(int status)
{
  std::cout.flush();
  return std::cout ? status : fail("cannot write to standard output");
}

void print_codecs(std::span<codec_entry const> codecs)
{
  std::size_t width = 0;
  for (auto const& codec : codecs) { width = std::max(width, codec.name.size()); }
  for (auto const& codec : codecs) {
    std::cout << codec.name << std::string(width + 2 - codec.name.size(), ' ') << codec.summary
              << '\n';
  }
}

// Asked before the work rather than after it; nothing is created or changed.
std::string output_problem(std::optional<fs::path> const& file)
{
  if (!file) { return {}; }
  std::error_code error;
  bool const exists = fs::exists(*file, error);
  auto const folder = file->has_parent_path() ? file->parent_path() : fs::path{"."};
  if (fs::is_directory(*file, error)) { return file->string() + " is a folder"; }
  if (access((exists ? *file : folder).c_str(), W_OK) == 0) { return {}; }
  return "cannot write " + file->string() + ": " + std::strerror(errno);
}

// Empty unless the results would take the place of what they are computed from.
std::string overwritten_input(options const& chosen, std::vector<gradient_set> const& sets)
{
  if (!chosen.json) { return {}; }
  std::vector<fs::path> inputs{chosen.gradients / "layers.csv"};
  for (auto const& set : sets) { inputs.insert(inputs.end(), set.files.begin(), set.files.end()); }
  std::error_code error;
  for (auto const& input : inputs) {
    if (fs::equivalent(*chosen.json, input, error)) {
      return "--json would overwrite the input " + input.string();
    }
  }
  return {};
}

std::string write_results(options const& chosen, std::span<result const> results)
{
  if (!chosen.json) { return {}; }
  std::ofstream out{*chosen.json, std::ios::binary};
  write_json(out, library_version(), chosen.cuda ? "cuda" : "cpu", results);
  out.close();
  return out ? "" : "cannot write " + chosen.json->string() + ": " + std::strerror(errno);
}

struct loaded_set {
  std::vector<std::vector<float>> gradients{};
  std::vector<layer> layers{};
};

or_error<loaded_set> load(options const& chosen, gradient_set const& set)
{
  auto gradients = read_gradient_set(set);
  if (!gradients) { return {.error = gradients.error}; }
  auto layers = read_layers(chosen.gradients, gradients.value[0].size());
  if (!layers) { return {.error = layers.error}; }
  return {.value = {std::move(gradients.value), std::move(layers.value)}};
}

// Whether a codec can run here at all. Without a name for it, one that cannot is left out.
bool suits(std::string_view codec, run_settings const& settings, bool has_layers)
{
  auto const all = list_exchanges();
  auto const& one =
    *std::find_if(all.begin(), all.end(), [&](auto const& entry) { return entry.name == codec; });
  return (has_layers || !one.needs_layers) && !(one.cpu_only && settings.cuda);
}

// Runs and prints everything; the sets are read one at a time as they may be large.
int compare(options const& chosen,
            std::vector<gradient_set> const& sets,
            std::vector<std::string_view> const& codecs,
            std::vector<result>& results)
{
  int status = 0;
  progress_line progress;
  std::size_t runs_done = 0;
  for (auto const& set : sets) {
    auto const loaded = load(chosen, set);
    if (!loaded) {
      progress.clear();
      return fail(loaded.error);
    }
    auto const& [gradients, layers] = loaded.value;
    run_settings const settings{.ranks   = static_cast<int>(gradients.size()),
                                .steps   = chosen.steps,
                                .threads = chosen.threads,
                                .cuda    = chosen.cuda,
                                .repeat  = chosen.repeat};
    auto const first = results.size();
    for (auto const codec : codecs) {
      std::string line{"["};
      line += std::to_string(++runs_done) + "/" + std::to_string(sets.size() * codecs.size());
      line += "] " + set.name + " " + std::string{codec};
      progress.show(line);
      if (names_all(chosen.codecs) && !suits(codec, settings, !layers.empty())) { continue; }
      auto const outcome = run_codec(codec, gradients, layers, settings);
      if (!outcome) {
        progress.clear();
        status = fail(set.name + ", " + std::string{codec} + ": " + outcome.error);
        continue;  // the other codecs may well run
      }
      auto const& m = outcome.value;
      for (double const error : {m.nmse, m.nmse_first_step, m.nmse_of_mean}) {
        if (std::isfinite(error)) { continue; }
        progress.clear();
        status = fail(set.name + ", " + std::string{codec} + ": an error is not finite");
        break;
      }
      results.push_back(
        {set.name, std::string{codec}, settings.ranks, gradients[0].size(), outcome.value});
    }
    progress.clear();
    if (first > 0 && first < results.size()) { std::cout << '\n'; }
    print_table(std::cout, std::span{results}.subspan(first), settings);
    std::cout.flush();
  }
  return status;
}

int run(std::span<char const* const> arguments)
{
  auto const parsed = parse_options(arguments);
  if (!parsed) { return misused(parsed.error); }
  auto const& chosen = parsed.value;
  if (chosen.help) {
    std::cout << usage();
    return finish(0);
  }
  if (chosen.list) {
    print_codecs(list_exchanges());
    return finish(0);
  }

  auto const codecs = choose_codecs(chosen.codecs, list_exchanges());
  if (!codecs) { return misused(codecs.error); }
  for (auto const& problem : {device_problem(chosen.cuda), output_problem(chosen.json)}) {
    if (!problem.empty()) { return fail(problem); }
  }
  auto const sets = list_gradient_sets(chosen.gradients, chosen.ranks);
  if (!sets) { return fail(sets.error); }
  if (auto const problem = overwritten_input(chosen, sets.value); !problem.empty()) {
    return fail(problem);
  }
  // A bad file in the last set is better known before the first set has run.
  for (auto const& set : sets.value) {
    if (auto const loaded = load(chosen, set); !loaded) { return fail(loaded.error); }
  }

  std::vector<result> results;
  auto const status = compare(chosen, sets.value, codecs.value, results);
  if (results.empty()) { return finish(status); }
  auto const problem = write_results(chosen, results);
  return finish(problem.empty() ? status : fail(problem));
}

}  // namespace

}  // namespace compare_codecs

int main(int count, char** values)
{
  std::vector<char const*> const arguments(values + std::min(count, 1), values + count);
  try {
    return compare_codecs::run(arguments);
  } catch (std::bad_alloc const&) {
    return compare_codecs::fail("there is not enough memory");
  } catch (std::exception const& error) {
    return compare_codecs::fail(error.what());
  }
}
