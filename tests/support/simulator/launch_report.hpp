// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What launches did, for people and for scripts: docs/developer/simulator.md says where it goes.

#pragma once

#include "launch.hpp"

#include <cstdio>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tersum::simulator {

//! @brief The counts of all launches of the process. Threads may use it at the same time.
class launch_report {
 public:
  [[nodiscard]] static launch_report& get();

  //! Whether the environment asks for accesses of memory.
  [[nodiscard]] static bool counts_traffic();

  //! Takes note of a launch where the environment asks for it.
  void add(program const& kernel, launch_shape const& shape, launch_counts const& counts);

  //! Launches between cudaProfilerStart and cudaProfilerStop are marked by the number of that range, from 1; all others by 0.
  void mark(bool marked);

  //! Writes a table with a line for each kernel, and forgets its launches.
  void print(std::FILE* to);

 private:
  struct kernel_sum {
    std::string name;
    std::uint64_t launches;
    launch_counts counts;
  };

  std::mutex guard_;
  bool marked_          = false;
  std::uint64_t ranges_ = 0;                             // of marks
  bool registered_      = false;                         // to be printed at the end
  std::vector<kernel_sum> sums_;                         // in the order of their first launches
  std::unordered_map<std::string, std::size_t> places_;  // by name
};

}  // namespace tersum::simulator
