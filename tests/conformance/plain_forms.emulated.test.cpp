// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies by their plain forms alone make the same bytes, on the CPU and in kernels, as with the forms by which vectors and fused
//! kernels do several values at once.

#include "conformance/compare_forms.hpp"
#include "conformance/plain_forms.hpp"
#include "support/codecs.hpp"

#include <tersum/presets.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/top_coordinates.hpp>

using namespace tersum;
using tests::compare_forms;
using tests::in_lanes;

namespace {

using tracked_norms = rms_range<tracked_correlation>;
using norms         = rms_range<fixed_headroom>;
using magnitudes    = absmax_range<fixed_headroom>;

template <class Rotator, class Feedback>
using allocated = codec<allocated_chunks<256, 2, 4, 8>,
                        Rotator,
                        summed_codes<rms_range<tracked_correlation, bfloat16>,
                                     stochastic_quantizer<8>,
                                     saturating_sum<8>>,
                        in_wire,
                        Feedback>;
template <class Rotator, class Feedback>
using allocated_shots =
  codec<allocated_chunks<256, 1, 2, 4, 8>, Rotator, scaled_codes<lloyd_max<8>>, two_shot, Feedback>;
template <class Rotator, class Book = lloyd_max<4>>
using shots = codec<fixed_chunks<512>, Rotator, scaled_codes<Book>, two_shot, error_feedback>;

// --- Rotators

template <template <class> class Codec, class Rotator>
void compare_rotators()
{
  compare_forms(Codec<tests::plain_rotator<Rotator>>{}, Codec<Rotator>{});
}

template <int Size>
void compare_hadamard()
{
  using rotator = partial_hadamard<Size>;
  compare_forms(in_lanes<tests::plain_rotator<rotator>, tracked_norms, no_feedback, Size>{},
                in_lanes<rotator, tracked_norms, no_feedback, Size>{});
}

template <class Rotator>
using of_magnitudes = in_lanes<Rotator, absmax_range<fixed_headroom, bfloat16>>;
template <class Rotator>
using feeding = in_lanes<Rotator, tracked_norms, error_feedback>;
template <class Rotator>
using feeding_allocated = allocated<Rotator, error_feedback>;
template <class Rotator>
using fixed_shots = shots<Rotator>;
template <class Rotator>
using feeding_shots = allocated_shots<Rotator, error_feedback>;

TEST_CASE("[conformance] a rotator by its plain form alone makes the same codes")
{
  compare_hadamard<128>();
  compare_hadamard<1024>();
  compare_hadamard<2048>();
  compare_forms(in_lanes<tests::plain_rotator<no_rotation>, tracked_norms>{},
                in_lanes<no_rotation, tracked_norms>{});
}

TEST_CASE("[conformance] ranges, feedback and two shots rotate by a plain form")
{
  compare_rotators<of_magnitudes, partial_hadamard<256>>();
  compare_rotators<feeding, partial_hadamard<256>>();
  compare_rotators<feeding_allocated, partial_hadamard<256>>();
  compare_rotators<fixed_shots, partial_hadamard<512>>();
  compare_rotators<feeding_shots, partial_hadamard<256>>();
}

// --- Ranges

template <class Range, class Rotator, int Size = 256, class Feedback = no_feedback>
void compare_ranges()
{
  compare_forms(in_lanes<Rotator, tests::plain_range<Range>, Feedback, Size>{},
                in_lanes<Rotator, Range, Feedback, Size>{});
}

TEST_CASE("[conformance] a range by its plain form alone makes the codes of a fused statistic")
{
  compare_ranges<norms, partial_hadamard<128>, 128>();
  compare_ranges<norms, partial_hadamard<2048>, 2048>();
  compare_ranges<rms_range<fixed_headroom, bfloat16>, no_rotation, 512, error_feedback>();
  compare_ranges<magnitudes, partial_hadamard<256>>();
  compare_ranges<magnitudes, partial_hadamard<2048>, 2048, error_feedback>();
  compare_ranges<absmax_range<no_headroom, bfloat16>, no_rotation>();
  // It has the norms of tensors besides.
  compare_ranges<absmax_range<tracked_correlation>, partial_hadamard<256>>();
}

// --- Quantizers and codebooks

template <class Quantizer, class Reducer>
void compare_quantizers()
{
  using plain = tests::plain_quantizer<Quantizer>;
  static_assert(!has_grid<plain> && !has_ramps<plain>);
  compare_forms(
    tests::rotated_sums<256, rms_range<no_headroom>, plain, Reducer, error_feedback>{},
    tests::rotated_sums<256, rms_range<no_headroom>, Quantizer, Reducer, error_feedback>{});
}

TEST_CASE("[conformance] quantizers and codebooks by their plain forms make the same codes")
{
  compare_quantizers<stochastic_quantizer<2>, saturating_sum<2>>();
  compare_quantizers<stochastic_quantizer<4>, saturating_sum<4>>();
  compare_quantizers<nearest_quantizer<8>, widening_sum<8, 16>>();
  compare_quantizers<lookup_quantizer<thc_table_30>, widening_sum<5, 8>>();
  using plain = tests::plain_codebook<lloyd_max<3>>;
  static_assert(codebook<plain> && !table_codebook<plain>);
  compare_forms(shots<partial_hadamard<512>, plain>{},
                shots<partial_hadamard<512>, lloyd_max<3>>{});
}

// --- Feedback and metrics

template <class Feedback>
using kept_in_lanes = in_lanes<partial_hadamard<1024>, tracked_norms, Feedback, 1024>;
template <class Feedback>
using kept_of_widths = allocated<partial_hadamard<256>, Feedback>;
template <class Feedback>
using kept_of_shots = allocated_shots<partial_hadamard<256>, Feedback>;
template <class Feedback>
using kept_of_largest = codec<top_chunks<64>, no_rotation, cast<half>, in_wire, Feedback>;

template <template <class> class Codec, class Element = float>
void compare_feedback()
{
  compare_forms<Element>(Codec<tests::plain_feedback>{}, Codec<error_feedback>{});
}

TEST_CASE("[conformance] feedback by its operations makes the same codes and keeps the same")
{
  compare_feedback<kept_in_lanes>();
  compare_feedback<kept_in_lanes, bfloat16>();
  compare_feedback<kept_of_widths>();
  compare_feedback<kept_of_shots>();
  compare_feedback<kept_of_largest>();
  compare_feedback<top_coordinates_codec>();
}

template <metric Metric>
using in_metric = tests::
  rotated_sums<256, tracked_norms, stochastic_quantizer<4>, saturating_sum<4>, no_feedback, Metric>;

TEST_CASE("[conformance] a metric by its operations keeps the same scales")
{
  compare_forms(in_metric<tests::plain_diagonal>{}, in_metric<kept_diagonal>{});
}

// --- Several of them

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
  compare_forms(
    plain{}, tests::rotated_sums<512, range, quantizer, saturating_sum<8>, error_feedback>{}, 3);
  using of_256 = partial_hadamard<256>;
  compare_forms<bfloat16>(
    in_lanes<tests::plain_rotator<of_256>, tests::plain_range<magnitudes>, error_feedback>{},
    in_lanes<of_256, magnitudes, error_feedback>{},
    3);
}

}  // namespace
