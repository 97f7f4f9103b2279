// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is wrong with a call is said in a sentence and changes nothing; what is wrong with a gradient stays in its chunk.

#include "support/bad_input.hpp"
#include "support/codecs.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tersum;
using tests::mentions;

namespace {

//! A head-room of one's own, with a parameter that can be wrong.
struct doubled_world {
  static constexpr bool tracked = false;
  float most                    = 16;
  constexpr description describe() const { return {"doubled_world", most}; }

  [[nodiscard]] constexpr status check() const noexcept
  {
    return most > 0 ? status{} : status{error_code::invalid_argument, "most must be above 0"};
  }
  [[nodiscard]] float factor(int world, float) const noexcept
  {
    return std::min(2.0f * static_cast<float>(world), most);
  }
};

}  // namespace

TEST_CASE("[codec] a wrong argument is named, and no memory is written")
{
  tests::check_wrong_arguments(presets::rotated_sat4_ef, layout{3000});
}

TEST_CASE("[codec] a head-room that is none is refused, and one of one's own is asked")
{
  layout const d{1000};
  constexpr auto nan      = std::numeric_limits<float>::quiet_NaN();
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  for (float const margin : {0.0f, -1.1f, nan, infinity}) {
    CAPTURE(margin);
    auto tracked                        = presets::rotated_sat4;
    tracked.coder.range.headroom.margin = margin;
    CHECK(mentions(tracked.plan(d, {}).check(), "margin"));
    auto widths                        = presets::allocated_sat_4;
    widths.coder.range.headroom.margin = margin;
    CHECK(mentions(widths.plan(d, {}).check(), "margin"));
  }
  using multiples =
    tests::plain_sums<128, rms_range<fixed_headroom>, stochastic_quantizer<4>, saturating_sum<4>>;
  for (float const multiple : {-1.0f, nan, infinity}) {
    CAPTURE(multiple);
    CHECK(mentions(
      multiples{.coder = {.range = {.headroom = {.multiple = multiple}}}}.plan(d, {}).check(),
      "multiple"));
  }
  CHECK(multiples{}.plan(d, {}).check().ok());

  using doubles =
    tests::plain_sums<128, rms_range<doubled_world>, stochastic_quantizer<4>, saturating_sum<4>>;
  CHECK(doubles{}.plan(d, {.size = 8, .rank = 0}).check().ok());
  CHECK(
    mentions(doubles{.coder = {.range = {.headroom = {.most = 0}}}}.plan(d, {}).check(), "most"));
}

TEST_CASE("[codec] a tracked range that could not grow is refused")
{
  // Where all lanes saturate the sum looks clip * margin times as wide as it did: with two bits 1.1 * margin.
  layout const d{1000};
  auto two             = presets::rotated_sat2;
  two.coder.range.clip = 0;
  CHECK(two.plan(d, {.size = 64, .rank = 0}).check().ok());
  two.coder.range.headroom.margin = 0.9f;
  CHECK(mentions(two.plan(d, {.size = 64, .rank = 0}).check(), "clip"));
  two.coder.range.clip = 1.2f;
  CHECK(two.plan(d, {.size = 64, .rank = 0}).check().ok());
  auto four             = presets::rotated_sat4;
  four.coder.range.clip = 0;
  CHECK(four.plan(d, {.size = 1000, .rank = 0}).check().ok());
  // Of several widths the narrowest must be able to grow too.
  auto widths = presets::allocated_sat_4;
  CHECK(widths.plan(d, {.size = 64, .rank = 0}).check().ok());
  widths.coder.range.headroom.margin = 0.9f;
  CHECK(mentions(widths.plan(d, {.size = 64, .rank = 0}).check(), "margin"));
}

