// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs against the formulas of their sources in double: levels, scales, what a chunk decodes to, and errors.

#include "../conformance/codebook_conformance.hpp"
#include "../conformance/group_quantizer_conformance.hpp"
#include "../conformance/quantizer_conformance.hpp"
#include "../conformance/range_conformance.hpp"
#include "support/golden_digest.hpp"
#include "support/loopback_run.hpp"

#include <tersum/baseline/catalogue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace tersum;

namespace {

using doubles = std::vector<double>;

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

// The value below which a normal one lies with that probability, by bisection.
double quantile(double probability)
{
  double low = -9, high = 9;
  for (int i = 0; i < 80; ++i) {
    double const middle                                                       = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < probability ? low : high) = middle;
  }
  return low;
}

// --- NormalFloat

template <class Check>
void for_each_width(Check const& check)
{
  [&]<int... Number>(std::integer_sequence<int, Number...>)
  {
    (check(normal_float<Number + 2>{}), ...);
  }
  (std::make_integer_sequence<int, 7>{});
}

// Quantiles at equal distances of probability on both sides of zero, over the largest of them.
doubles quantile_levels(int bits)
{
  int const half     = 1 << (bits - 1);
  double const codes = 2 * half;
  double const last  = 1 - (1 / (2 * codes) + 1 / (2 * (codes - 1))) / 2;
  doubles out{0};
  for (int i = 0; i < half; ++i) { out.push_back(quantile(last + (.5 - last) * i / half)); }
  for (int i = 0; i < half - 1; ++i) {
    out.push_back(-quantile(last + (.5 - last) * i / (half - 1)));
  }
  std::sort(out.begin(), out.end());
  double const largest = out.back();
  for (double& level : out) { level /= largest; }
  return out;
}

TEST_CASE("[catalogue] levels of NormalFloat are the quantiles of the paper")
{
  for_each_width([]<class Codebook>(Codebook book) {
    CAPTURE(Codebook::bits);
    doubles const want = quantile_levels(Codebook::bits);
    for (std::uint32_t code = 0; code < want.size(); ++code) {
      auto const got = static_cast<double>(book.decode(code));
      CHECK(std::abs(got / static_cast<double>(Codebook::largest) - want[code]) < 3e-7);
    }
  });
}

TEST_CASE("[catalogue] NF4 has the 16 values that are published")
{
  constexpr float published[]{-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};
  using groups = group_absmax<4, 64, normal_levels>;
  for (std::uint32_t code = 0; code < 16; ++code) {
    CHECK(detail::normal_float_levels[12 + code] == published[code]);
    CHECK(normal_float<4>{}.decode(code) == normal_float<4>::largest * published[code]);
    if (code < 8) { CHECK(groups::level[7 - code] == -published[code]); }
  }
}

TEST_CASE(
  "[catalogue] the error of NormalFloat on normal values is what it says, and least at its unit")
{
  for_each_width([]<class Codebook>(Codebook book) {
    CAPTURE(Codebook::bits);
    // |x|^2 |q|^2 / <x, q>^2 - 1 of the levels q, times a factor.
    auto const error = [&](double factor) {
      double product = 0, square = 0;
      std::uint32_t code = 0;
      auto const level   = [&](std::uint32_t i) {
        return factor * static_cast<double>(book.decode(i));
      };
      for (double x = -9 + 5e-5; x < 9; x += 1e-4) {
        while (code + 1 < 1U << Codebook::bits && x >= (level(code) + level(code + 1)) / 2) {
          ++code;
        }
        product += 1e-4 * density(x) * x * level(code);
        square += 1e-4 * density(x) * level(code) * level(code);
      }
      return square / (product * product) - 1;
    };
    double const own = error(1);
    CHECK(static_cast<double>(Codebook::distortion()) == doctest::Approx(own).epsilon(1e-3));
    CHECK(error(1.01) > own);
    CHECK(error(.99) > own);
  });
}

TEST_CASE_TEMPLATE(
  "[catalogue] laws of the codebook", Codebook, normal_float<2>, normal_float<4>, normal_float<8>)
{
  tests::check_codebook_laws<Codebook>();
  constexpr Codebook book{};
  for (int i = -1000; i <= 1000; ++i) {
    float const value      = static_cast<float>(i) / 150;
    std::uint32_t const is = book.encode(value);
    float nearest          = std::numeric_limits<float>::infinity();
    for (std::uint32_t code = 0; code < 1U << Codebook::bits; ++code) {
      nearest = std::min(nearest, std::abs(book.decode(code) - value));
    }
    CHECK(std::abs(book.decode(is) - value) <= nearest + 1e-6F);
  }
}

// --- Levels and scales of groups

template <class Quantizer>
doubles levels_of()
{
  return {Quantizer::level.begin(), Quantizer::level.end()};
}

// A float by the definition of OCP formats.
template <class Format>
double element(int code, int exponent_bits, int mantissa_bits)
{
  int const exponent    = code >> mantissa_bits;
  double const fraction = std::ldexp(code & ((1 << mantissa_bits) - 1), -mantissa_bits);
  int const bias        = (1 << (exponent_bits - 1)) - 1;
  return exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
}

template <class Format>
void check_float(int exponent_bits, int mantissa_bits, double largest, double least)
{
  CAPTURE(exponent_bits);
  CAPTURE(mantissa_bits);
  CHECK(static_cast<double>(Format::magnitude(Format::last)) == largest);
  CHECK(static_cast<double>(Format::magnitude(1)) == least);
  CHECK(static_cast<double>(Format::significand) ==
        largest / std::exp2(std::floor(std::log2(largest))));
  auto const level = levels_of<mx_quantizer<Format>>();
  for (int code = 0; code <= Format::last; ++code) {
    double const want = element<Format>(code, exponent_bits, mantissa_bits);
    CHECK(static_cast<double>(Format::magnitude(code)) == want);
    CHECK(level[static_cast<std::size_t>(code)] == doctest::Approx(want / largest).epsilon(1e-7));
  }
}

