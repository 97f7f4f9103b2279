// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernel bodies of low-rank exchanges against the CPU executor.

#include "support/compare_kernels.hpp"

#include <tersum/presets.hpp>

using namespace tersum;

namespace {

constexpr auto alternating = low_rank_schedule::alternating;

// Matrices of one block and of several, with tails; one that is wide and one that is tall; one of fewer rows than columns of
// a factor; tensors that bypass; odd offsets.
tests::bucket const& matrices()
{
  static tests::bucket const all{
    {{70, 64}, {1, 77}, {129, 40}, {3, 9}, {33, 200}, {50, 1}, {2, 66}, {64, 300}, {260, 12}}};
  return all;
}

template <class Element, class Codec>
void compare(Codec const& codec, std::span<emulator::thread_order const> orders)
{
  tests::compare_kernels<Codec, Element>(
    {.codec = codec, .gradient = matrices().gradient(), .world = 3, .non_finite_step = 1}, orders);
  tests::compare_kernels<Codec, Element>(
    {.codec = codec, .gradient = matrices().gradient(), .steps = 2, .misaligned = true});
}

}  // namespace

TEST_CASE("[kernels] low-rank exchanges equal the CPU executor, in all orders of threads")
{
  compare<float>(low_rank_codec<low_rank<3>>{.low_rank = {.least_saving = 0}},
                 emulator::thread_orders);
  compare<half>(low_rank_codec<low_rank<9, gram_schmidt>, bfloat16, alternating>{},
                emulator::thread_orders);
}
