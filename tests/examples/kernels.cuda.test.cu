// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/kernels/ on a device, beside plain loops in double.

#include "codegen/block_scope_kernels.cu"
#include "support/chunk_rotation.hpp"
#include "support/normal_gradients.hpp"
#include "support/reference_float.hpp"
#include "support/same_bytes.hpp"

#include <tersum/block/chunk_step.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/chunk/random_chunks.hpp>
#include <tersum/device/chunk_norms.hpp>
#include <tersum/execute/cpu_executor.hpp>
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
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <vector>

namespace {

using namespace tersum;

template <class... Args>
__global__ void cast_kernel(Args... args)
{
  cast_to_nvfp4::cast(cuda_context{}, args...);
}

// An array that host and device see.
template <class T>
class managed {
 public:
  explicit managed(std::vector<T> const& from) : managed(from.size())
  {
    std::copy(from.begin(), from.end(), data_);
  }
  explicit managed(std::size_t count) : count_{count}
  {
    REQUIRE(cudaMallocManaged(&data_, count * sizeof(T)) == cudaSuccess);
  }
  managed(managed const&)            = delete;
  managed& operator=(managed const&) = delete;
  ~managed() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] T* get() const { return data_; }
  // What the device has left.
  template <class Result = std::vector<T>>
  [[nodiscard]] Result read() const
  {
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    return {data_, data_ + count_};
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

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
  auto const values             = in_half(tests::normal_gradients(1, count, 1)[0]);
  auto const bias               = tests::normal_gradients(1, width, 2)[0];
  using chunk                   = bias_in_4_bits::chunk;
  managed const of_values{values};
  managed const of_bias{bias};
  managed<std::uint32_t> const of_payload{chunk::words<4>(count)};
  managed<float> const of_steps{count / 1024};
  bias_in_4_bits_kernel<<<chunk::blocks(count), chunk::block_threads>>>(of_values.get(),
                                                                        of_bias.get(),
                                                                        count,
                                                                        width,
                                                                        dither_key{.seed = 5},
                                                                        signs,
                                                                        of_payload.get(),
                                                                        of_steps.get());
  auto const payload = of_payload.read();
  auto const steps   = of_steps.read();
  for (std::size_t number = 0; number < steps.size(); ++number) {
    std::vector<double> sums(1024);
    double square = 0;
    for (std::size_t i = 0; i < 1024; ++i) {
      std::size_t const at = 1024 * number + i;
      sums[i]              = static_cast<double>(to_float(values[at]) + bias[at % width]);
      square += sums[i] * sums[i];
    }
    double const step  = bias_in_4_bits::reach * std::sqrt(square / 1024) / 7;
    auto const rotated = tests::chunk_rotation<1024>{number, signs}.forward(sums.data());
    CHECK(steps[number] * 32 == doctest::Approx(step).epsilon(1e-6));
    for (std::size_t p = 0; p < 1024; ++p) {
      double const exact = std::clamp(rotated[p] / (32 * step), -7.0, 7.0);
      // Values, and their scale, are floats.
      REQUIRE(std::abs(code_at(payload, 1024 * number + p) - exact) < 1 + 1e-4);
    }
  }
}

TEST_CASE("[examples] products of a query are those with the levels of rotated keys")
{
  constexpr std::size_t count = 601;
  constexpr double rounding   = 0x1p-24;
  auto const keys             = in_half(tests::normal_gradients(1, 128 * count, 3)[0]);
  auto const query            = tests::normal_gradients(1, 128, 4)[0];
  managed const of_keys{keys};
  managed const of_query{query};
  managed<std::uint32_t> const of_codes{16 * count};
  managed<float> const of_scales{count}, of_products{count};
  kv_page::page const page{count, 9, of_codes.get(), of_scales.get()};
  constexpr auto blocks = kv_page::key::blocks(128 * count);
  write_keys_kernel<<<blocks, kv_page::key::block_threads>>>(of_keys.get(), page);
  multiply_keys_kernel<<<blocks, kv_page::key::block_threads>>>(
    of_query.get(), page, of_products.get());
  auto const codes  = of_codes.read();
  auto const scales = of_scales.read(), products = of_products.read();
  tests::chunk_rotation<128> const rotation{0, 9};
  auto const q                 = rotation.forward(query.data());
  auto const sum_of_magnitudes = [](auto const& all) {
    double sum = 0;
    for (double const x : all) { sum += std::abs(x); }
    return sum;
  };
  double const entries = sum_of_magnitudes(query);
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> values;
    for (std::size_t i = 0; i < 128; ++i) { values.push_back(to_float(keys[128 * k + i])); }
    auto const rotated      = rotation.forward(values.data());
    double const magnitudes = sum_of_magnitudes(values), sizes = sum_of_magnitudes(rotated);
    double energy = 0, projection = 0, product = 0, terms = 0, levels = 0;
    for (double const x : rotated) { energy += x * x; }
    // Seven sums of a rotation round each value by 7 of 2^24 of its terms; a norm also 34 times, its root half of that.
    double const root = std::sqrt(energy / 128), slack = 7 * magnitudes / root;
    double const of_root = 7 * magnitudes * sizes / energy + 20;
    for (std::size_t p = 0; p < 128; ++p) {
      auto const code        = static_cast<std::uint32_t>(code_at(codes, 128 * k + p)) & 15u;
      auto const level       = static_cast<double>(lloyd_max<4>{}.decode(code));
      float const* const end = lloyd_max<4>::boundaries() + (code & 7u);
      double const x = std::abs(rotated[p]) / root, most = 2 * rounding * (slack + of_root * x);
      REQUIRE(x <= static_cast<double>(*end) + most);
      REQUIRE(((code & 7u) == 0 || x >= static_cast<double>(end[-1]) - most));
      REQUIRE((x <= most || (code >= 8) == (rotated[p] < 0)));
      projection += rotated[p] * level;
      product += q[p] * level;
      terms += std::abs(q[p] * level);
      levels += std::abs(level);
    }
    // The scale makes the projection onto the key the key's. Sums have 32 products in a thread and two more of threads.
    auto const scale = static_cast<double>(scales[k]);
    CHECK(std::abs(scale * projection - energy) <=
          rounding * (7 * magnitudes * (scale * levels + 2 * sizes) + 72 * energy));
    // The rotated query and 32 products and sums of a thread, three sums more and two scales.
    double const most = rounding * (7 * entries * levels + 38 * terms) * scale / 128;
    CHECK(std::abs(static_cast<double>(products[k]) - product * scale / 128) <= most);
  }
}

