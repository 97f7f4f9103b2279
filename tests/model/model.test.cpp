// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The performance model against closed forms, published worked values and simulations of single messages.

#include "../../bench/network/prediction.hpp"

#include <tersum/model/exchange.hpp>
#include <tersum/model/network.hpp>
#include <tersum/model/step.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using namespace tersum;
using model::route;

constexpr model::network ten_gigabits{.bandwidth = 1.25e9};

// A ring of p ranks, message by message: each waits for what its neighbour sent before it sends on.
double simulated_ring(model::network const& net, double bytes, int ranks, int rounds)
{
  std::vector<double> ready(static_cast<std::size_t>(ranks), 0);
  for (int step = 0; step < rounds; ++step) {
    auto next = ready;
    for (std::size_t r = 0; r < ready.size(); ++r) {
      auto const from = (r + ready.size() - 1) % ready.size();
      next[r] = std::max(ready[r], ready[from]) + net.latency + bytes / ranks / net.bandwidth;
    }
    ready = next;
  }
  return *std::max_element(ready.begin(), ready.end());
}

// One piece after the other through two machines, and back through the first: the schedule that threads with a mutex find.
double simulated_pieces(double encode, double send, double decode, int pieces)
{
  double computes = 0, sends = 0;
  std::vector<double> arrives;
  for (int k = 0; k < pieces; ++k) {
    computes += encode;
    sends = std::max(sends, computes) + send;
    arrives.push_back(sends);
  }
  for (double const at : arrives) { computes = std::max(computes, at) + decode; }
  return computes;
}

[[nodiscard]] double reduce_seconds(model::network const& net, route way, double bytes, int ranks)
{
  return model::rounds_seconds({.payload = bytes}, net, way, ranks);
}

// An all-gather of so many bytes from each rank.
[[nodiscard]] double gather_seconds(model::network const& net, double bytes, int ranks)
{
  return model::rounds_seconds(
    {.payload = bytes, .meets = model::meeting::gathered}, net, route::ring, ranks);
}

}  // namespace

TEST_CASE("a ring takes the time of its messages, one by one")
{
  model::network const net{.latency = 3e-5, .bandwidth = 1e9};
  for (int const ranks : {2, 3, 4, 7, 64}) {
    for (double const bytes : {1.0, 1e6, 3e8}) {
      CHECK(reduce_seconds(net, route::ring, bytes, ranks) ==
            doctest::Approx(simulated_ring(net, bytes, ranks, 2 * (ranks - 1))).epsilon(1e-12));
      // Of n bytes from each rank, p n are cut into p blocks.
      CHECK(gather_seconds(net, bytes, ranks) ==
            doctest::Approx(simulated_ring(net, bytes * ranks, ranks, ranks - 1)).epsilon(1e-12));
    }
  }
}

TEST_CASE("ring all-reduces take the published times")
{
  // Gradients of ResNet-50, ResNet-101 and BERT-base at 10 Gbit/s without latency, milliseconds to a tenth: 2 (p - 1) / p S / B.
  struct row {
    double bytes;
    double milliseconds[3];  // 16, 64, 96 ranks
  };
  constexpr row rows[]  = {{97.5e6, {146.2, 153.6, 154.4}},
                           {170e6, {255.0, 267.8, 269.2}},
                           {420e6, {630.0, 661.5, 665.0}}};
  constexpr int ranks[] = {16, 64, 96};
  for (row const& r : rows) {
    for (std::size_t k = 0; k < 3; ++k) {
      double const ms = 1e3 * reduce_seconds(ten_gigabits, route::ring, r.bytes, ranks[k]);
      CHECK(std::abs(ms - r.milliseconds[k]) <= .0501);
    }
  }
}

TEST_CASE("a collective of one rank takes no time, and more ranks never take less")
{
  model::network const net{.latency = 1e-5, .bandwidth = 1e9, .burst = 100};
  for (route const way : {route::ring, route::direct, route::tree}) {
    CHECK(reduce_seconds(net, way, 1e6, 1) == 0);
    double before = 0;
    for (int ranks = 2; ranks < 70; ++ranks) {
      double const now = reduce_seconds(net, way, 1e6, ranks);
      CHECK(now >= before);
      before = now;
    }
  }
  static_assert(model::all_reduce_messages(route::tree, 64) == 12);
  static_assert(model::all_reduce_messages(route::tree, 65) == 14);
  static_assert(model::all_reduce_messages(route::direct, 64) == 2);
}

TEST_CASE("gathering moves less than reducing below 32 / p bits against 16")
{
  // c bits gathered against 16 bits reduced: (p - 1) c = 2 16 (p - 1) / p, so c = 32 / p; signs tie with fp16 at 32 ranks.
  for (int const ranks : {2, 8, 32, 96}) {
    double const reduced = reduce_seconds(ten_gigabits, route::ring, 16e6, ranks);
    double const tie     = 32.0 / ranks * 1e6;
    CHECK(gather_seconds(ten_gigabits, tie, ranks) == doctest::Approx(reduced).epsilon(1e-12));
  }
}

