// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What options.hpp declares.

#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <compare_codecs/codecs.hpp>
#include <compare_codecs/options.hpp>
#include <compare_codecs/text.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>

namespace advise {

namespace {

constexpr std::string_view usage_text =
  R"(usage: advise TENSORS [options]

Predicts how long a training step takes with each codec, and says whether
compression pays. TENSORS is a layers.csv, a folder that has one, a
.safetensors file or an .npz file; of the last two only headers are read.

  --backward MS       the backward pass of a step, milliseconds (0)
  --forward MS        all else of a step that is computed (0)
  --slowdown X        of a backward pass beside communication (1.07)
  --bandwidth GBIT    of a rank while all send, Gbit/s (10)
  --latency US        of a message, microseconds (20)
  --ranks N           all of them (4)
  --ranks-of-host N   that share the processors which encode (1)
  --cores N           those processors (as many as ranks of a host)
  --bucket MIB        of float32 gradient, as in DDP (25)
  --probe mpi|gloo    measure bandwidth, latency and the number of ranks: start
                      advise on every rank, over Gloo with
                      --rank R --ranks N --store DIR --address IP
  --gradients DIR     files <set>_worker<k>.npy: measure errors on them
  --max-error E       a codec may err so much, |mean - estimate|^2 / |mean|^2
                      (0.1); only with --gradients
  --codecs A,B        besides fp16, which is always there; all for all
  --rates FILE,...    results of bench/ instead of costs measured here
  --json FILE         write what plot.py draws
  --config FILE       write which codec each tensor should have
  --help              print this and stop

Exit status: 0, 1 if anything failed, 2 for wrong usage.
)";

constexpr std::string_view usual[] = {"fp16",
                                      "rotated_sat8",
                                      "rotated_sat4",
                                      "two_shot_4",
                                      "allocated_4",
                                      "allocated_2",
                                      "topkc_b2",
                                      "powersgd_r4"};

std::vector<std::string> words_of(std::string_view text)
{
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= text.size();) {
    auto const to = std::min(text.find(',', from), text.size());
    words.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

// A number that is more than 0, or may be 0.
bool read_number(std::string const& text, bool zero, double& number)
{
  std::size_t end = 0;
  try {
    number = std::stod(text, &end);
  } catch (std::exception const&) {
    return false;
  }
  return end == text.size() && std::isfinite(number) && (number > 0 || (zero && number == 0));
}

bool read_count(std::string const& text, int least, int& count)
{
  auto const number = compare_codecs::parse_number<unsigned>(text);
  if (!number || *number < static_cast<unsigned>(least) || *number > 1u << 20) { return false; }
  count = static_cast<int>(*number);
  return true;
}

}  // namespace

std::string_view usage() { return usage_text; }

or_error<options> parse_options(std::span<char const* const> arguments)
{
  or_error<options> parsed;
  options& out  = parsed.value;
  out.where.net = {.latency = 20e-6, .bandwidth = 10 / 8e-9};
  int cores     = 0;
  std::string codecs;
  auto const scaled = [](double& to, double unit, bool zero) {
    return [&to, unit, zero](std::string const& text) {
      double number   = 0;
      bool const good = read_number(text, zero, number);
      to              = number * unit;
      return good;
    };
  };
  auto const counted = [](int& to, int least) {
    return [&to, least](std::string const& text) { return read_count(text, least, to); };
  };
  auto const path = [](std::filesystem::path& to) {
    return [&to](std::string const& text) { return to = text, !text.empty(); };
  };
  std::map<std::string, std::function<bool(std::string const&)>, std::less<>> const known{
    {"--backward", scaled(out.where.work.backward, 1e-3, true)},
    {"--forward", scaled(out.where.work.forward, 1e-3, true)},
    {"--slowdown", scaled(out.where.work.overlap_slowdown, 1, false)},
    {"--bandwidth", scaled(out.where.net.bandwidth, 1 / 8e-9, false)},
    {"--latency", scaled(out.where.net.latency, 1e-6, true)},
    {"--bucket", scaled(out.where.bucket_bytes, 1 << 20, false)},
    {"--max-error", scaled(out.most_error, 1, true)},
    {"--ranks", counted(out.where.ranks, 2)},
    {"--ranks-of-host", counted(out.where.ranks_of_host, 1)},
    {"--cores", counted(cores, 1)},
    {"--rank", counted(out.rank, 0)},
    {"--gradients", path(out.gradients)},
    {"--store", path(out.store)},
    {"--json", path(out.json)},
    {"--config", path(out.config)},
    {"--address", [&](std::string const& text) { return out.address = text, !text.empty(); }},
    {"--codecs", [&](std::string const& text) { return codecs = text, !text.empty(); }},
    {"--probe",
     [&](std::string const& text) { return out.probe = text, text == "mpi" || text == "gloo"; }},
    {"--rates", [&](std::string const& text) {
       for (auto const& word : words_of(text)) { out.rates.emplace_back(word); }
       return !text.empty();
     }}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view const argument = arguments[i];
    if (argument == "--help") { return out.help = true, parsed; }
    if (!argument.starts_with("-")) {
      if (!out.tensors.empty()) {
        return {.error = "unexpected argument " + compare_codecs::in_quotes(argument)};
      }
      out.tensors = argument;
      continue;
    }
    auto const equal = argument.find('=');
    auto const name  = argument.substr(0, equal);
    auto const found = known.find(name);
    if (found == known.end()) {
      return {.error = "there is no option " + compare_codecs::in_quotes(name)};
    }
    std::string value;
    if (equal != std::string_view::npos) {
      value = argument.substr(equal + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return {.error = std::string{name} + " needs a value"};
    }
    if (!found->second(value)) {
      return {.error = std::string{name} + " cannot be " + compare_codecs::in_quotes(value)};
    }
  }
  if (out.tensors.empty()) { return {.error = "TENSORS is missing"}; }
  out.where.cores = cores > 0 ? cores : out.where.ranks_of_host;

  std::vector<std::string> wanted{"fp16"};
  if (codecs.empty()) {
    wanted.assign(std::begin(usual), std::end(usual));
  } else if (codecs == "all") {
    for (auto const& one : compare_codecs::list_codecs()) {
      if (!one.name.ends_with("_permuted")) { wanted.emplace_back(one.name); }
    }
  } else {
    for (auto& word : words_of(codecs)) { wanted.push_back(std::move(word)); }
  }
  auto const chosen = compare_codecs::choose_codecs(wanted, compare_codecs::list_codecs());
  if (!chosen) { return {.error = chosen.error}; }
  out.codecs.assign(chosen.value.begin(), chosen.value.end());
  return parsed;
}

}  // namespace advise