template <class Element>
void cast(std::vector<Element> const& values,
          float unit,
          std::uint64_t seed,
          std::vector<std::uint32_t>& codes,
          std::vector<std::uint8_t>& scales)
{
  std::uint64_t const blocks = values.size() / 16, signs = 11;
  managed const of_values{values};
  managed<std::uint32_t> const of_codes{2 * blocks};
  managed<std::uint8_t> const of_scales{blocks};
  cast_kernel<<<3, 32>>>(of_values.get(),
                         blocks,
                         unit,
                         signs,
                         dither_key{.seed = seed},
                         of_codes.get(),
                         of_scales.get());
  codes  = of_codes.read();
  scales = of_scales.read();
}

TEST_CASE(
  "[examples] a value in NVFP4 is one of its two neighbours, and right in the mean over seeds")
{
  constexpr std::array numbers{0.0, .5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  constexpr std::size_t blocks = 70;
  auto const values            = tests::normal_gradients(1, 16 * blocks, 5)[0];
  float largest                = 0;
  for (float const x : values) { largest = std::max(largest, 4 * std::abs(x)); }
  float const whole = largest / (6 * 448);
  std::vector<double> mean(16 * blocks);
  std::vector<std::uint32_t> codes, same;
  std::vector<std::uint8_t> scales;
  constexpr int seeds = 20;
  for (int seed = 0; seed < seeds; ++seed) {
    cast(values, whole, static_cast<std::uint64_t>(seed), codes, scales);
    for (std::size_t block = 0; block < blocks; ++block) {
      std::vector<double> x(16);
      std::uint32_t const flips = sign_bits(block, 11);
      for (std::size_t i = 0; i < 16; ++i) {
        x[i] = static_cast<double>(values[16 * block + i]) * ((flips >> i & 1) != 0 ? -.25 : .25);
      }
      x                 = tests::hadamard_transform(x);
      double const unit = tests::reference_e4m3::value(scales[block]) * static_cast<double>(whole);
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
  cast(small, whole, 1, codes, scales);
  cast(in_half(small), whole, 1, same, scales);
  CHECK(codes == same);
  // As tests/quantize/thread_scaled_floats.emulated.test.cpp has of a host.
  std::vector<float> few;
  for (int i = 0; i < 16; ++i) { few.push_back(static_cast<float>(i * 37 % 101) - 50); }
  cast(few, .5f, 5, codes, scales);
  CHECK(codes == std::vector<std::uint32_t>{0x82a8db36u, 0x347aa643u});
  CHECK(scales[0] == 0x5cu);
}

TEST_CASE("[examples] all peers have the saturating sums")
{
  for (std::size_t const ranks : {1u, 2u, 5u, 8u}) {
    CAPTURE(ranks);
    constexpr std::size_t size = 53;
    std::mt19937 random(6);
    std::vector<word4> payloads(ranks * size);
    std::vector<std::array<int, 32>> sums(size);
    auto const packed = [](std::array<int, 32> const& lanes) {
      std::array<std::uint32_t, 4> words{};
      for (std::size_t i = 0; i < 32; ++i) {
        words[i / 8] |= (static_cast<std::uint32_t>(lanes[i]) & 15u) << (4 * (i % 8));
      }
      return word4{words[0], words[1], words[2], words[3]};
    };
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      std::array<int, 32> lanes{};
      for (std::size_t lane = 0; lane < 32; ++lane) {
        int& sum    = sums[i % size][lane];
        lanes[lane] = static_cast<int>(random() % 15) - 7;
        sum         = std::clamp(sum + lanes[lane], -7, 7);
      }
      payloads[i] = packed(lanes);
    }
    managed const all{payloads};
    sum_over_peers::peers peers{.payload = {}, .count = static_cast<int>(ranks), .rank = 0};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      peers.payload[rank] = all.get() + rank * size;
    }
    for (; peers.rank < peers.count; ++peers.rank) {
      sum_over_peers_kernel<<<2, 32>>>(peers, size);
    }
    payloads = all.read();
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      REQUIRE(payloads[i] == packed(sums[i % size]));
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
  using tests::same_bytes;
  constexpr std::uint64_t count = 16384, key = 3;
  constexpr unsigned blocks = count / 4096;
  auto const values         = tests::normal_gradients(1, count, 7)[0];
  constexpr float step      = 2.75f / 7;
  auto const scale = make_chunk_step<partial_hadamard<1024>, stochastic_quantizer<4>>(step, 64, 1);
  managed const from{values};
  std::string const counts = "plain_kernels." + std::to_string(getpid());
  setenv("TERSUM_SIMULATED_COUNTS", counts.c_str(), 1);
  managed<float> const of_plain{count}, of_pieces{count};
  managed<std::uint16_t> const plain_codes{count / 4};
  managed<std::uint32_t> const pieces_codes{count / 8};
  managed<std::uint8_t> const plain_scales{count / 16}, pieces_scales{count / 16};
  std::vector<float> plain, pieces;
  auto const finish = [&] {
    plain  = of_plain.read();
    pieces = of_pieces.read();
  };

  for (auto* const copy : {plain_copy_kernel, pieces_copy_kernel, pieces_striped_kernel}) {
    managed<float> const copied{count};
    copy<<<blocks, 128>>>(from.get(), copied.get());
    CHECK(copied.read() == values);
  }
  pieces_small_chunks_kernel<32>
    <<<blocks, 128>>>(from.get(), count, 2.0f, of_plain.get(), of_pieces.get());

  plain_norm_kernel<<<blocks, 128>>>(from.get(), of_plain.get());
  pieces_norm_kernel<<<blocks, 128>>>(from.get(), of_pieces.get());
  finish();
  for (std::size_t i = 0; i < count / 1024; ++i) {
    CHECK(plain[i] == doctest::Approx(pieces[i]).epsilon(1e-5));
  }
  managed<chunk_step> const plain_steps{16}, pieces_steps{16};
  plain_step_kernel<<<1, 16>>>(of_plain.get(), plain_steps.get());
  pieces_step_kernel<<<1, 16>>>(of_plain.get(), pieces_steps.get());
  CHECK(same_bytes(plain_steps.read(), pieces_steps.read()));
  pieces_norm_8192_kernel<<<count / 8192, 256>>>(from.get(), count, of_pieces.get());
  pieces = of_pieces.read();
  CHECK(pieces[1] == doctest::Approx(std::reduce(&plain[8], &plain[16])).epsilon(1e-5));
  plain_largest_kernel<<<blocks, 128>>>(from.get(), of_plain.get());
  pieces_largest_kernel<<<blocks, 128>>>(from.get(), of_pieces.get());
  finish();
  CHECK(std::equal(plain.begin(), plain.begin() + count / 1024, pieces.begin()));

  plain_hadamard_32_kernel<<<count / 4096, 128>>>(from.get(), key, of_plain.get());
  pieces_hadamard_32_kernel<<<count / 4096, 128>>>(from.get(), key, of_pieces.get());
  CHECK(of_plain.read() == of_pieces.read());
  plain_hadamard_64_kernel<<<count / 8192, 128>>>(from.get(), key, of_plain.get());
  pieces_hadamard_64_kernel<<<count / 8192, 128>>>(from.get(), key, of_pieces.get());
  CHECK(of_plain.read() == of_pieces.read());

  // A rotation keeps the norm.
  plain_rotate_kernel<<<blocks, 128>>>(from.get(), key, of_plain.get());
  pieces_rotate_kernel<<<blocks, 128>>>(from.get(), key, of_pieces.get());
  finish();
  std::vector<float> const zeros(count);
  double const square = 1024 * difference(values, zeros);
  CHECK(difference(plain, zeros) == doctest::Approx(square).epsilon(1e-5));
  CHECK(difference(pieces, zeros) == doctest::Approx(square).epsilon(1e-5));

  // Between codes rounding at random has the variance x (1 - x) of squared steps: 1/6 in the mean. Values end at 2.75 deviations.
  plain_encode_kernel<<<blocks, 128>>>(from.get(), key, 1 / (32 * step), plain_codes.get());
  plain_decode_kernel<<<blocks, 128>>>(plain_codes.get(), key, step / 32, of_plain.get());
  pieces_encode_kernel<<<blocks, 128>>>(from.get(), key, scale.encode, pieces_codes.get());
  pieces_decode_kernel<<<blocks, 128>>>(pieces_codes.get(), key, scale.decode, of_pieces.get());
  finish();
  CHECK(difference(plain, values) == doctest::Approx(step * step / 6).epsilon(.05));
  CHECK(difference(pieces, values) == doctest::Approx(step * step / 6).epsilon(.05));

  // Of sums of codes one in twenty is saturated.
  auto codes = pieces_codes.read();
  managed const plain_sums{codes}, pieces_sums{codes};
  std::reverse(codes.begin(), codes.end());
  managed const others{codes};
  auto const fours = [](auto const& words) { return reinterpret_cast<uint4*>(words.get()); };
  plain_add_kernel<<<blocks, 128>>>(fours(plain_sums), fours(others));
  pieces_add_kernel<<<blocks, 128>>>(fours(pieces_sums), fours(others));
  CHECK(plain_sums.read() == pieces_sums.read());

  // Levels of normal values are multiplied by the same but for what signs and the order of coordinates make.
  plain_levels_kernel<<<blocks, 128>>>(from.get(), key, plain_codes.get(), of_plain.get());
  pieces_levels_kernel<<<blocks, 128>>>(from.get(), key, pieces_codes.get(), of_pieces.get());
  finish();
  for (std::size_t i = 0; i < count / 1024; ++i) {
    CHECK(plain[i] == doctest::Approx(pieces[i]).epsilon(.02));
  }

  // Codes that are drawn by other bytes are neighbours.
  managed<uint2> const of_plain_twos{count / 16}, of_pieces_twos{count / 16};
  plain_nvfp4_kernel<<<count / 2048, 128>>>(
    from.get(), .01f, key, 9, of_plain_twos.get(), plain_scales.get());
  pieces_nvfp4_kernel<<<count / 2048, 128>>>(
    from.get(), .01f, key, 9, of_pieces_twos.get(), pieces_scales.get());
  CHECK(plain_scales.read() == pieces_scales.read());
  auto const plain_twos = of_plain_twos.read(), pieces_twos = of_pieces_twos.read();
  for (std::size_t i = 0; i < count; ++i) {
    auto const code = [&](std::vector<uint2> const& words) {
      std::uint32_t const word = i % 16 < 8 ? words[i / 16].x : words[i / 16].y;
      auto const of            = static_cast<int>(word >> (4 * (i % 8)) & 15u);
      return of < 8 ? of : 8 - of;
    };
    REQUIRE(std::abs(code(plain_twos) - code(pieces_twos)) <= 1);
  }

  auto const check_mx = [&](auto by_hand, auto by_pieces, std::size_t fours) {
    managed<uint4> const plain_fours{fours}, pieces_fours{fours};
    by_hand<<<blocks, 128>>>(from.get(), plain_fours.get(), plain_scales.get());
    by_pieces<<<blocks, 128>>>(from.get(), pieces_fours.get(), pieces_scales.get());
    CHECK(same_bytes(plain_fours.read(), pieces_fours.read()));
    CHECK(plain_scales.read() == pieces_scales.read());
  };
  check_mx(plain_mxfp4_kernel, pieces_mxfp4_kernel, count / 32);
  check_mx(plain_mxfp8_kernel, pieces_mxfp8_kernel, count / 16);

  plain_pack_kernel<<<4, 128>>>(from.get(), fours(plain_sums));
  pieces_pack_kernel<<<4, 128>>>(from.get(), pieces_sums.get());
  CHECK(plain_sums.read() == pieces_sums.read());
  plain_unpack_kernel<<<4, 128>>>(fours(plain_sums), of_plain.get());
  pieces_unpack_kernel<<<4, 128>>>(pieces_sums.get(), of_pieces.get());
  CHECK(of_plain.read() == of_pieces.read());
  plain_scan_kernel<<<4, 256>>>(pieces_codes.get(), of_plain_twos.get());
  pieces_scan_kernel<<<4, 256>>>(pieces_codes.get(), of_pieces_twos.get());
  CHECK(same_bytes(of_plain_twos.read(), of_pieces_twos.read()));

  // In the simulator, pieces read and write as many sectors of memory.
  unsetenv("TERSUM_SIMULATED_COUNTS");
  std::size_t compared = 0;
  std::map<std::string, std::array<double, 2>> sectors;
  std::ifstream file{counts};
  bool const simulated = file.good();
  for (std::array<double, 17> columns{}; file >> columns[0];) {
    for (std::size_t i = 1; i < columns.size(); ++i) { file >> columns[i]; }
    std::string name;
    std::getline(file >> std::ws, name);
    name          = name.substr(0, name.find('('));
    sectors[name] = {columns[9], columns[13]};
    if (std::regex_search(name, std::regex{"_copy_|_striped_|pieces_rotate_|_small_chunks_"})) {
      CAPTURE(name);  // whose requests leave nothing of a sector
      CHECK(columns[8] + columns[12] == 32 * (columns[7] + columns[11]));
      ++compared;
    }
  }
  std::remove(counts.c_str());
  for (auto const& moved : sectors) {
    std::string name = moved.first;
    if (std::size_t const at = name.find("plain_", 15); at != std::string::npos) {
      CAPTURE(moved.first);
      auto const& by_pieces = sectors.at(name.replace(at, 6, "pieces_"));
      for (std::size_t way = 0; way < 2; ++way) {
        CHECK(by_pieces[way] > 0);
        CHECK(by_pieces[way] == doctest::Approx(moved.second[way]).epsilon(.02));
      }
      ++compared;
    }
  }
  CHECK(compared == (simulated ? 17 + 5 : 0));
  // Of 32 bytes: a float is read and half a byte written.
  if (simulated) {
    CHECK(sectors["plain_kernels::plain_encode_kernel"] == std::array{count / 8.0, count / 64.0});
  }
}

template <int Size>
__global__ void rotate_kernel(float* values, std::uint64_t key)
{
  float v[Size];
  thread_values<Size>::load(cuda_context{}, values + Size * threadIdx.x, v);
  thread_hadamard<Size>::forward(cuda_context{}, threadIdx.x, key, v);
  thread_hadamard<Size>::backward(cuda_context{}, threadIdx.x, key, v);
  thread_values<Size>::store(cuda_context{}, v, values + Size * threadIdx.x);
}

template <int Size>
void check_thread_hadamard()
{
  auto const values = tests::normal_gradients(1, 32 * Size, Size)[0];
  managed const all{values};
  rotate_kernel<Size><<<1, 32>>>(all.get(), 77);
  auto const back = all.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::abs(back[i] / Size - values[i]) < 1e-5f);
  }
}