TEST_CASE(
  "[catalogue] elements of MX formats have the values, the largest and the least of the specification")
{
  check_float<e2m1_levels>(2, 1, 6, .5);
  check_float<e2m3_levels>(2, 3, 7.5, .125);
  check_float<e3m2_levels>(3, 2, 28, .0625);
  check_float<e4m3_levels>(4, 3, 448, 0x1p-9);
  check_float<e5m2_levels>(5, 2, 57344, 0x1p-16);
  doubles const e2m1{0, .5, 1, 1.5, 2, 3, 4, 6};
  for (int i = 0; i < 8; ++i) {
    CHECK(static_cast<double>(e2m1_levels::magnitude(i)) == e2m1[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE(
  "[catalogue] scales are the power of two below the largest magnitude, or the nearest E4M3")
{
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-20, 0);
  std::vector<float> ratios{
    1.0F, 0.5F, std::nextafter(0.5F, 0.0F), std::nextafter(1.0F, 0.0F), 0x1p-100F};
  for (int code = 0; code < 253; ++code) {  // E4M3 themselves, and half-way between them
    double const sum = element<void>(code / 2, 4, 3) + element<void>((code + 1) / 2, 4, 3);
    ratios.push_back(static_cast<float>(sum / 2 / 448));
  }
  for (int i = 0; i < 3000; ++i) {
    ratios.push_back(static_cast<float>(std::exp2(exponent(random))));
  }
  for (float const ratio : ratios) {
    CAPTURE(ratio);
    auto const value  = static_cast<double>(ratio);
    using e8m0        = e8m0_scale<e2m1_levels>;
    double const said = static_cast<double>(e8m0::decode(e8m0::encode(ratio)));
    CHECK(said == (value > 0 ? 1.5 * std::exp2(std::floor(std::log2(value))) : 1.5 * 0x1p-126));
    std::uint32_t const code = e4m3_scale::encode(ratio);
    REQUIRE(code <= 126);
    double const got = element<void>(static_cast<int>(code), 4, 3);
    CHECK(static_cast<double>(e4m3_scale::decode(code)) ==
          doctest::Approx(got / 448).epsilon(2e-7));
    double nearest = 448;
    for (int other = 0; other < 127; ++other) {
      nearest = std::min(nearest, std::abs(element<void>(other, 4, 3) - value * 448));
    }
    // But for the rounding of the product to float, which moves it away from one and to another, and for what is below 2^-22.
    CHECK(std::abs(got - value * 448) <= nearest + value * 448 * 0x1p-23 + 0x1p-22);
  }
  for (int code = 0; code < 126; ++code) {
    // Half-way cases whose product is exact: those of a multiple of 7 / 448, which is a power of two.
    double const tie = (element<void>(code, 4, 3) + element<void>(code + 1, 4, 3)) / 2 / 448;
    if (static_cast<double>(static_cast<float>(tie)) != tie) { continue; }
    CHECK(e4m3_scale::encode(static_cast<float>(tie)) % 2 == 0);
  }
  CHECK(e4m3_scale::encode(1) == 126);
  CHECK(e4m3_scale::decode(126) == 1);
  CHECK(e4m3_scale::encode(0) == 0);
  CHECK(e4m3_scale::decode(0) == 0);
  CHECK(e8m0_scale<e4m3_levels>::decode(0) == 1.75F);
}

TEST_CASE("[catalogue] levels of natural dithering are powers of two")
{
  doubles const want{0, 0x1p-6, 0x1p-5, 0x1p-4, 0x1p-3, .25, .5, 1};
  CHECK(levels_of<group_absmax<4, 128, natural_levels>>() == want);
}

TEST_CASE("[catalogue] levels of dynamic quantization are the middles of the published cells")
{
  auto const level = levels_of<group_absmax<8, 64, dynamic_levels, byte_scale, no_dither>>();
  doubles want{0};
  for (int i = 0; i < 7; ++i) {
    int const cells = 1 << i;
    for (int k = 0; k < cells; ++k) {
      double const begin = .1 + .9 * k / cells, end = .1 + .9 * (k + 1) / cells;
      want.push_back(std::pow(10.0, i - 6) * (begin + end) / 2);
    }
  }
  std::sort(want.begin(), want.end());
  REQUIRE(level.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(level[i] == doctest::Approx(want[i]).epsilon(1e-6));
  }
}

TEST_CASE_TEMPLATE("[catalogue] laws of quantizers of groups",
                   Quantizer,
                   group_absmax<4, 32>,
                   group_absmax<8, 16, geometric_levels<23, 10>, byte_scale>,
                   mx_quantizer<e2m1_levels>,
                   mx_quantizer<e2m3_levels>,
                   mx_quantizer<e3m2_levels>,
                   mx_quantizer<e4m3_levels>,
                   mx_quantizer<e5m2_levels>,
                   nvfp4_quantizer,
                   group_absmax<4, 64, normal_levels, byte_scale>,
                   group_absmax<8, 64, dynamic_levels, byte_scale, no_dither>,
                   group_absmax<4, 128, natural_levels, bfloat16_scale, independent>)
{
  tests::check_group_quantizer_laws<Quantizer>();
}

// --- What a chunk of groups decodes to

template <class Quantizer>
inline constexpr int size_of_chunk = 16 * Quantizer::block;

template <class Quantizer>
struct coded {
  std::array<std::uint32_t, detail::code_words<Quantizer>(size_of_chunk<Quantizer>)> words{};
  std::vector<float> out = std::vector<float>(size_of_chunk<Quantizer>);
  float whole            = 0;
};

template <class Quantizer>
coded<Quantizer> code(std::vector<float> const& in, std::uint64_t step = 0)
{
  using codes = detail::chunk_codes<Quantizer, size_of_chunk<Quantizer>>;
  coded<Quantizer> result;
  instruction_set const set = best_instruction_set();
  result.whole              = codes::template encode<typename Quantizer::dither>(
    set, {.seed = 7, .step = step}, 0, in.data(), result.words.data());
  codes::template add<>(set, result.words.data(), result.whole, result.out.data(), true);
  return result;
}

// The first value is 8, so that what is relative to the largest is absolute; the group of it is for nothing else.
template <class Quantizer>
std::vector<float> normal_chunk(std::mt19937_64& random)
{
  std::normal_distribution<float> normal;
  std::vector<float> in(size_of_chunk<Quantizer>);
  for (float& value : in) { value = std::clamp(normal(random), -7.9F, 7.9F); }
  std::fill_n(in.begin(), Quantizer::block, 0.0F);
  in[0] = 8;
  return in;
}

// The OCP formula: the shared exponent is that of the largest magnitude less that of the largest element; elements are rounded to
// nearest, and saturate.
template <class Format>
double mx_value(double value, double largest)
{
  if (largest == 0) { return 0; }
  double const top    = std::floor(std::log2(static_cast<double>(Format::magnitude(Format::last))));
  double const shared = std::exp2(std::floor(std::log2(largest)) - top);
  double best         = 0;
  for (int i = 0; i <= Format::last; ++i) {
    double const candidate = static_cast<double>(Format::magnitude(i)) * shared;
    if (std::abs(candidate - std::abs(value)) < std::abs(best - std::abs(value))) {
      best = candidate;
    }
  }
  return std::copysign(best, value);
}

TEST_CASE_TEMPLATE("[catalogue] a chunk in MX formats is that of the specification in double",
                   Format,
                   e2m1_levels,
                   e2m3_levels,
                   e3m2_levels,
                   e4m3_levels,
                   e5m2_levels)
{
  using quantizer = mx_quantizer<Format>;
  std::mt19937_64 random(5);
  for (int chunk = 0; chunk < 8; ++chunk) {
    std::vector<float> in = normal_chunk<quantizer>(random);
    for (std::size_t i = 64; i < 96; ++i) { in[i] *= 1e-4F; }  // a group of small values
    in[130]        = 0;
    auto const got = code<quantizer>(in);
    CHECK(got.whole == 8);
    CHECK(got.out[130] == 0);
    int different = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto const first = in.begin() + static_cast<std::ptrdiff_t>(i / 32 * 32);
      double largest   = 0;
      for (auto at = first; at != first + 32; ++at) {
        largest = std::max(largest, std::abs(static_cast<double>(*at)));
      }
      auto const value  = static_cast<double>(in[i]);
      double const want = mx_value<Format>(value, largest);
      auto const said   = static_cast<double>(got.out[i]);
      CAPTURE(i);
      // As near as the nearest element, in units of the fixed point that decides; and nearly always that element.
      CHECK(std::abs(said - value) <= std::abs(want - value) + largest * 0x1p-19);
      different += std::abs(said - want) > 1e-6 * std::abs(want) ? 1 : 0;
    }
    // Cells are entered by 2^-20 of the largest: of 512 values one in a hundred chunks, or more where elements are as fine as that.
    CHECK(different <= (Format::bits < 8 ? 1 : 60));
  }
}

TEST_CASE("[catalogue] a chunk in NVFP4 is that of the formula in double")
{
  std::mt19937_64 random(6);
  for (int chunk = 0; chunk < 8; ++chunk) {
    std::vector<float> const in = normal_chunk<nvfp4_quantizer>(random);
    auto const got              = code<nvfp4_quantizer>(in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      double largest = 0;
      for (std::size_t k = i / 16 * 16; k < i / 16 * 16 + 16; ++k) {
        largest = std::max(largest, std::abs(static_cast<double>(in[k])));
      }
      // The scale of all is 8 / (6 448); that of a group in its units is the nearest E4M3 to largest / 6.
      double const unit = 8 / (6 * 448.0);
      double scale      = 0;
      for (int k = 0; k < 127; ++k) {
        double const candidate = element<void>(k, 4, 3);
        if (std::abs(candidate - largest / 6 / unit) < std::abs(scale - largest / 6 / unit)) {
          scale = candidate;
        }
      }
      double want      = 0;
      auto const value = static_cast<double>(in[i]);
      for (int k = 0; k < 8; ++k) {
        double const candidate = element<void>(k, 2, 1) * scale * unit;
        if (std::abs(candidate - std::abs(value)) < std::abs(want - std::abs(value))) {
          want = candidate;
        }
      }
      CAPTURE(i);
      CHECK(std::abs(static_cast<double>(got.out[i]) - std::copysign(want, value)) <=
            1e-6 * largest);
    }
  }
}

// The error of normal values over their energy in a group whose largest magnitude is m, averaged over m: that value, and the
// others below it. `lost` is the expected square of what a magnitude loses in a group of that scale.
template <class Quantizer>
double expected_error(std::function<double(double, double)> const& lost)
{
  constexpr int others = Quantizer::block - 1;
  double sum           = 0;
  constexpr double dm = .01, dx = .004;
  for (double m = dm / 2; m < 7; m += dm) {
    double const inside = std::erf(m / std::numbers::sqrt2);
    double const weight = (others + 1) * 2 * density(m) * std::pow(inside, others) * dm;
    if (weight < 1e-9) { continue; }
    auto const scale = 8 * static_cast<double>(Quantizer::scale::decode(
                             Quantizer::scale::encode(static_cast<float>(m / 8))));
    double below     = 0;
    for (double x = dx / 2; x < m; x += dx) { below += 2 * density(x) * lost(x, scale) * dx; }
    sum += weight * (lost(m, scale) + others * below / inside);
  }
  return sum / (others + 1);
}

template <class Quantizer>
double loss_of(double x, double scale)
{
  auto const& level = Quantizer::level;
  std::size_t above = 0;
  while (above + 1 < level.size() && static_cast<double>(level[above]) * scale < x) { ++above; }
  double const up   = static_cast<double>(level[above]) * scale;
  double const down = above > 0 ? static_cast<double>(level[above - 1]) * scale : up;
  if (x >= up) { return (x - up) * (x - up); }
  if constexpr (Quantizer::dither::rounds > 0) { return (up - x) * (x - down); }
  return std::min((up - x) * (up - x), (x - down) * (x - down));
}

template <class Quantizer>
void check_error()
{
  std::mt19937_64 random(8);
  double lost = 0, energy = 0;
  int const chunks = 120000 / size_of_chunk<Quantizer>;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::vector<float> const in = normal_chunk<Quantizer>(random);
    auto const got              = code<Quantizer>(in, static_cast<std::uint64_t>(chunk));
    for (std::size_t i = Quantizer::block; i < in.size(); ++i) {
      auto const value   = static_cast<double>(in[i]);
      double const error = static_cast<double>(got.out[i]) - value;
      lost += error * error;
      energy += value * value;
    }
  }
  double const want = expected_error<Quantizer>(loss_of<Quantizer>);
  CAPTURE(Quantizer::bits);
  CAPTURE(Quantizer::block);
  // Squares of errors of 110,000 values have a spread of about 1.5 of their mean, and groups share their scales' fortune: .6 % in
  // all, and the energy .4 %.
  CHECK(lost / energy == doctest::Approx(want).epsilon(.03));
}

TEST_CASE("[catalogue] errors of normal values are those of the integrals")
{
  check_error<mx_quantizer<e2m1_levels>>();
  check_error<mx_quantizer<e4m3_levels>>();
  check_error<nvfp4_quantizer>();
  check_error<group_absmax<4, 64, normal_levels, byte_scale, no_dither>>();
  check_error<group_absmax<8, 64, dynamic_levels, byte_scale, no_dither>>();
  check_error<group_absmax<4, 128, linear_levels, bfloat16_scale, independent>>();
  check_error<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>>();
}

TEST_CASE(
  "[catalogue] natural dithering is unbiased, and its variance an eighth of the square at most")
{
  using quantizer             = group_absmax<4, 128, natural_levels, bfloat16_scale, independent>;
  constexpr std::uint32_t one = detail::block_one;
  for (std::uint32_t m = 0; m <= one; m += 509) {
    CAPTURE(m);
    double sum = 0, squares = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t const number = quantizer::round(m, 2 * byte + 1, quantizer::mark.data());
      auto const level           = static_cast<double>(quantizer::level[number]);
      sum += level / 256;
      squares += level * level / 256;
    }
    double const value = m / static_cast<double>(one);
    // To half of 1/256 of the distance, which is the value at most, or the smallest level.
    double const close = std::max(value, 0x1p-6) / 512 + 0x1p-19;
    CHECK(std::abs(sum - value) <= close);
    if (value >= 0x1p-6) { CHECK(squares - sum * sum <= value * value / 8 * 1.02); }
  }
  static_assert(quantizer::unbiased);
  static_assert(!mx_quantizer<e2m1_levels>::unbiased);
  static_assert(!group_absmax<4, 32, e2m1_levels, e8m0_scale<e2m1_levels>, stratified>::unbiased);
}

