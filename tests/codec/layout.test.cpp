// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Buckets of several tensors: what bypasses is summed exactly, what does not is compressed tensor by tensor.

#include "support/bad_input.hpp"
#include "support/flush_subnormals.hpp"
#include "support/loopback_run.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <algorithm>
#include <array>
#include <random>

using namespace tersum;

namespace {

// Names, shapes, and where they lie: weights, a bias, a small matrix, one empty, a row vector, weights again.
constexpr std::array<tensor, 6> bucket{{{"a.weight", 30, 50, 0},
                                        {"a.bias", 50, 1, 1500},
                                        {"small", 3, 3, 1550},
                                        {"empty", 0, 7, 1559},
                                        {"gain", 1, 40, 1559},
                                        {"b.weight", 40, 60, 1599}}};
constexpr std::size_t coordinates = 3999;
constexpr layout shape{.coordinates = coordinates, .tensors = bucket, .bypass_below = 20};

template <class Element = float>
std::vector<std::vector<Element>> make_gradients(int world)
{
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  std::vector<std::vector<Element>> out(static_cast<std::size_t>(world),
                                        std::vector<Element>(coordinates));
  for (auto& gradient : out) {
    for (Element& value : gradient) { value = from_float<Element>(.01f * normal(random)); }
  }
  return out;
}

template <class Codec>
using run_of = tests::loopback_run<std::remove_cvref_t<Codec>>;

}  // namespace

TEST_CASE("[layout] tensors become records in order, vectors and small ones without chunks")
{
  auto const plan = presets::rotated_sat4.plan(shape, {.size = 3, .rank = 0});
  std::vector<tensor_record> records;
  plan.for_each_record([&](tensor_record const& record) { records.push_back(record); });
  REQUIRE(records.size() == 5);  // the empty tensor has none
  struct expected {
    std::uint64_t offset, size, first_chunk, chunks, bypass;
  };
  constexpr expected want[] = {{0, 1500, 0, 2, 0},
                               {1500, 50, 2, 0, 0},
                               {1550, 9, 2, 0, 50},
                               {1559, 40, 2, 0, 59},
                               {1599, 2400, 2, 3, 99}};
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(records[i].offset == want[i].offset);
    CHECK(records[i].size == want[i].size);
    CHECK(records[i].chunks == want[i].chunks);
    CHECK(records[i].ratio == 3.0f);
    if (want[i].chunks > 0) {
      CHECK(records[i].first_chunk == want[i].first_chunk);
    } else {
      CHECK(records[i].bypass == want[i].bypass);
    }
  }
  CHECK(plan.tensors() == 5);
  CHECK(plan.chunks() == 5);
  CHECK(plan.compressed() == 3900);
  CHECK(plan.bypassed() == 99);
  CHECK(plan.bypass_bytes() == 99 * 4);

  layout vectors_too         = shape;
  vectors_too.bypass_below   = 0;
  vectors_too.bypass_vectors = false;
  CHECK(presets::rotated_sat4.plan(vectors_too, {}).bypassed() == 0);
  CHECK(presets::rotated_sat4.plan(vectors_too, {}).chunks() == 2 + 1 + 1 + 1 + 3);
}

TEST_CASE_TEMPLATE("[layout] what bypasses is the float mean of the ranks, and has no residual",
                   Codec,
                   std::remove_const_t<decltype(presets::rotated_sat4_ef)>,
                   std::remove_const_t<decltype(presets::thc_wide4)>,
                   std::remove_const_t<decltype(presets::bf16)>)
{
  auto const in = make_gradients(3);
  tests::loopback_run<Codec> run{Codec{}, shape, 3, 3};
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    auto const out = run.exchange(in, reduction_order::direct);
    for (std::size_t i = 1500; i < 1599; ++i) {
      float const mean = ((in[0][i] + in[1][i]) + in[2][i]) * (1.0f / 3.0f);
      for (auto const& rank : out) { REQUIRE(rank[i] == mean); }
      if constexpr (feeds_back<Codec>) {
        for (int k = 0; k < 3; ++k) { REQUIRE(run.residual(k)[i] == 0.0f); }
      }
    }
    if constexpr (feeds_back<Codec>) {
      auto const kept = run.residual(1);
      CHECK(std::count(kept.begin(), kept.begin() + 1500, 0.0f) < 150);
      CHECK(std::count(kept.begin() + 1599, kept.end(), 0.0f) < 240);
    }
  }
}

TEST_CASE("[layout] a ring adds what bypasses in the order in which its blocks travel")
{
  auto const in = make_gradients(3);
  run_of<decltype(presets::fp16)> run{presets::fp16, shape, 3, 3};
  auto const& out = run.exchange(in, reduction_order::ring);
  for (std::size_t i = 0; i < 99; ++i) {
    std::size_t const first = i / 33;  // three blocks of 33, block k from rank k on
    std::size_t const at    = 1500 + i;
    float const sum         = (in[first][at] + in[(first + 1) % 3][at]) + in[(first + 2) % 3][at];
    REQUIRE(out[2][at] == sum * (1.0f / 3.0f));
  }
}

TEST_CASE("[layout] 16-bit gradients bypass in float and are rounded once")
{
  auto const in = make_gradients<half>(2);
  tests::loopback_run<std::remove_const_t<decltype(presets::rotated_sat4)>, half> run{
    presets::rotated_sat4, shape, 2, 3};
  auto const& out = run.exchange(in);
  for (std::size_t i = 1500; i < 1599; ++i) {
    half const mean = from_float<half>((to_float(in[0][i]) + to_float(in[1][i])) * .5f);
    REQUIRE(to_float(out[0][i]) == to_float(mean));
  }
}

