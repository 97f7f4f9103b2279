// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What known_codecs.hpp declares.

#include "known_codecs.hpp"

#include <cmath>
#include <compare_codecs/named_codecs.hpp>
#include <cstddef>
#include <string>

namespace advise {

or_error<tersum::model::volume> volume_of(std::string_view codec,
                                          std::vector<layer> const& tensors,
                                          int ranks)
{
  std::vector<tersum::tensor> list;
  for (layer const& l : tensors) {
    list.push_back({.name = l.name, .rows = l.rows, .columns = l.columns, .offset = l.offset});
  }
  or_error<tersum::model::volume> found{.error = std::string{compare_codecs::no_such_codec}};
  compare_codecs::for_each_codec([&](std::string_view name, std::string_view, auto const& one) {
    if (name != codec) { return; }
    auto const plan =
      one.plan(tersum::layout{coordinates_of(tensors), list}, {.size = ranks, .rank = 0});
    auto const status = plan.check();
    found             = {.value = tersum::model::volume_of(plan)};
    if (!status.ok()) { found.error = std::string{status.message}; }
  });
  return found;
}

or_error<measured_codec> measure_codec(std::string_view codec,
                                       std::vector<std::vector<float>> const& gradients,
                                       std::vector<layer> const& tensors)
{
  int const ranks = static_cast<int>(gradients.size());
  auto const ran =
    compare_codecs::run_codec(codec, gradients, tensors, {.ranks = ranks, .steps = 2, .repeat = 3});
  if (!ran) { return {.error = ran.error}; }
  auto const sent = volume_of(codec, tensors, ranks);
  if (!sent) { return {.error = sent.error}; }
  auto const seconds = [&](double nanoseconds) {
    return std::isnan(nanoseconds) ? 0 : 1e-9 * nanoseconds / sent.value.coordinates;
  };
  auto const& m = ran.value;
  measured_codec out{{seconds(m.encode_ns), seconds(m.reduce_ns), seconds(m.decode_ns)}, m.nmse};
  // What was added is (n - 1) / n of the payload, what was decoded all that was gathered.
  using tersum::model::meeting;
  if (sent.value.meets == meeting::summed && ranks > 1) {
    out.costs.reduce *= ranks / (ranks - 1.0);
  }
  if (sent.value.meets == meeting::gathered) { out.costs.decode /= ranks; }
  return {.value = out};
}

}  // namespace advise
