// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Factors that travel by another codec: against factors that travel as they are, against theory, and their contracts.

#include "support/exchange_fixture.hpp"
#include "support/known_matrix.hpp"
#include "support/loopback_run.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/baseline/presets.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/presets.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace tersum;

namespace {

constexpr auto alternating = low_rank_schedule::alternating;

constexpr float clip = presets::rotated_sat8.range.clip;

template <class Factors>
constexpr presets::saturating_factors<Factors> in_codes{.inner = {.range = {.clip = clip}}};

// Matrices that travel, vectors, one that is too small, at odd offsets.
std::vector<tensor> const tensors{{"a", 70, 65, 0},
                                  {"b", 1, 77, 4550},
                                  {"c", 129, 40, 4627},
                                  {"d", 3, 9, 9787},
                                  {"e", 33, 200, 9814}};
constexpr std::uint64_t coordinates = 9814 + 33 * 200;

std::vector<std::vector<float>> gradients(int ranks, int step, bool non_finite = false)
{
  std::vector<std::vector<float>> all;
  for (int k = 0; k < ranks; ++k) {
    all.push_back(tests::make_gradient<float>(coordinates, k, step, false));
  }
  if (non_finite) { all[1][5] = std::numeric_limits<float>::quiet_NaN(); }
  return all;
}

}  // namespace

// With four ranks the mean is the sum times a power of two, which orthogonalization takes out exactly.
TEST_CASE("[lowrank] factors that a cast carries are the factors that travel as they are")
{
  auto const check = [](auto const& nested, auto const& plain) {
    tests::loopback_run got(nested, layout{coordinates, tensors}, 4, 3);
    tests::loopback_run want(plain, layout{coordinates, tensors}, 4, 3);
    REQUIRE(want.plan().chunks() == 3);
    CHECK(got.plan().wire_bytes() == want.plan().wire_bytes());
    CHECK(got.plan().bits_per_coordinate() == want.plan().bits_per_coordinate());
    for (int step = 0; step < 4; ++step) {
      auto const in = gradients(4, step, step == 2);
      auto const& a = got.exchange(in);
      auto const& b = want.exchange(in);
      for (std::size_t k = 0; k < 4; ++k) {
        CHECK(tests::with_one_nan<float>(
                {std::as_bytes(std::span{a[k]}).begin(), std::as_bytes(std::span{a[k]}).end()}) ==
              tests::with_one_nan<float>(
                {std::as_bytes(std::span{b[k]}).begin(), std::as_bytes(std::span{b[k]}).end()}));
        CHECK(std::equal(got.residual(static_cast<int>(k)).begin(),
                         got.residual(static_cast<int>(k)).end(),
                         want.residual(static_cast<int>(k)).begin()));
      }
      CHECK(got.header().last_was_non_finite() == (step == 2));
    }
  };
  using paired = low_rank_codec<low_rank<4>>;
  using turns  = low_rank_codec<low_rank<4>, float, alternating>;
  check(quantized_low_rank_codec<paired, cast_codec<half>>{}, low_rank_codec<low_rank<4>, half>{});
  check(quantized_low_rank_codec<turns, cast_codec<float>>{}, turns{});
}

TEST_CASE("[lowrank] codes of factors lose of a matrix of rank one what their steps allow")
{
  // A code's step is at most spread / 127 root mean squares of the sum's chunk: the head-room is at most the two ranks,
  // which have the same matrix. A rank's rounding is less than a step, and so is the mean's. P turns by its share, and Q
  // adds another.
  tests::known_matrix const known(300, 200, {1.0}, 17);
  std::vector<tensor> const one{{.rows = known.rows, .columns = known.width}};
  auto const matrix = known.dense();
  using factors     = low_rank_codec<low_rank<1>, float, low_rank_schedule::paired, no_feedback>;
  tests::loopback_run run(in_codes<factors>, layout{matrix.size(), one}, 2, 5);
  double const share = std::pow(2 * static_cast<double>(clip) / 127, 2);
  for (int step = 0; step < 4; ++step) {
    auto const& out = run.exchange({matrix, matrix});
    CHECK(tests::nmse({matrix, matrix}, out[0]) <= 2 * share);
    CHECK(tests::nmse({matrix, matrix}, out[0]) > 1e-9);  // it went through codes
    CHECK(out[0] == out[1]);
  }
}