TEST_CASE("[rotate] a thread rotates 16, 32 or 64 values, and back")
{
  check_thread_hadamard<16>();
  check_thread_hadamard<32>();
  check_thread_hadamard<64>();
}

template <int Size>
void check_small_chunks()
{
  CAPTURE(Size);
  constexpr std::size_t count = 9000;
  auto const values           = tests::normal_gradients(1, count, Size)[0];
  managed const from{in_half(values)};
  managed<float> const rounded{count}, leveled{count};
  plain_kernels::pieces_small_chunks_kernel<Size><<<block_chunk<Size>::blocks(count), 128>>>(
    from.get(), count, 2.0f, rounded.get(), leveled.get());
  // Codes are half a unit apart, and their rounding has the variance 1/12 of that squared; levels have .0095 of normal values'.
  CHECK(difference(rounded.read(), values) == doctest::Approx(.25 / 12 / Size).epsilon(.05));
  CHECK(difference(leveled.read(), values) == doctest::Approx(.0095).epsilon(.1));
}

TEST_CASE("[block] a chunk of one or two threads is rotated, coded and decoded as larger ones are")
{
  check_small_chunks<32>();
  check_small_chunks<64>();
  std::vector<std::uint32_t> counts(64);
  std::iota(counts.begin(), counts.end(), 3);
  managed const from{counts};
  managed<uint2> const sums{64};
  plain_kernels::pieces_warp_scan_kernel<<<1, 64>>>(from.get(), sums.get());
  auto const found = sums.read();
  for (std::size_t i = 0; i < 64; ++i) {
    auto const* const warp = &counts[i / 32 * 32];
    CHECK(found[i].x == std::accumulate(warp, warp + i % 32, 0u));
    CHECK(found[i].y == std::accumulate(warp, warp + 32, 0u));
  }
}

TEST_CASE(
  "[block] the norms of a thread's values have the bits of its chunk's, and see what is not finite")
{
  auto values = tests::normal_gradients(1, 128 * 32, 8)[0];
  values[0]   = std::numeric_limits<float>::quiet_NaN();
  values[40]  = -std::numeric_limits<float>::infinity();
  managed const from{values};
  managed<float2> const norms{128};
  plain_kernels::pieces_thread_norm_kernel<<<1, 128>>>(from.get(), norms.get());
  std::vector<float> squares(128);
  REQUIRE(chunk_norms(cpu_executor{}, random_chunks<32>{}, values, squares).ok());
  auto const found = norms.read();
  CHECK(std::isnan(found[0].x));
  CHECK(std::isnan(found[0].y));
  CHECK(std::isinf(found[1].x));
  CHECK(std::isinf(found[1].y));
  for (std::size_t thread = 2; thread < 128; ++thread) {
    float largest = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      largest = std::max(largest, std::abs(values[32 * thread + i]));
    }
    CHECK(found[thread].x == squares[thread]);
    CHECK(found[thread].y == largest);
  }
}

}  // namespace
