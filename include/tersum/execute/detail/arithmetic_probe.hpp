// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Whether this program was compiled to compute as IEEE 754 says: for options that no macro shows, of clang and of nvcc.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Numbers to compute with. Compilers must not know them: they would compute by themselves, as IEEE 754 says. So they are the
//! arguments of a kernel, or read as volatile.
struct probe_numbers {
  float one          = 1;
  float three        = 3;
  float many         = 31;
  float two          = 2;
  float large        = 0x1p24f;
  float least_normal = 0x1p-126f;
  float minus_zero   = -0.0f;
  float nan          = bit_cast<float>(0x7fc00000u);
};

//! @brief Whether these numbers give the bits of IEEE 754. Bits are compared, because some options take comparisons of floats away.
[[nodiscard]] TERSUM_HOST_DEVICE inline bool computes_exactly(probe_numbers const& of)
{
  // Products with a reciprocal, which two quotients of one divisor or one of a constant become, are rounded twice.
  float const third = of.one / of.three, thirds = of.many / of.three, fifths = of.many / 5.0f;
  float const root = ::sqrtf(of.two), subnormal = of.least_normal * 0.25f;
  float const ordered = (of.large + of.one) - of.large, zero = of.minus_zero + 0.0f;
  bool const right = (float_bits(third) == 0x3eaaaaabu) && (float_bits(thirds) == 0x41255555u) &&
                     (float_bits(fifths) == 0x40c66666u) && (float_bits(root) == 0x3fb504f3u) &&
                     (float_bits(subnormal) == 0x00200000u) && (float_bits(ordered) == 0) &&
                     (float_bits(zero) == 0);
  int equal = 0;  // whether a NaN is one
  if (of.nan == of.nan) { ++equal; }
  if (!(of.nan != of.nan)) { ++equal; }
  return right && equal == 0;
}

//! Whether the code of the host computes so.
[[nodiscard]] inline status check_arithmetic() noexcept
{
  with_subnormals const scope;
  probe_numbers const known;
  probe_numbers hidden;
  auto const volatile* const from = reinterpret_cast<unsigned char const volatile*>(&known);
  auto* const to                  = reinterpret_cast<unsigned char*>(&hidden);
  for (std::size_t i = 0; i < sizeof(known); ++i) { to[i] = from[i]; }
  if (computes_exactly(hidden)) { return {}; }
  return {
    error_code::unsupported,
    "this program does not compute as IEEE 754 says, so that ranks would disagree: compile it without -ffast-math and "
    "all of its parts, such as -freciprocal-math, -fassociative-math and -fno-honor-nans"};
}

//! `state_header::layout` of a state whose kernels do not compute so; no plan has it, because it is of no version.
inline constexpr std::uint64_t layout_of_inexact_kernels = ~std::uint64_t{0};
static_assert(layout_of_inexact_kernels % 256 != state_version);

//! The item that makes a state useless where kernels do not compute so: a launch cannot tell the host.
struct probe_arithmetic {
  state_header* header;
  probe_numbers numbers{};

  template <class Memory>
  TERSUM_HOST_DEVICE void operator()(Memory const&, std::size_t) const
  {
    if (!computes_exactly(numbers)) { header->layout = layout_of_inexact_kernels; }
  }
};

}  // namespace tersum::inline v0::detail
