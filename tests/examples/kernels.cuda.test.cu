// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/kernels/ on a device, beside plain loops in double.

#include "../../bench/plain_kernels.cuh"
#include "../../examples/kernels/bias_in_4_bits.hpp"
#include "../../examples/kernels/cast_to_nvfp4.hpp"
#include "../../examples/kernels/kv_page.hpp"
#include "../../examples/kernels/sum_over_peers.hpp"
#include "support/chunk_rotation.hpp"

#include <tersum/block/chunk_step.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/rotate/partial_hadamard.hpp>

#include <doctest/doctest.h>

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tersum;

template <class... Args>
__global__ void __launch_bounds__(bias_in_4_bits::chunk::block_threads) encode_kernel(Args... args)
{
  __shared__ bias_in_4_bits::rotation::storage shared;
  bias_in_4_bits::encode(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void __launch_bounds__(kv_page::key::block_threads) write_kernel(Args... args)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::write(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void __launch_bounds__(kv_page::key::block_threads) multiply_kernel(Args... args)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::multiply(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void cast_kernel(Args... args)
{
  cast_to_nvfp4::cast(cuda_context{}, args...);
}
template <class... Args>
__global__ void all_reduce_kernel(Args... args)
{
  sum_over_peers::all_reduce(cuda_context{}, args...);
}

// An array that host and device see.
template <class T>
class managed {
 public:
  explicit managed(std::vector<T> const& from)
  {
    REQUIRE(cudaMallocManaged(&data_, from.size() * sizeof(T)) == cudaSuccess);
    std::copy(from.begin(), from.end(), data_);
  }
  managed(managed const&)            = delete;
  managed& operator=(managed const&) = delete;
  ~managed() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T>
void give(managed<T> const& from, std::vector<T>& to)
{
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::copy_n(from.get(), to.size(), to.begin());
}

struct on_device {
  static void encode(std::vector<tersum::half> const& values,
                     std::vector<float> const& bias,
                     std::uint64_t signs,
                     std::vector<std::uint32_t>& payload,
                     std::vector<float>& steps)
  {
    using chunk = bias_in_4_bits::chunk;
    managed const v{values};
    managed const b{bias};
    managed const p{payload};
    managed const s{steps};
    encode_kernel<<<static_cast<unsigned>(chunk::blocks(values.size())), chunk::block_threads>>>(
      v.get(),
      b.get(),
      std::uint64_t{values.size()},
      std::uint64_t{bias.size()},
      dither_key{.seed = 5},
      signs,
      p.get(),
      s.get());
    give(p, payload);
    give(s, steps);
  }
  static void multiply(std::vector<tersum::half> const& keys,
                       std::vector<float> const& query,
                       std::uint64_t signs,
                       std::vector<float>& products)
  {
    using key = kv_page::key;
    managed const k{keys};
    managed const q{query};
    managed const codes{std::vector<std::uint32_t>(16 * products.size())};
    managed const scales{products};
    managed const p{products};
    kv_page::page const page{products.size(), signs, codes.get(), scales.get()};
    auto const blocks = static_cast<unsigned>(key::blocks(keys.size()));
    write_kernel<<<blocks, key::block_threads>>>(k.get(), page);
    multiply_kernel<<<blocks, key::block_threads>>>(q.get(), page, p.get());
    give(p, products);
  }
  template <class Element>
  static void cast(std::vector<Element> const& values,
                   float unit,
                   std::uint64_t signs,
                   std::uint64_t seed,
                   std::vector<std::uint32_t>& codes,
                   std::vector<std::uint8_t>& scales)
  {
    managed const v{values};
    managed const c{codes};
    managed const s{scales};
    dither_key const draws{.seed = seed};
    cast_kernel<<<3, 32>>>(
      v.get(), std::uint64_t{scales.size()}, unit, signs, draws, c.get(), s.get());
    give(c, codes);
    give(s, scales);
  }
  static void all_reduce(std::vector<std::vector<word4>>& payloads)
  {
    std::size_t const size = payloads[0].size();
    std::vector<word4> together;
    for (auto const& payload : payloads) {
      together.insert(together.end(), payload.begin(), payload.end());
    }
    managed const p{together};
    sum_over_peers::peers all{.payload = {}, .count = static_cast<int>(payloads.size()), .rank = 0};
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      all.payload[rank] = p.get() + rank * size;
    }
    for (; all.rank < all.count; ++all.rank) {
      all_reduce_kernel<<<2, 32>>>(all, std::uint64_t{size});
    }
    give(p, together);
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      std::copy_n(
        together.begin() + static_cast<std::ptrdiff_t>(rank * size), size, payloads[rank].begin());
    }
  }
};

[[nodiscard]] std::vector<float> normal_values(std::size_t count, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) { x = normal(random); }
  return values;
}

[[nodiscard]] std::vector<tersum::half> in_half(std::vector<float> const& values)
{
  std::vector<tersum::half> out;
  for (float const x : values) { out.push_back(to_half(x)); }
  return out;
}

// The signed code of 4 bits at a position of a payload.
[[nodiscard]] int code_at(std::vector<std::uint32_t> const& words, std::size_t position)
{
  auto const code = static_cast<int>(words[position / 8] >> (4 * (position % 8)) & 15u);
  return code < 8 ? code : code - 16;
}

TEST_CASE("[examples] each code of a sum with its bias is next to its rotated value, or the last")
{
  constexpr std::size_t width = 2048, count = 3 * width;
  constexpr std::uint64_t signs = 77;
  auto const values             = in_half(normal_values(count, 1));
  auto const bias               = normal_values(width, 2);
  std::vector<std::uint32_t> payload(bias_in_4_bits::chunk::words<4>(count));
  std::vector<float> steps(count / 1024);
  on_device::encode(values, bias, signs, payload, steps);
  for (std::size_t chunk = 0; chunk < count / 1024; ++chunk) {
    std::vector<double> sums(1024);
    double square = 0;
    for (std::size_t i = 0; i < 1024; ++i) {
      std::size_t const at = 1024 * chunk + i;
      sums[i]              = static_cast<double>(to_float(values[at]) + bias[at % width]);
      square += sums[i] * sums[i];
    }
    double const step  = bias_in_4_bits::reach * std::sqrt(square / 1024) / 7;
    auto const rotated = tests::chunk_rotation<1024>{chunk, signs}.forward(sums.data());
    CHECK(steps[chunk] * 32 == doctest::Approx(step).epsilon(1e-6));
    for (std::size_t p = 0; p < 1024; ++p) {
      double const exact = std::clamp(rotated[p] / (32 * step), -7.0, 7.0);
      // Values, and their scale, are floats.
      REQUIRE(std::abs(code_at(payload, 1024 * chunk + p) - exact) < 1 + 1e-4);
    }
  }
}

TEST_CASE(
  "[examples] products of a query with keys of 4 bits are right but for the error of the levels")
{
  constexpr std::size_t count = 601;
  auto const keys             = in_half(normal_values(128 * count, 3));
  auto const query            = normal_values(128, 4);
  std::vector<float> products(count);
  on_device::multiply(keys, query, 9, products);
  double error = 0, expected = 0, sum = 0;
  for (std::size_t k = 0; k < count; ++k) {
    double exact = 0, squares = 0, of_query = 0;
    for (std::size_t i = 0; i < 128; ++i) {
      auto const x = static_cast<double>(to_float(keys[128 * k + i]));
      auto const q = static_cast<double>(query[i]);
      exact += x * q;
      squares += x * x;
      of_query += q * q;
    }
    double const lost = static_cast<double>(products[k]) - exact;
    error += lost * lost;
    sum += lost;
    expected += lloyd_max<4>::distortion() * squares * of_query / 128;
  }
  // Squares of 601 normal errors have a mean with a standard deviation of .058 of it: five, and a tenth for 128 rotated values.
  CHECK(error == doctest::Approx(expected).epsilon(.4));
  CHECK(std::abs(sum) < 5 * std::sqrt(expected));
}

// The number of a scale's byte, by the definition of the format.
[[nodiscard]] double e4m3_in_double(std::uint8_t code)
{
  return code < 8 ? std::ldexp(code, -9) : std::ldexp(8 + code % 8, code / 8 - 10);
}

TEST_CASE(
  "[examples] a value in NVFP4 is one of its two neighbours, and right in the mean over seeds")
{
  constexpr std::array numbers{0.0, .5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  constexpr std::size_t blocks = 70;
  auto const values            = normal_values(16 * blocks, 5);
  float largest                = 0;
  for (float const x : values) { largest = std::max(largest, 4 * std::abs(x)); }
  float const whole = largest / (6 * 448);
  std::vector<double> mean(16 * blocks);
  constexpr int seeds = 20;
  for (int seed = 0; seed < seeds; ++seed) {
    std::vector<std::uint32_t> codes(2 * blocks);
    std::vector<std::uint8_t> scales(blocks);
    on_device::cast(values, whole, 11, static_cast<std::uint64_t>(seed), codes, scales);
    for (std::size_t block = 0; block < blocks; ++block) {
      std::vector<double> x(16);
      std::uint32_t const flips = sign_bits(block, 11);
      for (std::size_t i = 0; i < 16; ++i) {
        x[i] = static_cast<double>(values[16 * block + i]) * ((flips >> i & 1) != 0 ? -.25 : .25);
      }
      x                 = tests::hadamard_transform(x);
      double const unit = e4m3_in_double(scales[block]) * static_cast<double>(whole);
      for (std::size_t i = 0; i < 16; ++i) {
        std::uint32_t const code = codes[2 * block + i / 8] >> (4 * (i % 8)) & 15u;
        double const number      = (code < 8 ? 1 : -1) * numbers[code & 7u];
        double const exact       = x[i] / unit;
        REQUIRE(std::abs(exact) < 6 + 1e-5);
        auto const above =
          std::upper_bound(numbers.begin(), numbers.end() - 1, std::abs(exact) - 1e-5);
        REQUIRE(std::abs(number - exact) <
                *above - (above == numbers.begin() ? 0 : above[-1]) + 1e-5);
        mean[16 * block + i] += (number - exact) / seeds;
      }
    }
  }
  // One number is off by at most 1 in standard deviation, and random bytes are 1/512 of the distance of 2 off.
  for (double const error : mean) { CHECK(std::abs(error) < 5 / std::sqrt(seeds) + 1.0 / 256); }
  // Values of 16 bits that are the same numbers have the same codes.
  std::vector<float> small;
  for (auto const x : in_half(values)) { small.push_back(to_float(x)); }
  std::vector<std::uint32_t> codes(2 * blocks), same(2 * blocks);
  std::vector<std::uint8_t> scales(blocks);
  on_device::cast(small, whole, 11, 1, codes, scales);
  on_device::cast(in_half(small), whole, 11, 1, same, scales);
  CHECK(codes == same);
  // As tests/quantize/thread_scaled_floats.emulated.test.cpp has of a host.
  std::vector<float> few;
  for (int i = 0; i < 16; ++i) { few.push_back(static_cast<float>(i * 37 % 101) - 50); }
  codes.resize(2);
  scales.resize(1);
  on_device::cast(few, .5f, 11, 5, codes, scales);
  CHECK(codes == std::vector<std::uint32_t>{0x82a8db36u, 0x347aa643u});
  CHECK(scales[0] == 0x5cu);
}

TEST_CASE("[examples] all peers have the saturating sums")
{
  for (std::size_t const ranks : {1u, 2u, 5u, 8u}) {
    CAPTURE(ranks);
    constexpr std::size_t size = 53;
    std::mt19937 random(6);
    std::vector payloads(ranks, std::vector<word4>(size));
    std::vector<std::array<int, 32>> sums(size);
    auto const packed = [](std::array<int, 32> const& lanes) {
      std::array<std::uint32_t, 4> words{};
      for (std::size_t i = 0; i < 32; ++i) {
        words[i / 8] |= (static_cast<std::uint32_t>(lanes[i]) & 15u) << (4 * (i % 8));
      }
      return word4{words[0], words[1], words[2], words[3]};
    };
    for (auto& payload : payloads) {
      for (std::size_t i = 0; i < size; ++i) {
        std::array<int, 32> lanes{};
        for (std::size_t lane = 0; lane < 32; ++lane) {
          lanes[lane]   = static_cast<int>(random() % 15) - 7;
          sums[i][lane] = std::clamp(sums[i][lane] + lanes[lane], -7, 7);
        }
        payload[i] = packed(lanes);
      }
    }
    on_device::all_reduce(payloads);
    for (auto const& payload : payloads) {
      for (std::size_t i = 0; i < size; ++i) { REQUIRE(payload[i] == packed(sums[i])); }
    }
  }
}

// The mean square of what two arrays differ by.
double difference(std::vector<float> const& a, std::vector<float> const& b)
{
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const lost = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += lost * lost;
  }
  return sum / static_cast<double>(a.size());
}

TEST_CASE("[examples] plain kernels do what pieces do, on a device")
{
  using namespace plain_kernels;
  constexpr std::uint64_t count = 16384, key = 3;
  constexpr unsigned blocks = count / 4096;
  auto const values         = normal_values(count, 7);
  constexpr float step      = 2.75f / 7;
  auto const scale = make_chunk_step<partial_hadamard<1024>, stochastic_quantizer<4>>(step, 64, 1);
  managed const from{values};
  std::string const counts = "plain_kernels." + std::to_string(getpid());
  setenv("TERSUM_SIMULATED_COUNTS", counts.c_str(), 1);
  managed const of_plain{std::vector<float>(count)};
  managed const of_pieces{std::vector<float>(count)};
  managed const plain_codes{std::vector<std::uint16_t>(count / 4)};
  managed const pieces_codes{std::vector<std::uint32_t>(count / 8)};
  std::vector<float> plain(count), pieces(count);
  auto const finish = [&] {
    give(of_plain, plain);
    give(of_pieces, pieces);
  };

  plain_copy_kernel<<<blocks, 128>>>(from.get(), of_plain.get());
  pieces_copy_kernel<<<blocks, 128>>>(from.get(), count, of_pieces.get());
  finish();
  CHECK(plain == values);
  CHECK(pieces == values);

  plain_norm_kernel<<<blocks, 128>>>(from.get(), of_plain.get());
  pieces_norm_kernel<<<blocks, 128>>>(from.get(), count, of_pieces.get());
  finish();
  for (std::size_t i = 0; i < count / 1024; ++i) {
    CHECK(plain[i] == doctest::Approx(pieces[i]).epsilon(1e-5));
  }
  pieces_norm_8192_kernel<<<count / 8192, 256>>>(from.get(), count, of_pieces.get());
  give(of_pieces, pieces);
  CHECK(pieces[1] == doctest::Approx(std::reduce(&plain[8], &plain[16])).epsilon(1e-5));
  plain_largest_kernel<<<blocks, 128>>>(from.get(), of_plain.get());
  pieces_largest_kernel<<<blocks, 128>>>(from.get(), count, of_pieces.get());
  finish();
  CHECK(std::equal(plain.begin(), plain.begin() + count / 1024, pieces.begin()));

  plain_hadamard_32_kernel<<<count / 4096, 128>>>(from.get(), key, of_plain.get());
  pieces_hadamard_32_kernel<<<count / 4096, 128>>>(from.get(), key, of_pieces.get());
  finish();
  CHECK(plain == pieces);
  plain_hadamard_64_kernel<<<count / 8192, 128>>>(from.get(), key, of_plain.get());
  pieces_hadamard_64_kernel<<<count / 8192, 128>>>(from.get(), key, of_pieces.get());
  finish();
  CHECK(plain == pieces);

  // A rotation keeps the norm.
  plain_rotate_kernel<<<blocks, 128>>>(from.get(), key, of_plain.get());
  pieces_rotate_kernel<<<blocks, 128>>>(from.get(), count, key, of_pieces.get());
  finish();
  std::vector<float> const zeros(count);
  double const square = 1024 * difference(values, zeros);
  CHECK(difference(plain, zeros) == doctest::Approx(square).epsilon(1e-5));
  CHECK(difference(pieces, zeros) == doctest::Approx(square).epsilon(1e-5));

  // Between codes rounding at random has the variance x (1 - x) of squared steps: 1/6 in the mean. Values end at 2.75 deviations.
  plain_encode_kernel<<<blocks, 128>>>(from.get(), key, 1 / (32 * step), plain_codes.get());
  plain_decode_kernel<<<blocks, 128>>>(plain_codes.get(), key, step / 32, of_plain.get());
  pieces_encode_kernel<<<blocks, 128>>>(from.get(), count, key, scale.encode, pieces_codes.get());
  pieces_decode_kernel<<<blocks, 128>>>(
    pieces_codes.get(), count, key, scale.decode, of_pieces.get());
  finish();
  CHECK(difference(plain, values) == doctest::Approx(step * step / 6).epsilon(.05));
  CHECK(difference(pieces, values) == doctest::Approx(step * step / 6).epsilon(.05));

  // Codes of both sums are those of saturated lanes.
  std::vector<uint4> a(256), b(256);
  std::mt19937 random(8);
  auto const lanes = [&] {
    std::uint32_t word = 0;
    for (int at = 0; at < 32; at += 4) {
      word |= (static_cast<std::uint32_t>(random() % 15 + 9) & 15u) << at;
    }
    return word;
  };
  for (auto* all : {&a, &b}) {
    for (uint4& x : *all) { x = {lanes(), lanes(), lanes(), lanes()}; }
  }
  managed const plain_sums{a};
  managed const pieces_sums{a};
  managed const others{b};
  plain_add_kernel<<<2, 128>>>(plain_sums.get(), others.get());
  pieces_add_kernel<<<2, 128>>>(pieces_sums.get(), others.get());
  give(plain_sums, a);
  give(pieces_sums, b);
  CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(uint4)) == 0);

  // Levels of normal values are multiplied by the same but for what signs and the order of coordinates make.
  plain_levels_kernel<<<blocks, 128>>>(from.get(), key, plain_codes.get(), of_plain.get());
  pieces_levels_kernel<<<blocks, 128>>>(
    from.get(), count, key, pieces_codes.get(), of_pieces.get());
  finish();
  for (std::size_t i = 0; i < count / 1024; ++i) {
    CHECK(plain[i] == doctest::Approx(pieces[i]).epsilon(.02));
  }

  // Codes that are drawn by other bytes are neighbours.
  std::vector<uint2> plain_words(count / 16), pieces_words(count / 16);
  std::vector<std::uint8_t> plain_scales(count / 16), pieces_scales(count / 16);
  managed const of_plain_words{plain_words}, of_pieces_words{pieces_words};
  managed const of_plain_scales{plain_scales}, of_pieces_scales{pieces_scales};
  plain_nvfp4_kernel<<<count / 2048, 128>>>(
    from.get(), .01f, key, 9, of_plain_words.get(), of_plain_scales.get());
  pieces_nvfp4_kernel<<<count / 2048, 128>>>(
    from.get(), .01f, key, 9, of_pieces_words.get(), of_pieces_scales.get());
  give(of_plain_words, plain_words);
  give(of_pieces_words, pieces_words);
  give(of_plain_scales, plain_scales);
  give(of_pieces_scales, pieces_scales);
  CHECK(plain_scales == pieces_scales);
  for (std::size_t i = 0; i < count; ++i) {
    auto const code = [&](std::vector<uint2> const& words) {
      std::uint32_t const word = i % 16 < 8 ? words[i / 16].x : words[i / 16].y;
      auto const of            = static_cast<int>(word >> (4 * (i % 8)) & 15u);
      return of < 8 ? of : 8 - of;
    };
    REQUIRE(std::abs(code(plain_words) - code(pieces_words)) <= 1);
  }

  std::vector<uint4> plain_4(count / 32), pieces_4(count / 32), pieces_8(count / 16);
  managed const of_plain_4{plain_4}, of_pieces_4{pieces_4}, of_pieces_8{pieces_8};
  plain_mxfp4_kernel<<<blocks, 128>>>(from.get(), of_plain_4.get(), of_plain_scales.get());
  pieces_mxfp4_kernel<<<blocks, 128>>>(from.get(), of_pieces_4.get(), of_pieces_scales.get());
  give(of_plain_4, plain_4);
  give(of_pieces_4, pieces_4);
  give(of_plain_scales, plain_scales);
  give(of_pieces_scales, pieces_scales);
  CHECK(std::memcmp(plain_4.data(), pieces_4.data(), count / 2) == 0);
  CHECK(plain_scales == pieces_scales);

  // In MXFP8 the largest value of a block lies from 2^8 on, and each has the code of the nearest number.
  pieces_mxfp8_kernel<<<blocks, 128>>>(from.get(), of_pieces_8.get(), of_pieces_scales.get());
  give(of_pieces_8, pieces_8);
  give(of_pieces_scales, pieces_scales);
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto const x        = std::ldexp(static_cast<double>(values[i]), 127 - pieces_scales[i / 32]);
    unsigned const code = reinterpret_cast<std::uint8_t const*>(pieces_8.data())[i];
    double const lost   = std::abs(std::abs(x) - e4m3_in_double(code & 127u));
    bool nearest        = (code >= 128) == (x < 0);
    for (std::uint8_t other = 0; other < 127; ++other) {
      nearest = nearest && lost <= std::abs(std::abs(x) - e4m3_in_double(other));
    }
    CHECK(nearest);
    most = std::max(i % 32 == 0 ? 0 : most, std::abs(x));
    if (i % 32 == 31) { CHECK(std::ilogb(most) == 8); }
  }

  plain_scan_kernel<<<4, 256>>>(pieces_codes.get(), of_plain_words.get());
  pieces_scan_kernel<<<4, 256>>>(pieces_codes.get(), of_pieces_words.get());
  give(of_plain_words, plain_words);
  give(of_pieces_words, pieces_words);
  CHECK(std::memcmp(plain_words.data(), pieces_words.data(), count / 2) == 0);

  // In the simulator, pieces move as many bytes of memory.
  unsetenv("TERSUM_SIMULATED_COUNTS");
  std::map<std::string, double> sectors;
  std::ifstream file{counts};
  bool const simulated = file.good();
  for (std::array<std::uint64_t, 17> columns{}; file >> columns[0];) {
    for (std::size_t i = 1; i < columns.size(); ++i) { file >> columns[i]; }
    std::string name;
    std::getline(file >> std::ws, name);
    sectors[name.substr(0, name.find('('))] = static_cast<double>(columns[9] + columns[13]);
  }
  std::remove(counts.c_str());
  std::size_t compared = 0;
  for (auto const& moved : sectors) {
    std::string name = moved.first;
    if (std::size_t const at = name.find("plain_", 15); at != std::string::npos) {
      CAPTURE(moved.first);
      CHECK(sectors.at(name.replace(at, 6, "pieces_")) ==
            doctest::Approx(moved.second).epsilon(.02));
      ++compared;
    }
  }
  CHECK(compared == (simulated ? 13 : 0));
}