// --- Groups with two ends

// The first group's word lies behind the codes.
template <class Quantizer>
double end_of(coded<Quantizer> const& chunk, int group, bool high)
{
  constexpr int groups = size_of_chunk<Quantizer> / Quantizer::block;
  // Quarters take turns: group g of the chunk is the (g mod a quarter's)th of its quarter.
  int const place = group % (groups / 4) * 4 + group / (groups / 4);
  std::uint32_t const word =
    chunk.words[static_cast<std::size_t>(size_of_chunk<Quantizer> / 32 * Quantizer::bits + place)];
  std::uint32_t const bits = high ? word & 0xffff0000u : word << 16;
  return static_cast<double>(detail::bits_float(bits)) * static_cast<double>(chunk.whole);
}

template <class Quantizer>
void check_minmax()
{
  constexpr int block = Quantizer::block, last = Quantizer::last;
  CAPTURE(Quantizer::bits);
  std::mt19937_64 random(9);
  for (int chunk = 0; chunk < 4; ++chunk) {
    std::vector<float> in = normal_chunk<Quantizer>(random);
    std::fill_n(in.begin() + 2 * block, block, 3.0F);  // of one value, of one sign, of small values
    for (std::size_t i = 3 * block; i < 4 * block; ++i) { in[i] = 4 + std::abs(in[i]) / 4; }
    for (std::size_t i = 4 * block; i < 5 * block; ++i) { in[i] = -std::abs(in[i]) * 1e-6F; }
    auto const got = code<Quantizer>(in, static_cast<std::uint64_t>(chunk));
    CHECK(got.whole == 8);
    for (std::size_t i = 0; i < in.size(); ++i) {
      CAPTURE(i);
      int const group = static_cast<int>(i) / block;
      auto const [least, most] =
        std::minmax_element(in.begin() + group * block, in.begin() + (group + 1) * block);
      double const low = end_of(got, group, false), high = end_of(got, group, true);
      // Ends are outside by 2^-7 of themselves at most.
      REQUIRE(low <= static_cast<double>(*least));
      REQUIRE(static_cast<double>(*least) - low <= std::abs(static_cast<double>(*least)) * 0x1p-7);
      REQUIRE(high >= static_cast<double>(*most));
      REQUIRE(high - static_cast<double>(*most) <= std::abs(static_cast<double>(*most)) * 0x1p-7);
      // What is decoded is low + code (high - low) / last, of one of the two codes beside the value; without dither, of the nearest.
      double const step = (high - low) / last, value = static_cast<double>(in[i]);
      double const said = static_cast<double>(got.out[i]);
      double const code = step > 0 ? std::round((said - low) / step) : 0;
      double const tiny = 1e-6 * std::max(std::abs(low), std::abs(high));
      REQUIRE(code >= 0);
      REQUIRE(code <= last);
      REQUIRE(std::abs(said - (low + code * step)) <= tiny);
      double const most_lost = Quantizer::dither::rounds > 0 ? 1.0 + 1.0 / 512 : .5 + 1.0 / 512;
      REQUIRE(std::abs(said - value) <= most_lost * step + tiny);
    }
  }
}

