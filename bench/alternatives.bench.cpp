// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a user would try first, on the sample gradients: zstd and lz4 of the floats, 8 bits with one scale a tensor, and 4 bits with a
//! scale for each 1024 (`compress`, `decompress`), beside casts and codecs that make the same of as many floats. Bits are what the sample
//! gradients come to.

#include "support/cpu_presets.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>

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

#define TERSUM_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))

struct bounds {
  float low, high;
};

//! The least and the largest of floats, in 16 lanes that are compared at the end.
TERSUM_CLONES bounds bounds_of(float const* from, std::size_t count)
{
  float low[16], high[16];
  std::fill_n(low, 16, from[0]);
  std::fill_n(high, 16, from[0]);
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (std::size_t k = 0; k < 16; ++k) {
      low[k]  = from[i + k] < low[k] ? from[i + k] : low[k];
      high[k] = from[i + k] > high[k] ? from[i + k] : high[k];
    }
  }
  for (; i < count; ++i) {
    low[0]  = std::min(low[0], from[i]);
    high[0] = std::max(high[0], from[i]);
  }
  return {*std::min_element(low, low + 16), *std::max_element(high, high + 16)};
}

//! @brief The nearest of 256 values between the least and the largest of a tensor, as per-tensor quantization of frameworks does.
struct bytes_of_tensor {
  [[nodiscard]] static std::string name() { return "tensor_8"; }
  [[nodiscard]] static std::size_t bound(std::size_t size) { return size / 4 + sizeof(bounds); }
  TERSUM_CLONES static void encode(float const* from, std::size_t n, bounds in, std::uint8_t* to)
  {
    float const per = in.high > in.low ? 255.0f / (in.high - in.low) : 0.0f;
    for (std::size_t i = 0; i < n; ++i) {
      to[i] = static_cast<std::uint8_t>(static_cast<int>((from[i] - in.low) * per + 0.5f));
    }
  }
  TERSUM_CLONES static void decode(std::uint8_t const* from, std::size_t n, bounds in, float* to)
  {
    float const step = (in.high - in.low) / 255.0f;
    for (std::size_t i = 0; i < n; ++i) { to[i] = in.low + static_cast<float>(from[i]) * step; }
  }
  [[nodiscard]] static std::size_t compress(bytes to, std::span<std::byte const> from)
  {
    std::size_t const n = from.size() / sizeof(float);
    auto const* floats  = reinterpret_cast<float const*>(from.data());
    bounds const in     = bounds_of(floats, n);
    std::memcpy(to.data(), &in, sizeof in);
    encode(floats, n, in, reinterpret_cast<std::uint8_t*>(to.data() + sizeof in));
    return n + sizeof in;
  }
  [[nodiscard]] static std::size_t decompress(bytes to, std::span<std::byte const> from)
  {
    bounds in;
    std::memcpy(&in, from.data(), sizeof in);
    std::size_t const n = from.size() - sizeof in;
    decode(reinterpret_cast<std::uint8_t const*>(from.data() + sizeof in),
           n,
           in,
           reinterpret_cast<float*>(to.data()));
    return n * sizeof(float);
  }
};

//! @brief The nearest of 16 values between the least and the largest of a row of 1024, two in a byte, as FBGEMM's rows of embeddings.
struct nibbles_of_rows {
  static constexpr std::size_t row = 1024, row_bytes = row / 2 + sizeof(bounds);

  [[nodiscard]] static std::string name() { return "rows_4"; }
  [[nodiscard]] static std::size_t bound(std::size_t size) { return (size / 4096 + 1) * row_bytes; }
  TERSUM_CLONES static void encode(float const* from, bounds in, std::uint8_t* to)
  {
    float const per = in.high > in.low ? 15.0f / (in.high - in.low) : 0.0f;
    for (std::size_t i = 0; i < row / 2; ++i) {
      auto const low  = static_cast<int>((from[2 * i] - in.low) * per + 0.5f);
      auto const high = static_cast<int>((from[2 * i + 1] - in.low) * per + 0.5f);
      to[i]           = static_cast<std::uint8_t>(low | high << 4);
    }
  }
  TERSUM_CLONES static void decode(std::uint8_t const* from, bounds in, float* to)
  {
    float const step = (in.high - in.low) / 15.0f;
    for (std::size_t i = 0; i < row / 2; ++i) {
      to[2 * i]     = in.low + static_cast<float>(from[i] & 15) * step;
      to[2 * i + 1] = in.low + static_cast<float>(from[i] >> 4) * step;
    }
  }
  //! The last row is filled up with zeros.
  [[nodiscard]] static std::size_t compress(bytes to, std::span<std::byte const> from)
  {
    std::size_t const n = from.size() / sizeof(float);
    auto const* floats  = reinterpret_cast<float const*>(from.data());
    std::byte* at       = to.data();
    for (std::size_t i = 0; i < n; i += row, at += row_bytes) {
      float padded[row];
      float const* values = floats + i;
      if (n - i < row) {
        std::fill(std::copy_n(values, n - i, padded), padded + row, 0.0f);
        values = padded;
      }
      bounds const in = bounds_of(values, row);
      std::memcpy(at, &in, sizeof in);
      encode(values, in, reinterpret_cast<std::uint8_t*>(at + sizeof in));
    }
    return static_cast<std::size_t>(at - to.data());
  }
  [[nodiscard]] static std::size_t decompress(bytes to, std::span<std::byte const> from)
  {
    std::size_t const n = to.size() / sizeof(float);
    auto* const floats  = reinterpret_cast<float*>(to.data());
    std::byte const* at = from.data();
    for (std::size_t i = 0; i < n; i += row, at += row_bytes) {
      bounds in;
      std::memcpy(&in, at, sizeof in);
      auto const* codes = reinterpret_cast<std::uint8_t const*>(at + sizeof in);
      if (n - i < row) {
        float padded[row];
        decode(codes, in, padded);
        std::copy_n(padded, n - i, floats + i);
      } else {
        decode(codes, in, floats + i);
      }
    }
    return to.size();
  }
};

