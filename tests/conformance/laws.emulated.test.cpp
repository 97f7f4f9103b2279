// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The laws of each role hold for the policies of the library and for those of its users.

#include "../../examples/your_own/classical_gram_schmidt.hpp"
#include "../../examples/your_own/cosine_transform.hpp"
#include "../../examples/your_own/decaying_feedback.hpp"
#include "../../examples/your_own/even_codebook.hpp"
#include "../../examples/your_own/every_kth_chunk.hpp"
#include "../../examples/your_own/largest_mean.hpp"
#include "../../examples/your_own/mean_magnitude.hpp"
#include "../../examples/your_own/signed_permutation.hpp"
#include "chunker_conformance.hpp"
#include "codebook_conformance.hpp"
#include "dither_conformance.hpp"
#include "feedback_conformance.hpp"
#include "metric_conformance.hpp"
#include "orthogonalizer_conformance.hpp"
#include "range_conformance.hpp"
#include "rotator_conformance.hpp"

#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/tersum.hpp>

using namespace tersum;
using namespace tersum::tests;

TEST_CASE_TEMPLATE("[conformance] rotators of 256 coordinates",
                   Rotator,
                   no_rotation,
                   partial_hadamard<256>,
                   signed_permutation)
{
  check_rotator_laws<256, Rotator>();
}

TEST_CASE("[conformance] rotators of other sizes")
{
  SUBCASE("Hadamard, 128") { check_rotator_laws<128, partial_hadamard<128>>(); }
  SUBCASE("Hadamard, 2048") { check_rotator_laws<2048, partial_hadamard<2048>>(); }
  SUBCASE("permutation, 1024") { check_rotator_laws<1024, signed_permutation>(); }
  SUBCASE("cosines, 128") { check_rotator_laws<128, cosine_transform<128>>(); }
}

TEST_CASE_TEMPLATE("[conformance] ranges",
                   Range,
                   rms_range<>,
                   rms_range<no_headroom, bfloat16>,
                   absmax_range<>,
                   absmax_range<fixed_headroom, bfloat16>,
                   global_range<>,
                   mean_magnitude)
{
  check_range_laws<256, Range>();
}

TEST_CASE_TEMPLATE(
  "[conformance] head-room", Headroom, no_headroom, fixed_headroom, tracked_correlation)
{
  check_headroom_laws<Headroom>();
}

TEST_CASE_TEMPLATE("[conformance] feedback",
                   Feedback,
                   no_feedback,
                   error_feedback,
                   decayed_feedback,
                   averaged_feedback,
                   decaying_feedback)
{
  check_feedback_laws<Feedback>();
}

TEST_CASE_TEMPLATE(
  "[conformance] metrics", Metric, plain_metric, given_diagonal, kept_diagonal, largest_mean)
{
  check_metric_laws<Metric>();
}

TEST_CASE_TEMPLATE("[conformance] chunkers",
                   Chunker,
                   fixed_chunks<128>,
                   top_chunks<64>,
                   random_chunks<32>,
                   allocated_chunks<256, 2, 4, 8>,
                   every_kth_chunk<128, 4>)
{
  check_chunker_laws<Chunker>();
}

TEST_CASE_TEMPLATE("[conformance] codebooks",
                   Codebook,
                   lloyd_max<1>,
                   lloyd_max<2>,
                   lloyd_max<4>,
                   lloyd_max<8>,
                   even_codebook)
{
  check_codebook_laws<Codebook>();
}

TEST_CASE_TEMPLATE(
  "[conformance] dithers", Dither, independent, stratified, independent_dither<10>, no_dither)
{
  check_dither_laws<Dither>();
}

TEST_CASE_TEMPLATE("[conformance] orthogonalizers",
                   Orthogonalizer,
                   gram_schmidt,
                   robust_cholesky_qr2,
                   classical_gram_schmidt)
{
  check_orthogonalizer_laws<Orthogonalizer>();
}
