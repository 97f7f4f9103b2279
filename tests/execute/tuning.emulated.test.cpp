// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Another tuning gives the same bytes, on the CPU and by the kernels.

#include "support/compare_kernels.hpp"
#include "support/odd_matrices.hpp"
#include "support/other_tuning.hpp"

#include <tersum/device/select_chunks.hpp>
#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/presets.hpp>
#include <tersum/tuning.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class Element, class Codec>
void compare(Codec const& codec, layout const& gradient)
{
  exchange_case<Codec, Element> const of{.codec = codec, .gradient = gradient, .steps = 2};
  auto const record = [&](auto const& exec) {
    return record_exchange<host_buffer>(exec, of, std::byte{0xa5});
  };
  exchange_trace const want = record(cpu_executor{});
  CHECK(difference(record(cpu_executor{.threads = 3, .tuning = other_tuning::tuned}), want) == "");
  CHECK(difference(record(basic_emulated_executor<other_tuning>{}), want) == "");
}

TEST_CASE("[tuning] other numbers give the same bytes")
{
  std::uint64_t const several = prime_from(40000);
  SUBCASE("rotated_sat4") { compare<float>(presets::rotated_sat4, odd_bucket().gradient()); }
  SUBCASE("a cast") { compare<half>(presets::fp16, odd_bucket().gradient()); }
  SUBCASE("chosen chunks") { compare<float>(presets::topkc_b2_ef, {.coordinates = several}); }
  SUBCASE("several widths") { compare<half>(presets::allocated_4, {.coordinates = several}); }
  SUBCASE("two shots") { compare<float>(presets::two_shot_4_ef, {.coordinates = several}); }
  SUBCASE("chosen coordinates") { compare<float>(presets::topk_b2, {.coordinates = 5003}); }
  SUBCASE("a rotation of all") { compare<float>(presets::thc_wide4, {.coordinates = 5003}); }
}

// Launches what `basic_emulated_executor` launches, and counts the launches.
template <tuning_holder... Of>
struct counting_executor : exchange_launches<counting_executor<Of...>> {
  static constexpr tuning tuned = detail::chosen<Of...>;
  basic_emulated_executor<Of...> on{};
  int* launches;

  explicit counting_executor(int& count) : launches{&count} {}
  [[nodiscard]] status check() const noexcept { return {}; }
  template <class Op, class T>
  [[nodiscard]] status reduce(Op const& op, T* to, T const* a, T const* b, std::size_t n) const
  {
    return on.reduce(op, to, a, b, n);  // which is the transport's
  }
  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    return ++*launches, on.each(item, count);
  }
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    return ++*launches, on.copy(to, from, count);
  }
  template <class T>
  [[nodiscard]] status clear(T* to, std::size_t count) const
  {
    return ++*launches, on.clear(to, count);
  }
  template <class Kernel, class... Args>
  [[nodiscard]] status run(Kernel const& kernel, std::uint64_t blocks, Args const&... args) const
  {
    *launches += blocks > 0 ? 1 : 0;
    return on.run(kernel, blocks, args...);
  }
};

template <class... Of, class Codec>
[[nodiscard]] int launches_of(Codec const& codec, layout const& gradient)
{
  auto const plan = codec.plan(gradient, {.size = 2, .rank = 0});
  std::vector<float> values(plan.coordinates(), 1.0F);
  std::vector<word4> state(plan.state_bytes() / 16 + 1), work(plan.workspace_bytes() / 16 + 1);
  auto const kept    = std::as_writable_bytes(std::span{state});
  auto const scratch = std::as_writable_bytes(std::span{work});
  int count          = 0;
  counting_executor<Of...> const exec{count};
  REQUIRE(initialize(exec, plan, kept, 1) == status{});
  count                = 0;
  auto const no_rounds = [](auto const&) { return status{}; };
  if constexpr (ending_in_shards<Codec>) {
    std::vector<float> shard(plan.shard_size());
    REQUIRE(reduce_scatter_mean(exec, plan, values, shard, kept, scratch, no_rounds) == status{});
  } else if constexpr (publishing<Codec>) {
    std::vector<float> const shard(plan.shard_size());
    REQUIRE(all_gather_values(exec, plan, shard, values, kept, scratch, no_rounds) == status{});
  } else {
    REQUIRE(all_reduce_mean(exec, plan, values, kept, scratch, no_rounds) == status{});
  }
  return count;
}

