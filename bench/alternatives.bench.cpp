// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a user would try first, on the sample gradients: zstd and lz4 of the floats (`compress`, `decompress`), beside casts
//! and a codec of four bits that make the same of as many floats. Bits are what the sample gradients come to.

#include "support/cpu_bench.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#if defined(TERSUM_BENCH_ZSTD)
#include <zstd.h>
#endif
#if defined(TERSUM_BENCH_LZ4)
#include <lz4.h>
#endif

namespace {

using namespace tersum_bench;

//! The floats of all NumPy files of a folder, each of which is compressed for itself.
std::vector<std::vector<float>> const& sample_gradients()
{
  static auto const gradients = [] {
    std::vector<std::filesystem::path> paths;
    for (auto const& entry :
         std::filesystem::recursive_directory_iterator{"examples/gradients/lm"}) {
      if (entry.path().extension() == ".npy") { paths.push_back(entry.path()); }
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::vector<float>> all;
    for (auto const& path : paths) {
      std::ifstream file{path, std::ios::binary};
      char head[10] = {};
      file.read(head, sizeof head);
      std::size_t const text =
        static_cast<unsigned char>(head[8]) + 256u * static_cast<unsigned char>(head[9]);
      std::size_t const size = std::filesystem::file_size(path) - sizeof head - text;
      file.ignore(static_cast<std::streamsize>(text));
      auto& values = all.emplace_back(size / sizeof(float));
      file.read(reinterpret_cast<char*>(values.data()),
                static_cast<std::streamsize>(values.size() * sizeof(float)));
    }
    return all;
  }();
  if (gradients.empty()) {
    throw std::runtime_error{"run it in the root of the project: examples/gradients/lm is needed"};
  }
  return gradients;
}

#if defined(TERSUM_BENCH_ZSTD)
struct zstd {
  int level;

  [[nodiscard]] std::string name() const { return "zstd_" + std::to_string(level); }
  [[nodiscard]] static std::size_t bound(std::size_t size) { return ZSTD_compressBound(size); }
  [[nodiscard]] std::size_t compress(bytes to, std::span<std::byte const> from) const
  {
    std::size_t const size = ZSTD_compress(to.data(), to.size(), from.data(), from.size(), level);
    return ZSTD_isError(size) != 0 ? 0 : size;
  }
  [[nodiscard]] static std::size_t decompress(bytes to, std::span<std::byte const> from)
  {
    std::size_t const size = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
    return ZSTD_isError(size) != 0 ? 0 : size;
  }
};
#endif

#if defined(TERSUM_BENCH_LZ4)
struct lz4 {
  [[nodiscard]] static std::string name() { return "lz4"; }
  [[nodiscard]] static std::size_t bound(std::size_t size)
  {
    return static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(size)));
  }
  [[nodiscard]] static std::size_t compress(bytes to, std::span<std::byte const> from)
  {
    return static_cast<std::size_t>(LZ4_compress_default(reinterpret_cast<char const*>(from.data()),
                                                         reinterpret_cast<char*>(to.data()),
                                                         static_cast<int>(from.size()),
                                                         static_cast<int>(to.size())));
  }
  [[nodiscard]] static std::size_t decompress(bytes to, std::span<std::byte const> from)
  {
    int const size = LZ4_decompress_safe(reinterpret_cast<char const*>(from.data()),
                                         reinterpret_cast<char*>(to.data()),
                                         static_cast<int>(from.size()),
                                         static_cast<int>(to.size()));
    return size < 0 ? 0 : static_cast<std::size_t>(size);
  }
};
#endif

//! Cuts `n` floats, the sample gradients in turn, into pieces that threads take one by one.
template <class Library>
void run_library(
  benchmark::State& state, Library const& library, int threads, std::uint64_t n, bool forward)
{
  struct piece {
    std::span<float> floats, back;
    bytes packed;
    std::size_t size;
  };
  auto const& samples    = sample_gradients();
  std::size_t room_bytes = 0, pieces_needed = 0;
  for (std::uint64_t at = 0; at < n; ++pieces_needed) {
    std::size_t const count =
      std::min<std::size_t>(samples[pieces_needed % samples.size()].size(), n - at);
    room_bytes += 2 * count * sizeof(float) + library.bound(count * sizeof(float));
    at += count;
  }
  cpu_backend room{{.threads = threads}, room_bytes + 3 * pieces_needed * arena::alignment};
  std::vector<piece> pieces;
  std::size_t packed = 0;
  for (std::uint64_t at = 0; at < n;) {
    auto const& sample      = samples[pieces.size() % samples.size()];
    std::size_t const count = std::min<std::size_t>(sample.size(), n - at);
    piece p{room.take<float>(count),
            room.take<float>(count),
            room.take<std::byte>(library.bound(count * sizeof(float))),
            0};
    std::copy_n(sample.begin(), count, p.floats.begin());
    p.size = library.compress(p.packed, std::as_bytes(p.floats));
    bool const whole =
      p.size != 0 && library.decompress(std::as_writable_bytes(p.back), p.packed.first(p.size)) ==
                       count * sizeof(float);
    if (!whole || !std::equal(p.floats.begin(), p.floats.end(), p.back.begin())) {
      throw std::runtime_error{"what was compressed did not come back"};
    }
    packed += p.size;
    pieces.push_back(p);
    at += count;
  }
  auto const work = [&](std::size_t) {
    tersum::detail::parallel_for(threads, pieces.size(), [&](std::uint64_t i) {
      piece const& p = pieces[i];
      benchmark::DoNotOptimize(
        forward ? library.compress(p.packed, std::as_bytes(p.floats))
                : library.decompress(std::as_writable_bytes(p.back), p.packed.first(p.size)));
    });
  };
  auto const copy = [&](std::size_t) {
    tersum::detail::parallel_for(threads, pieces.size(), [&](std::uint64_t i) {
      std::memcpy(pieces[i].back.data(), pieces[i].floats.data(), pieces[i].floats.size_bytes());
    });
  };
  run_times const times = room.alternate(state, 1, work, copy);
  auto const size       = static_cast<double>(n * sizeof(float));
  double const bits     = 8 * static_cast<double>(packed) / static_cast<double>(n);
  set_counters(state, n, bits, size + static_cast<double>(packed), size, times);
}

template <class Library>
[[maybe_unused]] void add_library(Library const& library)
{
  for (bool const forward : {true, false}) {
    for (int const threads : thread_counts(2)) {
      add(result_name(
            forward ? "compress" : "decompress", library.name(), "float", "cpu", large, threads),
          [=](benchmark::State& state) { run_library(state, library, threads, large, forward); });
    }
  }
}

[[maybe_unused]] bool const registered = [] {
  for (std::string_view const preset :
       {"fp16", "bf16", "rotated_sat4", "rotated_sat8", "two_shot_4"}) {
    add_presets({"compress", part::local, preset});
    add_presets({"decompress", part::decode, preset});
  }
#if defined(TERSUM_BENCH_ZSTD)
  add_library(zstd{1});
  add_library(zstd{3});
#else
  benchmark::AddCustomContext("skipped", "zstd: libzstd-dev is not installed");
#endif
#if defined(TERSUM_BENCH_LZ4)
  add_library(lz4{});
#else
  benchmark::AddCustomContext("skipped ", "lz4: liblz4-dev is not installed");
#endif
  return name_compiler();
}();

}  // namespace
