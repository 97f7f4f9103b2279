// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The whole exchange in one call: rounds, errors, and equality with the split form. Transports of threads are held to the loopback by
//! single_process/loopback_transport.test.cpp.

#include "support/codecs.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

// One rank's memory.
template <class Codec>
struct rank_memory {
  tersum::plan<Codec> plan;
  std::vector<float> gradient;
  std::vector<word4> state_words{plan.state_bytes() / sizeof(word4) + 1};
  std::vector<word4> workspace_words{plan.workspace_bytes() / sizeof(word4) + 1};

  std::span<std::byte> state() { return std::as_writable_bytes(std::span{state_words}); }
  std::span<std::byte> workspace() { return std::as_writable_bytes(std::span{workspace_words}); }
};

constexpr std::array<tensor, 3> bucket{
  {{"weight", 30, 100, 0}, {"bias", 1, 30, 3000}, {"more", 11, 97, 3030}}};
constexpr layout shape{.coordinates = 4097, .tensors = bucket};

template <class Codec>
rank_memory<Codec> make_rank(Codec const& codec, int world, int rank)
{
  rank_memory<Codec> out{
    codec.plan(shape, {.size = world, .rank = rank}),
    tests::normal_gradients(1, shape.coordinates, static_cast<unsigned>(rank + 1))[0]};
  REQUIRE(initialize(cpu_executor{}, out.plan, out.state(), 7) == status{});
  return out;
}

// What the callback was given: elements of each round, and its type.
struct call {
  std::size_t count;
  std::size_t element_bytes;
  bool native, associative, exact;
  friend bool operator==(call const&, call const&) = default;
};

template <class Codec>
std::vector<call> record_calls(Codec const& codec, layout const& gradient)
{
  rank_memory<Codec> mine{codec.plan(gradient, {}), std::vector<float>(gradient.coordinates, .5f)};
  REQUIRE(initialize(cpu_executor{}, mine.plan, mine.state(), 7) == status{});
  std::vector<call> calls;
  REQUIRE(
    all_reduce_mean(
      cpu_executor{}, mine.plan, mine.gradient, mine.state(), mine.workspace(), [&](auto round) {
        using wire_type         = decltype(round);
        auto const* const bytes = reinterpret_cast<std::byte const*>(round.data);
        CHECK(bytes >= mine.workspace().data());
        CHECK(bytes + round.bytes() <= mine.workspace().data() + mine.plan.workspace_bytes());
        calls.push_back({round.count,
                         sizeof(typename wire_type::element),
                         wire_type::native,
                         wire_type::associative,
                         wire_type::exact});
      }) == status{});
  return calls;
}

enum class transport_result { success = 0, broken = 7 };

// Calls with a collective whose round number `at` answers `answer`, which must come back; the gradient stays.
template <class Codec, class Answer>
status fail_in_round(Codec const& codec, int at, Answer answer, Answer success)
{
  auto mine         = make_rank(codec, 1, 0);
  auto const before = mine.gradient;
  int calls         = 0;
  status const out  = all_reduce_mean(
    cpu_executor{}, mine.plan, mine.gradient, mine.state(), mine.workspace(), [&](auto) {
      return calls++ == at ? answer : success;
    });
  CHECK(mine.gradient == before);
  CHECK(calls == at + 1);  // no round after the one that failed
  CHECK(reinterpret_cast<state_header const*>(mine.state().data())->step == 0);
  return out;
}

}  // namespace

TEST_CASE("[collective] the callback is called once a round, with the round's type and count")
{
  using calls = std::vector<call>;
  call const bypass{30, 4, true, false, false};
  // Chunks of 1024: three of the weights, two of the others.
  CHECK(record_calls(presets::rotated_sat4, shape) ==
        calls{{5, 4, true, false, false}, bypass, {5 * 128, 4, false, false, false}});
  CHECK(record_calls(presets::thc_wide4_partial, shape) ==
        calls{{5, 4, true, true, true}, bypass, {5 * 1024, 1, true, true, true}});
  CHECK(record_calls(presets::fp16, shape) == calls{bypass, {4067, 2, true, false, false}});
  // A round without elements is none.
  CHECK(record_calls(presets::rotated_sat4, layout{1024}) ==
        calls{{1, 4, true, false, false}, {128, 4, false, false, false}});
  CHECK(record_calls(presets::fp32, layout{10}) == calls{{10, 4, true, false, false}});
  CHECK(record_calls(presets::rotated_sat4, layout{0}).empty());
  using words = tests::rotated_sums<128,
                                    rms_range<no_headroom, bfloat16>,
                                    stochastic_quantizer<4>,
                                    guard_lanes<8, std::uint64_t>>;
  CHECK(record_calls(words{}, layout{1000}) ==
        calls{{8, 2, true, false, false}, {8 * 16, 8, true, true, true}});
}

