// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a two-shot codec puts on the wire and makes of it, against its formulas in double.

#include "support/bad_input.hpp"
#include "support/chunk_rotation.hpp"
#include "support/codecs.hpp"
#include "support/coded_chunk.hpp"
#include "support/loopback_run.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>

#include <bit>
#include <cmath>

using namespace tersum;

namespace {

constexpr std::uint64_t seed = 31;
constexpr double epsilon     = 0x1p-24;

template <int Bits, int Size = 256, class Feedback = no_feedback>
using shot = tests::rotated_codes<Size, lloyd_max<Bits>, two_shot, Feedback>;

template <int Up, int Down, class Feedback = no_feedback>
using two_way =
  tests::rotated_codes<256, lloyd_max<Up>, two_shot_to<scaled_codes<lloyd_max<Down>>>, Feedback>;

//! In what the mean of a codec is encoded, for `read_chunk`.
template <class Codec>
struct mean_of {
  using quantizer_type            = typename Codec::mean_quantizer_type;
  static constexpr int chunk_size = Codec::chunk_size;
};

using tests::estimate;
using tests::gradients;
using tests::read_chunk;

template <class Codec>
void check_against_formulas(Codec const& codec, std::size_t d, int world)
{
  CAPTURE(d);
  CAPTURE(world);
  constexpr std::size_t size = Codec::chunk_size;
  auto const in              = tests::normal_gradients(world, d, 17);
  auto const ranks           = static_cast<std::size_t>(world);
  tests::loopback_run<Codec> run{codec, layout{d}, world, seed};
  run.exchange(in);
  std::uint64_t const key = run.header().sign_key;
  auto const& out         = run.exchange(in);
  auto const& plan        = run.plan();
  std::size_t const words = plan.part_bytes() / 4;
  tests::mismatches wrong;
  for (std::size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    std::size_t const owner = chunk % ranks, index = chunk / ranks;
    tests::chunk_rotation<Codec::chunk_size> const turn{chunk, key};
    auto const wire = scattered_wire(plan, run.workspace(static_cast<int>(owner)));
    std::vector<double> mean(size);
    for (std::size_t r = 0; r < ranks; ++r) {
      std::vector<double> x(size);
      for (std::size_t j = 0; j < size && chunk * size + j < d; ++j) {
        x[j] = static_cast<double>(in[r][chunk * size + j]);
      }
      auto const sent = read_chunk<Codec>(wire.received + r * words, words, index);
      tests::check_encoding<Codec>(wrong, sent, turn.forward(x.data()));
      auto const part = estimate<Codec>(sent);
      for (std::size_t p = 0; p < size; ++p) { mean[p] += part[p] / world; }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      auto const gathered = gathered_wire(plan, run.workspace(static_cast<int>(r)));
      auto const count    = gathered.count;
      auto const again =
        read_chunk<mean_of<Codec>>(gathered.gathered + owner * count, count, index);
      tests::check_encoding<mean_of<Codec>>(wrong, again, mean);
      auto const back = turn.backward(estimate<mean_of<Codec>>(again));
      for (std::size_t j = 0; j < size && chunk * size + j < d; ++j) {
        double const want = back[j] / size;
        double const got  = static_cast<double>(out[r][chunk * size + j]);
        // Levels are below five root mean squares, and the inverse rotates as above.
        double const room = 40 * 16 * epsilon * again.scale / 16;
        wrong.expect(std::abs(got - want) <= room, true, got, want, r, j);
      }
    }
  }
  CHECK(wrong.report() == "");
}

}  // namespace

TEST_CASE("[two_shot] codes, scales and means are those of the formulas")
{
  check_against_formulas(shot<1>{}, 1000, 3);
  check_against_formulas(shot<2>{}, 1000, 2);
  check_against_formulas(shot<3>{}, 1000, 3);
  check_against_formulas(shot<4>{}, 2500, 4);
  check_against_formulas(shot<5>{}, 1000, 1);
  check_against_formulas(shot<6>{}, 700, 3);
  check_against_formulas(shot<7>{}, 256, 2);
  check_against_formulas(shot<8>{}, 1000, 5);
  check_against_formulas(shot<11>{}, 1000, 3);
  check_against_formulas(shot<4, 1024>{}, 3000, 2);
  // Codes of the mean that are wider, on ranks that own several chunks, one, or none.
  check_against_formulas(two_way<2, 5>{}, 2500, 3);
  check_against_formulas(two_way<2, 5>{}, 700, 4);
}