TEST_CASE("[codec] a state of as many tensors and chunks that lie elsewhere is refused")
{
  constexpr world ranks{.size = 2, .rank = 0};
  auto const begins_and_goes_on = [](auto const& first, auto const& second) {
    std::vector<word4> state(first.state_bytes() / 16 + second.state_bytes() / 16),
      workspace(second.workspace_bytes() / 16 + 1);
    auto const s = std::as_writable_bytes(std::span{state});
    std::vector<float> gradient(3000);
    REQUIRE(initialize(cpu_executor{}, first, s, 1) == status{});
    CHECK(reinterpret_cast<state_header const*>(state.data())->layout == first.state_fingerprint());
    return measure(
      cpu_executor{}, second, gradient, s, std::as_writable_bytes(std::span{workspace}));
  };
  tensor const bucket[] = {{"a", 10, 100, 0}, {"b", 20, 100, 1000}};
  tensor const cut[]    = {{"a", 10, 99, 0}, {"b", 30, 67, 990}};
  tensor const heavy[]  = {{"a", 10, 100, 0, 2}, {"b", 20, 100, 1000}};
  tensor const turned[] = {{"a", 10, 100, 0}, {"b", 100, 20, 1000}};
  auto const of         = [](std::span<tensor const> t) { return layout{3000, t}; };

  auto const plan = presets::rotated_sat4_ef.plan(of(bucket), ranks);
  CHECK(begins_and_goes_on(plan, plan) == status{});
  for (auto const& other : {cut, heavy}) {
    auto const second = presets::rotated_sat4_ef.plan(of({other, 2}), ranks);
    CHECK(second.chunks() == plan.chunks());
    CHECK(mentions(begins_and_goes_on(plan, second), "initialize"));
  }
  // The width of the codes is of the state, the world and the shape of a matrix are not.
  auto const narrow = presets::rotated_sat2_ef.plan(of(bucket), ranks);
  CHECK(mentions(begins_and_goes_on(plan, narrow), "initialize"));
  CHECK(begins_and_goes_on(plan, presets::rotated_sat4_ef.plan(of(turned), {3, 1})) == status{});
  // But whether there is a residual: the bytes behind another state are none.
  CHECK(mentions(begins_and_goes_on(presets::rotated_sat4.plan(of(bucket), ranks), plan),
                 "initialize"));
  CHECK(mentions(begins_and_goes_on(plan, presets::rotated_sat4.plan(of(bucket), ranks)),
                 "initialize"));

  auto const top_plan = presets::topk_b2.plan(layout{3000}, ranks);
  CHECK(top_plan.state_fingerprint() !=
        presets::topk_b2_ef.plan(layout{3000}, ranks).state_fingerprint());

  // But where owners feed back, and of factors.
  auto const owned = presets::two_shot_4_ef.plan(of(bucket), ranks);
  CHECK(begins_and_goes_on(owned, owned) == status{});
  CHECK(mentions(begins_and_goes_on(owned, presets::two_shot_4_ef.plan(of(bucket), {2, 1})),
                 "initialize"));
  auto const factors = presets::powersgd_r4.plan(of(bucket), ranks);
  CHECK(begins_and_goes_on(factors, factors) == status{});
  CHECK(mentions(begins_and_goes_on(factors, presets::powersgd_r4.plan(of(turned), ranks)),
                 "initialize"));
  CHECK(mentions(begins_and_goes_on(factors, presets::powersgd_r1.plan(of(bucket), ranks)),
                 "initialize"));
  CHECK(
    mentions(begins_and_goes_on(factors, presets::acp_r4.plan(of(bucket), ranks)), "initialize"));
}

TEST_CASE("[codec] a plan of several ranks asks for this one, and one rank is number 0")
{
  static constexpr tensor matrix[] = {{"", 50, 60}};
  constexpr layout d{3000, matrix};
  auto const check = [&](auto const& codec) {
    CHECK(codec.plan(d, {.size = 3}).check() ==
          status{error_code::invalid_argument,
                 "world.rank is not given: each of several ranks must say which one it is"});
    for (world const& alone : {world{}, world{.size = 1}, world{.size = 1, .rank = 0}}) {
      auto const plan = codec.plan(d, alone);
      CHECK(plan.check().message == "");
      CHECK(plan.ranks().rank == 0);
      CHECK(plan.state_fingerprint() == codec.plan(d, {.size = 1, .rank = 0}).state_fingerprint());
    }
  };
  check(presets::fp16);
  check(presets::rotated_sat4);
  check(presets::topkc_b2_ef);
  check(presets::two_shot_4);
  check(presets::two_shot_1_ef);
  check(presets::gathered_4);
  check(presets::allocated_2);
  check(presets::powersgd_r4);
  check(presets::sharded_4);
  check(presets::summed_shards_sat4);
  check(presets::values_4);

  // Of sizes that are the same on all ranks a plan can be asked all the same.
  auto const forgotten = presets::two_shot_4.plan(d, {.size = 3});
  CHECK(forgotten.wire_bytes() == presets::two_shot_4.plan(d, {.size = 3, .rank = 2}).wire_bytes());
  std::vector<word4> state(forgotten.state_bytes() / 16 + 1);
  CHECK(mentions(initialize(cpu_executor{}, forgotten, std::as_writable_bytes(std::span{state}), 1),
                 "world.rank"));
}

