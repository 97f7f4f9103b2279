// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of the THC presets equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/collective/served_sum.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Codec>
void compare_preset(Codec const& codec)
{
  compare_sizes<float>(codec);
  compare_orders<float>(codec);
  compare_orders<float>(codec, 3, true);
}

TEST_CASE("[kernels] thc_wide4_partial equals the CPU executor")
{
  compare_preset(presets::thc_wide4_partial);
}

TEST_CASE("[kernels] thc_wide4_unrotated equals the CPU executor")
{
  compare_preset(presets::thc_wide4_unrotated);
}

TEST_CASE("[kernels] thc_sat2 equals the CPU executor") { compare_preset(presets::thc_sat2); }

TEST_CASE("[kernels] thc_sat4 equals the CPU executor") { compare_preset(presets::thc_sat4); }

TEST_CASE("[kernels] thc_sat8 equals the CPU executor") { compare_preset(presets::thc_sat8); }

TEST_CASE("[kernels] thc_lookup4 equals the CPU executor")
{
  compare_sizes<float>(presets::thc_lookup4);
  compare_orders<float>(presets::thc_lookup4, 3, true);
}

// Codes to indices and sums to codes of a workspace of any levels, in which some chunks have no step and some lost all.
TEST_CASE("[kernels] indices and sums of table values equal those of the CPU executor")
{
  using codec_type = std::remove_cvref_t<decltype(presets::thc_lookup4)>;
  using table      = codec_type::quantizer_type::table;
  auto const plan  = presets::thc_lookup4.plan(layout{9 * 1024 + 1}, {.size = 3, .rank = 1});
  std::mt19937 random(7);
  host_buffer const workspace{plan.workspace_bytes(), 0, std::byte{0}};
  host_buffer const sums{plan.payload_bytes(), 0, std::byte{0}};
  std::vector<std::uint16_t> arrived;
  for (std::size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    arrived.push_back(static_cast<std::uint16_t>(chunk % 4));
    chunk_step const step{chunk % 3 == 0 ? 0.0F : 3.0F, .7F, 0, 0};
    std::memcpy(workspace.contents().data() + chunk * sizeof(step), &step, sizeof(step));
  }
  for (std::size_t i = 0; i < plan.payload_bytes(); ++i) {
    int const code = table::value[random() % table::count] - table::granularity / 2;
    workspace.contents()[plan.payload_offset() + i] = static_cast<std::byte>(code);
    sums.contents()[i]                              = static_cast<std::byte>(random() % 127);
  }
  auto const run = [&](auto const& exec) {
    host_buffer own{plan.workspace_bytes(), 0, std::byte{0}};
    own.write(workspace.contents());
    host_buffer const indices{index_bytes(plan), 0, std::byte{0xa5}};
    REQUIRE(pack_indices(exec, plan, own.contents(), indices.contents()) == status{});
    REQUIRE(unpack_sums(exec, plan, own.contents(), sums.contents(), arrived) == status{});
    return std::pair{indices.read(0, index_bytes(plan)), own.read(0, plan.workspace_bytes())};
  };
  auto const want = run(cpu_executor{});
  CHECK((run(cpu_executor{.threads = 2}) == want));
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK((run(emulated_executor{order}) == want));
  }
}

}  // namespace
