// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! advise: does compression pay for this gradient on this network, and which codec? docs/advisor.md has the model.

#include "advice.hpp"
#include "known_codecs.hpp"
#include "options.hpp"
#include "output.hpp"
#include "probe.hpp"
#include "rates.hpp"
#include "tensors.hpp"

#include <algorithm>
#include <compare_codecs/gradient_sets.hpp>
#include <cstddef>
#include <exception>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace advise {

namespace {

int fail(std::string const& sentence)
{
  std::cerr << "advise: " << sentence << '\n';
  return 1;
}

// As much of the tensors as is measured in a moment: whole ones from the first on, and rows of the one that is too large.
std::vector<layer> sample_of(std::vector<layer> const& tensors)
{
  constexpr std::uint64_t most = 1 << 20;
  std::vector<layer> sample;
  std::uint64_t taken = 0;
  for (layer one : tensors) {
    if (one.columns > most) { one.columns = most; }
    one.rows = std::min(one.rows, (most - taken) / one.columns);
    if (one.rows == 0) { continue; }
    one.offset = taken;
    taken += one.rows * one.columns;
    sample.push_back(std::move(one));
  }
  return sample;
}

// Two ranks' normal numbers, for costs alone.
std::vector<std::vector<float>> random_gradients(std::uint64_t size)
{
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> gradients(2, std::vector<float>(size));
  for (auto& gradient : gradients) {
    std::generate(gradient.begin(), gradient.end(), [&] { return normal(random); });
  }
  return gradients;
}

// The coordinates of some tensors, one after the other.
std::vector<std::vector<float>> part_of(std::vector<std::vector<float>> const& gradients,
                                        std::vector<layer>& tensors)
{
  std::vector<std::vector<float>> parts(gradients.size());
  for (layer& one : tensors) {
    auto const from = static_cast<std::ptrdiff_t>(one.offset);
    auto const to   = from + static_cast<std::ptrdiff_t>(one.rows * one.columns);
    one.offset      = parts[0].size();
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      parts[k].insert(parts[k].end(), gradients[k].begin() + from, gradients[k].begin() + to);
    }
  }
  return parts;
}

// What is measured: gradients, and the tensors in them.
struct material {
  std::vector<std::vector<float>> gradients{};
  std::vector<layer> tensors{};
};

or_error<material> load(options const& chosen, std::vector<layer> const& tensors)
{
  if (chosen.gradients.empty()) {
    auto sample         = sample_of(tensors);
    auto const gradient = random_gradients(coordinates_of(sample));
    return {.value = {gradient, std::move(sample)}};
  }
  auto const sets = compare_codecs::list_gradient_sets(chosen.gradients, {});
  if (!sets) { return {.error = sets.error}; }
  auto read = compare_codecs::read_gradient_set(sets.value.back());
  if (!read) { return {.error = read.error}; }
  if (read.value[0].size() != coordinates_of(tensors)) {
    return {.error = "the gradients have " + std::to_string(read.value[0].size()) +
                     " coordinates, the tensors " + std::to_string(coordinates_of(tensors))};
  }
  return {.value = {std::move(read.value), tensors}};
}

// Candidates in the order of their names, fp16 first, with costs and, of real gradients, errors.
or_error<std::vector<candidate>> find_candidates(options const& chosen,
                                                 material const& on,
                                                 std::vector<layer> const& tensors)
{
  or_error<std::vector<candidate>> found;
  rate_table rates;
  if (auto const error = rates.read(chosen.rates); !error.empty()) { return {.error = error}; }
  for (std::string const& name : chosen.codecs) {
    auto const measured = measure_codec(name, on.gradients, on.tensors);
    auto const sent     = volume_of(name, tensors, chosen.where.ranks);
    if (!measured || !sent) {
      return {.error = name + ": " + (measured ? sent.error : measured.error)};
    }
    candidate one{.name = name, .sent = sent.value, .costs = measured.value.costs};
    if (auto const costs = rates.costs_of(name)) { one.costs = *costs; }
    if (!chosen.gradients.empty()) { one.error = measured.value.error; }
    found.value.push_back(std::move(one));
  }
  return found;
}

