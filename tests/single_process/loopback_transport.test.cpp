// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports over ranks in threads, and what fingerprints tell apart.

#include "support/codecs.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum_baselines/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <interop/conformance.hpp>
#include <interop/summed_shards.hpp>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

using namespace tersum;

namespace {

// Calls body(transport) on so many threads, and adds up what they return.
template <class Body>
int on_all_ranks(int ranks, Body body, std::chrono::milliseconds timeout = std::chrono::minutes(2))
{
  loopback_group group{ranks, timeout};
  std::atomic<int> sum = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { sum += body(loopback_transport{group, rank}); });
  }
  for (auto& thread : threads) { thread.join(); }
  return sum;
}

}  // namespace

TEST_CASE("[interop] loopback transports carry every preset")
{
  for (int const ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    // Many ranks take as long as all others.
    CHECK(on_all_ranks(ranks, [&](loopback_transport const& transport) {
            return tests::check_presets(tests::forget_type(transport), ranks == 8);
          }) == 0);
  }
}

TEST_CASE("[interop] ranks with unlike plans are all told so")
{
  for (int const ranks : {1, 2, 3, 8}) {
    CAPTURE(ranks);
    CHECK(on_all_ranks(ranks, [](loopback_transport const& transport) {
            return tests::check_agreement(tests::forget_type(transport)) +
                   tests::check_summed_shards(transport, false);
          }) == 0);
  }
}

TEST_CASE("[interop] a rank that stays away is an error on the others, and the gradient stays")
{
  int const bad = on_all_ranks(
    3,
    [](loopback_transport const& transport) {
      if (transport.rank() == 1) { return 0; }
      bool kept            = false;
      status const outcome = tests::exchange_once(
        tests::forget_type(transport), false, [](int) {}, kept);
      return outcome.code == error_code::transport_failed && kept ? 0 : 1;
    },
    std::chrono::milliseconds(200));
  CHECK(bad == 0);
}

TEST_CASE("[interop] a rank outside its group, and scratch memory that is too small, are named")
{
  loopback_group group{2};
  plan const of_two = presets::rotated_sat4.plan(layout{4096}, {.size = 2, .rank = 0});
  CHECK(agree_on(loopback_transport{group, 2}, of_two, 1).code == error_code::invalid_argument);

  std::array<float, 4> values{};
  wire<native_sum<float>> const round{.data = values.data(), .count = values.size()};
  loopback_transport const transport{group, 0};
  CHECK(reduce_over<schedule::direct>(transport, cpu_executor{})(round).code ==
        error_code::invalid_argument);
  std::array<word4, 9> memory{};
  auto const odd = std::as_writable_bytes(std::span{memory}).subspan(4);
  CHECK(reduce_over<schedule::direct>(transport, cpu_executor{}, odd)(round).message.find(
          "aligned to 16") != std::string_view::npos);

  // What is reduced is no scratch memory.
  auto const all = std::as_writable_bytes(std::span{memory});
  wire<native_sum<float>> const inside{.data  = reinterpret_cast<float*>(all.data() + 4),
                                       .count = values.size()};
  CHECK(reduce_over<schedule::direct>(transport, cpu_executor{}, all)(inside).message.find(
          "overlaps") != std::string_view::npos);
}

// What enqueues has a stream, which executor and transport must share.
struct queued : loopback_transport {
  using loopback_transport::loopback_transport;
  [[nodiscard]] status check_stream(int executors) const noexcept
  {
    if (executors == 1) { return {}; }
    return {error_code::invalid_argument, "another stream"};
  }
};

struct queued_executor : cpu_executor {
  int stream = 0;
};

TEST_CASE("[interop] a transport on another stream than the executor's is refused")
{
  loopback_group group{1};
  queued const transport{group, 0};
  std::array<float, 4> values{};
  std::array<std::uint32_t, 4> words{}, received{};
  wire<native_sum<float>> const round{.data = values.data(), .count = values.size()};
  gather_wire<std::uint32_t> const gathered{
    .gathered = words.data(), .count = words.size(), .ranks = 1};
  scatter_wire<std::uint32_t> const scattered{
    .sent = words.data(), .received = received.data(), .count = words.size(), .ranks = 1};
  for (int const stream : {0, 1}) {
    CAPTURE(stream);
    queued_executor exec;
    exec.stream       = stream;
    auto const reduce = reduce_over(transport, exec);
    for (status const& s : {reduce(round), reduce(gathered), reduce(scattered)}) {
      CHECK(s.ok() == (stream == 1));
      CHECK((s.message.find("stream") != std::string_view::npos) == (stream == 0));
    }
  }
}

TEST_CASE("[interop] an executor that cannot run is refused before anything travels")
{
  loopback_group group{2};
  loopback_transport const alone{group, 0};  // a round that began would wait for the other
  std::array<float, 4> values{};
  std::array<std::byte, 64> scratch{};
  auto const reduce = reduce_over(alone, cpu_executor{.threads = 0}, scratch);
  status const s = reduce(wire<native_sum<float>>{.data = values.data(), .count = values.size()});
  CHECK(s.code == error_code::invalid_argument);
  CHECK(s.message.find("threads") != std::string_view::npos);
}

