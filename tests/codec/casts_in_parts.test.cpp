// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs that decode before they add, of elements instead of codes: what is on the wire, and how far the mean is off.

#include "support/bad_input.hpp"
#include "support/exchange_run.hpp"
#include "support/loopback_run.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/codec.hpp>
#include <tersum/form/gather.hpp>
#include <tersum/presets.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace tersum;

namespace {

template <class T>
constexpr double half_a_unit = std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;

// Chunks far apart in size, some of them beyond what a half holds, small values in each, and zeros.
tests::gradients gradients_of_all_sizes(int world, std::size_t d)
{
  auto in = tests::normal_gradients(world, d, 23);
  for (auto& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) {
      gradient[i] *= std::ldexp(1.0f, (static_cast<int>(i / 256 % 5) - 2) * 40);
      if (i % 5 == 0) { gradient[i] *= 0x1p-9f; }
      if (i / 256 == 3) { gradient[i] = 0; }
    }
  }
  return in;
}

template <class T>
void check_wire_and_mean(std::size_t d, int world)
{
  CAPTURE(d);
  using codec                = codec<fixed_chunks<256>, no_rotation, cast<T>, shard>;
  constexpr std::size_t size = 256;
  auto const in              = gradients_of_all_sizes(world, d);
  auto const ranks           = static_cast<std::size_t>(world);
  tests::exchange_run<tests::host_buffer, codec, float, float> run{
    cpu_executor{}, {.gradient = {d}, .world = world}};
  auto const out = run.exchange(cpu_executor{}, in);
  tests::mismatches wrong;
  for (std::size_t me = 0; me < ranks; ++me) {
    std::size_t const begin = d * me / ranks, end = d * (me + 1) / ranks;
    std::size_t const first = begin / size, chunks = (end + size - 1) / size - first;
    std::size_t const head  = (chunks + 3) / 4 * 4;
    std::size_t const words = head + chunks * size * sizeof(T) / 4;
    REQUIRE(run[me].plan.part_words(static_cast<int>(me)) == words);
    auto const* const received = shards_wire(run[me].plan, run[me].workspace).received;
    for (std::size_t i = begin; i < end; ++i) {
      double mean = 0, room = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        std::size_t const chunk = i / size, index = chunk - first;
        float most = 0;
        for (std::size_t j = chunk * size; j < std::min(d, (chunk + 1) * size); ++j) {
          most = std::max(most, std::abs(in[r][j]));
        }
        auto const scale = std::bit_cast<float>(received[r * words + index]);
        // The power of two that brings the largest magnitude to 2^14 or above.
        float const want = most > 0 ? std::ldexp(1.0f, std::ilogb(most) - 14) : 0.0f;
        wrong.expect(scale, want, most, i);
        T element;
        std::memcpy(&element,
                    reinterpret_cast<T const*>(received + r * words + head) + index * size +
                      i % size,
                    sizeof(T));
        double const sent  = static_cast<double>(to_float(element)) * static_cast<double>(scale);
        double const value = static_cast<double>(in[r][i]);
        // Half of a unit, which below 2^-28 of the largest magnitude does not fall any more.
        double const least = std::ldexp(static_cast<double>(most), -28);
        double const off   = half_a_unit<T> * std::max(std::abs(value), least);
        wrong.expect(std::abs(sent - value) <= off, true, sent, value, i);
        mean += sent / world;
        room += std::abs(sent) * 0x1p-23;
      }
      double const got = static_cast<double>(out[me][i - begin]);
      wrong.expect(std::abs(got - mean) <= room, true, got, mean, i);
    }
  }
  if (d > 0) { CHECK(wrong.report() == ""); }
}

// The error of the mean of normal gradients over its energy, after one exchange.
template <class Codec>
double error_of(Codec const& codec, int world)
{
  constexpr std::size_t d = 20000;
  auto const in           = tests::normal_gradients(world, d, 5);
  tests::loopback_run<Codec> run{codec, {d}, world, 77};
  return tests::nmse(in, run.exchange(in)[0]);
}

}  // namespace

TEST_CASE(
  "[casts in parts] elements lie in the order of the gradient, in units of a power of two, and are added in float")
{
  for (std::size_t const d : {0u, 767u, 768u, 769u, 2503u}) { check_wire_and_mean<half>(d, 3); }
  check_wire_and_mean<bfloat16>(2503, 4);
}

TEST_CASE("[casts in parts] the error is that of rounding to elements")
{
  // A value in [2^e, 2^(e+1)) is rounded to p bits with an error whose mean square is 2^(2 (e - p + 1)) / 12: between 2^-2p / 12
  // and 2^-2p / 3 of the value's square. Errors and gradients are independent, so that the mean of n has the same ratio.
  // The two sums of squares have relative deviations below 2 %.
  auto const check = [](double error, int bits, int encodings) {
    double const least = encodings * std::exp2(-2 * bits) / 12;
    CHECK(error > .94 * least);
    CHECK(error < 1.06 * 4 * least);
  };
  check(error_of(codec<fixed_chunks<1024>, no_rotation, cast<half>, two_shot>{}, 3), 11, 2);
  check(error_of(codec<fixed_chunks<256>, no_rotation, cast<bfloat16>, gather>{}, 2), 8, 1);
}

TEST_CASE("[casts in parts] a chunk with a value that is not finite is NaN, and no other one")
{
  tests::exchange_run<tests::host_buffer,
                      std::remove_const_t<decltype(
                        codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, shard>{})>,
                      float,
                      float>
    run{cpu_executor{}, {.gradient = {5000}, .world = 2}};
  auto in        = tests::normal_gradients(2, 5000, 4);
  in[1][3000]    = std::numeric_limits<float>::infinity();
  auto const out = run.exchange(cpu_executor{}, in);
  for (std::size_t i = 0; i < 5000; ++i) {
    float const got = out[i / 2500][i % 2500];
    CHECK(std::isnan(got) == (i / 1024 == 2));
  }
}

TEST_CASE("[casts in parts] values come back as halves of the owner's, the same on all ranks")
{
  tests::exchange_run<tests::host_buffer,
                      std::remove_const_t<decltype(
                        codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, publish>{})>,
                      float,
                      float>
    run{cpu_executor{}, {.gradient = {3001}, .world = 3}};
  auto const in  = tests::normal_gradients(1, 3001, 8)[0];
  auto const out = run.exchange(cpu_executor{}, in);
  tests::mismatches wrong;
  for (std::size_t i = 0; i < in.size(); ++i) {
    double const off = std::abs(static_cast<double>(out[0][i]) - static_cast<double>(in[i]));
    wrong.expect(off <= std::abs(static_cast<double>(in[i])) * 0x1p-11, true, out[0][i], in[i], i);
  }
  CHECK(wrong.report() == "");
  for (auto const& of_rank : out) { CHECK(of_rank == out[0]); }
}
