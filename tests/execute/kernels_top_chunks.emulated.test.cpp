// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks that are chosen and converted: the kernel bodies equal the CPU executor bit for bit.

#include "support/compare_kernels.hpp"

#include <tersum/feedback/kept_by.hpp>
#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

TEST_CASE("[kernels] top chunks as halves")
{
  SUBCASE("64") { compare_all<float>(presets::topkc_b2); }
  SUBCASE("128, with feedback") { compare_all<half>(presets::topkc_b05_ef); }
  SUBCASE("64, most of them")
  {
    compare_places<bfloat16>(presets::top_halves<64, error_feedback>{.chunker = {.bits = 8}});
  }
  SUBCASE("64, wherever the gradient begins")
  {
    compare_offsets<float>(presets::topkc_b2_ef);
    compare_offsets<bfloat16>(presets::topkc_b2);
  }
}

TEST_CASE("[kernels] top chunks of other sizes, payloads and norms")
{
  SUBCASE("32")
  {
    constexpr auto codec =
      tersum::codec<top_chunks<32>, no_rotation, cast<bfloat16>, in_wire>{.chunker = {.bits = 3}};
    compare_places<float>(codec);
    compare_offsets<float>(codec);
    compare_offsets<half>(codec);
  }
  SUBCASE("256, norms in float")
  {
    compare_places<float>(
      codec<top_chunks<256, float>, no_rotation, cast<float>, in_wire, error_feedback>{
        .chunker = {.bits = 9}});
    // Where chunks are not aligned, the rounding of a residual draws by other places of a thread.
    compare_places<float>(
      codec<top_chunks<256, float>, no_rotation, cast<half>, in_wire, kept_in<bfloat16>>{
        .chunker = {.bits = 5}});
  }
  SUBCASE("2048")
  {
    compare_places<half>(
      codec<top_chunks<2048>, no_rotation, cast<half>, in_wire>{.chunker = {.bits = 7}});
  }
}

// A warp measures 4096 coordinates at once where they are whole chunks of one tensor; a block has four warps.
TEST_CASE("[kernels] norms of several blocks, in tensors that end amid those of a warp")
{
  bucket const many{{{90, 100}, {64, 128}, {41, 200}, {3, 64}}};
  auto const compare = [&]<class Element, class Codec>(Element, Codec const& codec) {
    for (layout const& gradient : {layout{.coordinates = prime_from(36000)}, many.gradient()}) {
      compare_kernels<Codec, Element>({.codec = codec, .gradient = gradient, .steps = 1});
    }
  };
  SUBCASE("of 64") { compare(float{}, presets::topkc_b2); }
  SUBCASE("of 128, with feedback") { compare(half{}, presets::topkc_b05_ef); }
}

TEST_CASE("[kernels] top coordinates")
{
  SUBCASE("without feedback")
  {
    compare_sizes<float>(presets::topk_b2);
    compare_orders<half>(presets::topk_b8, 3, true);
  }
  SUBCASE("with feedback") { compare_orders<float>(presets::topk_b2_ef, 3, true); }
}

// A selection that several blocks share, as that of more than 4096 chunks is: the same as of one block.
TEST_CASE("[kernels] a selection by several blocks")
{
  constexpr auto codec =
    presets::allocated_saturating<stochastic_quantizer<8>>{.chunker = {.bits = 3}};
  std::uint64_t const chunks = 5003;
  auto const plan            = codec.plan({.coordinates = chunks * 256}, {.size = 2, .rank = 0});
  std::vector<word4> memory(plan.workspace_bytes() / sizeof(word4) + 1);
  auto const workspace = std::as_writable_bytes(std::span{memory});
  auto args =
    detail::make_args<std::remove_cvref_t<decltype(codec)>, float>(plan, nullptr, {}, workspace);
  state_header header_of_state{};
  args.header = &header_of_state;
  std::mt19937 random(3);
  auto* const norms = static_cast<bfloat16*>(args.agreed);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    // Few values, so that ties cross blocks.
    norms[chunk] = to_bfloat16(std::ldexp(1.0f, -static_cast<int>(random() % 9)));
  }
  std::vector<std::uint32_t> want(chunks);
  std::vector<std::uint32_t> histogram(detail::digit_count);
  detail::selection_header header;
  for (std::uint64_t const step : {0u, 1u, 2u}) {
    CAPTURE(step);
    header_of_state.step = step;
    detail::chunk_selection{1, args.selection.rule, chunks, histogram.data(), want.data()}.run(
      [&](std::uint64_t chunk) { return detail::energy_bits(norms[chunk]); }, header, step);
    for (auto const order : emulator::thread_orders) {
      for (std::uint64_t const blocks : {1u, 2u, 3u, 7u}) {
        CAPTURE(blocks);
        std::fill_n(args.selection.places, chunks, 0xffffffffu);
        emulated_executor const exec{order};
        detail::launch_list list{exec, plan, args};
        list.together(detail::select_kernel{}, blocks);
        REQUIRE(list.result().ok());
        CHECK(std::equal(want.begin(), want.end(), args.selection.places));
        CHECK(std::memcmp(&args.selection.scratch->header, &header, sizeof(header)) == 0);
      }
    }
  }
}

TEST_CASE("[kernels] random chunks")
{
  SUBCASE("without feedback") { compare_places<float>(presets::randomkc_b2); }
  SUBCASE("with feedback")
  {
    compare_places<float>(
      codec<random_chunks<64>, no_rotation, cast<tersum::half>, in_wire, error_feedback>{
        .chunker = {.bits = 2}});
  }
}

}  // namespace
