// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden payloads of older codecs: what they send and the means they make.

#include "support/golden_digest.hpp"
#include "support/loopback_run.hpp"

#include <tersum/cast_codec.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/gathered_codec.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum_baselines/presets.hpp>

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
std::string digest_on(cpu_executor const& exec, Codec const& codec)
{
  constexpr std::size_t d = 2 * 1024 + 11;
  std::vector<std::vector<float>> in;
  for (int rank = 0; rank < 3; ++rank) { in.push_back(tests::integer_gradient<float>(d, rank, 0)); }
  tests::fnv_digest digest;
  tests::loopback_run run{codec, layout{d}, 3, 5, exec};
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
std::string digest(Codec const& codec)
{
  std::string const text = digest_on({}, codec);
  CHECK(digest_on({.instructions = instruction_set::baseline}, codec) == text);
  return text;
}

TEST_CASE("[golden] older codecs send what they sent")
{
  CHECK(digest(presets::terngrad) == "cdce2f4e542637a7");
  CHECK(digest(presets::thc_lookup4_wide) == "343e85a46635ca");
  CHECK(digest(presets::onebit_ef) == "eb909327c8fb7043");
  CHECK(digest(presets::mxfp4) == "afe6a7affd30e249");
  CHECK(digest(presets::mxfp8) == "9fb164486ca823a5");
  CHECK(digest(presets::nvfp4) == "bc0b54674b7b8e0d");
  CHECK(digest(presets::natural_4) == "7a8ceb670bf065ef");
  CHECK(digest(presets::qsgd_4) == "ed1f78573df76914");
  CHECK(digest(presets::randomk_b2) == "3f57bc4e46f9ccd2");
  CHECK(digest(presets::randomk_b2_ef) == "940f244844e8d700");
}

}  // namespace
