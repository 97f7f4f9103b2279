// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two-shot exchanges have the same bytes on every instruction set and number of threads, in pieces, and whatever memory held before.

#include "support/exchange_fixture.hpp"
#include "support/in_pieces.hpp"

#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/group_absmax.hpp>
#include <tersum_baselines/presets.hpp>

using namespace tersum;

namespace {

template <class Codec, class Element>
void check(tests::exchange_case<Codec, Element> const& c)
{
  CAPTURE(c);
  auto const reference = tests::record_reference(c);
  auto const record    = [&](auto const& exec) {
    return tests::record_exchange<tests::host_buffer>(exec, c, std::byte{0x3c});
  };
  tests::check_instruction_sets(record, reference);
  CHECK(tests::difference(record(cpu_executor{.threads = 3}), reference) == "");
  for (std::uint64_t const pieces : {2U, 5U}) {
    CAPTURE(pieces);
    CHECK(tests::difference(record(tests::in_pieces<cpu_executor>{{}, pieces}), reference) == "");
  }
}

}  // namespace

TEST_CASE(
  "[two_shot] the bytes of an exchange do not depend on instructions, threads, pieces or old memory")
{
  check<std::remove_cv_t<decltype(presets::two_shot_4)>, float>(
    {.gradient = {5003}, .world = 3, .misaligned = true, .non_finite_step = 1});
  check<std::remove_cv_t<decltype(presets::two_shot<2, error_feedback>{})>, half>(
    {.gradient = tests::odd_bucket().gradient(), .world = 2, .steps = 4, .non_finite_step = 2});
  check<codec<fixed_chunks<256>, partial_hadamard<256>, scaled_codes<lloyd_max<5>>, two_shot>,
        bfloat16>({.gradient = {1000}, .world = 4});
  check<presets::two_shot<6>, float>({.gradient = {3000}});
  check<presets::two_shot<8>, float>({.gradient = {3000}});
}

TEST_CASE("[two_shot] nor do those of allocated widths")
{
  check<std::remove_cv_t<decltype(presets::allocated_4)>, float>(
    {.codec = presets::allocated_4, .gradient = {20011}, .world = 3, .non_finite_step = 1});
  check<
    std::remove_cv_t<decltype(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}})>,
    float>({.codec    = presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}},
            .gradient = {30000},
            .world    = 2});
  using wide = codec<allocated_chunks<256, 9, 12, 16>,
                     partial_hadamard<256>,
                     scaled_codes<lloyd_max<8>>,
                     two_shot>;
  check<wide, float>(
    {.codec = {.chunker = {.bits = 13}}, .gradient = {20011}, .world = 3, .non_finite_step = 1});
}

TEST_CASE("[two_shot] nor do those of blocks with scales of their own")
{
  check<std::remove_cv_t<decltype(presets::blocks_4)>, float>(
    {.codec = presets::blocks_4, .gradient = {20011}, .world = 3, .non_finite_step = 1});
  using quantizer = group_absmax<3, 128, linear_levels, bfloat16_scale, no_dither>;
  check<codec<fixed_chunks<2048>, no_rotation, scaled_codes<quantizer>, two_shot>, half>(
    {.gradient = {5003}});
}