TEST_CASE("[catalogue] affine codes lie between the least and the largest value of a group")
{
  check_minmax<group_minmax<8, 128>>();
  check_minmax<group_minmax<8, 128, no_dither>>();
  check_minmax<group_minmax<3, 16, stratified>>();
}

TEST_CASE("[catalogue] affine codes round to the value on average")
{
  using quantizer = group_minmax<2, 64>;
  for (std::int32_t fine = -3; fine <= 256 * quantizer::last + 3; ++fine) {
    double sum = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      sum += quantizer::code(0, fine, byte) / 256.0;
      REQUIRE(group_minmax<2, 64, no_dither>::code(0, fine, byte) ==
              static_cast<std::uint32_t>(std::floor(std::clamp(fine, 0, 768) / 256.0 + .5)));
    }
    REQUIRE(sum == std::clamp(fine, 0, 768) / 256.0);
  }
}

TEST_CASE("[catalogue] one bit with two means has the means of both signs")
{
  using quantizer     = group_two_means<128>;
  constexpr int block = quantizer::block;
  std::mt19937_64 random(10);
  std::vector<float> in = normal_chunk<quantizer>(random);
  for (std::size_t i = 2 * block; i < 3 * block; ++i) { in[i] = std::abs(in[i]); }
  for (std::size_t i = 3 * block; i < 4 * block; ++i) { in[i] = -std::abs(in[i]) - 1; }
  auto const got = code<quantizer>(in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    double sum[2] = {}, count[2] = {};
    for (std::size_t k = i / block * block; k < (i / block + 1) * block; ++k) {
      sum[in[k] < 0] += static_cast<double>(in[k]);
      count[in[k] < 0] += 1;
    }
    CAPTURE(i);
    double const want = sum[in[i] < 0] / count[in[i] < 0];
    // A bfloat16 of the mean, and the other's rounding where the step is added to it: 2^-24 of what is up to 8.
    REQUIRE(std::abs(static_cast<double>(got.out[i]) - want) <= std::abs(want) * 0x1.01p-8 + 1e-6);
  }
}