//! Lanes at a limit in the last sums of both factors.
template <class Codec>
std::uint64_t saturated_lanes(tests::loopback_run<Codec>& run)
{
  std::uint64_t lanes = 0;
  for (int turn = 0; turn < 2; ++turn) {
    auto const& inner = run.plan().inner(turn);
    auto const state  = run.plan().inner_state(run.state(), turn);
    if (inner.tensors() == 0) { continue; }
    lanes +=
      reinterpret_cast<tensor_record const*>(state.data() + inner.records_offset())->saturated;
  }
  return lanes;
}

using paired_4 = low_rank_codec<low_rank<4>>;
using turns_4  = low_rank_codec<low_rank<4>, float, alternating>;
template <feedback Feedback>
using codes_of = presets::tracked_saturating<stochastic_quantizer<8>, Feedback>;

TEST_CASE_TEMPLATE(
  "[lowrank] nothing is lost: what codes of factors leave of a gradient comes later",
  Codec,
  quantized_low_rank_codec<paired_4, codes_of<no_feedback>>,
  quantized_low_rank_codec<turns_4, codes_of<no_feedback>>,
  quantized_low_rank_codec<paired_4, presets::two_shot<8>>,
  quantized_low_rank_codec<paired_4, codes_of<sent_values>>,
  quantized_low_rank_codec<turns_4, codes_of<sent_values>>,
  quantized_low_rank_codec<paired_4, presets::two_shot<8, sent_values>>,
  quantized_low_rank_codec<turns_4, presets::two_shot<8, sent_values>>)
{
  Codec codec{};
  bool const own = keeps_sent<typename Codec::inner_type>;
  // What saturates in the sum no rank has kept, so that it must not happen where each keeps what it has sent.
  if constexpr (requires { codec.inner.range; }) { codec.inner.range.clip = own ? 8.0f : clip; }
  tests::loopback_run run(codec, layout{coordinates, tensors}, 3, 7);
  std::vector<double> sent(coordinates), seen(coordinates);
  double largest = 0;
  for (int step = 0; step < 6; ++step) {
    auto const in   = gradients(3, step);
    auto const& out = run.exchange(in);
    if (own && saturates<typename Codec::inner_type>) { REQUIRE(saturated_lanes(run) == 0); }
    for (std::size_t k = 1; k < 3; ++k) {
      CHECK(std::memcmp(out[0].data(), out[k].data(), coordinates * sizeof(float)) == 0);
    }
    if (own) {
      // What was sent is a float as large as a column of a matrix, of up to 200 elements: of up to 15 times the largest.
      for (auto const& values : in) {
        for (float const v : values) {
          largest = std::max(largest, 15 * std::fabs(static_cast<double>(v)));
        }
      }
    }
    for (std::uint64_t i = 0; i < coordinates; ++i) {
      double residual = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        double const mine = static_cast<double>(run.residual(static_cast<int>(k))[i]);
        sent[i] += static_cast<double>(in[k][i]) / 3;
        residual += mine / 3;
        largest = std::max({largest,
                            std::fabs(mine),
                            std::fabs(static_cast<double>(in[k][i])),
                            std::fabs(static_cast<double>(out[0][i]))});
      }
      seen[i] += static_cast<double>(out[0][i]);
      // Each step rounds a residual twice: gradient plus residual, less the mean. What bypasses rounds its sums.
      REQUIRE(std::fabs(seen[i] + residual - sent[i]) <= (step + 1) * 2 * 0x1p-24 * 4 * largest);
    }
  }
}

// The sum of the residuals drains by itself; what they differ in does because each rank takes from its own what it sent.
TEST_CASE_TEMPLATE("[lowrank] the residual of each rank drains, in which the ranks differ",
                   Codec,
                   presets::saturating_factors<paired_4>,
                   presets::saturating_factors<turns_4>,
                   quantized_low_rank_codec<paired_4, presets::two_shot<8, sent_values>>)
{
  Codec codec{};
  if constexpr (requires { codec.inner.range; }) { codec.inner.range.clip = clip; }
  std::vector<tensor> const one{{.rows = 63, .columns = 65}};
  tests::loopback_run run(codec, layout{63 * 65, one}, 3, 29);
  std::vector<std::vector<float>> in;
  for (int k = 0; k < 3; ++k) { in.push_back(tests::make_gradient<float>(63 * 65, k, 0, false)); }
  auto const energy = [&](int rank) {
    double sum = 0;
    for (float const kept : run.residual(rank)) {
      sum += static_cast<double>(kept) * static_cast<double>(kept);
    }
    return sum;
  };
  run.exchange(in);
  double const before[] = {energy(0), energy(1), energy(2)};
  for (auto& values : in) { std::fill(values.begin(), values.end(), 0.0f); }
  for (int step = 0; step < 200; ++step) { run.exchange(in); }
  // Each step takes 4 of 63 dimensions that hardly depend on what the ranks differ in: (59/63)^200 = 2e-6 is left.
  for (int k = 0; k < 3; ++k) { CHECK(energy(k) < 1e-4 * before[k]); }
}

