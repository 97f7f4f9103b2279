// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Older codecs against the formulas of their sources in double: levels, scales, what a chunk decodes to, and errors.

#include "../conformance/codebook_conformance.hpp"
#include "../conformance/quantizer_conformance.hpp"
#include "../conformance/range_conformance.hpp"
#include "group_quantizer_conformance.hpp"
#include "support/golden_digest.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum_baselines/presets.hpp>

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
#include <vector>

using namespace tersum;

namespace {

using doubles = std::vector<double>;

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

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

TEST_CASE_TEMPLATE(
  "[catalogue] levels of MX formats are the elements of the specification, up to 1",
  Format,
  e2m1_levels,
  e4m3_levels)
{
  constexpr int exponent_bits = Format::bits - 1 - Format::fraction_bits;
  auto const level            = levels_of<mx_quantizer<Format>>();
  double const largest        = element<Format>(Format::last, exponent_bits, Format::fraction_bits);
  CHECK(static_cast<double>(Format::significand) ==
        largest / std::exp2(std::floor(std::log2(largest))));
  for (int code = 0; code <= Format::last; ++code) {
    double const want = element<Format>(code, exponent_bits, Format::fraction_bits);
    CHECK(level[static_cast<std::size_t>(code)] == doctest::Approx(want / largest).epsilon(1e-7));
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

TEST_CASE_TEMPLATE("[catalogue] laws of quantizers of groups",
                   Quantizer,
                   group_absmax<4, 32>,
                   mx_quantizer<e2m1_levels>,
                   mx_quantizer<e4m3_levels>,
                   nvfp4_quantizer,
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
  codes::add(set, result.words.data(), result.whole, result.out.data(), true);
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

// The OCP formula: the shared exponent is that of the largest magnitude less that of the largest element; elements saturate.
template <class Format>
double mx_value(double value, double largest)
{
  if (largest == 0) { return 0; }
  double const top    = std::floor(std::log2(static_cast<double>(Format::largest())));
  double const shared = std::exp2(std::floor(std::log2(largest)) - top);
  double best         = 0;
  for (int i = 0; i <= Format::last; ++i) {
    double const candidate =
      static_cast<double>(Format::magnitude(static_cast<unsigned>(i))) * shared;
    if (std::abs(candidate - std::abs(value)) < std::abs(best - std::abs(value))) {
      best = candidate;
    }
  }
  return std::copysign(best, value);
}

TEST_CASE_TEMPLATE("[catalogue] a chunk in MX formats is that of the specification in double",
                   Format,
                   e2m1_levels,
                   e4m3_levels)
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

// --- Groups with two means

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
  "[catalogue] a chunk of groups with two means that is not finite, or next to nothing, has no codes")
{
  using quantizer = group_two_means<128>;
  std::vector<float> in(size_of_chunk<quantizer>, 1e-35F);
  auto const nothing = code<quantizer>(in);
  CHECK(nothing.whole == 0);
  CHECK(nothing.out == std::vector<float>(in.size()));
  for (float const bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    in[77] = bad;
    CHECK(std::isnan(code<quantizer>(in).whole));
  }
}

// The plain form: one value after the other, gathered of eight neighbours in order, and then of pairs of eights.
template <int Block, int Size>
struct plain_two_means {
  using quantizer = group_two_means<Block>;

  static float encode(float const* values, std::uint32_t* to)
  {
    std::fill_n(to, detail::code_words<quantizer>(Size), 0U);
    std::uint32_t most = 0;
    for (int i = 0; i < Size; ++i) {
      most = std::max(most, detail::float_bits(values[i]) & 0x7fffffffU);
    }
    float const whole = detail::bits_float(most);
    if (!(whole < 0x1p100F)) { return detail::bits_float(0x7fffffffU); }
    if (whole < 0x1p-100F) { return 0; }
    for (int group = 0; group < Size / Block; ++group) {
      float fields[Block / 8][4];
      for (int i = 0; i < Block; ++i) {
        int const at = group * Block + i;
        float one[4];
        quantizer::first(values[at], one);
        float(&sum)[4] = fields[i / 8];
        i % 8 == 0 ? static_cast<void>(std::copy_n(one, 4, sum))
                   : quantizer::join(host_group{}, one, sum);
        to[at % (Size / 4) / 8] |= (values[at] < 0 ? 0U : 1U) << bit_of(at);
      }
      for (int step = 1; step < Block / 8; step *= 2) {
        for (int t = 0; t < Block / 8; t += 2 * step) {
          quantizer::join(host_group{}, fields[t + step], fields[t]);
        }
      }
      to[word_of(group)] = quantizer::ends(host_group{}, fields[0], whole);
    }
    return whole;
  }

  static void add(std::uint32_t const* from, float scale, float* values, bool fresh)
  {
    for (int i = 0; i < Size; ++i) {
      std::uint32_t const code = from[i % (Size / 4) / 8] >> bit_of(i) & 1U;
      values[i]                = (fresh ? 0.0F : values[i]) +
                  quantizer::value(host_group{}, from[word_of(i / Block)], scale, code);
    }
  }

  // Eight neighbours of each quarter share a word.
  static int bit_of(int coordinate) { return coordinate / (Size / 4) * 8 + coordinate % 8; }
  static int word_of(int group)
  {
    constexpr int in_a_quarter = Size / 4 / Block;
    return Size / 32 + 4 * (group % in_a_quarter) + group / in_a_quarter;
  }
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
  using plain    = plain_two_means<Quantizer::block, Size>;
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
    float const scale = plain::encode(in.data(), want.data());
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
        plain::add(sent.data(), scale * .3F, expected.data(), fresh);
        vectors::add(set, sent.data(), scale * .3F, sum.data(), fresh);
        REQUIRE(std::memcmp(sum.data(), expected.data(), Size * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("[catalogue] vectors of groups with two means give the bits of the plain form")
{
  check_vectors<group_two_means<128>, 2048>();
  check_vectors<group_two_means<16>, 128>();
  check_vectors<group_two_means<64>, 256>();
}

// --- Sums of signs and of ternary codes

TEST_CASE("[catalogue] laws of the quantizer of signs")
{
  tests::check_quantizer_laws<sign_quantizer>();
}

// --- Majority vote

template <int Ranks>
void check_majority()
{
  CAPTURE(Ranks);
  constexpr int chunk     = 1024;
  constexpr std::size_t d = 2 * chunk + 11;
  auto in                 = tests::normal_gradients<std::mt19937_64>(Ranks, d, 13);
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

}  // namespace
