// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Small floats with the scale of a block, against the formulas of OCP and NVIDIA in double.

#include "../../examples/kernels/cast_to_nvfp4.hpp"
#include "support/emulator.hpp"
#include "support/reference_float.hpp"

#include <tersum/quantize/thread_scaled_floats.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace tersum;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan      = std::numeric_limits<float>::quiet_NaN();

template <class Element, class Reference>
struct format : Reference {
  using element               = Element;
  std::vector<double> numbers = Reference::magnitudes();
};
using fp4      = format<e2m1, tests::reference_float<2, 4, 8>>;
using fp8      = format<e4m3, tests::reference_e4m3>;
using fp8_of_5 = format<small_float<5, 2, 4>, tests::reference_e5m2>;

TEST_CASE_TEMPLATE(
  "[scaled_floats] a magnitude is rounded to the nearest number, and at random to it in the mean",
  Format,
  fp4,
  fp8,
  fp8_of_5)
{
  using element = typename Format::element;
  Format const format;
  auto const& numbers = format.numbers;
  REQUIRE(numbers.size() == static_cast<std::size_t>(element::last) + 1);
  std::vector<float> values{0x1p-140f, 2 * element::largest()};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CHECK(static_cast<double>(element::magnitude(static_cast<std::uint32_t>(i))) == numbers[i]);
    for (double const at :
         {numbers[i], (numbers[i] + numbers[std::min(i + 1, numbers.size() - 1)]) / 2}) {
      auto const x = static_cast<float>(at);
      values.insert(values.end(), {x, std::nextafter(x, infinity), std::nextafter(x, 0.0f)});
    }
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<float> power(std::log2(static_cast<float>(numbers[1])) - 2,
                                              std::log2(element::largest()) + .5f);
  for (int i = 0; i < 1000; ++i) { values.push_back(std::exp2(power(random))); }
  for (float const x : values) {
    CAPTURE(x);
    REQUIRE(element::round(x) == format.round_finite(static_cast<double>(x)));
    if (x > element::largest()) { continue; }
    // Each of 256 bytes stands for the middle of its part of the distance of two numbers, and all are as likely.
    auto const above = static_cast<std::size_t>(
      std::upper_bound(numbers.begin(), numbers.end() - 1, static_cast<double>(x)) -
      numbers.begin());
    double const below = numbers[above - 1], distance = numbers[above] - below;
    double mean = 0;
    for (int byte = 0; byte < 256; ++byte) {
      std::uint32_t const code = element::round(x, (static_cast<float>(byte) + .5f) / 256 - .5f);
      REQUIRE((code == above - 1 || code == above || static_cast<double>(x) == numbers[above]));
      mean += numbers[code] / 256;
    }
    // The sum with the noise is a float of 24 bits.
    CHECK(std::abs(mean - static_cast<double>(x)) <=
          distance / 512 + static_cast<double>(x) * 0x1p-24);
  }
  for (float const x : {infinity, nan, -nan}) {
    CHECK(element::round(x) == static_cast<std::uint32_t>(element::last));
  }
}

// One thread, as all that is here concerns one.
template <class Body>
void on_a_thread(Body const& body)
{
  emulator::launch({}, emulator::forward, [&](emulator::host_context& ctx) {
    if (ctx.thread_rank() == 0) { body(ctx); }
  });
}

template <class Element, bool Up>
void check_scales(std::vector<double> const& numbers)
{
  fp8 const e4m3s;
  double const top = std::floor(std::log2(numbers.back()));
  on_a_thread([&](auto const& ctx) {
    for (int exponent = -149; exponent < 128; ++exponent) {
      for (float const part : {1.0f, 1.25f, 1.5f, 1.5000001f, 1.75f, 1.7500001f, 1.9999999f}) {
        float const m   = std::ldexp(part, exponent);
        auto const most = static_cast<double>(m);
        CAPTURE(m);
        double const power = std::max(Up ? std::ceil(std::log2(most / numbers.back()))
                                         : std::floor(std::log2(most)) - top,
                                      -127.0);
        std::uint32_t const x = e8m0_block_scale::of<Element, Up>(ctx, m, 1);
        REQUIRE(x == power + 127);
        CHECK(static_cast<double>(e8m0_block_scale::decode(x)) == std::exp2(power));

        double const ratio = static_cast<double>(m / static_cast<float>(numbers.back()));
        std::uint32_t want = e4m3s.round_finite(ratio);
        if (Up && e4m3s.numbers[want] < ratio) { want = std::min(want + 1, 126u); }
        REQUIRE(e4m3_block_scale::of<Element, Up>(ctx, m, 1) == want);
        CHECK(static_cast<double>(e4m3_block_scale::decode(want)) == e4m3s.numbers[want]);
      }
    }
    CHECK(e8m0_block_scale::of<Element, Up>(ctx, 0, 1) == 0);
    CHECK(e4m3_block_scale::of<Element, Up>(ctx, 0, 1) == 0);
    for (float const x : {infinity, nan}) {
      CHECK(std::isnan(e8m0_block_scale::decode(e8m0_block_scale::of<Element, Up>(ctx, x, 1))));
      CHECK(std::isnan(e4m3_block_scale::decode(e4m3_block_scale::of<Element, Up>(ctx, x, 1))));
    }
  });
}

