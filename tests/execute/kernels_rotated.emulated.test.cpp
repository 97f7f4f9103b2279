// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of the rotated saturating presets equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

// Chunks of one word each, over and over: sums of as many equal codes as there are.
template <class Codec>
void compare_extremes(Codec const& codec)
{
  constexpr std::uint32_t words[] = {
    0, 0x7f7f7f7fu, 0x80808080u, 0x81818181u, 0x77777777u, 0x88888888u, 0x55555555u};
  auto const plan = codec.plan({.coordinates = std::size(words) * Codec::chunk_size}, {});
  std::vector<float> means[2];
  auto const decode_on = [&](auto const& exec, std::vector<float>& gradient) {
    gradient.assign(plan.coordinates(), 1.0F);
    // A multiple of 16 bytes begins on a boundary of 16.
    std::vector<word4> state(plan.state_bytes() / 16 + 1),
      workspace(plan.workspace_bytes() / 16 + 1);
    auto const of    = std::as_writable_bytes(std::span{state}).first(plan.state_bytes());
    auto const bytes = std::as_writable_bytes(std::span{workspace}).first(plan.workspace_bytes());
    std::span<float> const values{gradient};
    REQUIRE(initialize(exec, plan, of, 1) == status{});
    REQUIRE(measure(exec, plan, values, of, bytes) == status{});
    REQUIRE(encode(exec, plan, values, of, bytes) == status{});
    auto const payload     = bytes.subspan(plan.offset("payload"), plan.payload_bytes());
    std::size_t const each = payload.size() / std::size(words);
    for (std::size_t i = 0; i < payload.size(); i += sizeof(words[0])) {
      std::memcpy(payload.data() + i, &words[i / each], sizeof(words[0]));
    }
    REQUIRE(decode(exec, plan, values, of, bytes) == status{});
  };
  decode_on(cpu_executor{.threads = 1}, means[0]);
  decode_on(emulated_executor{emulator::thread_orders[0]}, means[1]);
  CHECK(std::memcmp(means[0].data(), means[1].data(), means[0].size() * sizeof(float)) == 0);
  CHECK(*std::max_element(means[0].begin(), means[0].end()) > 1.0F);
}

TEST_CASE("[kernels] sums of the largest codes are decoded as on the CPU")
{
  SUBCASE("2 bits") { compare_extremes(presets::rotated_sat2); }
  SUBCASE("4 bits") { compare_extremes(presets::rotated_sat4); }
  SUBCASE("8 bits") { compare_extremes(presets::rotated_sat8); }
}

}  // namespace
