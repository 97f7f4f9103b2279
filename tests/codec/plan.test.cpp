// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Plans are arithmetic: bytes by hand for every preset, bounds on memory, constants of the compiler.

#include "support/codecs.hpp"
#include "support/preset_lists.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

using namespace tersum;

namespace {

struct bytes {
  std::uint64_t agreed, payload, state;
};

// 10000 coordinates in ten chunks of 1024: 10240 with padding. State: header 64, one tensor 64, 16 a chunk, 4 a coordinate.
template <class Codec>
void check_bytes(char const* name, Codec const& codec, bytes const& want)
{
  CAPTURE(name);
  auto const plan = codec.plan(layout{10000}, {.size = 4, .rank = 1});
  CHECK(plan.check() == status{});
  CHECK(plan.agreed_bytes() == want.agreed);
  CHECK(plan.payload_bytes() == want.payload);
  CHECK(plan.bypass_bytes() == 0);
  CHECK(plan.wire_bytes() == want.agreed + want.payload);
  CHECK(plan.bits_per_coordinate() ==
        doctest::Approx(8 * static_cast<double>(want.agreed + want.payload) / 10000));
  CHECK(plan.state_bytes() == want.state);
}

template <class Codec>
void check_memory(char const* name, Codec const& codec)
{
  CAPTURE(name);
  for (std::uint64_t const d : {0u, 1u, 127u, 1023u, 1024u, 1025u, 100003u}) {
    CAPTURE(d);
    auto const plan      = codec.plan(layout{d}, {.size = 4, .rank = 0});
    std::uint64_t wanted = 0;
    if constexpr (selects<Codec>) {
      // Norms are measured whether they travel or not: two bytes a chunk here, in whole elements of the wire.
      std::uint64_t const norms  = agrees<Codec> ? 2 * plan.chunks() : 0;
      std::uint64_t const places = (4 * plan.chunks() + 15) / 16 * 16;
      wanted = plan.payload_bytes() + norms + (casts<Codec> ? 0 : 16 * plan.chunks()) + places +
               plan.bypass_bytes() + sizeof(detail::selection_scratch);
    } else if constexpr (casts<Codec>) {
      wanted = plan.wire_bytes();
    } else {
      // What is measured of a tensor has its room also where nothing is agreed on.
      std::uint64_t const unsent = per_tensor<Codec> && plan.all_bypass() ? 4 * plan.tensors() : 0;
      wanted                     = plan.wire_bytes() + 16 * plan.chunks() + unsent +
               (Codec::rotates_all ? 4096 * plan.chunks() : 0);
    }
    // Before a round there may be a gap of less than 16 bytes.
    CHECK(plan.workspace_bytes() - wanted < 48);
    // Everything has its place, and none overlaps.
    CHECK(plan.offset("rotated") <= plan.offset("payload"));
    CHECK(plan.offset("agreed") + plan.agreed_bytes() <= plan.workspace_bytes());
    CHECK(plan.offset("records") == 64);
    CHECK(plan.offset("table") == plan.offset("records") + 64 * plan.tensors());
    CHECK(plan.offset("residual") == plan.offset("table") + 16 * plan.chunks());
  }
  auto const none = codec.plan(layout{0}, {});
  CHECK(none.wire_bytes() == 0);
  CHECK(none.workspace_bytes() == (selects<Codec> ? sizeof(detail::selection_scratch) : 0));
  CHECK(none.bits_per_coordinate() == 0.0);
  CHECK(none.check() == status{});
}

// Sections lie one after the other, each at a multiple of 16 bytes; those of another's place lie where that does.
constexpr bool are_placed(detail::section_list const& sections)
{
  std::size_t end = 0;
  for (detail::section_entry const& e : sections.entries()) {
    std::size_t const begin = sections.offset(e.name);
    if (e.place != e.name) {
      if (begin != sections.offset(e.place)) { return false; }
      continue;
    }
    if (begin < end || begin >= end + 16 || begin % 16 != 0) { return false; }
    end = begin + e.bytes;
  }
  return end == sections.bytes();
}

constexpr detail::section_list a_list = [] {
  detail::section_list list;
  list.take<std::byte>("steps", 3);
  list.take<float>("payload", 2);
  list.share("payload", "gathered");
  list.keep<float>("bypass", 1);
  return list;
}();
static_assert(a_list.offset("payload") == 16 && a_list.offset("gathered") == 16);
static_assert(a_list.offset("bypass") == 32 && a_list.bytes() == 36);
static_assert(are_placed(a_list) && a_list.offset("agreed") == 0);  // there is none

constexpr tensor matrix{.rows = 250, .columns = 400};

// What a plan answers, whatever its codec. TopK takes no tensors.
template <class Codec>
constexpr bool is_consistent(Codec const& codec)
{
  layout const gradient =
    gathering<Codec> ? layout{100000} : layout{.coordinates = 100000, .tensors = {&matrix, 1}};
  auto const plan = codec.plan(gradient, {.size = 4, .rank = 1});
  return plan.check().ok() && plan.travels() && !plan.all_bypass() && plan.ranks().size == 4 &&
         plan.gradient().coordinates == 100000 && plan.chunks() > 0 &&
         plan.coordinates() == 100000 && plan.compressed() == 100000 && plan.bypassed() == 0 &&
         plan.payload_bytes() > 0 && (plan.agreed_scalars() == 0) == (plan.agreed_bytes() == 0) &&
         plan.agreed_bytes() + plan.counted_payload_bytes() + plan.bypass_bytes() ==
           plan.wire_bytes() &&
         plan.bits_per_coordinate() == 8.0 * static_cast<double>(plan.wire_bytes()) / 100000 &&
         plan.offset("records") <= plan.state_bytes() && plan.workspace_bytes() > 0 &&
         are_placed(plan.workspace_sections()) && are_placed(plan.state_sections());
}

}  // namespace