TEST_CASE(
  "[layout] subnormal halves travel alike where the caller flushes subnormal floats to zero")
{
  if (!tests::flush_subnormals::works()) {
    MESSAGE("not tested: no such switch");
    return;
  }
  // All of them below 2^-14, and most of them above the least, 2^-24.
  auto in = make_gradients<half>(2);
  for (auto& gradient : in) {
    for (half& value : gradient) { value = to_half(to_float(value) * 0x1p-10f); }
  }
  auto const all_bits = [&](instruction_set set) {
    tests::loopback_run<std::remove_const_t<decltype(presets::rotated_sat4)>, half> run{
      presets::rotated_sat4, shape, 2, 3, cpu_executor{.threads = 1, .instructions = set}};
    run.exchange(in);
    auto const out = run.exchange(in)[1];
    std::vector<std::byte> bits(run.workspace(1).begin(), run.workspace(1).end());
    bits.insert(bits.end(), run.state(1).begin(), run.state(1).end());
    for (half const value : out) { bits.push_back(static_cast<std::byte>(value.bits & 0xffu)); }
    for (half const value : out) { bits.push_back(static_cast<std::byte>(value.bits >> 8)); }
    CHECK(std::count(out.begin(), out.end(), half{}) < 400);
    return bits;
  };
  auto const want = all_bits(best_instruction_set());
  for (instruction_set const set : {instruction_set::baseline, best_instruction_set()}) {
    tests::flush_subnormals const scope;
    CHECK(all_bits(set) == want);
  }
}

TEST_CASE("[layout] chunks end where tensors end, so the first tensor does not see the others")
{
  // Same seed and chunk numbers: the first tensor of the bucket and a vector of its own get the same bits.
  auto const in = make_gradients(2);
  std::vector<std::vector<float>> first;
  for (auto const& gradient : in) { first.emplace_back(gradient.begin(), gradient.begin() + 1500); }
  run_of<decltype(presets::rotated_sat4)> all{presets::rotated_sat4, shape, 2, 9};
  run_of<decltype(presets::rotated_sat4)> alone{presets::rotated_sat4, layout{1500}, 2, 9};
  // In direct order, for saturation depends on the order and the blocks of a ring on the length.
  for (int step = 0; step < 3; ++step) {
    auto const& out  = all.exchange(in, reduction_order::direct)[0];
    auto const& want = alone.exchange(first, reduction_order::direct)[0];
    CHECK(std::equal(want.begin(), want.end(), out.begin()));
    CHECK(all.record(0).ratio == alone.record(0).ratio);
    CHECK(all.record(0).saturated == alone.record(0).saturated);
  }
  CHECK(all.record(4).ratio != all.record(0).ratio);
  CHECK(all.record(1).ratio == 2.0f);  // nothing to track
}

TEST_CASE("[layout] a bucket of vectors alone sends no codes and changes nothing but the sums")
{
  std::array<tensor, 2> const vectors{{{"a", 30, 1, 0}, {"b", 1, 12, 30}}};
  layout const small{.coordinates = 42, .tensors = vectors};
  run_of<decltype(presets::rotated_sat4_ef)> run{presets::rotated_sat4_ef, small, 2, 3};
  CHECK(run.plan().payload_bytes() == 0);
  CHECK(run.plan().agreed_bytes() == 0);
  CHECK(run.plan().wire_bytes() == 42 * 4);
  std::vector<std::vector<float>> const in{std::vector<float>(42, 1.5f),
                                           std::vector<float>(42, 2.0f)};
  CHECK(run.exchange(in)[1] == std::vector<float>(42, 1.75f));
  CHECK(run.header().step == 1);
}

TEST_CASE(
  "[layout] a part of a bucket has the pieces of its tensors, which bypass if the whole ones do")
{
  // Pieces of the first, all of the second, which is a vector, and of the third; nothing of the last.
  std::array<tensor, 4> const whole{
    {{"a", 50, 40, 0}, {"b", 1, 300, 2000}, {"c", 700, 2, 2300, 3.0f}, {"d", 9, 9, 3700}}};
  layout const part = layout{.coordinates = 3781, .tensors = whole}.part(1990, 3000);
  auto const plan   = presets::rotated_sat4.plan(part, {2, 0});
  REQUIRE(plan.check().ok());
  CHECK(plan.coordinates() == 1010);
  CHECK(plan.bypassed() == 300);
  std::vector<tensor_record> got;
  plan.for_each_record([&](tensor_record const& record) { got.push_back(record); });
  REQUIRE(got.size() == 3);
  std::array<std::array<std::uint64_t, 3>, 3> const want{{{0, 10, 1}, {10, 300, 0}, {310, 700, 1}}};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(got[i].offset == want[i][0]);
    CHECK(got[i].size == want[i][1]);
    CHECK(got[i].chunks == want[i][2]);
  }
  CHECK(got[2].weight == 3.0f);

  // A part of a part, and parts that hold nothing or all.
  CHECK(part.part(10, 20).first == 2000);
  CHECK(presets::rotated_sat4.plan(part.part(10, 20), {2, 0}).bypassed() == 10);
  CHECK(presets::rotated_sat4.plan(part.part(5, 5), {2, 0}).check().ok());
  CHECK(presets::rotated_sat4.plan(part.part(0, 1010), {2, 0}).chunks() == plan.chunks());

  CHECK(tests::mentions(
    presets::rotated_sat4.plan({.coordinates = 20, .first = 3770, .whole = 3781}, {2, 0}).check(),
    "layout.first"));
  CHECK(presets::powersgd_r4.plan(part, {2, 0}).check().code == error_code::unsupported);
}
