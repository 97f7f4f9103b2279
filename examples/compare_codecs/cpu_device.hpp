// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The host as a device.

#pragma once

#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace compare_codecs {

//! @brief The host's memory, clock and executor.
struct cpu_device {
  class buffer {
   public:
    explicit buffer(std::size_t bytes) : words_(bytes / sizeof(tersum::word4) + 1) {}
    [[nodiscard]] std::byte* data() const
    {
      return reinterpret_cast<std::byte*>(const_cast<tersum::word4*>(words_.data()));
    }

   private:
    std::vector<tersum::word4> words_;
  };

  tersum::cpu_executor executor;

  [[nodiscard]] buffer allocate(std::size_t bytes) const { return buffer{bytes}; }
  void upload(void* to, void const* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  void download(void* to, void const* from, std::size_t bytes) const
  {
    std::memcpy(to, from, bytes);
  }

  void copy(std::byte* to, float const* from, std::size_t bytes) const
  {
    auto const source         = reinterpret_cast<std::byte const*>(from);
    constexpr std::size_t cut = 1 << 18;
    tersum::detail::parallel_for(executor.threads, (bytes + cut - 1) / cut, [&](std::uint64_t i) {
      std::memcpy(to + i * cut, source + i * cut, std::min(cut, bytes - i * cut));
    });
  }

  template <class Prepare, class Work>
  [[nodiscard]] double best_ns(int repeat, Prepare const& prepare, Work const& work) const
  {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeat; ++i) {
      prepare();
      auto const begin = std::chrono::steady_clock::now();
      work();
      best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  }
};

}  // namespace compare_codecs
