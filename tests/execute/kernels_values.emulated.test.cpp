// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of values have the same bytes on every instruction set and number of threads, and as kernel bodies.

#include "support/codecs.hpp"
#include "support/compare_kernels.hpp"
#include "support/values_run.hpp"

#include <tersum/feedback/kept_in.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <doctest/doctest.h>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class ShardElement, class Element, class Codec>
void compare_values(Codec const& codec)
{
  for_each_shard_case<ShardElement, Element>(codec, several_chunks<Codec>(), [](auto const& c) {
    CAPTURE(c.gradient.coordinates);
    CAPTURE(c.world);
    auto const on = [&](auto const& exec) {
      return record_values<host_buffer>(exec, c, std::byte{0xa5});
    };
    auto const reference = record_values<host_buffer>(reference_executor, c, std::byte{0x5a});
    check_instruction_sets(on, reference);
    CHECK(difference(on(cpu_executor{.threads = 3}), reference) == "");
    emulator::thread_order const order = next_order();
    CAPTURE(order);
    CHECK(difference(on(emulated_executor{order}), reference) == "");
  });
}

template <int Size, int Bits, class Feedback = no_feedback, class Metric = plain_metric>
using values_of = tests::rotated_codes<Size, lloyd_max<Bits>, publish, Feedback, Metric>;

TEST_CASE("[kernels] values")
{
  SUBCASE("1024, 4 bits") { compare_values<float, float>(presets::values_4); }
  SUBCASE("1024, 4 bits, differences of float in bfloat16")
  {
    compare_values<float, bfloat16>(presets::values<4, difference_feedback>{});
  }
  SUBCASE("256, 3 bits, with feedback, of bfloat16 in float")
  {
    compare_values<bfloat16, float>(values_of<256, 3, error_feedback>{});
    compare_values<float, float>(values_of<256, 3, kept_in<bfloat16>>{});
  }
  SUBCASE("2048, 1 bit, differences of float in half")
  {
    compare_values<float, half>(values_of<2048, 1, difference_feedback>{});
  }
  SUBCASE("512, 3 bits, with feedback, in a metric")
  {
    compare_values<float, float>(values_of<512, 3, error_feedback, kept_diagonal>{});
  }
  SUBCASE("1024, 2 bits, differences of float in half, in a metric")
  {
    compare_values<float, half>(
      values_of<1024, 2, difference_feedback, kept_diagonal_in<bfloat16>>{});
  }
  SUBCASE("halves of bfloat16 in float")
  {
    compare_values<bfloat16, float>(
      codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>, publish>{});
  }
  SUBCASE("blocks with scales of their own, differences")
  {
    using quantizer = group_absmax<4, 32, linear_levels, bfloat16_scale>;
    compare_values<half, half>(codec<fixed_chunks<512>,
                                     no_rotation,
                                     scaled_codes<quantizer>,
                                     publish,
                                     difference_feedback>{});
  }
}

}  // namespace
