// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rotations as a codec applies them are orthonormal Hadamard transforms with signs, forward and back.

#include "support/chunk_rotation.hpp"
#include "support/staged_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/full_hadamard.hpp>

#include <bit>
#include <cmath>
#include <random>

using namespace tersum;

namespace {

constexpr std::uint64_t key = 0xfeedu;

// Rounding to nearest on +-127 steps of the largest magnitude: rotated integers with a largest one of 127 are kept.
template <int Size, class Rotator = partial_hadamard<Size>>
using exact_codec =
  codec<fixed_chunks<Size>,
        Rotator,
        summed_codes<absmax_range<no_headroom>, nearest_quantizer<8>, widening_sum<8, 16>>,
        in_wire>;

// The orthonormal transform in double.
std::vector<double> hadamard(std::vector<double> const& in)
{
  auto x = tests::hadamard_transform(in);
  for (double& value : x) { value /= std::sqrt(static_cast<double>(x.size())); }
  return x;
}

template <int Size>
double sign_of(std::size_t i)
{
  using order         = chunk_order<Size>;
  std::size_t const j = i % Size;
  std::uint32_t const word =
    sign_bits(i / Size * (Size / 32) + order::sign_word(j), sign_key(0, key));
  return (word >> order::sign_bit(j) & 1) == 0 ? 1.0 : -1.0;
}

template <class Codec>
void run_step(tests::staged_run<Codec>& run, std::vector<float> const& gradient)
{
  run.measure({gradient});
  run.agree(reduction_order::ring);
  run.encode();
  run.reduce(reduction_order::ring);
  run.decode();
}

// Gradients whose rotation, `length` coordinates at a time, is known to be integers travel without loss.
template <int Size, class Codec>
void check_round_trip(Codec const& codec, std::size_t length)
{
  CAPTURE(Size);
  CAPTURE(length);
  std::size_t const count = 2 * length;
  std::mt19937 random(Size);
  std::vector<int> integers(count);
  std::vector<float> gradient(count);
  std::vector<double> truth(count);
  for (std::size_t begin = 0; begin < count; begin += length) {
    std::vector<double> rotated(length);
    for (std::size_t i = 0; i < length; ++i) {
      // Every chunk has a 127, so that its step is one.
      int const q         = i % Size == 5 ? -127 : static_cast<int>(random() % 255) - 127;
      integers[begin + i] = q;
      rotated[i]          = q;
    }
    auto const back = hadamard(rotated);
    for (std::size_t i = 0; i < length; ++i) {
      truth[begin + i]    = back[i] * sign_of<Size>(begin + i);
      gradient[begin + i] = static_cast<float>(truth[begin + i]);
    }
  }
  tests::staged_run<Codec> run{codec, layout{count}, 1, key};
  run_step(run, gradient);

  // Forward: log2 N roundings of 2^-24 |x|, |x| about 73 sqrt(N), and 127 of 127 steps: far from the next half.
  auto const codes = run.codes(0, 1);
  bool same        = true;
  for (std::size_t p = 0; p < count; ++p) {
    std::size_t const i =
      p / Size * Size + chunk_order<Size>::coordinate(p % static_cast<std::size_t>(Size));
    same = same && codes[p] == integers[i];
  }
  CHECK(same);

  // Back: the same error again, and that of the step.
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lost += std::pow(static_cast<double>(run.values(0)[i]) - truth[i], 2);
    all += truth[i] * truth[i];
  }
  CHECK(std::sqrt(lost / all) < 1e-6 * std::log2(static_cast<double>(length)));
}

template <int Size>
void check_unit_vectors()
{
  CAPTURE(Size);
  std::size_t const n = Size;
  for (std::size_t const j : {std::size_t{0}, std::size_t{1}, n / 4 + 3, n - 1}) {
    CAPTURE(j);
    // The column j of H: all magnitudes equal, so all codes are +-127, with the signs of (-1)^(bits shared with j).
    std::vector<float> gradient(n);
    gradient[j] = 3.0f;
    tests::staged_run<exact_codec<Size>> run{exact_codec<Size>{}, layout{n}, 1, key};
    run_step(run, gradient);
    auto const codes = run.codes(0, 1);
    bool same        = true;
    for (std::size_t p = 0; p < n; ++p) {
      std::size_t const i = chunk_order<Size>::coordinate(p);
      double const sign   = sign_of<Size>(j) * (std::popcount(i & j) % 2 == 0 ? 1 : -1);
      same                = same && codes[p] == static_cast<int>(127 * sign);
    }
    CHECK(same);
    double const allowed = 3e-6 * std::log2(static_cast<double>(n));
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(std::abs(static_cast<double>(run.values(0)[i]) - (i == j ? 3.0 : 0.0)) <= allowed);
    }
  }
}

