// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels of sorted matrices give the bytes of the CPU, in any order of their threads.

#include "support/emulated_executor.hpp"
#include "support/sorted_run.hpp"

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/sorted_presets.hpp>

#include <doctest/doctest.h>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class Element, class Codec = sorted_codec<cast_codec<float>>>
void compare_sorted(emulated_executor const& exec, Codec const& codec = {}, float most_key_bits = 8)
{
  auto const got = record_sorted<host_buffer, Element>(exec, codec, std::byte{0xa5}, most_key_bits);
  auto const want =
    record_sorted<host_buffer, Element>(cpu_executor{}, codec, std::byte{0x5a}, most_key_bits);
  CHECK(difference(got, want) == "");
}

}  // namespace

TEST_CASE("[kernels] sorted matrices equal the CPU executor")
{
  SUBCASE("float") { compare_sorted<float>({}); }
  SUBCASE("half, in reverse") { compare_sorted<half>({emulator::reverse}); }
  SUBCASE("bfloat16") { compare_sorted<bfloat16>({}); }
  SUBCASE("in a metric")
  {
    compare_sorted<float>({}, sorted_codec<cast_codec<float>, 64, kept_diagonal>{}, 2);
  }
  SUBCASE("of half, with scales in bfloat16, in reverse")
  {
    using codec = sorted_codec<cast_codec<float>, 7, kept_diagonal_in<bfloat16>>;
    compare_sorted<half>({emulator::reverse}, codec{});
  }
  SUBCASE("codes of unlike lengths") { compare_sorted<float>({}, presets::sorted_entropy_2); }
}
