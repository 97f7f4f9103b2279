// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a values codec puts on the wire and makes of it, against its formulas in double.

#include "support/chunk_rotation.hpp"
#include "support/codecs.hpp"
#include "support/coded_chunk.hpp"
#include "support/exchange_run.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"
#include "support/sanitized.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/wires.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tersum;
using tests::boundaries;

namespace {

constexpr double epsilon = 0x1p-24;

template <int Bits, int Size = 256, class Feedback = no_feedback, class Metric = plain_metric>
using values_of = tests::rotated_codes<Size, lloyd_max<Bits>, publish, Feedback, Metric>;

template <class Codec, class ShardElement = float, class Element = ShardElement>
using run_of = tests::exchange_run<tests::host_buffer, Codec, ShardElement, Element>;

template <class Element>
bool same_bits(std::vector<Element> const& a, std::vector<Element> const& b)
{
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Element)) == 0);
}

// Two exchanges: each chunk is the encoding of the shard, or of what it differs from what is held, and all ranks end with what
// the codes say, in double, and with equal bits.
template <class Codec>
void check_against_formulas(Codec const& codec,
                            std::size_t d,
                            int world,
                            boundaries const& cuts = {})
{
  CAPTURE(d);
  CAPTURE(world);
  using quantizer            = typename Codec::quantizer_type;
  constexpr std::size_t size = Codec::chunk_size;
  auto const ranks           = static_cast<std::size_t>(world);
  run_of<Codec> run{cpu_executor{},
                    {.codec = codec, .gradient = {d}, .world = world, .cuts = cuts}};
  std::vector<float> held(d);
  tests::mismatches wrong;
  for (std::uint64_t step = 0; step < 2; ++step) {
    auto const in       = tests::normal_gradients(1, d, 17 + static_cast<unsigned>(step))[0];
    auto const out      = run.exchange(cpu_executor{}, in);
    std::size_t reached = 0, chunk = 0;
    for (std::size_t owner = 0; owner < ranks; ++owner) {
      auto const& plan        = run[owner].plan;
      std::size_t const begin = plan.shard_begin(static_cast<int>(owner));
      std::size_t const end   = begin + plan.shard_size();
      CHECK(begin == (cuts.empty() ? d * owner / ranks : cuts[owner]));
      std::size_t const chunks = (end - begin + size - 1) / size;
      std::size_t const words  = (chunks + 3) / 4 * 4 + chunks * size / 32 * quantizer::bits;
      CHECK(plan.part_words(static_cast<int>(owner)) == words);
      // What another rank has received.
      auto const& reader = run[(owner + 1) % ranks];
      auto const wire    = published_wire(reader.plan, reader.workspace);
      for (std::size_t index = 0; index < chunks; ++index, ++chunk) {
        std::size_t const first = begin + index * size;
        tests::chunk_rotation<size> const turn{chunk, sign_key(step, tests::exchange_seed)};
        std::vector<double> x(size);
        for (std::size_t j = 0; j < size && first + j < end; ++j) {
          x[j] = static_cast<double>(codes_differences<Codec> ? in[first + j] - held[first + j]
                                                              : in[first + j]);
        }
        auto const sent = tests::read_of_shard<Codec>(
          wire.gathered + wire.begin(static_cast<int>(owner)), chunks, index);
        tests::check_encoding<Codec>(wrong, sent, turn.forward(x.data()));
        auto const back = turn.backward(tests::estimate<Codec>(sent));
        for (std::size_t at = first; at < std::min(end, first + size); ++at, ++reached) {
          double const before = codes_differences<Codec> ? static_cast<double>(held[at]) : 0.0;
          double const want   = before + back[at - first] / static_cast<double>(size);
          double const got    = static_cast<double>(out[0][at]);
          // Levels are below five root mean squares; ten roundings of the way back, and one of the sum.
          double const room = 40 * 16 * epsilon * sent.scale / 16 + 2 * epsilon * std::abs(want);
          wrong.expect(std::abs(got - want) <= room, true, got, want, at);
        }
      }
    }
    CHECK(reached == d);
    CHECK(chunk == run[0].plan.chunks());
    for (std::size_t r = 1; r < ranks; ++r) { CHECK(same_bits(out[r], out[0])); }
    held = out[0];
  }
  if (d > 0) { CHECK(wrong.report() == ""); }
}