TEST_CASE("[tuning] a small exchange has four launches")
{
  layout const vector{.coordinates = 8192};  // norms, codes with their steps, means, finish
  CHECK(launches_of(presets::rotated_sat4, vector) == 4);
  CHECK(launches_of<other_tuning>(presets::rotated_sat4, vector) == 5);
  CHECK(launches_of(presets::rotated_sat4_ef, vector) == 5);  // residuals wait for all steps
  CHECK(launches_of(presets::two_shot_4, vector) == 5);       // full parts leave nothing to clear
  CHECK(launches_of(presets::two_shot_4, {.coordinates = 9216}) == 7);
  CHECK(launches_of(presets::sharded_4, vector) == 3);
  CHECK(launches_of(presets::sharded_4, {.coordinates = 7168}) == 4);  // a chunk of both ranks
  CHECK(launches_of(presets::sharded_4, {.coordinates = 9216}) == 5);  // and zeros between
  CHECK(launches_of(presets::values_4, vector) == 4);
  CHECK(launches_of(presets::values_4, {.coordinates = 10240}) == 5);
  tensor const list[]{{.rows = 8, .columns = 1024}, {.rows = 1, .columns = 10, .offset = 8192}};
  CHECK(launches_of(presets::values_4, {.coordinates = 8202, .tensors = list}) == 7);
}

TEST_CASE("[tuning] where all bypasses the codec there are two copies and the end")
{
  tensor const bias{.rows = 1, .columns = 10};
  layout const biases{.coordinates = 10, .tensors = {&bias, 1}};
  auto const three = [&](auto const&... codecs) {
    return ((launches_of(codecs, biases) == 3) && ...);
  };
  using namespace presets;
  CHECK(three(rotated_sat4, rotated_sat4_ef, two_shot_4, topkc_b2, allocated_sat_4));
  CHECK(three(metric_2, thc_lookup4, sharded_4, values_4));
}

// The executor above has no `run_together`.
TEST_CASE("[tuning] an executor without blocks that wait for each other chooses in one")
{
  int count = 0;
  counting_executor<> const exec{count};
  std::vector<float> norms(5003);
  for (std::size_t i = 0; i < norms.size(); ++i) { norms[i] = static_cast<float>(i * 7919 % 1009); }
  auto const rule   = rule_of(top_chunks<64>{}, 777);
  auto const choose = [&](auto const& on) {
    std::vector<word4> room(select_chunks_workspace_bytes() / 16);
    std::vector<std::uint32_t> places(norms.size());
    std::span<float const> const read{norms};
    REQUIRE(select_chunks(
              on, rule, read, std::as_writable_bytes(std::span{room}), std::span{places}, 2) ==
            status{});
    return places;
  };
  CHECK(choose(exec) == choose(cpu_executor{}));
  CHECK(count == 1);
}

TEST_CASE("[tuning] other numbers give the same factors")
{
  using codec_type = low_rank_codec<low_rank<3>>;
  compare<float>(codec_type{.low_rank = {.least_saving = 0}}, odd_matrices().gradient());
}

TEST_CASE("[tuning] a stretch of nothing is refused")
{
  CHECK(cpu_executor{.tuning = other_tuning::tuned}.check().ok());
  CHECK(cpu_executor{.tuning = {.cpu = {.step_stretch = 0}}}.check().code ==
        error_code::invalid_argument);
}

}  // namespace