TEST_CASE(
  "[catalogue] a chunk between two ends that is not finite, or next to nothing, has no codes")
{
  using quantizer = group_minmax<8, 128>;
  std::vector<float> in(size_of_chunk<quantizer>, 1e-35F);
  auto const nothing = code<quantizer>(in);
  CHECK(nothing.whole == 0);
  CHECK(nothing.out == std::vector<float>(in.size()));
  for (float const bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    in[77] = bad;
    CHECK(std::isnan(code<quantizer>(in).whole));
  }
  std::fill(in.begin(), in.end(), -std::numeric_limits<float>::max());
  in[3]           = std::numeric_limits<float>::max();
  auto const huge = code<quantizer>(in);
  for (std::size_t i = 128; i < in.size(); ++i) { REQUIRE(huge.out[i] == in[i]); }
}

// What is derived from a quantizer may say something else than it, so it has no vectors.
template <class Quantizer>
struct without_vectors : Quantizer {
};

// Awkward groups: zeros of both signs alone, beside values of one sign, and all over; one sign; values whose sums are not finite or
// which are next to nothing. Of the last two, the mean of 128 is halfway between two bfloat16, and above it if small values are added
// to each other before they are added to a large one: none of eight in order, but those of different eights.
std::vector<float> awkward_chunk(std::size_t size, int kind, std::mt19937_64& random)
{
  std::normal_distribution<float> normal;
  std::vector<float> in(size);
  for (std::size_t i = 0; i < size; ++i) {
    float const value = normal(random), zero = random() % 2 == 0 ? 0.0F : -0.0F;
    switch (kind) {
      case 0: in[i] = value; break;
      case 1: in[i] = i / 16 % 2 == 0 ? value : zero; break;
      case 2: in[i] = value > 0.3F ? value : zero; break;
      case 3: in[i] = value < -0.3F ? value : zero; break;
      case 4: in[i] = i / 32 % 2 == 0 ? std::abs(value) : -std::abs(value); break;
      case 5: in[i] = std::copysign(std::numeric_limits<float>::max(), value); break;
      case 6: in[i] = value * (i / 16 % 3 == 0 ? 1e-36F : 1.0F); break;
      case 7: in[i] = value * 1e-33F; break;
      case 8: in[i] = zero; break;
      case 12: in[i] = i % 8 == 0 ? 0x1.01p0F : 0x1p-25F; break;
      case 13: in[i] = i % 8 != 0 ? 0.0F : i % 128 == 0 ? 0x1.01p0F : 0x1p-25F; break;
      default: in[i] = i % 97 == 3 ? value * 1e37F : value; break;
    }
  }
  if (kind == 10) { in[size - 5] = std::numeric_limits<float>::infinity(); }
  if (kind >= 12) { in[size - 1] = -2; }
  if (kind == 11) { in[size / 2] = std::numeric_limits<float>::quiet_NaN(); }
  return in;
}

