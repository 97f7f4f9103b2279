// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A line for each launch, and a table for each process.

#include "launch_report.hpp"

#include <cstdlib>
#include <string_view>

namespace tersum::simulator {

namespace {

char const* lines_file() { return std::getenv("TERSUM_SIMULATED_COUNTS"); }

bool wants_table()
{
  char const* const wanted = std::getenv("TERSUM_SIMULATED_PROFILE");
  return wanted != nullptr && std::string_view{wanted} == "1";
}

std::uint64_t product(extent const& e) { return std::uint64_t{e[0]} * e[1] * e[2]; }

void add_to(access_counts& sum, access_counts const& more)
{
  sum.requests += more.requests;
  sum.sectors += more.sectors;
  sum.bytes += more.bytes;
  sum.distinct_sectors += more.distinct_sectors;
}

void add_to(launch_counts& sum, launch_counts const& more)
{
  sum.instructions += more.instructions;
  sum.barriers += more.barriers;
  add_to(sum.loads, more.loads);
  add_to(sum.stores, more.stores);
  sum.shared.requests += more.shared.requests;
  sum.shared.wavefronts += more.shared.wavefronts;
  sum.shared.conflicts += more.shared.conflicts;
}

double share(std::uint64_t part, std::uint64_t whole)
{
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

unsigned long long wide(std::uint64_t n) { return n; }

}  // namespace

launch_report& launch_report::get()
{
  static launch_report* const one = new launch_report;
  return *one;
}

bool launch_report::counts_traffic() { return lines_file() != nullptr || wants_table(); }

void launch_report::mark(bool marked)
{
  std::lock_guard const lock{guard_};
  if (marked && !marked_) { ++ranges_; }
  marked_ = marked;
}

void launch_report::add(program const& kernel,
                        launch_shape const& shape,
                        launch_counts const& counts)
{
  std::lock_guard const lock{guard_};
  char const* const path = lines_file();
  if (std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a"); file != nullptr) {
    for (std::uint64_t const number : {marked_ ? ranges_ : 0,
                                       product(shape.grid),
                                       product(shape.block),
                                       shape.dynamic_shared,
                                       counts.instructions,
                                       counts.barriers,
                                       counts.loads.requests,
                                       counts.loads.sectors,
                                       counts.loads.bytes,
                                       counts.loads.distinct_sectors,
                                       counts.stores.requests,
                                       counts.stores.sectors,
                                       counts.stores.bytes,
                                       counts.stores.distinct_sectors,
                                       counts.shared.requests,
                                       counts.shared.wavefronts,
                                       counts.shared.conflicts}) {
      std::fprintf(file, "%llu\t", wide(number));
    }
    std::fprintf(file, "%s\n", kernel.name.c_str());
    std::fclose(file);
  }
  if (!wants_table()) { return; }
  if (!registered_) {
    std::atexit([] { get().print(stderr); });
    registered_ = true;
  }
  auto const [at, first] = places_.try_emplace(kernel.name, sums_.size());
  if (first) { sums_.push_back({kernel.name, 0, {}}); }
  kernel_sum& sum = sums_[at->second];
  ++sum.launches;
  add_to(sum.counts, counts);
}

void launch_report::print(std::FILE* to)
{
  std::lock_guard const lock{guard_};
  if (sums_.empty()) { return; }
  std::fprintf(to,
               "%8s %12s %8s | %9s %6s %5s | %9s %6s %5s | %12s %12s %12s | %9s %9s | kernel\n",
               "launches",
               "statements",
               "barriers",
               "loads",
               "sect.",
               "used",
               "stores",
               "sect.",
               "used",
               "L2 bytes",
               "DRAM read",
               "DRAM written",
               "shared",
               "conflicts");
  for (auto const& [name, launches, c] : sums_) {
    std::fprintf(to,
                 "%8llu %12llu %8llu | %9llu %6.2f %4.0f%% | %9llu %6.2f %4.0f%% |"
                 " %12llu %12llu %12llu | %9llu %9llu | %s\n",
                 wide(launches),
                 wide(c.instructions),
                 wide(c.barriers),
                 wide(c.loads.requests),
                 share(c.loads.sectors, c.loads.requests),
                 100 * share(c.loads.bytes, 32 * c.loads.sectors),
                 wide(c.stores.requests),
                 share(c.stores.sectors, c.stores.requests),
                 100 * share(c.stores.bytes, 32 * c.stores.sectors),
                 wide(32 * (c.loads.sectors + c.stores.sectors)),
                 wide(32 * c.loads.distinct_sectors),
                 wide(32 * c.stores.distinct_sectors),
                 wide(c.shared.requests),
                 wide(c.shared.conflicts),
                 name.c_str());
  }
  sums_.clear();
  places_.clear();
}

}  // namespace tersum::simulator