TEST_CASE(
  "[interop] ranks with unlike plans that have not agreed hear of it, and read no other memory")
{
  loopback_group group{2};
  std::vector<status> outcomes(2);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        loopback_transport const transport{group, rank};
        auto const plan = presets::two_shot_4.plan({.coordinates = rank == 0 ? 5000u : 90'000u},
                                                   {.size = 2, .rank = rank});
        cpu_executor const exec;
        std::vector<float> gradient(plan.coordinates(), 1.0f);
        std::vector<word4> state(plan.state_bytes() / 16 + 1),
          memory(plan.workspace_bytes() / 16 + 1);
        std::vector<std::byte> scratch(scratch_bytes(plan));
        auto const bytes = [](auto& words) { return std::as_writable_bytes(std::span{words}); };
        status outcome   = initialize(exec, plan, bytes(state), 1);
        if (outcome.ok()) {
          outcome = all_reduce_mean(exec,
                                    plan,
                                    gradient,
                                    bytes(state),
                                    bytes(memory),
                                    reduce_over(transport, exec, scratch));
        }
        outcomes[static_cast<std::size_t>(rank)] = outcome;
      });
    }
  }
  for (status const& s : outcomes) {
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find("plans are unlike") != std::string_view::npos);
  }
}

TEST_CASE("[interop] parts of another world than the transport's are refused")
{
  loopback_group group{3};
  loopback_transport const transport{group, 0};
  auto const reduce  = reduce_over(transport, cpu_executor{});
  plan const of_two  = presets::two_shot_4.plan(layout{4096}, {.size = 2, .rank = 0});
  plan const of_four = presets::topk_b2.plan(layout{4096}, {.size = 4, .rank = 0});
  std::vector<std::byte> memory(of_two.workspace_bytes() + of_four.workspace_bytes());
  for (status const& s : {reduce(scattered_wire(of_two, memory)),
                          reduce(gathered_wire(of_two, memory)),
                          reduce(gathered_wire(of_four, memory))}) {
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find("world.size") != std::string_view::npos);
  }
}

TEST_CASE(
  "[interop] sums of another world than the transport's are refused, and those of no plan are not")
{
  for (int const ranks : {1, 2}) {
    loopback_group group{1};
    loopback_transport const transport{group, 0};
    auto const reduce   = reduce_over(transport, cpu_executor{});
    tensor const both[] = {{"a", 64, 64, 0}, {"b", 1, 10, 4096}};
    plan const of_some  = presets::rotated_sat4.plan({.coordinates = 4106, .tensors = both},
                                                    {.size = ranks, .rank = 0});
    std::vector<std::byte> memory(of_some.workspace_bytes());
    for (status const& s : {reduce(agreed_wire(of_some, memory)),
                            reduce(payload_wire(of_some, memory)),
                            reduce(bypass_wire(of_some, memory))}) {
      CHECK(s.ok() == (ranks == 1));
      CHECK((s.message.find("world.size") != std::string_view::npos) == (ranks == 2));
    }
    auto of_any  = payload_wire(of_some, memory);
    of_any.ranks = 0;
    CHECK(reduce(of_any).ok());
  }
}

TEST_CASE("[interop] fingerprints tell plans apart by all that the ranks must share")
{
  layout const vector{.coordinates = 100000};
  world const four{.size = 4, .rank = 0};
  std::set<std::uint64_t> seen;
  int plans      = 0;
  auto const add = [&](auto const& codec, layout const& shape, world const& ranks, int seed = 0) {
    seen.insert(fingerprint(codec.plan(shape, ranks), static_cast<std::uint64_t>(seed)));
    ++plans;
  };
  add(presets::rotated_sat4, vector, four);
  add(presets::rotated_sat4, vector, four, 1);
  // Parameters and policies that leave all sizes as they are.
  using margin = tests::
    rotated_sums<1024, rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>;
  using dither = tests::rotated_sums<1024,
                                     rms_range<tracked_correlation>,
                                     stochastic_quantizer<4, independent>,
                                     saturating_sum<4>>;
  add(margin{.coder = {.range = {.clip = 1.9f, .headroom = {.margin = 1.2f}}}}, vector, four);
  add(dither{.coder = {.range = {.clip = 1.9f}}}, vector, four);
  // Ranges that are the same in some worlds, 8 being the root of 64, or for some correlations.
  using multiple = tests::
    rotated_sums<1024, rms_range<fixed_headroom>, stochastic_quantizer<4>, saturating_sum<4>>;
  for (float const times : {0.0f, 2.0f, 8.0f}) {
    add(multiple{.coder = {.range = {.headroom = {.multiple = times}}}}, vector, four);
  }
  for (float const wide : {.1f, .3f, 30.0f, 40.0f}) {
    add(margin{.coder = {.range = {.clip = 1.9f, .headroom = {.margin = wide}}}}, vector, four);
  }
  std::array<tensor, 1> const matrix{{{"", 250, 400, 0}}};
  layout const bucket{.coordinates = 100000, .tensors = matrix};
  add(presets::powersgd_r4, bucket, four);
  std::array<tensor, 1> const weighty{{{"", 250, 400, 0, 64}}};
  for (auto const& tensors : {matrix, weighty}) {
    add(presets::allocated_4, {.coordinates = 100000, .tensors = tensors}, four);
  }
  add(presets::acp_r4, bucket, four);
  add(low_rank_codec<low_rank<4, gram_schmidt>>{}, bucket, four);
  CHECK(static_cast<int>(seen.size()) == plans);

  // The rank does not count.
  add(presets::rotated_sat4, vector, {.size = 4, .rank = 3});
  CHECK(static_cast<int>(seen.size()) == plans - 1);
}