// The norm of what rounding loses is the same in both bases.
template <int Size>
void check_parseval()
{
  CAPTURE(Size);
  std::size_t const n = Size;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(n);
  for (float& value : gradient) { value = normal(random); }
  tests::staged_run<exact_codec<Size>> run{exact_codec<Size>{}, layout{n}, 1, key};
  run_step(run, gradient);

  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<double>(gradient[i]) * sign_of<Size>(i);
  }
  auto const rotated = hadamard(x);
  auto const codes   = run.codes(0, 1);
  double const step  = static_cast<double>(run.step(0, 0).decode) * std::sqrt(1.0 * Size);
  double in_codes = 0, in_values = 0;
  for (std::size_t p = 0; p < n; ++p) {
    in_codes += std::pow(rotated[chunk_order<Size>::coordinate(p)] - step * codes[p], 2);
  }
  for (std::size_t i = 0; i < n; ++i) {
    in_values +=
      std::pow(static_cast<double>(gradient[i]) - static_cast<double>(run.values(0)[i]), 2);
  }
  // Each norm is off by at most log2 N 2^-24 |x| = 9e-7 |x|. The loss has the norm step sqrt(N / 12), the step is M / 127
  // with M above 2.5 deviations: 5.7e-3 |x|. Both sides: 3.2e-4.
  CHECK(std::abs(std::sqrt(in_codes / in_values) - 1) < 3.2e-4);
}

template <int Size>
void check_all()
{
  check_round_trip<Size>(exact_codec<Size>{}, Size);
  check_unit_vectors<Size>();
  check_parseval<Size>();
}

}  // namespace

TEST_CASE("[rotate] every partial_hadamard is an orthonormal Hadamard transform, forward and back")
{
  check_all<128>();
  check_all<256>();
  check_all<512>();
  check_all<1024>();
  check_all<2048>();
  check_all<4096>();
  check_all<8192>();
  check_all<16384>();
  check_all<32768>();
}

TEST_CASE("[rotate] full_hadamard is one over a power of two of chunks, forward and back")
{
  for (std::size_t const chunks : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
    std::size_t const length = chunks * 256;
    CAPTURE(length);
    using full = exact_codec<256, full_hadamard>;
    std::mt19937 random(3);
    std::vector<double> rotated(length);
    for (std::size_t i = 0; i < length; ++i) {
      rotated[i] = i % 256 == 9 ? 127 : static_cast<int>(random() % 255) - 127;
    }
    auto truth = hadamard(rotated);
    std::vector<float> gradient(length);
    for (std::size_t i = 0; i < length; ++i) {
      truth[i] *= sign_of<256>(i);
      gradient[i] = static_cast<float>(truth[i]);
    }
    tests::staged_run<full> run{full{}, layout{length}, 1, key};
    run_step(run, gradient);
    auto const codes = run.codes(0, 1);
    bool same        = true;
    for (std::size_t p = 0; p < length; ++p) {
      std::size_t const i = p / 256 * 256 + chunk_order<256>::coordinate(p % 256);
      same                = same && codes[p] == static_cast<int>(rotated[i]);
    }
    CHECK(same);
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < length; ++i) {
      lost += std::pow(static_cast<double>(run.values(0)[i]) - truth[i], 2);
      all += truth[i] * truth[i];
    }
    CHECK(std::sqrt(lost / all) < 1e-6 * std::log2(static_cast<double>(length)));
  }
}

TEST_CASE("[rotate] signs are fair and fresh in every step and chunk")
{
  // 2^16 fair signs have a sum of standard deviation 2^8, and agree with another draw as often as not.
  constexpr std::size_t words = 2048;
  auto const draw             = [](std::uint64_t step, std::uint64_t seed, std::uint64_t first) {
    std::vector<std::uint32_t> out;
    for (std::uint64_t i = 0; i < words; ++i) {
      out.push_back(sign_bits(first + i, sign_key(step, seed)));
    }
    return out;
  };
  auto const excess = [](std::vector<std::uint32_t> const& a, std::vector<std::uint32_t> const& b) {
    long long ones = 0;
    for (std::size_t i = 0; i < words; ++i) { ones += std::popcount(a[i] ^ b[i]); }
    return std::abs(2 * ones - static_cast<long long>(32 * words));
  };
  auto const base = draw(0, 1, 0);
  CHECK(excess(base, std::vector<std::uint32_t>(words)) < 5 * 256);
  CHECK(excess(base, draw(1, 1, 0)) < 5 * 256);
  CHECK(excess(base, draw(0, 2, 0)) < 5 * 256);
  CHECK(excess(base, draw(0, 1, words)) < 5 * 256);
  CHECK(excess(base, draw(0, 1, std::uint64_t{1} << 32)) < 5 * 256);
}