#define TERSUM_IS_CONSISTENT(name) static_assert(is_consistent(presets::name))
TERSUM_SUMMED_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);
TERSUM_CHOSEN_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);
TERSUM_LOW_RANK_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);
TERSUM_TWO_SHOT_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);
TERSUM_BASELINE_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);
TERSUM_THC_PRESETS(TERSUM_IS_CONSISTENT, TERSUM_IS_CONSISTENT);

// A plan is a constant of the compiler, down to its verdict.
constexpr auto constant_plan = presets::rotated_sat4.plan(layout{10000}, {.size = 4, .rank = 1});
static_assert(constant_plan.check().ok());
static_assert(constant_plan.chunks() == 10);
static_assert(constant_plan.agreed_bytes() == 40);
static_assert(constant_plan.payload_bytes() == 10 * 512);
static_assert(constant_plan.wire_bytes() == 5160);
static_assert(constant_plan.workspace_bytes() == 5160 + 160);
static_assert(!presets::thc_wide4.plan(layout{10}, {.size = 19, .rank = 0}).check().ok());

TEST_CASE("[plan] every preset sends the bytes that its policies say")
{
  std::uint64_t const state = 64 + 64 + 160;
  check_bytes("fp32", presets::fp32, {0, 40000, state});
  check_bytes("fp16", presets::fp16, {0, 20000, state});
  check_bytes("bf16", presets::bf16, {0, 20000, state});
  // Ten chunks are pieces of eight and two: two norms.
  check_bytes("thc_wide4", presets::thc_wide4, {8, 10240, state + 64});
  check_bytes("thc_wide4_partial", presets::thc_wide4_partial, {40, 10240, state});
  check_bytes("thc_wide4_unrotated", presets::thc_wide4_unrotated, {40, 10240, state});
  check_bytes("thc_sat2", presets::thc_sat2, {40, 2560, state});
  check_bytes("thc_sat4", presets::thc_sat4, {40, 5120, state});
  check_bytes("thc_sat8", presets::thc_sat8, {40, 10240, state});
  check_bytes("rotated_sat2", presets::rotated_sat2, {40, 2560, state});
  check_bytes("rotated_sat4", presets::rotated_sat4, {40, 5120, state});
  check_bytes("rotated_sat8", presets::rotated_sat8, {40, 10240, state});
  check_bytes("rotated_sat2_ef", presets::rotated_sat2_ef, {40, 2560, state + 40000});
  check_bytes("rotated_sat4_ef", presets::rotated_sat4_ef, {40, 5120, state + 40000});
}