TEST_CASE(
  "[collective] an error of the callback comes back, in whatever form, and the gradient stays")
{
  status const own{error_code::transport_failed, "link down", 3};
  for (int const round : {0, 1, 2}) {
    CAPTURE(round);
    CHECK(fail_in_round(presets::rotated_sat4_ef, round, own, status{}) == own);
    CHECK(fail_in_round(presets::rotated_sat4_ef, round, 17, 0) == transport_error(17));
    CHECK(fail_in_round(presets::rotated_sat4_ef, round, -1l, 0l) == transport_error(-1));
    CHECK(fail_in_round(
            presets::rotated_sat4_ef, round, transport_result::broken, transport_result::success) ==
          transport_error(7));
  }
  for (int const round : {0, 1}) {
    CHECK(fail_in_round(presets::bf16, round, own, status{}) == own);
    CHECK(fail_in_round(presets::bf16, round, 17, 0) == transport_error(17));
  }
  // Of a number that is wider than an int the lower half may be 0.
  CHECK(fail_in_round(presets::bf16, 0, std::int64_t{1} << 32, std::int64_t{0}).code ==
        error_code::transport_failed);
  CHECK(transport_error(17).code == error_code::transport_failed);
  CHECK_FALSE(transport_error(17).message.empty());
}

TEST_CASE("[collective] a failed exchange of a codec without feedback can be made again")
{
  auto failed     = make_rank(presets::rotated_sat4, 1, 0);
  auto twin       = make_rank(presets::rotated_sat4, 1, 0);
  auto const call = [](auto& rank, auto reduce) {
    return all_reduce_mean(
      cpu_executor{}, rank.plan, rank.gradient, rank.state(), rank.workspace(), reduce);
  };
  int calls = 0;
  CHECK(call(failed, [&](auto) { return calls++; }).code == error_code::transport_failed);
  CHECK(call(failed, [](auto) {}) == status{});
  CHECK(call(twin, [](auto) {}) == status{});
  CHECK(failed.gradient == twin.gradient);
  CHECK(std::equal(failed.state().begin(), failed.state().end(), twin.state().begin()));
}

TEST_CASE("[collective] initialize has no workspace, and computes no addresses in it")
{
  std::vector<word4> state(1000);
  auto const pointers = [&](auto const& plan) {
    using codec_type = std::remove_cvref_t<decltype(plan.codec())>;
    return detail::make_args<codec_type, float>(
      plan, nullptr, std::as_writable_bytes(std::span{state}), {});
  };
  tensor const matrix[] = {{"", 30, 40, 0}};
  auto const of_parts   = pointers(presets::allocated_two_shot<error_feedback>{
      .chunker = {.bits = 2}}.plan(layout{1200}, {.size = 2, .rank = 0}));
  CHECK(of_parts.header != nullptr);
  for (void* const in_workspace :
       {static_cast<void*>(of_parts.payload),
        static_cast<void*>(of_parts.bypass),
        of_parts.agreed,
        static_cast<void*>(of_parts.selection.places),
        static_cast<void*>(of_parts.parts.received),
        static_cast<void*>(
          pointers(presets::powersgd_r4.plan(layout{1200, matrix}, {.size = 2, .rank = 0}))
            .parts.factor[1])}) {
    CHECK(in_workspace == nullptr);
  }
}

TEST_CASE("[collective] the split form equals the call")
{
  auto whole = make_rank(presets::rotated_sat4_ef, 1, 0);
  auto split = make_rank(presets::rotated_sat4_ef, 1, 0);
  cpu_executor const exec;
  for (int step = 0; step < 3; ++step) {
    REQUIRE(all_reduce_mean(
              exec, whole.plan, whole.gradient, whole.state(), whole.workspace(), [](auto) {}) ==
            status{});
    auto const with = [&](auto stage) {
      return stage(exec, split.plan, split.gradient, split.state(), split.workspace());
    };
    REQUIRE(with([](auto&&... a) { return measure(a...); }) == status{});
    REQUIRE(with([](auto&&... a) { return encode(a...); }) == status{});
    REQUIRE(with([](auto&&... a) { return decode(a...); }) == status{});
    CHECK(whole.gradient == split.gradient);
    CHECK(std::equal(whole.state().begin(), whole.state().end(), split.state().begin()));
  }
}

TEST_CASE("[collective] a loopback says which ranks cannot be reduced together")
{
  std::vector<float> a(5), b(6);
  using round = wire<native_sum<float>>;
  std::array<round, 2> const unlike{{{a.data(), 5}, {b.data(), 6}}};
  CHECK(loopback_all_reduce(cpu_executor{}, std::span<round const>{unlike}, reduction_order::ring)
          .code == error_code::invalid_argument);
  CHECK(b == std::vector<float>(6));
  using codec_type = std::remove_const_t<decltype(presets::fp32)>;
  std::vector<loopback_rank<codec_type, float>> const many(
    257, {presets::fp32.plan(layout{0}, {.size = 257, .rank = 0}), {}, {}, {}});
  CHECK(loopback_exchange(cpu_executor{}, many).code == error_code::invalid_argument);
  // Two ranks, but plans of three.
  std::vector<loopback_rank<codec_type, float>> const few(
    2, {presets::fp32.plan(layout{0}, {.size = 3, .rank = 0}), {}, {}, {}});
  CHECK(loopback_exchange(cpu_executor{}, few).message.find("world") != std::string_view::npos);
  std::span<loopback_rank<codec_type, float> const> const none;
  CHECK(loopback_exchange(cpu_executor{}, none).message.find("empty") != std::string_view::npos);
}