template <class Quantizer, int Size>
void check_vectors()
{
  using plain    = detail::chunk_codes<without_vectors<Quantizer>, Size>;
  using vectors  = detail::chunk_codes<Quantizer, Size>;
  using dither   = typename Quantizer::dither;
  using words    = std::array<std::uint32_t, detail::code_words<Quantizer>(Size)>;
  auto const low = instruction_set::baseline;
  CAPTURE(Quantizer::bits);
  CAPTURE(Quantizer::block);
  std::mt19937_64 random(11);
  for (int kind = 0; kind < 14; ++kind) {
    CAPTURE(kind);
    std::vector<float> const in = awkward_chunk(Size, kind, random);
    std::vector<float> start(Size);
    for (std::size_t i = 0; i < Size; ++i) { start[i] = i % 3 == 0 ? -0.0F : 1e-3F; }
    words want;
    float const scale = plain::template encode<dither>(low, {.seed = 7}, 5, in.data(), want.data());
    for (auto const set : {low, instruction_set::avx2, instruction_set::avx512}) {
      if (set > best_instruction_set()) { continue; }
      CAPTURE(set);
      words got;
      got.fill(0x5a5a5a5a);
      float const said =
        vectors::template encode<dither>(set, {.seed = 7}, 5, in.data(), got.data());
      REQUIRE(detail::float_bits(said) == detail::float_bits(scale));
      REQUIRE(got == want);
      // Ends that no encoder writes: -0 and -1, so that code 0 is -0.
      words sent                                                  = want;
      sent[static_cast<std::size_t>(Size / 32 * Quantizer::bits)] = 0xbf808000u;
      for (bool const fresh : {true, false}) {
        std::vector<float> sum = start, expected = start;
        plain::template add<>(low, sent.data(), scale * .3F, expected.data(), fresh);
        vectors::template add<>(set, sent.data(), scale * .3F, sum.data(), fresh);
        REQUIRE(std::memcmp(sum.data(), expected.data(), Size * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("[catalogue] vectors of groups with two ends give the bits of the plain form")
{
  check_vectors<group_minmax<8, 128>, 2048>();
  check_vectors<group_minmax<5, 64, no_dither>, 512>();
  check_vectors<group_minmax<3, 16, stratified>, 128>();
  check_vectors<group_minmax<1, 32>, 128>();
  check_vectors<group_two_means<128>, 2048>();
  check_vectors<group_two_means<16>, 128>();
  check_vectors<group_two_means<64>, 256>();
}

// --- Sums of signs, of ternary codes, of levels by the norm

TEST_CASE("[catalogue] laws of the quantizer of signs")
{
  tests::check_quantizer_laws<sign_quantizer>();
}

std::vector<std::vector<float>> normal_ranks(int ranks, std::size_t d)
{
  std::mt19937_64 random(13);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> out(static_cast<std::size_t>(ranks), std::vector<float>(d));
  for (auto& rank : out) {
    for (float& value : rank) { value = normal(random); }
  }
  return out;
}

TEST_CASE("[catalogue] signs have the mean magnitude of all ranks")
{
  constexpr int ranks = 3, chunk = 1024;
  constexpr std::size_t d = 2 * chunk + 11;
  auto in                 = normal_ranks(ranks, d);
  in[0][5] = in[1][5] = in[2][5] = 0;
  tests::loopback_run run{presets::sign_mean_ef, layout{d}, ranks, 5};
  auto const first = run.exchange(in);
  CHECK(first[0] == first[2]);
  for (std::size_t i = 0; i < d; ++i) {
    double size = 0, votes = 0;
    std::size_t const begin = i / chunk * chunk, end = std::min(d, begin + chunk);
    for (auto const& rank : in) {
      for (std::size_t k = begin; k < end; ++k) { size += std::abs(static_cast<double>(rank[k])); }
      votes += rank[i] > 0 ? 1 : rank[i] < 0 ? -1 : 0;
    }
    REQUIRE(static_cast<double>(first[0][i]) ==
            doctest::Approx(votes / ranks * size / (ranks * chunk)).epsilon(1e-5));
  }
  // What is kept is what the rank's own sign lost, and is less than there was.
  double kept = 0, energy = 0;
  for (std::size_t i = 0; i < d; ++i) {
    kept += static_cast<double>(run.residual()[i]) * static_cast<double>(run.residual()[i]);
    energy += static_cast<double>(in[0][i]) * static_cast<double>(in[0][i]);
  }
  // |x|^2 - |x|_1^2 / C of normal values is 1 - 2 / pi of their energy; 5 spreads of .02 of it in 2000 values.
  CHECK(kept / energy == doctest::Approx(1 - 2 / std::numbers::pi).epsilon(.1));
}

// The mean squared error of one exchange over many, of that mean, and what the formula says: the sum over ranks of the variances
// of their coordinates, over the square of their number.
template <class Codec>
void check_variance(
  Codec const& codec,
  std::function<double(double value, double largest, double norm)> const& variance)
{
  constexpr int ranks = 3, steps = 150, chunk = 1024;
  constexpr std::size_t d = 2 * chunk;
  auto const in           = normal_ranks(ranks, d);
  double want             = 0;
  for (std::size_t begin = 0; begin < d; begin += chunk) {
    double largest = 0, norm = 0;
    for (auto const& rank : in) {
      double square = 0;
      for (std::size_t i = begin; i < begin + chunk; ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(rank[i])));
        square += static_cast<double>(rank[i]) * static_cast<double>(rank[i]);
      }
      norm = std::max(norm, std::sqrt(square));
    }
    for (auto const& rank : in) {
      for (std::size_t i = begin; i < begin + chunk; ++i) {
        want += variance(std::abs(static_cast<double>(rank[i])), largest, norm) / (ranks * ranks);
      }
    }
  }
  doubles off(d);
  double lost = 0;
  tests::loopback_run run{codec, layout{d}, ranks, 5};
  for (int step = 0; step < steps; ++step) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) {
      double mean = 0;
      for (auto const& rank : in) { mean += static_cast<double>(rank[i]) / ranks; }
      double const error = static_cast<double>(out[i]) - mean;
      lost += error * error / steps;
      off[i] += error / steps;
    }
  }
  // 300,000 independent squares of a spread of up to 5 of their mean: 1 %.
  CHECK(lost == doctest::Approx(want).epsilon(.05));
  // The mean of independent errors has 1 / steps of their energy; over 2048 coordinates to 5 sqrt(2 / 2048), or .16.
  double squares = 0;
  for (double const value : off) { squares += value * value; }
  CHECK(squares * steps / lost == doctest::Approx(1).epsilon(.2));
}

TEST_CASE("[catalogue] TernGrad is unbiased with the variance of the paper")
{
  check_variance(presets::terngrad, [](double value, double largest, double) {
    return largest * value - value * value;
  });
}

TEST_CASE("[catalogue] Global-QSGD is unbiased with the variance of the paper")
{
  check_variance(presets::global_qsgd_4, [](double value, double, double norm) {
    double const position = 7 * value / norm, part = position - std::floor(position);
    return part * (1 - part) * norm * norm / 49;
  });
}

TEST_CASE("[catalogue] Global-QSGD with powers of two is unbiased with the variance of the paper")
{
  check_variance(presets::global_natural_5, [](double value, double largest, double) {
    double const position = 8 * value / largest;
    double const low      = position < 1 ? 0 : std::exp2(std::floor(std::log2(position)));
    double const up       = position < 1 ? 1 : 2 * low;
    return (position - low) * (up - position) * largest * largest / 64;
  });
}

TEST_CASE_TEMPLATE("[catalogue] codes that are powers of two",
                   Quantizer,
                   natural_quantizer<2>,
                   natural_quantizer<4, stratified>,
                   natural_quantizer<7>)
{
  constexpr int most       = Quantizer::max_level;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Quantizer const quantizer{};
  tests::check_rounds_to(quantizer);
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    for (float const large : {infinity, 1e38F, 256.0F * most, 256.0F * most + 1}) {
      REQUIRE(quantizer.encode(large, 1.0F, byte) == most);
      REQUIRE(quantizer.encode(-large, 1.0F, byte) == -most);
    }
    REQUIRE(quantizer.encode(std::numeric_limits<float>::quiet_NaN(), 1.0F, byte) == 0);
    REQUIRE(quantizer.encode(0.0F, 1e30F, byte) == 0);
    REQUIRE(quantizer.encode(1e30F, 0.0F, byte) == 0);
  }
  for (int fine = 0; fine <= 256 * most; fine += fine < 2048 ? 1 : 97) {
    CAPTURE(fine);
    double const position = fine / 256.0;
    double sum = 0, squares = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      int const code = quantizer.encode(static_cast<float>(fine), 1.0F, byte);
      REQUIRE((code & (code - 1)) == 0);  // zero or a power of two
      REQUIRE(quantizer.encode(-static_cast<float>(fine), 1.0F, byte) == -code);
      sum += code / 256.0;
      squares += static_cast<double>(code) * code / 256;
    }
    // To half of 1/256 of the distance between two levels, which is the value at most, or 1.
    CHECK(std::abs(sum - position) <= std::max(position, 1.0) / 512);
    if (position >= 1) { CHECK(squares - sum * sum <= position * position / 8 * 1.02); }
  }
}