TEST_CASE("[plan] codecs that choose send what their bits pay for once the norms are paid")
{
  // 10000 coordinates: at 2 bits 625 words, at 8 bits 2500, at half a bit 156.25. Norms are bfloat16.
  auto const state = [](std::uint64_t chunks) { return 64 + 64 + 16 * chunks; };
  // 157 chunks of 64: norms 78.5 words, a chunk of halves 32 words: 17 of 546.5 words, 75 of 2421.5.
  check_bytes("topkc_b2", presets::topkc_b2, {314, 17 * 128, state(157)});
  check_bytes("topkc_b8", presets::topkc_b8, {314, 75 * 128, state(157)});
  // 79 chunks of 128: norms 39.5 words, a chunk 64: one of 116.75.
  check_bytes("topkc_b05", presets::topkc_b05, {158, 256, state(79)});
  // Nothing is agreed on: 19 of 625 words.
  check_bytes("randomkc_b2", presets::randomkc_b2, {0, 19 * 128, state(157)});
  // 40 chunks of 256: norms 20 words, a chunk of four bits 32: 18 of 605. A unit of two bits is 16 words: 37 of 605.
  check_bytes("topkc_sat4", presets::topkc_sat4, {80, 18 * 128, state(40)});
  check_bytes("allocated_sat_2", presets::allocated_sat_2, {80, 37 * 64, state(40)});
  check_bytes("allocated_sat_4", presets::allocated_sat_4, {80, 76 * 64, state(40)});
}

TEST_CASE(
  "[plan] a budget is one of the coordinates that do not bypass; those that do cost 32 bits each")
{
  static constexpr tensor bucket[] = {{.rows = 100, .columns = 100},
                                      {.rows = 5000, .columns = 1, .offset = 10000}};
  auto const check                 = [&](char const* name, auto const& codec) {
    CAPTURE(name);
    world const ranks{.size = 4, .rank = 1};
    auto const alone  = codec.plan(layout{10000}, ranks);
    auto const beside = codec.plan(layout{15000, bucket}, ranks);
    CHECK(beside.bypassed() == 5000);
    CHECK(beside.wire_bytes() == alone.wire_bytes() + 5000 * sizeof(float));
    CHECK(alone.bits_per_coordinate() <= static_cast<double>(codec.chunker.bits));
  };
  check("topkc_b2", presets::topkc_b2);
  check("randomkc_b2", presets::randomkc_b2);
  check("allocated_sat_2", presets::allocated_sat_2);
  check("allocated_2", presets::allocated_2);
}

TEST_CASE("[plan] TopK sends pairs of an index and a half, and keeps the parts of all ranks")
{
  // At 48 bits a pair, 2 bits pay for 416.7 of 10000 coordinates; an even number travels.
  CHECK(
    presets::topk_b2.plan(layout{.coordinates = 100, .first = ~std::uint64_t{10}, .whole = 50}, {})
      .check()
      .message == "layout.first and coordinates lie beyond layout.whole");
  auto const plan = presets::topk_b2.plan(layout{10000}, {.size = 4, .rank = 0});
  CHECK(plan.check() == status{});
  CHECK(plan.wire_bytes() == 416 * 6);
  CHECK(plan.workspace_bytes() == 4 * 416 * 6 + 40000 + sizeof(detail::selection_scratch));
  CHECK(plan.state_bytes() == 64);
  CHECK(presets::topk_b2_ef.plan(layout{10000}, {}).state_bytes() == 64 + 40000);
}

TEST_CASE("[plan] wire scalars of other types and other statistics are counted")
{
  using halves    = tests::rotated_sums<128,
                                     rms_range<no_headroom, bfloat16>,
                                     stochastic_quantizer<4>,
                                     guard_lanes<8, std::uint64_t>>;
  auto const plan = halves{}.plan(layout{1000}, {.size = 18, .rank = 0});
  CHECK(plan.check().ok());
  CHECK(plan.agreed_bytes() == 8 * 2);
  CHECK(plan.payload_bytes() == 8 * 128);
  // A tracked range of magnitudes sends a norm a tensor besides.
  using magnitudes = tests::rotated_sums<256,
                                         absmax_range<tracked_correlation>,
                                         stochastic_quantizer<4>,
                                         saturating_sum<4>>;
  CHECK(magnitudes{}.plan(layout{1000}, {}).agreed_bytes() == (4 + 1) * 4);
  using whole = tests::rotated_sums<256,
                                    global_range<tracked_correlation>,
                                    stochastic_quantizer<4>,
                                    saturating_sum<4>>;
  CHECK(whole{}.plan(layout{1000}, {}).agreed_bytes() == 4);
}

