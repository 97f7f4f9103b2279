// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A quantizer that encodes one value at a time makes the same bytes as where kernels do several at once.

#include "conformance/compare_forms.hpp"
#include "conformance/plain_forms.hpp"
#include "support/codecs.hpp"

#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>

using namespace tersum;

namespace {

template <class Quantizer, class Reducer, class Feedback = error_feedback>
using in_lanes = tests::rotated_sums<256, rms_range<no_headroom>, Quantizer, Reducer, Feedback>;

template <class Quantizer, class Reducer>
void compare_quantizers()
{
  static_assert(!has_grid<tests::plain_quantizer<Quantizer>> &&
                !has_ramps<tests::plain_quantizer<Quantizer>>);
  tests::compare_forms(in_lanes<tests::plain_quantizer<Quantizer>, Reducer>{},
                       in_lanes<Quantizer, Reducer>{});
}

TEST_CASE("[conformance] uniform quantizers by the plain form make the same codes")
{
  compare_quantizers<stochastic_quantizer<2>, saturating_sum<2>>();
  compare_quantizers<stochastic_quantizer<4>, saturating_sum<4>>();
  compare_quantizers<nearest_quantizer<8>, widening_sum<8, 16>>();
}

TEST_CASE("[conformance] a quantizer with a table makes the same codes by the plain form")
{
  compare_quantizers<lookup_quantizer<thc_table_30>, widening_sum<5, 8>>();
}

TEST_CASE("[conformance] a codebook by its plain form makes the same codes")
{
  using book  = lloyd_max<3>;
  using plain = tests::plain_codebook<book>;
  static_assert(codebook<plain> && !table_codebook<plain>);
  using chunks   = fixed_chunks<512>;
  using rotation = partial_hadamard<512>;
  tests::compare_forms(codec<chunks, rotation, scaled_codes<plain>, two_shot, error_feedback>{},
                       codec<chunks, rotation, scaled_codes<book>, two_shot, error_feedback>{});
}

TEST_CASE("[conformance] all policies by their plain forms make the same codes")
{
  using rotator   = partial_hadamard<512>;
  using range     = absmax_range<tracked_correlation, bfloat16>;
  using quantizer = stochastic_quantizer<8>;
  using plain     = codec<
    fixed_chunks<512>,
    tests::plain_rotator<rotator>,
    summed_codes<tests::plain_range<range>, tests::plain_quantizer<quantizer>, saturating_sum<8>>,
    in_wire,
    tests::plain_feedback>;
  using packed = codec<fixed_chunks<512>,
                       rotator,
                       summed_codes<range, quantizer, saturating_sum<8>>,
                       in_wire,
                       error_feedback>;
  tests::compare_forms(plain{}, packed{}, 3);
}

}  // namespace