// What saturates in a sum no rank keeps. Two matrices of real gradients, four ranks.
TEST_CASE("[lowrank] no sum of powersgd_r16_sat8 saturates, for which its clip is wide enough")
{
  std::vector<tensor> const two{{"e", 256, 96, 0}, {"p", 64, 96, 24576}};
  tests::gradients in = tests::sample_gradients("step20");
  for (auto& values : in) { values.resize(30720); }
  auto const lanes = [&](auto const& codec) {
    tests::loopback_run run(codec, layout{30720, two}, 4, 31);
    std::uint64_t sum = 0;
    for (int step = 0; step < 10; ++step) {
      run.exchange(in);
      sum += saturated_lanes(run);
    }
    return sum;
  };
  auto narrow             = presets::powersgd_r16_sat8;
  narrow.inner.range.clip = clip;
  CHECK(lanes(narrow) > 0);
  CHECK(lanes(presets::powersgd_r16_sat8) == 0);
}

TEST_CASE_TEMPLATE(
  "[lowrank] what was sent of the longer factor is all that the workspace grows by",
  Factors,
  paired_4,
  turns_4)
{
  layout const gradient{coordinates, tensors};
  auto const plain = quantized_low_rank_codec<Factors, codes_of<no_feedback>>{}.plan(
    gradient, {.size = 3, .rank = 0});
  auto const sent = quantized_low_rank_codec<Factors, codes_of<sent_values>>{}.plan(
    gradient, {.size = 3, .rank = 0});
  REQUIRE(sent.check().ok());
  std::size_t const longer =
    4 * std::max<std::size_t>(sent.inner(0).coordinates(), sent.inner(1).coordinates());
  CHECK(sent.workspace_bytes() >= plain.workspace_bytes() + longer);
  CHECK(sent.workspace_bytes() <= plain.workspace_bytes() + longer + 15);
  CHECK(sent.state_bytes() == plain.state_bytes());
  CHECK(sent.state_fingerprint() == plain.state_fingerprint());
}

TEST_CASE("[lowrank] threads, instruction sets and old memory do not change codes of factors")
{
  auto const record = [](cpu_executor exec) {
    tests::loopback_run run(presets::powersgd_r4_sat8, layout{coordinates, tensors}, 3, 11, exec);
    std::vector<std::byte> bytes;
    for (int step = 0; step < 3; ++step) {
      for (auto const& w : {run.workspace(0), run.workspace(1), run.workspace(2)}) {
        std::fill(w.begin(), w.end(), static_cast<std::byte>(exec.threads));
      }
      auto const& out = run.exchange(gradients(3, step));
      auto const mean = std::as_bytes(std::span{out[0]});
      bytes.insert(bytes.end(), mean.begin(), mean.end());
      bytes.insert(bytes.end(), run.state(1).begin(), run.state(1).end());
    }
    return bytes;
  };
  auto const want = record({.threads = 1, .instructions = instruction_set::baseline});
  CHECK(record({.threads = 1}) == want);
  CHECK(record({.threads = 3}) == want);
}

TEST_CASE("[lowrank] a state of factors and codes does not depend on what its memory held before")
{
  // Sizes of a residual that leave 4, 8, 12 and 0 bytes free in front of the state of the codes.
  for (std::uint64_t const more : {1u, 2u, 3u, 4u}) {
    CAPTURE(more);
    std::vector<tensor> const bucket{{"a", 70, 65, 0}, {"b", 1, 2 + more, 4550}};
    auto const plan = presets::powersgd_r4_sat8.plan(layout{4552 + more, bucket}, {});
    tests::host_buffer const zeros(plan.state_bytes(), 0, std::byte{0});
    tests::host_buffer const ones(plan.state_bytes(), 0, std::byte{0xff});
    for (auto const* state : {&zeros, &ones}) {
      REQUIRE(initialize(cpu_executor{}, plan, state->contents(), 5).ok());
    }
    CHECK(zeros.read(0, plan.state_bytes()) == ones.read(0, plan.state_bytes()));
  }
}