TEST_CASE("[codec] a plan says what cannot be exchanged")
{
  layout const d{1000};
  CHECK(mentions(presets::fp16.plan(d, {.size = 0, .rank = 0}).check(), "world.size"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 65535, .rank = 0}).check(), "world.size"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 4, .rank = 4}).check(), "world.rank"));
  CHECK(mentions(presets::fp16.plan(d, {.size = 4, .rank = -1}).check(), "world.rank"));
  // 4-bit codes reach 7: 18 of them fit 127, 19 do not.
  CHECK(presets::thc_wide4.plan(d, {.size = 18, .rank = 0}).check().ok());
  CHECK(presets::thc_wide4.plan(d, {.size = 19, .rank = 0}).check().code ==
        error_code::world_too_large);
  // Only saturating sums know what spread suits the world.
  using exact =
    tests::plain_sums<128, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>;
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  for (float const spread : {0.0f, -1.0f, nan, std::numeric_limits<float>::infinity()}) {
    CAPTURE(spread);
    CHECK(mentions(exact{.coder = {.range = {.clip = spread}}}.plan(d, {}).check(), "clip"));
    auto saturating             = presets::rotated_sat4;
    saturating.coder.range.clip = spread;
    CHECK(saturating.plan(d, {}).check().ok() == (spread == 0));
  }
  // Nor do they know it in largest magnitudes.
  using magnitudes = tests::
    plain_sums<128, absmax_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>;
  CHECK(magnitudes{}.plan(d, {}).check().ok());
  CHECK(mentions(magnitudes{.coder = {.range = {.clip = 0}}}.plan(d, {}).check(), "clip"));
  tensor const gap[] = {{"a", 10, 10, 0}, {"b", 10, 10, 101}};
  CHECK(mentions(presets::fp16.plan(layout{.coordinates = 201, .tensors = gap}, {}).check(),
                 "layout.tensors"));
  tensor const part[] = {{"a", 10, 10, 0}};
  CHECK(mentions(presets::fp16.plan(layout{.coordinates = 101, .tensors = part}, {}).check(),
                 "layout.tensors"));
}

TEST_CASE("[codec] a plan of nonsense can be asked, and says what it is")
{
  CHECK(presets::two_shot_4.plan(layout{5000}, {.size = 0}).workspace_bytes() > 0);
  CHECK(presets::allocated_4.plan(layout{50000}, {.size = 0}).workspace_bytes() > 0);
  CHECK(mentions(presets::two_shot_4.plan(layout{5000}, {.size = 0}).check(), "world.size"));
  CHECK(mentions(presets::rotated_sat4.plan(layout{~std::uint64_t{0}}, {}).check(), "2^48"));
  std::uint64_t const many = std::uint64_t{1} << 48;
  CHECK(mentions(presets::rotated_sat4.plan(layout{many}, {}).check(), "2^31 chunks"));
  CHECK(mentions(presets::thc_wide4.plan(layout{many}, {}).check(), "2^31 chunks"));
  std::uint64_t const half = std::uint64_t{1} << 32;
  tensor const wraps[]     = {{"a", half, half, 0}};
  CHECK(mentions(presets::rotated_sat4.plan(layout{.coordinates = 0, .tensors = wraps}, {}).check(),
                 "layout.tensors"));
  tensor const beyond[] = {{"a", 2 * half + 2, half / 2, 0}};
  layout const wrapped{.coordinates = beyond[0].size(), .tensors = beyond};
  CHECK(mentions(presets::powersgd_r4.plan(wrapped, {}).check(), "layout.tensors"));
}

