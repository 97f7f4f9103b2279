// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden payloads of older codecs: what they send and the means they make.

#include "support/golden_digest.hpp"
#include "support/loopback_run.hpp"

#include <tersum/baseline/catalogue.hpp>
#include <tersum/cast_codec.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/gathered_codec.hpp>
#include <tersum/quantize/lloyd_max.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <vector>

using namespace tersum;

namespace {

// Of what three ranks have after two exchanges: the means of rank 2, and the whole payload of rank 1.
template <class Codec>
std::string digest_on(cpu_executor const& exec, Codec const& codec, std::span<tensor const> tensors)
{
  constexpr std::size_t d = 2 * 1024 + 11;
  std::vector<std::vector<float>> in;
  for (int rank = 0; rank < 3; ++rank) { in.push_back(tests::integer_gradient<float>(d, rank, 0)); }
  tests::fnv_digest digest;
  tests::loopback_run run{codec, layout{d, tensors}, 3, 5, exec};
  for (int step = 0; step < 2; ++step) {
    digest.add(std::as_bytes(std::span{run.exchange(in)[2]}));
    auto const& plan = run.plan();
    digest.add(run.workspace(1).subspan(plan.payload_offset(), plan.payload_bytes()));
  }
  std::ostringstream text;
  text << std::hex << digest.value();
  return text.str();
}

// No instruction set may make a difference.
template <class Codec>
std::string digest(Codec const& codec, std::span<tensor const> tensors = {})
{
  std::string const text = digest_on({}, codec, tensors);
  CHECK(digest_on({.instructions = instruction_set::baseline}, codec, tensors) == text);
  return text;
}

TEST_CASE("[golden] older codecs send what they sent")
{
  CHECK(digest(presets::terngrad) == "cdce2f4e542637a7");
  CHECK(digest(presets::sign_mean_ef) == "e34b6319d1437a51");
  CHECK(digest(presets::nf4_rotated) == "2e4ef8ac54551d9f");
  CHECK(digest(presets::thc_lookup4_wide) == "343e85a46635ca");
  CHECK(digest(presets::thc_lookup4_widest) == "c100cd89846b23a0");
  CHECK(digest(presets::onebit_ef) == "eb909327c8fb7043");
  CHECK(digest(presets::minmax_8) == "7cc2a68f554e13bc");
  CHECK(digest(presets::nf4) == "661e14d25db95e25");
  CHECK(digest(presets::mxfp4) == "afe6a7affd30e249");
  CHECK(digest(presets::mxfp8) == "9fb164486ca823a5");
  CHECK(digest(presets::mxfp8_e5m2) == "2cf1c45f377ec969");
  CHECK(digest(presets::mxfp6) == "700c29fa9684ca51");
  CHECK(digest(presets::mxfp6_e3m2) == "c3d2cef7dfed6965");
  CHECK(digest(presets::dynamic_8) == "43eb38332b82a0e5");
  CHECK(digest(presets::nvfp4) == "bc0b54674b7b8e0d");
  CHECK(digest(presets::natural_4) == "7a8ceb670bf065ef");
  CHECK(digest(presets::qsgd_4) == "ed1f78573df76914");
  CHECK(digest(presets::tensor_qsgd_4) == "93d0cea572d507bc");
  CHECK(digest(cast_codec<half, top_chunks<64>, kept_in<byte_blocks>>{}) == "23e08874d6b8eda5");
  CHECK(digest(gathered_codec<fixed_chunks<256>,
                              partial_hadamard<256>,
                              lloyd_max<2>,
                              kept_in<byte_blocks>>{}) == "d613c12b34a2a1a2");
  CHECK(digest(entropy_codec<kept_in<byte_blocks>>{.bits = 1}) == "c9dc23d4e10668ad");
  CHECK(digest(entropy_two_shot_codec<error_feedback>{.bits = 1}) == "12932df99657e91f");
  CHECK(digest(presets::randomk_b2) == "3f57bc4e46f9ccd2");
  CHECK(digest(presets::randomk_b2_ef) == "940f244844e8d700");
  std::vector<tensor> const matrix{{.rows = 70, .columns = 20}, {.rows = 659, .offset = 1400}};
  CHECK(digest(presets::powersgd_r4_plain, matrix) == "fa241821a7aeff48");
}

}  // namespace
