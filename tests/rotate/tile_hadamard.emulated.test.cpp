// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The transform on tiles, in the emulator, is the Hadamard transform within the bound that its one rounding gives; butterflies of
//! registers are it exactly.

#include "support/emulator.hpp"

#include <tersum/chunk/chunk_order.hpp>
#include <tersum/rotate/detail/butterflies.hpp>
#include <tersum/rotate/detail/fragment_hadamard.hpp>
#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;

constexpr double half_roundoff  = 0x1p-11;  // of a conversion to half, relative
constexpr double half_tiny      = 0x1p-25;  // the same below 2^-14, absolute
constexpr double float_roundoff = 0x1p-24;

double norm(std::vector<double> const& x)
{
  double sum = 0;
  for (double const value : x) { sum += value * value; }
  return std::sqrt(sum);
}

// The chunks of one warp: coordinate i of chunk c is values[c * Size + i]. Returns the transforms in wire order, scaled as
// an encoder with these scales would have them.
template <int Size, class Element>
std::vector<float> transform(std::vector<Element> const& values,
                             std::vector<float> const& scales,
                             emulator::thread_order order)
{
  using tiles = detail::tile_hadamard<Size, Element>;
  std::vector<float> out(1024);
  emulator::launch({.shared_bytes = 2560}, order, [&](host_context& ctx) {
    unsigned const lane  = ctx.thread_rank();
    unsigned const t     = lane % (Size / 32);
    unsigned const chunk = lane / (Size / 32);
    std::uint32_t pairs[16];
    for (unsigned p = 0; p < 16; ++p) {
      unsigned const i = chunk * Size + p / 4 * (Size / 4) + 8 * t + 2 * (p % 4);
      pairs[p]         = values[i].bits | static_cast<std::uint32_t>(values[i + 1].bits) << 16;
    }
    int const exponent =
      tiles::exponent(ctx, scales[tiles::fills_warp ? 0 : tiles::chunk_between(lane)]);
    float v[32];
    tiles::to_wire(ctx, pairs, exponent, static_cast<word4*>(ctx.shared()), lane, v);
    float const scale =
      tiles::remaining_scale(ctx, scales[chunk], tiles::exponent(ctx, scales[chunk]));
    for (unsigned k = 0; k < 32; ++k) { out[32 * lane + k] = v[k] * scale; }
  });
  return out;
}

// Of size `reach`, some of them much larger, as far as the type goes.
template <class Element>
std::vector<Element> make_values(float reach, unsigned seed)
{
  std::mt19937 random(seed);
  std::vector<Element> values(1024);
  for (Element& value : values) {
    float const uniform = static_cast<float>(random()) * 0x1p-31F - 1.0F;
    value = from_float<Element>(reach * uniform * (random() % 100 == 0 ? 10.0F : 1.0F));
  }
  return values;
}

// Hadamard's matrix times a vector, by its definition.
std::vector<double> multiply_matrix(std::vector<double> const& x)
{
  std::vector<double> product(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      product[i] += std::popcount(i & j) % 2 == 0 ? x[j] : -x[j];
    }
  }
  return product;
}

// Butterflies over the bits First to Last - 1 of the number of a register, of integers, so that sums are exact.
template <int First, int Last>
void check_butterflies()
{
  CAPTURE(First);
  CAPTURE(Last);
  constexpr unsigned bits = (1u << Last) - (1u << First);
  float v[32];
  for (unsigned i = 0; i < 32; ++i) { v[i] = static_cast<float>(i * i * 7 % 61) - 30.0F; }
  double want[32]{};
  for (unsigned i = 0; i < 32; ++i) {
    for (unsigned j = 0; j < 32; ++j) {
      if (((i ^ j) & ~bits) != 0) { continue; }
      want[i] += (std::popcount(i & j & bits) % 2 == 0 ? 1 : -1) * static_cast<double>(v[j]);
    }
  }
  emulator::launch({}, emulator::forward, [&](host_context& ctx) {
    float own[32];
    std::copy(std::begin(v), std::end(v), std::begin(own));
    detail::butterflies<First, Last>(ctx, own);
    for (unsigned i = 0; i < 32; ++i) { REQUIRE(static_cast<double>(own[i]) == want[i]); }
  });
}