template <int Size>
__global__ void rotate_kernel(float* values, std::uint64_t key, bool back)
{
  float v[Size];
  thread_values<Size>::load(cuda_context{}, values + Size * threadIdx.x, v);
  back ? thread_hadamard<Size>::backward(cuda_context{}, threadIdx.x, key, v)
       : thread_hadamard<Size>::forward(cuda_context{}, threadIdx.x, key, v);
  thread_values<Size>::store(cuda_context{}, v, values + Size * threadIdx.x);
}

template <int Size>
void check_thread_hadamard()
{
  constexpr std::uint64_t key = 77;
  auto const values           = normal_values(32 * Size, Size);
  auto rotated                = values;
  managed const all{values};
  rotate_kernel<Size><<<1, 32>>>(all.get(), key, false);
  give(all, rotated);
  for (std::size_t thread = 0; thread < 32; ++thread) {
    std::vector<double> expected(Size);
    for (std::size_t i = 0; i < Size; ++i) {
      constexpr std::size_t words = (Size + 31) / 32;
      bool const flipped          = (sign_bits(thread * words + i / 32, key) >> i % 32 & 1u) != 0;
      expected[i] = static_cast<double>(values[Size * thread + i]) * (flipped ? -1 : 1);
    }
    expected = tests::hadamard_transform(expected);
    for (std::size_t i = 0; i < Size; ++i) {
      CHECK(std::abs(static_cast<double>(rotated[Size * thread + i]) - expected[i]) < 1e-4);
    }
  }
  rotate_kernel<Size><<<1, 32>>>(all.get(), key, true);
  give(all, rotated);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::abs(rotated[i] / Size - values[i]) < 1e-5f);
  }
}

TEST_CASE("[rotate] a thread rotates 16, 32 or 64 values, and back")
{
  check_thread_hadamard<16>();
  check_thread_hadamard<32>();
  check_thread_hadamard<64>();
}

}  // namespace