// Scales that are powers of two only move what is rounded, so all that is decoded and kept is what it is of values that the caller
// has divided. Some are zeros, some below the floor, those of a chunk all zeros.
template <class Feedback>
void compare_to_divided()
{
  constexpr std::size_t d = 1100, size = 256;
  boundaries const cuts{0, 10, 300, 301, d};
  using in_units = values_of<3, size, Feedback, given_diagonal>;
  using plain    = values_of<3, size, Feedback>;
  run_of<in_units> run{cpu_executor{}, {.codec = {}, .gradient = {d}, .world = 4, .cuts = cuts}};
  run_of<plain> divided{cpu_executor{}, {.codec = {}, .gradient = {d}, .world = 4, .cuts = cuts}};
  std::vector<float> scales(d), raised(d);
  for (std::size_t i = 0; i < d; ++i) {
    scales[i] = i % 7 == 0 ? 0.0f : std::ldexp(1.0f, -static_cast<int>(i * 13 % 12));
  }
  std::fill_n(scales.begin() + 301, size, 0.0f);
  for (std::size_t owner = 0; owner < 4; ++owner) {
    for (std::size_t first = cuts[owner]; first < cuts[owner + 1]; first += size) {
      std::size_t const end = std::min<std::size_t>(first + size, cuts[owner + 1]);
      float const largest   = *std::max_element(&scales[first], &scales[end - 1] + 1);
      for (std::size_t i = first; i < end; ++i) {
        raised[i] = largest == 0 ? 1.0f : std::max(scales[i], 0x1p-8f * largest);
      }
    }
  }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    auto const kept = metric_scales(run[rank].plan, run[rank].state);
    std::copy(scales.begin(), scales.end(), kept.begin());
  }
  for (unsigned step = 0; step < 3; ++step) {
    auto const values = tests::normal_gradients(1, d, 17 + step)[0];
    auto in           = values;
    for (std::size_t i = 0; i < d; ++i) { in[i] = values[i] * raised[i]; }
    auto const out   = run.exchange(cpu_executor{}, in);
    auto const want  = divided.exchange(cpu_executor{}, values);
    std::size_t same = 0;
    for (std::size_t i = 0; i < d; ++i) { same += out[0][i] == want[0][i] * raised[i] ? 1u : 0u; }
    CHECK(same == d);
    for (auto const& of_rank : out) { CHECK(same_bits(of_rank, out[0])); }
  }
}

// Scales that follow what was decoded, values or differences, said again in double.
template <class Feedback>
void check_kept_scales()
{
  constexpr std::size_t d = 1100, size = 256;
  constexpr kept_diagonal metric{.prior = 4, .horizon = 6};
  boundaries const cuts{0, 10, 300, 301, d};
  using codec = values_of<3, size, Feedback, kept_diagonal>;
  run_of<codec> run{cpu_executor{},
                    {.codec = {.metric = metric}, .gradient = {d}, .world = 4, .cuts = cuts}};
  std::vector<double> squares(d), held(d);
  for (unsigned step = 0; step < 8; ++step) {
    auto const out = run.exchange(cpu_executor{}, tests::normal_gradients(1, d, 17 + step)[0]);
    std::vector<double> decoded(d);
    for (std::size_t i = 0; i < d; ++i) {
      decoded[i] = static_cast<double>(out[0][i]) - (codes_differences<codec> ? held[i] : 0.0);
      held[i]    = static_cast<double>(out[0][i]);
    }
    for (std::size_t owner = 0; owner < 4; ++owner) {
      for (std::size_t first = cuts[owner]; first < cuts[owner + 1]; first += size) {
        std::size_t const end = std::min<std::size_t>(first + size, cuts[owner + 1]);
        double energy         = 0;
        for (std::size_t i = first; i < end; ++i) { energy += decoded[i] * decoded[i]; }
        for (std::size_t i = first; i < end; ++i) {
          double const n = std::min(step + 4.0, 6.0);
          squares[i]     = step == 0 ? energy / static_cast<double>(end - first)
                                     : squares[i] + (decoded[i] * decoded[i] - squares[i]) / n;
        }
      }
    }
    auto const scales = metric_scales(run[0].plan, run[0].state);
    for (std::size_t rank = 1; rank < 4; ++rank) {
      auto const others = metric_scales(run[rank].plan, run[rank].state);
      CHECK(std::equal(scales.begin(), scales.end(), others.begin()));
    }
    double worst = 0;
    for (std::size_t i = 0; i < d; ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(scales[i]) / std::sqrt(squares[i]) - 1));
    }
    // A step rounds some ten times; a difference of two held values is known to the last bits of these.
    CHECK(worst < (step + 1) * (codes_differences<codec> ? 1e-4 : 1e-6));
  }
}

