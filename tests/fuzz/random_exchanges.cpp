// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Random exchanges, held to the contracts: `tersum.fuzz.exchanges [--seconds N] [--exchanges N] [--seed N] [--codec NAME]`.
//! The first exchange that breaks a law is printed with the seed that repeats it alone.

#include "random_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

int main(int argc, char** argv)
{
  using namespace tersum::tests;
  double seconds          = 0;
  std::uint64_t exchanges = 500, seed = 1;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const name = argv[i];
    if (name == "--seconds") { seconds = std::atof(argv[i + 1]); }
    if (name == "--exchanges") { exchanges = std::strtoull(argv[i + 1], nullptr, 10); }
    if (name == "--seed") { seed = std::strtoull(argv[i + 1], nullptr, 10); }
    if (name == "--codec") { only = argv[i + 1]; }
  }
  auto codecs = tried_codecs();
  if (!only.empty()) {
    std::erase_if(codecs, [&](tried_codec const& c) { return c.name != only; });
  }
  if (codecs.empty()) {
    std::fprintf(stderr, "there is no codec %s\n", only.c_str());
    return 2;
  }
  auto const begin   = std::chrono::steady_clock::now();
  auto const goes_on = [&](std::uint64_t done) {
    std::chrono::duration<double> const passed = std::chrono::steady_clock::now() - begin;
    return seconds > 0 ? passed.count() < seconds : done < exchanges;
  };
  std::uint64_t refused = 0, steps = 0, flagged = 0, broken = 0, done = 0;
  std::map<std::string, int> faults;
  for (; goes_on(done); ++done) {
    number_source source{seed + done};
    auto const e    = draw_exchange(source, codecs);
    verdict const v = try_exchange(e, source);
    refused += v.refused ? 1 : 0;
    steps += static_cast<std::uint64_t>(v.steps);
    flagged += static_cast<std::uint64_t>(v.flagged);
    if (v.broken.empty()) { continue; }
    ++broken;
    // The first of each codec: one line that repeats it.
    if (faults[std::string{e.codec.name} + ' ' + std::string{e.codec.element}]++ == 0) {
      std::printf("--exchanges 1 --seed %llu: %s: %s\n",
                  static_cast<unsigned long long>(seed + done),
                  e.text().c_str(),
                  v.broken.c_str());
    }
  }
  std::printf(
    "seed %llu: %llu exchanges of %zu codecs, %llu refused, %llu steps, %llu flagged, %llu broke a law\n",
    static_cast<unsigned long long>(seed),
    static_cast<unsigned long long>(done),
    codecs.size(),
    static_cast<unsigned long long>(refused),
    static_cast<unsigned long long>(steps),
    static_cast<unsigned long long>(flagged),
    static_cast<unsigned long long>(broken));
  return broken == 0 ? 0 : 1;
}