// Which codec is best for the tensors of one kind alone.
or_error<std::string> best_for(options const& chosen, material const& on, std::vector<layer> part)
{
  auto of_part       = part;
  material const one = {part_of(on.gradients, of_part), of_part};
  auto const found   = find_candidates(chosen, one, of_part);
  if (!found) { return {.error = found.error}; }
  // The step is that of the whole gradient, of which this kind has a share.
  auto where         = chosen.where;
  double const share = static_cast<double>(coordinates_of(of_part)) /
                       static_cast<double>(std::max<std::uint64_t>(1, on.gradients[0].size()));
  where.work.forward *= share;
  where.work.backward *= share;
  return {.value = best_of(found.value, where, chosen.most_error).name};
}

int run(std::span<char const* const> arguments)
{
  auto parsed = parse_options(arguments);
  if (!parsed) {
    std::cerr << "advise: " << parsed.error << '\n' << usage();
    return 2;
  }
  auto& chosen = parsed.value;
  if (chosen.help) {
    std::cout << usage();
    return 0;
  }
  if (!chosen.probe.empty()) {
    auto const found = probe(chosen);
    if (!found) { return fail(found.error); }
    chosen.where.net   = found.value.net;
    chosen.where.ranks = found.value.ranks;
    if (found.value.rank != 0) { return 0; }
  }
  auto const tensors = read_tensors(chosen.tensors);
  if (!tensors) { return fail(tensors.error); }
  auto const on = load(chosen, tensors.value);
  if (!on) { return fail(on.error); }
  auto const candidates = find_candidates(chosen, on.value, tensors.value);
  if (!candidates) { return fail(candidates.error); }

  report const what{chosen, tensors.value, candidates.value};
  print_table(std::cout, what);
  std::cout << '\n' << answer(candidates.value, chosen.where, chosen.most_error) << '\n';

  configuration config{best_of(candidates.value, chosen.where, chosen.most_error).name, {}};
  if (config.standard != "fp16") {
    auto const kinds = split(tensors.value, on.value.gradients, !chosen.gradients.empty());
    for (layer const& one : kinds.vectors) { config.rules.push_back({one.name, "none"}); }
    for (auto const* kind : {&kinds.sparse, &kinds.matrices}) {
      if (kind->empty() || chosen.gradients.empty()) { continue; }
      auto const best = best_for(chosen, on.value, *kind);
      if (!best) { return fail(best.error); }
      std::cout << (kind == &kinds.sparse ? "Tensors with empty rows: " : "Matrices: ")
                << best.value << " alone would be best for these " << kind->size() << ".\n";
      if (best.value != config.standard) {
        for (layer const& one : *kind) { config.rules.push_back({one.name, best.value}); }
      }
    }
    if (!kinds.vectors.empty()) {
      std::cout << "Vectors: exact, as these " << kinds.vectors.size() << " are few coordinates.\n";
    }
  }
  for (auto const& [file, write] : {std::pair{chosen.json, &write_json}}) {
    if (!file.empty() && !write(file, what)) { return fail("cannot write " + file.string()); }
  }
  if (!chosen.config.empty() && !write_configuration(chosen.config, config)) {
    return fail("cannot write " + chosen.config.string());
  }
  std::cout.flush();
  return std::cout ? 0 : fail("cannot write to standard output");
}

}  // namespace

}  // namespace advise

int main(int count, char** values)
{
  std::vector<char const*> const arguments(values + std::min(count, 1), values + count);
  try {
    return advise::run(arguments);
  } catch (std::exception const& error) {
    std::cerr << "advise: " << error.what() << '\n';
    return 1;
  }
}