// |values - held|^2 / |values|^2 after each of so many exchanges of the same values.
template <class Codec, class Element>
std::vector<double> errors_of(Codec const& codec, std::vector<float> const& in, int steps)
{
  run_of<Codec, float, Element> run{cpu_executor{},
                                    {.codec = codec, .gradient = {in.size()}, .world = 4}};
  std::vector<double> errors;
  for (int step = 0; step < steps; ++step) {
    auto const out = run.exchange(cpu_executor{}, in);
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      double const value = static_cast<double>(in[i]);
      double const off   = value - static_cast<double>(to_float(out[3][i]));
      lost += off * off;
      all += value * value;
    }
    errors.push_back(lost / all);
  }
  return errors;
}

}  // namespace

TEST_CASE(
  "[values] codes, scales and values are those of the formulas, with equal bits on all ranks")
{
  check_against_formulas(values_of<1>{}, 1000, 3);
  check_against_formulas(values_of<4>{}, 2500, 4);
  check_against_formulas(values_of<8>{}, 1000, 5);
  check_against_formulas(values_of<2, 1024>{}, 4096, 4);
  for (std::size_t const d : {0u, 255u, 256u, 257u, 1009u}) {
    for (int const world : {1, 2}) { check_against_formulas(values_of<3>{}, d, world); }
  }
  // A boundary where a chunk would go on, several of them, empty shards, all of it of one rank.
  check_against_formulas(values_of<3>{}, 1000, 4, {0, 10, 300, 301, 1000});
  check_against_formulas(values_of<3>{}, 1000, 6, {0, 0, 512, 512, 600, 601, 1000});
  check_against_formulas(values_of<3>{}, 1000, 3, {0, 0, 1000, 1000});
}

TEST_CASE(
  "[values] under difference_feedback codes are of what has changed, and are added to what is held")
{
  using codec = values_of<3, 256, difference_feedback>;
  for (std::size_t const d : {0u, 255u, 256u, 257u, 1009u}) {
    for (int const world : {1, 2, 3}) { check_against_formulas(codec{}, d, world); }
  }
  check_against_formulas(values_of<4, 1024, difference_feedback>{}, 9001, 5);
  check_against_formulas(codec{}, 1000, 6, {0, 0, 512, 512, 600, 601, 1000});
}

TEST_CASE("[values] in a metric what is decoded is a multiple of what is decoded of divided values")
{
  compare_to_divided<no_feedback>();
  compare_to_divided<error_feedback>();
  compare_to_divided<difference_feedback>();
}

TEST_CASE("[values] the library keeps the root of the mean square of what all ranks decoded")
{
  check_kept_scales<no_feedback>();
  check_kept_scales<difference_feedback>();
}

TEST_CASE(
  "[values] the error is that of one encoding; of differences it shrinks by that factor in every step")
{
  // D of the codebooks for normal values. A difference is rotated by other signs than the one before, so that what was lost
  // looks normal again. Over 2^18 coordinates five deviations of a sum of squares are about .02 of it: too many for sanitizers.
  if constexpr (tests::sanitized) { return; }
  auto const in = tests::normal_gradients<std::mt19937_64>(1, std::size_t{1} << 18, 23)[0];
  CHECK(errors_of<decltype(values_of<4, 1024>{}), float>({}, in, 1)[0] ==
        doctest::Approx(.0095921).epsilon(.02).scale(0));
  auto const of_four =
    errors_of<std::remove_cv_t<decltype(presets::values<4, difference_feedback>{})>, float>(
      {}, in, 5);
  double expected = 1;
  for (double const error : of_four) {
    expected *= .0095921;
    CHECK(error == doctest::Approx(expected).epsilon(.1).scale(0));
  }
  auto const of_two =
    errors_of<std::remove_cv_t<decltype(presets::values<2, difference_feedback>{})>, float>(
      {}, in, 5);
  expected = 1;
  for (double const error : of_two) {
    expected *= .13310;
    CHECK(error == doctest::Approx(expected).epsilon(.1).scale(0));
  }
  // What is held in 16 bits is as near as these can be: a half rounds by at most 2^-11, bfloat16 by 2^-8.
  CHECK(errors_of<std::remove_cv_t<decltype(presets::values<4, difference_feedback>{})>, half>(
          {}, in, 6)[5] <= 0x1p-22);
  CHECK(errors_of<std::remove_cv_t<decltype(presets::values<4, difference_feedback>{})>, bfloat16>(
          {}, in, 6)[5] <= 0x1p-16);
}