TEST_CASE("[scaled_floats] scales are those of the formats, or such that no element is cut")
{
  check_scales<e2m1, false>(fp4{}.numbers);
  check_scales<e2m1, true>(fp4{}.numbers);
  check_scales<e4m3, false>(fp8{}.numbers);
  check_scales<e4m3, true>(fp8{}.numbers);
}

// What a block of these values decodes to; `scale` is the code of its scale.
template <class Codes, std::size_t Size>
std::array<float, Size> through(std::array<float, Size> const& values,
                                float unit,
                                dither_key const& key,
                                std::uint64_t number,
                                std::uint32_t& scale)
{
  std::array<float, Size> out{};
  on_a_thread([&](auto const& ctx) {
    float v[Size];
    std::uint32_t packed[Codes::words];
    std::copy(values.begin(), values.end(), v);
    scale = Codes::encode(ctx, number, key, unit, v, packed);
    Codes::decode(ctx, packed, scale, unit, v);
    std::copy(v, v + Size, out.begin());
  });
  return out;
}

// Blocks of normal values of many sizes; of zeros; of one value, which is the largest.
template <std::size_t Size>
std::vector<std::array<float, Size>> blocks()
{
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<std::array<float, Size>> out(60);
  for (std::size_t b = 0; b < out.size(); ++b) {
    float const size = std::exp2(static_cast<float>(b) - 20);
    for (float& x : out[b]) { x = size * normal(random); }
  }
  out[0].fill(-0.0f);
  out[1].fill(3.0f);
  return out;
}

TEST_CASE_TEMPLATE("[scaled_floats] a block to nearest is that of the specification in double",
                   Codes,
                   thread_mxfp4<>,
                   thread_mxfp8<>,
                   thread_nvfp4<>)
{
  constexpr bool nv = std::is_same_v<Codes, thread_nvfp4<>>;
  std::conditional_t<std::is_same_v<Codes, thread_mxfp8<>>, fp8, fp4> const format;
  auto const& numbers = format.numbers;
  float const unit    = nv ? 0x1p20f : 1;
  for (auto const& block : blocks<nv ? 16 : 32>()) {
    std::uint32_t scale = 0;
    auto const got      = through<Codes>(block, unit, {}, 0, scale);
    double most         = 0;
    for (float const x : block) { most = std::max(most, std::abs(static_cast<double>(x))); }
    double const top = std::exp2(std::floor(std::log2(numbers.back())));
    double const one = nv          ? fp8{}.numbers[scale] * static_cast<double>(unit)
                       : most == 0 ? 1
                                   : std::exp2(std::floor(std::log2(most))) / top;
    for (std::size_t i = 0; i < block.size(); ++i) {
      CAPTURE(block[i]);
      // The quotient by an E4M3 is a float.
      float const x     = one > 0 ? std::abs(block[i]) * (1 / static_cast<float>(one)) : 0;
      double const want = one * numbers[format.round_finite(static_cast<double>(x))];
      REQUIRE(static_cast<double>(std::abs(got[i])) == want);
      CHECK(std::signbit(got[i]) == std::signbit(block[i]));
    }
  }
  std::array<float, nv ? 16 : 32> block{1, 2, nan};
  std::uint32_t scale = 0;
  for (float const x : through<Codes>(block, unit, {}, 0, scale)) { CHECK(std::isnan(x)); }
  CHECK(scale == (nv ? 127 : 255));
}

TEST_CASE_TEMPLATE(
  "[scaled_floats] at random no value of a block is cut, and each has its byte of the draw",
  Codes,
  thread_mxfp4<independent>,
  thread_mxfp8<stratified>,
  thread_nvfp4<independent>)
{
  using element              = typename Codes::element;
  using scale_type           = typename Codes::scale_type;
  constexpr std::size_t size = Codes::words * 32 / element::bits;
  constexpr float unit       = 4;
  dither_key const key{.seed = 3, .step = 5, .rank = 6};
  std::uint64_t number = 70;
  for (auto const& block : blocks<size>()) {
    std::uint32_t scale = 0;
    auto const got      = through<Codes>(block, unit, key, number, scale);
    float const one     = scale_type::decode(scale) * unit;
    for (std::size_t i = 0; i < size; ++i) {
      float const x = one > 0 ? std::abs(block[i]) * (1 / one) : 0;
      if (scale < 126) { REQUIRE(x <= element::largest() * (1 + 0x1p-21f)); }
      float const byte =
        static_cast<float>(dither_byte<typename Codes::dither>(number * size + i, key));
      float const want = one * element::magnitude(element::round(x, (byte + .5f) / 256 - .5f));
      REQUIRE(got[i] == std::copysign(want, block[i]));
    }
    ++number;
  }
}

// As tests/examples/kernels.cuda.test.cu has of a device.
TEST_CASE("[scaled_floats] the example of a cast has the bytes of a device")
{
  float values[16];
  for (int i = 0; i < 16; ++i) { values[i] = static_cast<float>(i * 37 % 101) - 50; }
  std::array<std::uint32_t, 2> codes{};
  std::uint8_t scale = 0;
  on_a_thread([&](auto const& ctx) {
    cast_to_nvfp4::cast(ctx, values, 1, .5f, 11, {.seed = 5}, codes.data(), &scale);
  });
  CHECK(codes == std::array<std::uint32_t, 2>{0x82a8db36u, 0x347aa643u});
  CHECK(scale == 0x5cu);
}

}  // namespace
