// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Quantizers that a user of the library writes: they model the role and obey its laws.

#include "../../examples/your_own/sign_quantizer.hpp"
#include "conformance/quantizer_conformance.hpp"
#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"
#include "support/user_quantizers.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

TEST_CASE(
  "[conformance] signs, and a quantizer whose levels are not uniform, obey the laws of the role")
{
  tersum::tests::check_quantizer_laws<tersum::tests::uneven_quantizer>();
  tersum::tests::check_quantizer_laws<sign_quantizer>();
}

using signs = tersum::tests::rotated_sums<1024,
                                          tersum::rms_range<tersum::no_headroom>,
                                          sign_quantizer,
                                          tersum::widening_sum<2, 8>,
                                          tersum::error_feedback>;

//! The length of one rank's residual after some steps with the same gradients, in lengths of its gradient.
double residual_of_signs(float clip, int steps)
{
  std::size_t const d = 4096;
  auto const in       = tersum::tests::normal_gradients(3, d, 11);
  tersum::tests::loopback_run run{
    signs{.coder = {.range = {.clip = clip}}}, tersum::layout{d}, 3, 1};
  for (int step = 0; step < steps; ++step) { run.exchange(in); }
  double left = 0, sent = 0;
  for (std::size_t i = 0; i < d; ++i) {
    left += std::pow(static_cast<double>(run.residual()[i]), 2);
    sent += std::pow(static_cast<double>(in[0][i]), 2);
  }
  return std::sqrt(left / sent);
}

TEST_CASE("[conformance] residuals of signs are bounded by the step that docs/codecs.md names")
{
  // Of a normal value x, signs times s root mean squares lose 1 - 2 s E|x| + s^2 = D of the energy. A residual that loses D
  // of itself plus a gradient, ever again, ends at sqrt(D) / (1 - sqrt(D)) gradients, or grows by sqrt(D) if that is above 1.
  auto const lost   = [](double s) { return 1 - 2 * s * std::sqrt(2 / std::acos(-1.0)) + s * s; };
  double const root = std::sqrt(lost(0.8));
  double const end  = residual_of_signs(0.8f, 200);
  CHECK(end > 0.5);
  CHECK(end < 1.05 * root / (1 - root));
  double const before = residual_of_signs(2.0f, 20), after = residual_of_signs(2.0f, 21);
  CHECK(after / before == doctest::Approx(std::sqrt(lost(2.0))).epsilon(0.05));
}

}  // namespace