TEST_CASE("[rotate] butterflies of registers are Hadamard's matrix, the sum before the difference")
{
  check_butterflies<0, 5>();
  check_butterflies<0, 1>();
  check_butterflies<1, 4>();
  check_butterflies<3, 5>();
}

template <int Size, class Element>
void check_transform(float reach)
{
  CAPTURE(Size);
  CAPTURE(reach);
  using order = chunk_order<Size>;
  // Chunks that share a warp differ by orders of magnitude.
  constexpr int apart = std::is_same_v<Element, half> ? 2 : 12;
  auto values         = make_values<Element>(reach, Size);
  std::vector<float> scales;
  for (int chunk = 0; chunk < 1024 / Size; ++chunk) {
    for (int i = 0; i < Size; ++i) {
      Element& value = values[static_cast<std::size_t>(chunk * Size + i)];
      value          = from_float<Element>(to_float(value) * std::ldexp(1.0F, -apart * chunk));
    }
    scales.push_back(
      256.0F / (std::ldexp(0.3F, -apart * chunk) * reach * std::sqrt(static_cast<float>(Size))));
  }
  std::vector<std::vector<double>> want;
  for (auto const thread_order : emulator::thread_orders) {
    CAPTURE(thread_order);
    auto const got = transform<Size>(values, scales, thread_order);
    for (std::size_t chunk = 0; chunk < scales.size(); ++chunk) {
      CAPTURE(chunk);
      double const scale = static_cast<double>(scales[chunk]);
      std::vector<double> x(Size);
      for (std::size_t i = 0; i < Size; ++i) {
        x[i] = static_cast<double>(to_float(values[chunk * Size + i]));
      }
      if (want.size() <= chunk) { want.push_back(multiply_matrix(x)); }
      std::vector<double> error(Size);
      for (std::size_t i = 0; i < Size; ++i) {
        error[i] =
          static_cast<double>(got[chunk * Size + order::position(i)]) - want[chunk][i] * scale;
      }
      // The sums of sixteen have 4 |x| for their norm, and each is rounded to half and by sums in float; the rest of the
      // transform multiplies the norm of these errors by the square root of Size/16. Sums round at most 20 times more,
      // each time by 2^-24 of what has at most the norm of the result.
      double const root  = std::sqrt(static_cast<double>(Size));
      double const exact = root * norm(x) * scale;
      double const tiny  = half_tiny * 0x1p9 * root * std::sqrt(Size / 16.0);
      double const bound = (half_roundoff + 20 * float_roundoff) * exact + tiny;
      CHECK(norm(error) <= bound);
    }
  }
}

TEST_CASE_TEMPLATE("[rotate] tiles transform chunks up to one rounding to half",
                   Element,
                   half,
                   bfloat16)
{
  for (float const reach : {1.0F, 0x1.7p-12F, 0x1.9p9F}) {
    check_transform<256, Element>(reach);
    check_transform<512, Element>(reach);
    check_transform<1024, Element>(reach);
  }
}

TEST_CASE("[rotate] tiles keep the range of bfloat16")
{
  for (float const reach : {0x1.2p-60F, 0x1.2p60F}) {
    check_transform<256, bfloat16>(reach);
    check_transform<1024, bfloat16>(reach);
  }
}

TEST_CASE_TEMPLATE(
  "[rotate] on tiles a single spike as large as the range allows does not overflow",
  Element,
  half,
  bfloat16)
{
  // The largest value times the scale is 2^23, the least step that a chunk can have.
  std::vector<Element> values(1024);
  values[37] = from_float<Element>(-96.0F);
  std::vector<float> const scales{0x1p23F / 96.0F};
  auto const got = transform<1024>(values, scales, emulator::forward);
  for (unsigned i = 0; i < 1024; ++i) {
    bool const minus = std::popcount(i & 37U) % 2 == 0;
    CAPTURE(i);
    CHECK(got[chunk_order<1024>::position(i)] ==
          doctest::Approx(minus ? -0x1p23 : 0x1p23).epsilon(0x1p-22));
  }
}

}  // namespace