TEST_CASE("[two_shot] parts are multiples of 16 bytes, and memory is three payloads at most")
{
  auto const check = [](auto const& codec) {
    for (std::uint64_t const d : {0u, 1u, 255u, 1025u, 100003u}) {
      for (int const world : {1, 2, 7}) {
        auto const plan = codec.plan(layout{d}, {.size = world, .rank = 0});
        CHECK(plan.check() == status{});
        CHECK(plan.part_bytes() % 16 == 0);
        CHECK(plan.payload_bytes() == plan.part_bytes() * static_cast<std::uint64_t>(world));
        using codec_type    = typename decltype(plan)::codec_type;
        std::uint64_t bytes = (feeds_back<codec_type> ? 3 : 2) * plan.payload_bytes();
        if constexpr (selects<codec_type>) {
          // Norms in bfloat16, and where a chunk lies among those that travel and which chunk lies there.
          std::uint64_t const places = (4 * plan.chunks() + 15) / 16 * 16;
          bytes += 2 * plan.chunks() + 2 * places + sizeof(detail::selection_scratch);
        }
        // Three arrays begin at whole 16 bytes.
        CHECK(plan.workspace_bytes() >= bytes + plan.bypass_bytes());
        CHECK(plan.workspace_bytes() < bytes + plan.bypass_bytes() + 48);
      }
    }
  };
  check(presets::two_shot_4);
  check(presets::two_shot_1_ef);
  check(presets::two_shot<2, error_feedback>{});
  check(presets::allocated_4);
  check(shot<3>{});
}

TEST_CASE("[two_shot] gradients of zeros, of one coordinate and of none")
{
  auto const check = [](auto const& codec) {
    using codec_type = std::remove_cvref_t<decltype(codec)>;
    for (int const world : {1, 3}) {
      tests::loopback_run<codec_type> run{codec, layout{1300}, world, seed};
      gradients const zeros(static_cast<std::size_t>(world), std::vector<float>(1300));
      for (auto const& out : run.exchange(zeros)) {
        for (float const value : out) { REQUIRE(std::bit_cast<std::uint32_t>(value) == 0); }
      }
      CHECK_FALSE(run.header().last_was_non_finite());
      // One rank without a gradient is one that adds nothing.
      auto in = tests::normal_gradients(world, 1300, 17);
      in[0]   = zeros[0];
      for (auto const& out : run.exchange(in)) { REQUIRE(std::isfinite(out[0])); }
      tests::loopback_run<codec_type> nothing{codec, layout{0}, world, seed};
      CHECK(nothing.exchange(gradients(static_cast<std::size_t>(world)))[0].empty());
    }
  };
  check(presets::two_shot<1>{});
  check(presets::two_shot_4_ef);
  check(presets::allocated_4);
}

TEST_CASE(
  "[two_shot] wrong arguments are named, sizes beyond 2^31 are arithmetic, and what is not finite stays in its chunk")
{
  tests::check_wrong_arguments(presets::two_shot_4_ef, layout{3000});
  tests::check_wrong_arguments(presets::allocated_4, layout{20'000});
  tests::check_large_plan(presets::two_shot_4);
  tests::check_large_plan(presets::allocated_4);
  tests::check_non_finite(presets::two_shot_4);
  tests::check_non_finite(presets::two_shot<2, error_feedback>{});
  tests::check_non_finite(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}});
}

TEST_CASE("[two_shot] norms that float cannot hold count as nothing, or as not finite")
{
  tests::loopback_run<shot<4>> run{{}, layout{512}, 2, seed};
  auto tiny = tests::normal_gradients(2, 512, 17), huge = tiny;
  for (auto& gradient : tiny) {
    for (float& value : gradient) { value = std::ldexp(value, -80); }
  }
  for (auto& gradient : huge) {
    for (float& value : gradient) { value = std::ldexp(value, 64); }
  }
  for (float const value : run.exchange(tiny)[0]) { REQUIRE(value == 0.0f); }
  CHECK_FALSE(run.header().last_was_non_finite());
  for (float const value : run.exchange(huge)[0]) { REQUIRE(std::isnan(value)); }
  CHECK(run.header().last_was_non_finite());
}