// --- Majority vote

template <int Ranks>
void check_majority()
{
  CAPTURE(Ranks);
  constexpr int chunk     = 1024;
  constexpr std::size_t d = 2 * chunk + 11;
  auto in                 = normal_ranks(Ranks, d);
  for (auto& rank : in) { rank[5] = 0; }
  in[0][6] = 0;  // an even number of votes of an odd number of ranks
  in[0][7] = 100;
  for (std::size_t k = 1; k < Ranks; ++k) { in[k][7] = -.001F; }  // the many win, not the large
  tests::loopback_run run{presets::sign_majority, layout{d}, Ranks, 5};
  auto const out = run.exchange(in);
  CHECK(out[0] == out[Ranks - 1]);
  int ties = 0;
  for (std::size_t i = 0; i < d; ++i) {
    double size             = 0;
    int votes               = 0;
    std::size_t const begin = i / chunk * chunk, end = std::min(d, begin + chunk);
    for (auto const& rank : in) {
      for (std::size_t k = begin; k < end; ++k) { size += std::abs(static_cast<double>(rank[k])); }
      votes += rank[i] > 0 ? 1 : rank[i] < 0 ? -1 : 0;
    }
    double const sign = votes > 0 ? 1 : votes < 0 ? -1 : 0;
    ties += votes == 0 ? 1 : 0;
    CAPTURE(i);
    REQUIRE(static_cast<double>(out[0][i]) ==
            doctest::Approx(sign * size / (Ranks * chunk)).epsilon(1e-5));
  }
  CHECK(ties > 0);
}

TEST_CASE("[catalogue] the majority of the signs wins, with the mean magnitude of all ranks")
{
  check_majority<2>();
  check_majority<5>();
  check_majority<7>();
  auto const eight = presets::sign_majority.plan(layout{4096}, {.size = 8, .rank = 0});
  CHECK(eight.check().code == error_code::world_too_large);
  CHECK(majority_lanes<8>::max_world(1) == 127);
}

TEST_CASE("[catalogue] votes of lanes of all widths have the outcome of each lane")
{
  std::mt19937 random(4);
  auto const check = [&]<int Bits>(majority_lanes<Bits> reducer, std::uint32_t ranks) {
    for (int i = 0; i < 500; ++i) {
      std::uint32_t word = 0, want = 0;
      for (int k = 0; k < 32 / Bits; ++k) {
        std::uint32_t const sum = static_cast<std::uint32_t>(random()) % (2 * ranks + 1);
        int const vote          = static_cast<int>(sum) - static_cast<int>(ranks);
        word |= sum << (Bits * k);
        want |= (vote > 0 ? 2 * ranks : vote < 0 ? 0 : ranks) << (Bits * k);
      }
      REQUIRE(reducer.outcome(word, ranks) == want);
    }
  };
  check(majority_lanes<4>{}, 7);
  check(majority_lanes<4>{}, 2);
  check(majority_lanes<8>{}, 127);
  check(majority_lanes<16>{}, 1000);
}

// --- IntSGD

TEST_CASE(
  "[catalogue] the head-room of IntSGD is the size of the last sum over that of independent gradients")
{
  tests::check_headroom_laws<integer_headroom>();
  for (int const world : {1, 2, 7, 64, 65535}) {
    CAPTURE(world);
    double const root = std::sqrt(static_cast<double>(world));
    integer_headroom const room{};
    CHECK(static_cast<double>(room.first_ratio(world, 1.5F)) ==
          doctest::Approx(root).epsilon(1e-7));
    CHECK(static_cast<double>(room.factor(world, 1.25F)) ==
          doctest::Approx(std::min(1.25, static_cast<double>(world)) / root).epsilon(1e-6));
    CHECK(static_cast<double>(room.factor(world, 0.0F)) == doctest::Approx(1 / root).epsilon(1e-6));
    CHECK(static_cast<double>(room.factor(world, 1e9F)) == doctest::Approx(root).epsilon(1e-6));
  }
}