TEST_CASE("[lowrank] values that are not finite leave residual and warm start of codes alone")
{
  tests::loopback_run run(presets::powersgd_r4_sat8, layout{coordinates, tensors}, 2, 13);
  run.exchange(gradients(2, 0));
  std::vector<std::byte> const before(run.state().begin(), run.state().end());
  auto const& out = run.exchange(gradients(2, 1, true));
  CHECK(run.header(0).last_was_non_finite());
  CHECK(run.header(1).last_was_non_finite());
  for (std::uint64_t i = 0; i < 70 * 65; ++i) { REQUIRE(std::isnan(out[1][i])); }
  std::size_t const factors = run.plan().factors().state_bytes();
  CHECK(std::equal(run.state().begin() + sizeof(state_header),
                   run.state().begin() + static_cast<std::ptrdiff_t>(factors),
                   before.begin() + sizeof(state_header)));
  auto const& next = run.exchange(gradients(2, 2));
  CHECK_FALSE(run.header().last_was_non_finite());
  CHECK(std::all_of(next[0].begin(), next[0].end(), [](float v) { return std::isfinite(v); }));

  tests::loopback_run zero(presets::powersgd_r4_sat8, layout{coordinates, tensors}, 2, 13);
  std::vector<float> const nothing(coordinates);
  for (int step = 0; step < 2; ++step) { CHECK(zero.exchange({nothing, nothing})[0] == nothing); }
}

TEST_CASE("[lowrank] all_reduce_mean makes the rounds of the codes, and asks for its memory")
{
  auto const codec = presets::powersgd_r4_sat8;
  tests::loopback_run run(codec, layout{coordinates, tensors}, 1, 19);
  auto const& plan = run.plan();
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state}).first(plan.state_bytes());
  auto const w = std::as_writable_bytes(std::span{workspace}).first(plan.workspace_bytes());
  REQUIRE(initialize(cpu_executor{}, plan, s, 19).ok());
  CHECK(header_of(plan, s)->layout == plan.state_fingerprint());
  auto values = gradients(1, 0)[0];
  std::vector<std::size_t> bytes;
  auto const count = [&](auto const& wire) { bytes.push_back(wire.bytes()); };
  REQUIRE(all_reduce_mean(cpu_executor{}, plan, values, s, w, count).ok());
  CHECK(values == run.exchange(gradients(1, 0))[0]);
  // P has 4 x 232 elements and Q 4 x 305, in chunks of 1024: norms, codes, bypass, norms, codes.
  CHECK(bytes == std::vector<std::size_t>{4, 1024, 4 * 104, 8, 2048});
  CHECK(plan.wire_bytes() == 4 + 1024 + 8 + 2048 + 4 * 104);

  auto const none    = [](auto const&) {};
  auto const refused = [&](auto const& exec, auto const& state_of, auto const& scratch) {
    return all_reduce_mean(exec, plan, values, state_of, scratch, none).code;
  };
  cpu_executor const exec;
  CHECK(refused(exec, s.first(s.size() - 1), w) == error_code::invalid_argument);
  CHECK(refused(exec, s, w.first(w.size() - 1)) == error_code::invalid_argument);
  CHECK(initialize(exec, plan, s.first(s.size() - 1), 1).code == error_code::invalid_argument);
  // A collective that fails ends the exchange with its answer.
  CHECK(all_reduce_mean(exec, plan, values, s, w, [](auto const&) { return 7; }).code ==
        error_code::transport_failed);
}

TEST_CASE("[lowrank] what the codec of the factors cannot do, its plan refuses")
{
  // 18 ranks fit into lanes of 8 bits with codes of 4.
  constexpr quantized_low_rank_codec<low_rank_codec<low_rank<4>>,
                                     std::remove_cvref_t<decltype(presets::thc_wide4_partial)>>
    exact{};
  layout const shape{coordinates, tensors};
  CHECK(exact.plan(shape, {.size = 18, .rank = 0}).check().ok());
  CHECK(exact.plan(shape, {.size = 19, .rank = 0}).check().code == error_code::world_too_large);
  CHECK(exact.plan(layout{coordinates - 1, tensors}, {}).check().code ==
        error_code::invalid_argument);
}

TEST_CASE("[lowrank] a bucket without matrices has no codes")
{
  std::vector<tensor> const vector{{.rows = 9}};
  tests::loopback_run run(presets::powersgd_r4_sat8, layout{9, vector}, 2, 23);
  CHECK(run.plan().wire_bytes() == 36);
  CHECK(run.exchange({std::vector<float>(9, 1.0f), std::vector<float>(9, 2.0f)})[1] ==
        std::vector<float>(9, 1.5f));
  tests::loopback_run empty(presets::powersgd_r4_sat8, layout{}, 2, 23);
  CHECK(empty.exchange({{}, {}})[0].empty());
}