TEST_CASE("volumes are those of plans")
{
  constexpr std::size_t d = 1'000'003;
  auto const check        = [&](auto const& codec, model::meeting meets) {
    auto const plan = codec.plan(layout{d}, {.size = 4, .rank = 0});
    auto const sent = model::volume_of(plan);
    CHECK(sent.bytes() == static_cast<double>(plan.wire_bytes()));
    CHECK(sent.coordinates == static_cast<double>(d));
    CHECK(sent.meets == meets);
  };
  check(presets::fp16, model::meeting::summed);
  check(presets::rotated_sat4, model::meeting::summed);
  check(presets::two_shot_4, model::meeting::scattered);
  check(presets::gathered_2, model::meeting::gathered);
}

TEST_CASE("an exchange is its coding, shared cores included, and its messages and bytes")
{
  model::volume const sent{.coordinates = 1e6, .agreed = 1e3, .payload = 5e5};
  model::coding const costs{.encode = 1e-9, .reduce = 2e-9, .decode = 4e-9};
  model::network const net{.latency = 1e-4, .bandwidth = 1e8, .burst = 1e4};
  auto const parts =
    model::exchange_parts(sent, costs, net, {.ranks = 4, .cores = 2}, route::direct, 4);
  CHECK(parts.encode == doctest::Approx(2e-3));
  CHECK(parts.reduce == doctest::Approx(3e-3));  // 3/4 of the coordinates
  CHECK(parts.decode == doctest::Approx(8e-3));
  // Two rounds, of which the small one passes at once. While blocks are added the bucket fills again.
  CHECK(parts.network == doctest::Approx(4e-4 + (1.5 * 500e3 - 2e4) / 1e8));
  CHECK(model::rounds_seconds(sent, net, route::direct, 4, 2e-5) ==
        doctest::Approx(4e-4 + (1.5 * 500e3 - 1e4) / 1e8 - 2e-5));
  CHECK(model::rounds_seconds(sent, net, route::ring, 4, 1) ==
        doctest::Approx(12e-4 + (1.5 * 500e3 - 1e4) / 1e8));
  // What the first half left of the burst is the second one's.
  CHECK(model::rounds_seconds({.payload = 2e4}, net, route::direct, 2, 0) ==
        doctest::Approx(2e-4 + 1e4 / 1e8));
  CHECK(parts.whole() == doctest::Approx(parts.coding() + parts.network));

  auto gathered  = sent;
  gathered.meets = model::meeting::gathered;
  CHECK(model::exchange_traffic(gathered, route::direct, 4) ==
        doctest::Approx(1.5 * 1e3 + 3 * 5e5));
  CHECK(model::exchange_messages(gathered, route::direct, 4) == 3);
  auto const many =
    model::exchange_parts(gathered, costs, net, {.ranks = 4, .cores = 4}, route::direct, 4);
  CHECK(many.decode == doctest::Approx(16e-3));  // what four ranks sent
}

TEST_CASE("pieces take a time between the bounds of a schedule of two machines")
{
  for (double const send : {.0003, .001, .01, .1, 3.0}) {
    for (int const pieces : {2, 12, 100}) {
      model::exchange_time const whole{.encode = .02, .network = send, .decode = .01};
      double const simulated = simulated_pieces(.02 / pieces, send / pieces, .01 / pieces, pieces);
      double const longer    = std::max(.03, .03 / pieces + send);
      double const both      = .03 + .03 / pieces + send;
      CHECK(simulated >= longer * (1 - 1e-12));
      CHECK(simulated <= both);
      for (double const floats : {1e4, 1e9}) {
        double const predicted =
          network::exchange_seconds_in_pieces(whole, floats, 0, 0, {}, pieces);
        CHECK(predicted >= longer);
        CHECK(predicted <= both);
        // Where one takes a hundred times as long as the other, no more than a piece of either is between them.
        if (send < .0004 || send > 1) {
          CHECK(std::abs(predicted - simulated) <= (.03 + send) / pieces + 1e-3 * both);
        }
      }
    }
  }
  model::exchange_time const one{.encode = .02, .network = .3, .reduce = .1, .decode = .01};
  CHECK(network::exchange_seconds_in_pieces(one, 1e6, .01, 1e8, {}, 1) == doctest::Approx(.43));
  // Four ranks on two cores: what all of them compute, copy and wait for messages is the longer part.
  model::exchange_time const whole{.encode = .02, .network = .01, .decode = .01};
  CHECK(network::exchange_seconds_in_pieces(
          whole, 2e6, .01, 1e8, {.ranks = 4, .cores = 2, .copy_rate = 1e9}, 10) ==
        doctest::Approx(10 * .011 + .03 + .18 + (.003 + .01) / 10));
  // Pieces that no cache holds, and the latency of a piece's messages, which is not hidden.
  model::exchange_time const slow{.encode = .02, .network = .3, .decode = .01, .waits = .1};
  CHECK(network::exchange_seconds_in_pieces(slow, 4e6, .01, 1e8, {.copy_rate = 1e9}, 10) ==
        doctest::Approx(.403 + (.1 + .3 * .23 / .403) * .23));
}