TEST_CASE(
  "[catalogue] the step of IntSGD follows the last mean, and rounding adds what the formula says")
{
  constexpr int ranks = 4, steps = 40;
  constexpr std::size_t d = 4096;
  std::mt19937_64 random(17);
  std::normal_distribution<float> normal;
  auto const square = [](std::vector<float> const& v) {
    double sum = 0;
    for (float const x : v) { sum += static_cast<double>(x) * static_cast<double>(x); }
    return sum;
  };
  tests::loopback_run run{presets::intsgd_8, layout{d}, ranks, 5};
  double lost = 0, want = 0, mean_before = 0, largest_before = 0;
  for (int step = 0; step < steps; ++step) {
    auto in            = normal_ranks(ranks, d);
    float const common = static_cast<float>(step % 5) * .3F;  // ranks agree more and less
    float const size   = std::exp2(normal(random));
    for (std::size_t i = 0; i < d; ++i) {
      float const shared = common * normal(random);
      for (auto& rank : in) { rank[i] = size * (rank[i] + shared); }
    }
    double largest = 0;
    for (auto const& rank : in) { largest = std::max(largest, square(rank)); }
    auto const& out = run.exchange(in)[0];
    // alpha = sqrt(d) / sqrt(2 n |g|^2) of the mean g before, which grows as the gradient did; at first g is that of independent ones.
    double const before = step == 0 ? largest / ranks : mean_before * largest / largest_before;
    double const alpha  = std::sqrt(d / (2 * ranks * before));
    for (std::size_t i = 0; i < d; ++i) {
      double mean = 0;
      for (auto const& rank : in) {
        double const position = alpha * static_cast<double>(rank[i]);
        double const part     = position - std::floor(position);
        REQUIRE(std::abs(position) < 32);  // sums of four do not saturate
        mean += static_cast<double>(rank[i]) / ranks;
        want += part * (1 - part) / (alpha * alpha * ranks * ranks) / largest;
      }
      double const sum = static_cast<double>(out[i]) * ranks * alpha;
      REQUIRE(std::abs(sum - std::round(sum)) <
              1e-4);  // integers below 128, to the rounding of floats
      double const error = static_cast<double>(out[i]) - mean;
      lost += error * error / largest;
    }
    mean_before    = square(out);
    largest_before = largest;
  }
  // 164,000 squares of errors of sums of four two-valued variables, whose spread is at most 2 of their mean: .5 %, and five times that.
  CHECK(lost == doctest::Approx(want).epsilon(.025));
}

// --- What travels

template <class Quantizer>
std::string digest()
{
  tests::fnv_digest digest;
  auto const in  = tests::integer_gradient<float>(size_of_chunk<Quantizer>, 0, 0);
  auto const got = code<Quantizer>(in);
  digest.add(std::as_bytes(std::span{got.words}));
  digest.add(std::as_bytes(std::span{&got.whole, 1}));
  std::ostringstream text;
  text << std::hex << digest.value();
  return text.str();
}

// Of what three ranks have after two exchanges.
template <class Codec>
std::string digest_of_means(Codec const& codec)
{
  constexpr std::size_t d = 2 * 1024 + 11;
  std::vector<std::vector<float>> in;
  for (int rank = 0; rank < 3; ++rank) { in.push_back(tests::integer_gradient<float>(d, rank, 0)); }
  tests::fnv_digest digest;
  tests::loopback_run run{codec, layout{d}, 3, 5};
  for (int step = 0; step < 2; ++step) {
    digest.add(std::as_bytes(std::span{run.exchange(in)[2]}));
    auto const& plan = run.plan();
    digest.add(run.workspace(1).subspan(plan.payload_offset(), plan.payload_bytes()));
  }
  std::ostringstream text;
  text << std::hex << digest.value();
  return text.str();
}

TEST_CASE("[catalogue] means and payloads are what they were")
{
  CHECK(digest_of_means(presets::global_qsgd_4) == "c22cf5bdaa0cefa7");
  CHECK(digest_of_means(presets::global_natural_5) == "ebea85a29fb2b524");
  CHECK(digest_of_means(presets::sign_majority) == "38ed33767aa3211d");
  CHECK(digest_of_means(presets::topk_sampled_b2) == "4853555261b8fa68");
  CHECK(digest_of_means(presets::intsgd_8) == "a3159df2b4f07e3d");
}

TEST_CASE("[catalogue] codes and scales are what they were")
{
  CHECK(digest<mx_quantizer<e2m1_levels>>() == "c933adf79d6135ae");
  CHECK(digest<mx_quantizer<e2m3_levels>>() == "2002a64a6b4703d1");
  CHECK(digest<mx_quantizer<e3m2_levels>>() == "d407781d2a1534b4");
  CHECK(digest<mx_quantizer<e4m3_levels>>() == "50f129906dd2ebb7");
  CHECK(digest<mx_quantizer<e5m2_levels>>() == "631f106370d0895a");
  CHECK(digest<nvfp4_quantizer>() == "eae261bff3954f30");
  CHECK(digest<group_absmax<4, 64, normal_levels, byte_scale, no_dither>>() == "95f211414e18c421");
  CHECK(digest<group_absmax<8, 64, dynamic_levels, byte_scale, no_dither>>() == "ccf4952d9e12a349");
  CHECK(digest<group_minmax<8, 128>>() == "e3e6e1aa66ac71c0");
  CHECK(digest<group_two_means<128>>() == "c5b08e0aad09dc5b");
  CHECK(digest<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>>() ==
        "d88be2177b573bf3");
}

}  // namespace