TEST_CASE("[values] where a value is not finite what differences are added to stays as it was")
{
  auto in     = tests::normal_gradients(1, 1024, 23)[0];
  using codec = values_of<4, 256, difference_feedback>;
  run_of<codec> run{cpu_executor{}, {.gradient = {1024}, .world = 2}};
  auto const before = run.exchange(cpu_executor{}, in);
  CHECK_FALSE(header_of(run[0].plan, run[0].state)->last_was_non_finite());
  float const value = in[300];
  in[300]           = std::numeric_limits<float>::quiet_NaN();
  auto const out    = run.exchange(cpu_executor{}, in);
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t i = 256; i < 512; ++i) { REQUIRE(out[r][i] == before[r][i]); }
    CHECK(header_of(run[r].plan, run[r].state)->last_was_non_finite());
  }
  CHECK(same_bits(out[0], out[1]));
  // Finite again, it is as near as if nothing had happened.
  in[300]          = value;
  auto const after = run.exchange(cpu_executor{}, in);
  for (std::size_t i = 256; i < 512; ++i) { REQUIRE(std::abs(after[1][i] - in[i]) < .2f); }
}

TEST_CASE("[values] zeros stay zeros, and what does not change stays")
{
  run_of<values_of<1>> run{cpu_executor{}, {.gradient = {1000}, .world = 3}};
  for (auto const& values : run.exchange(cpu_executor{}, std::vector<float>(1000))) {
    for (float const value : values) { REQUIRE(value == 0); }
  }
  using codec = values_of<4, 256, difference_feedback>;
  run_of<codec> differences{cpu_executor{}, {.gradient = {1000}, .world = 3}};
  auto held = differences.exchange(cpu_executor{}, tests::normal_gradients(1, 1000, 5)[0])[0];
  for (auto const& values : differences.exchange(cpu_executor{}, held)) {
    CHECK(same_bits(values, held));
  }
}

TEST_CASE("[values] the shard may lie in the values, and the parts of a call give its bytes")
{
  using codec   = values_of<4>;
  auto const in = tests::normal_gradients(1, 3000, 17)[0];
  run_of<codec> run{cpu_executor{}, {.gradient = {3000}, .world = 1}};
  auto const want = run.exchange(cpu_executor{}, in)[0];
  auto const plan = codec{}.plan(layout{3000}, {});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s    = std::as_writable_bytes(std::span{state});
  auto const w    = std::as_writable_bytes(std::span{workspace});
  auto const none = [](auto const&) {};
  REQUIRE(initialize(cpu_executor{}, plan, s, tests::exchange_seed) == status{});
  CHECK(check_state(plan, s) == status{});
  std::vector<float> values = in;
  REQUIRE(all_gather_values(cpu_executor{}, plan, values, values, s, w, none) == status{});
  CHECK(same_bits(values, want));
  REQUIRE(initialize(cpu_executor{}, plan, s, tests::exchange_seed) == status{});
  std::vector<float> all(3000);
  REQUIRE(encode_shard(cpu_executor{}, plan, in, all, s, w) == status{});
  REQUIRE(decode_values(cpu_executor{}, plan, all, s, w) == status{});
  CHECK(same_bits(all, want));
}

TEST_CASE("[values] blocks with scales of their own are gathered, too")
{
  using codec   = codec<fixed_chunks<512>,
                      no_rotation,
                      scaled_codes<group_absmax<8, 32, linear_levels, bfloat16_scale>>,
                      publish>;
  auto const in = tests::normal_gradients(1, 3000, 17)[0];
  run_of<codec> run{cpu_executor{}, {.gradient = {3000}, .world = 3, .cuts = {0, 700, 701, 3000}}};
  auto const out = run.exchange(cpu_executor{}, in);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(same_bits(out[r], out[0]));
    // A level of 8 bits is 1/127 of the largest magnitude of a block, which is below six, as a scale rounded up makes it.
    for (std::size_t i = 0; i < in.size(); ++i) {
      REQUIRE(std::abs(out[r][i] - in[i]) <= 6.0f / 100);
    }
  }
}