TEST_CASE("at the break-even bandwidth two exchanges take the same time")
{
  double const at = model::break_even_bandwidth(.01, 1e8, .05, 2e7);
  CHECK(.01 + 1e8 / at == doctest::Approx(.05 + 2e7 / at));
  CHECK(model::break_even_bandwidth(.01, 1e8, .01, 2e7) == model::unlimited);
  CHECK(model::break_even_bandwidth(.01, 1e8, .05, 1e8) == 0);
}

TEST_CASE("a step hides what is ready before the end of the backward pass")
{
  model::computing const work{.forward = .1, .backward = .2, .overlap_slowdown = 1.1};
  constexpr std::array<double, 4> sizes{1, 1, 1, 1};
  // Buckets are ready at .055, .11, .165, .22.
  constexpr std::array<double, 4> fast{.01, .01, .01, .01};
  CHECK(model::overlapped_step_seconds(work, sizes, fast) == doctest::Approx(.1 + .22 + .01));
  constexpr std::array<double, 4> slow{.1, .1, .1, .1};
  CHECK(model::overlapped_step_seconds(work, sizes, slow) == doctest::Approx(.1 + .055 + .4));
  constexpr std::array<double, 4> one_slow{.3, .01, .01, .01};
  CHECK(model::overlapped_step_seconds(work, sizes, one_slow) == doctest::Approx(.1 + .355 + .03));
  CHECK(model::overlapped_step_seconds(work, {}, {}) == doctest::Approx(.1 + .22));
  CHECK(model::step_seconds(work, .4) == doctest::Approx(.7));
}

TEST_CASE("the fit finds the network that made the times")
{
  for (double const burst : {0.0, 32768.0}) {
    model::network const made{.latency = 5e-5, .bandwidth = 1.2e8, .burst = burst};
    std::vector<model::timing> timings;
    for (double const bytes : {0.0, 65536.0, 131072.0, 393216.0, 1179648.0}) {
      timings.push_back({bytes, model::send_seconds(made, 6, bytes)});
    }
    auto const found = model::fit_network(timings, 6);
    CHECK(found.latency == doctest::Approx(made.latency));
    CHECK(found.bandwidth == doctest::Approx(made.bandwidth));
    CHECK(found.burst == doctest::Approx(made.burst).epsilon(1e-6).scale(1));
  }
  // What passes at once takes no longer than nothing, and does not bend the line.
  model::network const bucket{.latency = 1e-4, .bandwidth = 1e8, .burst = 2e5};
  std::vector<model::timing> timings;
  for (double const bytes : {500.0, 65536.0, 131072.0, 393216.0, 1179648.0, 3538944.0}) {
    timings.push_back({bytes, model::send_seconds(bucket, 2, bytes)});
  }
  auto const found = model::fit_network(timings, 2);
  CHECK(found.latency == doctest::Approx(bucket.latency));
  CHECK(found.bandwidth == doctest::Approx(bucket.bandwidth));
  CHECK(found.burst == doctest::Approx(bucket.burst));
  // They pass as fast as the timing says that is all burst.
  model::network slower = bucket;
  slower.burst_rate     = 1e9;
  timings.clear();
  for (double const bytes : {0.0, 65536.0, 131072.0, 393216.0, 1179648.0, 3538944.0}) {
    timings.push_back({bytes, model::send_seconds(slower, 2, bytes)});
  }
  CHECK(timings[2].seconds == doctest::Approx(2e-4 + 131072e-9));
  CHECK(model::fit_network(timings, 2).burst == doctest::Approx(slower.burst));
  CHECK(model::fit_network(timings, 2).burst_rate == doctest::Approx(slower.burst_rate));
  // Without a burst small messages may take longer than their bytes: then the line gives the latency.
  constexpr std::array<model::timing, 4> slow{{{0, 1e-4}, {1e5, 4e-3}, {1e6, 13e-3}, {2e6, 23e-3}}};
  CHECK(model::fit_network(slow, 1).latency == doctest::Approx(3e-3));
  CHECK(model::fit_network(slow, 1).bandwidth == doctest::Approx(1e8));
  CHECK(model::fit_network(slow, 1).burst == 0);
  // Too little to fit, or times that do not grow: no limit, and whatever latency there is.
  CHECK(model::fit_network({}, 2).bandwidth == model::unlimited);
  constexpr std::array<model::timing, 3> level{{{0, 1e-3}, {1e6, 1e-3}, {2e6, 1e-3}}};
  CHECK(model::fit_network(level, 2).bandwidth == model::unlimited);
  CHECK(model::fit_network(level, 2).latency == doctest::Approx(5e-4));
}