TEST_CASE("[codec] sizes beyond 2^31 are arithmetic like others")
{
  std::uint64_t const d = (std::uint64_t{1} << 33) + 1;
  auto const plan       = presets::rotated_sat4.plan(layout{d}, {.size = 8, .rank = 0});
  CHECK(plan.check().ok());
  CHECK(plan.chunks() == (std::uint64_t{1} << 23) + 1);
  CHECK(plan.payload_bytes() == plan.chunks() * 512);
  CHECK(plan.agreed_bytes() == plan.chunks() * 4);
  tests::check_large_plan(presets::thc_lookup4);
}

TEST_CASE("[codec] values that are not finite are flagged on every rank and stay in their chunk")
{
  tests::check_non_finite(presets::rotated_sat4_ef);
}

TEST_CASE("[codec] a cast whose sum overflows is flagged")
{
  using codec_type = std::remove_cvref_t<decltype(presets::fp16)>;
  tests::loopback_run<codec_type> run{presets::fp16, layout{10}, 2, 5};
  run.exchange({std::vector<float>(10, 4e4f), std::vector<float>(10, 4e4f)});
  CHECK(run.header(0).last_was_non_finite());
  CHECK(run.header(1).last_was_non_finite());
  run.exchange({std::vector<float>(10, 1.0f), std::vector<float>(10, 3.0f)});
  CHECK_FALSE(run.header(0).last_was_non_finite());
}

TEST_CASE("[codec] zero chunks, empty gradients, single coordinates and tails are exchanged")
{
  using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat4)>;
  for (std::size_t const d :
       {std::size_t{0}, std::size_t{1}, std::size_t{1023}, std::size_t{1025}, std::size_t{7919}}) {
    CAPTURE(d);
    auto in = tests::normal_gradients(2, d, 11);
    for (auto& gradient : in) {
      std::fill_n(gradient.begin(), std::min<std::size_t>(d, 1024), 0.0f);
    }
    tests::loopback_run<codec_type> run{presets::rotated_sat4, layout{d}, 2, 5};
    for (int step = 0; step < 3; ++step) {
      auto const& out = run.exchange(in);
      for (std::size_t i = 0; i < std::min<std::size_t>(d, 1024); ++i) {
        REQUIRE(out[0][i] == 0.0f);
      }
      for (float const value : out[1]) { REQUIRE(std::isfinite(value)); }
    }
    CHECK(run.header().step == 3);
  }
}

TEST_CASE("[codec] magnitudes far from one are exchanged as well as others")
{
  using codec_type = std::remove_cvref_t<decltype(presets::rotated_sat8)>;
  auto const unit  = tests::normal_gradients(2, 4096, 3);
  tests::loopback_run<codec_type> plain{presets::rotated_sat8, layout{4096}, 2, 5};
  double const reference = tests::nmse(unit, plain.exchange(unit)[0]);
  for (int const exponent : {-50, 50}) {
    CAPTURE(exponent);
    auto scaled = unit;
    for (auto& gradient : scaled) {
      for (float& value : gradient) { value = std::ldexp(value, exponent); }
    }
    tests::loopback_run<codec_type> run{presets::rotated_sat8, layout{4096}, 2, 5};
    // Powers of two scale every intermediate value exactly.
    CHECK(tests::nmse(scaled, run.exchange(scaled)[0]) == doctest::Approx(reference).epsilon(1e-6));
  }
  // Squares that underflow leave a chunk without a step, squares that overflow poison it.
  auto tiny = unit, huge = unit;
  for (int k = 0; k < 2; ++k) {
    for (float& value : tiny[static_cast<std::size_t>(k)]) { value = std::ldexp(value, -120); }
    for (float& value : huge[static_cast<std::size_t>(k)]) { value = std::ldexp(value, 100); }
  }
  tests::loopback_run<codec_type> run{presets::rotated_sat8, layout{4096}, 2, 5};
  for (float const value : run.exchange(tiny)[0]) { REQUIRE(value == 0.0f); }
  CHECK_FALSE(run.header().last_was_non_finite());
  for (float const value : run.exchange(huge)[0]) { REQUIRE(std::isnan(value)); }
  CHECK(run.header().last_was_non_finite());
}