//! Whether floats came back as what is near enough: of libraries the same, of codes with a tenth of their energy lost at most.
template <class Library>
[[nodiscard]] bool is_near(std::span<float const> sent, std::span<float const> back)
{
  if constexpr (std::is_same_v<Library, bytes_of_tensor> ||
                std::is_same_v<Library, nibbles_of_rows>) {
    double lost = 0, whole = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      auto const value = static_cast<double>(sent[i]);
      double const off = value - static_cast<double>(back[i]);
      lost += off * off;
      whole += value * value;
    }
    return lost <= 0.1 * whole;
  } else {
    return std::equal(sent.begin(), sent.end(), back.begin());
  }
}

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
  auto const& samples = sample_gradients();
  std::vector<std::size_t> counts;
  auto const room_of = [&](std::size_t count) {
    return (library.bound(count * sizeof(float)) + 63) / 64 * 64;
  };
  std::size_t bound = 0;
  for (std::uint64_t at = 0; at < n; at += counts.back()) {
    counts.push_back(std::min<std::size_t>(samples[counts.size() % samples.size()].size(), n - at));
    bound += room_of(counts.back());
  }
  std::size_t const turns = turns_for(n * sizeof(float));
  cpu_backend room{{.threads = threads},
                   turns * (2 * n * sizeof(float) + bound + 3 * arena::alignment)};
  struct gradient {
    std::span<float> floats, back;
    std::vector<piece> pieces;
  };
  std::vector<gradient> gradients(turns);
  std::size_t packed = 0;
  for (auto& [floats, back, pieces] : gradients) {
    floats            = room.take<float>(n);
    back              = room.take<float>(n);
    bytes rest        = room.take<std::byte>(bound);
    packed            = 0;
    std::size_t first = 0;
    for (std::size_t const count : counts) {
      auto const& sample     = samples[pieces.size() % samples.size()];
      std::size_t const size = room_of(count);
      piece p{floats.subspan(first, count), back.subspan(first, count), rest.first(size), 0};
      rest = rest.subspan(size);
      std::copy_n(sample.begin(), count, p.floats.begin());
      p.size = library.compress(p.packed, std::as_bytes(p.floats));
      bool const whole =
        p.size != 0 && library.decompress(std::as_writable_bytes(p.back), p.packed.first(p.size)) ==
                         count * sizeof(float);
      if (!whole || !is_near<Library>(p.floats, p.back)) {
        throw std::runtime_error{"what was compressed did not come back"};
      }
      packed += p.size;
      pieces.push_back(p);
      first += count;
    }
  }
  auto const work = [&](std::size_t turn) {
    tersum::detail::parallel_for(threads, counts.size(), [&](std::uint64_t i) {
      piece const& p = gradients[turn].pieces[i];
      benchmark::DoNotOptimize(
        forward ? library.compress(p.packed, std::as_bytes(p.floats))
                : library.decompress(std::as_writable_bytes(p.back), p.packed.first(p.size)));
    });
  };
  auto const copy = [&](std::size_t turn) {
    auto const& of = gradients[turn];
    copy_on_threads(threads, std::as_writable_bytes(of.back), std::as_bytes(of.floats));
  };
  run_times const times = room.alternate(state, turns, work, copy);
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

//! The nearest codes between plus and minus the largest magnitude of 1024, without a rotation: what `rows_4` and `tensor_8` do.
template <int Bits>
using unrotated = tersum::codec<tersum::fixed_chunks<1024>,
                                tersum::no_rotation,
                                tersum::summed_codes<tersum::absmax_range<>,
                                                     tersum::nearest_quantizer<Bits>,
                                                     tersum::saturating_sum<Bits>>,
                                tersum::in_wire>;

[[maybe_unused]] bool const registered = [] {
  for (std::string_view const preset :
       {"fp16", "bf16", "rotated_sat4", "rotated_sat8", "two_shot_4"}) {
    add_presets({"compress", part::local, preset});
    add_presets({"decompress", part::decode, preset});
  }
  for (operation const what :
       {operation{"compress", part::local}, operation{"decompress", part::decode}}) {
    add_preset<float>(what, "unrotated_4", unrotated<4>{});
    add_preset<float>(what, "unrotated_8", unrotated<8>{});
  }
  add_library(bytes_of_tensor{});
  add_library(nibbles_of_rows{});
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