TEST_CASE("[plan] workspace is the wire and 16 bytes a chunk, and a zero is a zero")
{
#define TERSUM_CHECK_MEMORY(name) check_memory(#name, presets::name)
  TERSUM_SUMMED_PRESETS(TERSUM_CHECK_MEMORY, TERSUM_CHECK_MEMORY);
  TERSUM_CHOSEN_PRESETS(TERSUM_CHECK_MEMORY, TERSUM_CHECK_MEMORY);
  TERSUM_THC_PRESETS(TERSUM_CHECK_MEMORY, TERSUM_CHECK_MEMORY);
}

TEST_CASE("[plan] every world that the lanes hold is accepted, and the next one is not")
{
  auto const fits = [](auto const& codec, int world) {
    status const made = codec.plan(layout{1000}, {.size = world, .rank = world - 1}).check();
    CHECK((made.ok() || made.code == error_code::world_too_large));
    return made.ok();
  };
  using guarded2 =
    tests::rotated_sums<128, rms_range<no_headroom>, stochastic_quantizer<2>, guard_lanes<4>>;
  using wide8 =
    tests::rotated_sums<128, rms_range<no_headroom>, stochastic_quantizer<8>, widening_sum<8, 16>>;
  CHECK(fits(presets::thc_wide4, 127 / 7));
  CHECK_FALSE(fits(presets::thc_wide4, 127 / 7 + 1));
  CHECK(fits(guarded2{}, 15 / 2));
  CHECK_FALSE(fits(guarded2{}, 15 / 2 + 1));
  CHECK(fits(wide8{}, 32767 / 127));
  CHECK_FALSE(fits(wide8{}, 32767 / 127 + 1));
  CHECK(fits(presets::rotated_sat4, 65534));
  CHECK(fits(presets::fp16, 65534));
}

TEST_CASE("[plan] a codec compresses from so many coordinates on")
{
  // The table of docs/tuning.md.
  auto const from = [](auto const& codec, std::array<std::uint64_t, 4> const& least_of) {
    constexpr int worlds[] = {2, 8, 64, 1024};
    for (std::size_t i = 0; i < 4; ++i) {
      world const ranks{.size = worlds[i], .rank = 0};
      std::uint64_t const least = least_of[i];
      CAPTURE(ranks.size);
      auto const under = codec.plan(layout{least - 1}, ranks);
      CHECK(under.all_bypass());
      CHECK(under.bypassed() == least - 1);
      CHECK(under.wire_bytes() == 4 * (least - 1));
      if constexpr (selects<std::remove_cvref_t<decltype(codec)>>) {
        CHECK_FALSE(under.travels());
        auto const zeros =
          codec.plan(layout{.coordinates = least - 1, .bypass_unpaid = false}, ranks);
        CHECK_FALSE(zeros.all_bypass());
        CHECK(zeros.wire_bytes() == 0);
      }
      for (std::uint64_t d = least; d < 2 * least; d += 1 + d / 1024) {
        auto const paid = codec.plan(layout{d}, ranks);
        REQUIRE((paid.travels() && !paid.all_bypass()));
      }
    }
  };
  auto const always = [](std::uint64_t least) { return std::array{least, least, least, least}; };
  from(presets::rotated_sat4, always(129));
  from(presets::gathered_4, always(132));
  from(presets::allocated_sat_2, always(272));
  from(presets::topkc_b05, always(5472));
  from(presets::two_shot_4, {264, 1056, 8448, 135168});
  from(presets::values_4, {264, 1056, 8448, 135168});
  from(presets::summed_shards_sat4, {260, 1040, 8320, 133120});
  from(presets::allocated_4, {1116, 7548, 67604, 1097084});
  from(presets::allocated_2, {2248, 15216, 136280, 2211584});
}
