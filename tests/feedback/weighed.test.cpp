// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback that forgets, and the examples made of it, against their formulas in double: within 1e-6 of the largest value.

#include "../../examples/feedback/clan.hpp"
#include "../../examples/feedback/loco.hpp"
#include "support/codecs.hpp"
#include "support/codes_in_double.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <thread>
#include <vector>

using namespace tersum;

namespace {

constexpr std::size_t size = 256, coordinates = 1000;
constexpr int world          = 3;
constexpr std::uint64_t seed = 5;

using values = std::vector<double>;

template <int Bits>
[[nodiscard]] values compress(values const& x, std::uint64_t step)
{
  return tests::compress_in_double<Bits, size>(x, step, seed);
}

[[nodiscard]] values in_double(std::vector<float> const& x) { return {x.begin(), x.end()}; }

using tests::are_near;
using tests::combine;

[[nodiscard]] bool are_near(std::span<float const> got, values const& want)
{
  REQUIRE(got.size() == want.size());
  return are_near(got, want, want);
}

// A rank's plan and memory.
template <class Plan>
struct memory_of {
  memory_of(Plan const& p)
    : plan(p), kept(p.state_bytes() / 16 + 1), work(p.workspace_bytes() / 16 + 1)
  {
    REQUIRE(initialize(cpu_executor{}, plan, state(), seed) == status{});
  }
  [[nodiscard]] std::span<std::byte> state() { return std::as_writable_bytes(std::span{kept}); }
  [[nodiscard]] std::span<std::byte> workspace() { return std::as_writable_bytes(std::span{work}); }

  Plan plan;
  std::vector<word4> kept, work;
};

// body(rank, reduce) on a thread a rank.
template <class Body>
void on_ranks(loopback_group& group, Body const& body)
{
  std::vector<std::thread> threads;
  std::vector<status> outcomes(world);
  for (std::size_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      cpu_executor const exec;
      loopback_transport const over{group, static_cast<int>(rank)};
      outcomes[rank] = body(rank, reduce_over(over, exec));
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  for (status const& outcome : outcomes) { REQUIRE(outcome == status{}); }
}

template <class Codec>
[[nodiscard]] auto memories(Codec const& codec)
{
  using plan_type = plan<Codec>;
  std::vector<memory_of<plan_type>> all;
  for (int rank = 0; rank < world; ++rank) {
    all.emplace_back(codec.plan(layout{coordinates}, {.size = world, .rank = rank}));
  }
  return all;
}

[[nodiscard]] auto gradients_of(int step)
{
  return tests::normal_gradients(world, coordinates, 100 + static_cast<unsigned>(step));
}

TEST_CASE("[feedback] CLAN's scheme is that of its formulas")
{
  clan_codec codec;
  codec.feedback = {.decay = .75f, .reset_every = 3};
  auto ranks     = memories(codec);
  std::vector<std::vector<float>> momentum(world, std::vector<float>(coordinates));
  // Owners keep what the padding of the last chunk decodes to, too.
  constexpr std::size_t padded = 1024;
  std::vector<values> m(world, values(padded)), e = m, p = m;
  values of_server(padded);
  loopback_group group{world};
  double before = 0.5;
  for (int step = 0; step < 5; ++step) {
    double const rate = step < 2 ? 0.5 : 0.5 / (step + 1);
    auto in           = gradients_of(step);
    double const gain = step % 3 == 0 ? 0 : .75 * before / rate;
    values server     = combine(gain, of_server, 0, of_server);
    for (std::size_t k = 0; k < world; ++k) {
      values given = in_double(in[k]);
      given.resize(padded);
      m[k]         = combine(.9f, m[k], 1, given);
      p[k]         = combine(1, combine(1, given, .9f, m[k]), gain, e[k]);
      auto const c = compress<1>(p[k], static_cast<std::uint64_t>(step));
      e[k]         = combine(1, p[k], -1, c);
      std::fill(e[k].begin() + coordinates, e[k].end(), 0);
      server = combine(1, server, 1. / world, c);
    }
    auto const sent = compress<1>(server, static_cast<std::uint64_t>(step));
    of_server       = combine(1, server, -1, sent);
    on_ranks(group, [&](std::size_t k, auto const& reduce) {
      return clan_step(ranks[k].plan,
                       in[k],
                       momentum[k],
                       .9f,
                       static_cast<float>(before),
                       static_cast<float>(rate),
                       ranks[k].state(),
                       ranks[k].workspace(),
                       reduce);
    });
    before = rate;
    CAPTURE(step);
    for (std::size_t k = 0; k < world; ++k) {
      REQUIRE(are_near(in[k], sent, sent));
      REQUIRE(
        are_near(residuals_of(ranks[k].plan, ranks[k].state()).last(coordinates), e[k], p[k]));
    }
  }
}

TEST_CASE("[feedback] LoCo's average of what was lost is that of its formulas")
{
  std::uint64_t const boundaries[] = {0, 300, 300, coordinates};
  auto const codec                 = loco(.8f, 3);
  std::vector<memory_of<plan<loco_codec>>> ranks;
  for (int rank = 0; rank < world; ++rank) {
    ranks.emplace_back(codec.plan(layout{coordinates}, {.size = world, .rank = rank}, boundaries));
  }
  std::vector<values> e(world, values(coordinates)), h = e;
  loopback_group group{world};
  for (int step = 0; step < 5; ++step) {
    auto const in = gradients_of(step);
    values mean(coordinates);
    for (std::size_t k = 0; k < world; ++k) {
      if (step % 3 == 0) { e[k] = values(coordinates); }
      h[k]         = combine(1, in_double(in[k]), 1, e[k]);
      auto const c = compress<4>(h[k], static_cast<std::uint64_t>(step));
      e[k]         = combine(.8f, e[k], 1 - double{.8f}, combine(1, h[k], -1, c));
      mean         = combine(1, mean, 1. / world, c);
    }
    std::vector<std::vector<float>> shards(world);
    on_ranks(group, [&](std::size_t k, auto const& reduce) {
      shards[k].resize(ranks[k].plan.shard_size());
      return reduce_scatter_mean(cpu_executor{},
                                 ranks[k].plan,
                                 std::span<float const>{in[k]},
                                 std::span{shards[k]},
                                 ranks[k].state(),
                                 ranks[k].workspace(),
                                 reduce);
    });
    CAPTURE(step);
    std::vector<float> whole;
    for (auto const& shard : shards) { whole.insert(whole.end(), shard.begin(), shard.end()); }
    REQUIRE(are_near(whole, mean));
    for (std::size_t k = 0; k < world; ++k) {
      REQUIRE(are_near(residuals_of(ranks[k].plan, ranks[k].state()), e[k], h[k]));
    }
  }
}

// Two shots of 1 bit: who keeps what they lose, and what that is in double.
template <class Feedback>
void check_keepers(Feedback const& feedback, double weight, bool by_ranks, bool by_owners)
{
  constexpr std::size_t padded = 1024;
  codec<fixed_chunks<256>, partial_hadamard<256>, scaled_codes<lloyd_max<1>>, two_shot, Feedback>
    codec{};
  codec.feedback = feedback;
  tests::loopback_run<decltype(codec)> run{codec, layout{coordinates}, world, seed};
  std::vector<values> e(world, values(padded));
  values of_owners(padded);
  for (int step = 0; step < 4; ++step) {
    auto const in = gradients_of(step);
    values mean   = combine(weight, of_owners, 0, of_owners);
    for (std::size_t k = 0; k < world; ++k) {
      values given = in_double(in[k]);
      given.resize(padded);
      auto const p = combine(1, given, weight, e[k]);
      auto const c = compress<1>(p, static_cast<std::uint64_t>(step));
      if (by_ranks) { e[k] = combine(1, p, -1, c); }
      std::fill(e[k].begin() + coordinates, e[k].end(), 0);
      mean = combine(1, mean, 1. / world, c);
    }
    auto const sent = compress<1>(mean, static_cast<std::uint64_t>(step));
    if (by_owners) { of_owners = combine(1, mean, -1, sent); }
    auto const& out = run.exchange(in);
    CAPTURE(step);
    for (std::size_t k = 0; k < world; ++k) {
      REQUIRE(are_near(out[k], sent, sent));
      // Of four chunks rank 0 owns two, and all have room for as many. Owners keep sums, not means.
      auto const kept = residuals_of(run.plan(static_cast<int>(k)), run.state(static_cast<int>(k)));
      REQUIRE(kept.size() == (by_owners ? 2 * size : 0) + (by_ranks ? coordinates : 0));
      if (by_ranks) { REQUIRE(are_near(kept.last(coordinates), e[k], sent)); }
      if (by_owners) {
        auto const begin = of_owners.begin() + static_cast<std::ptrdiff_t>(k * size);
        values const own(begin, begin + size);
        REQUIRE(
          are_near(kept.first(size), combine(world, own, 0, own), combine(world, sent, 0, sent)));
      }
    }
  }
}

TEST_CASE("[feedback] ranks, owners or both keep what two shots lose")
{
  check_keepers(error_feedback{}, 1, true, true);
  check_keepers(kept_by_ranks<>{}, 1, true, false);
  check_keepers(kept_by_owners<decayed_feedback>{{.decay = .5f}}, .5, false, true);
  using both      = tests::rotated_codes<256, lloyd_max<1>, two_shot, error_feedback>;
  using owners    = tests::rotated_codes<256, lloyd_max<1>, two_shot, kept_by_owners<>>;
  auto const plan = both{}.plan(layout{coordinates}, {.size = world, .rank = 0});
  auto const less = owners{}.plan(layout{coordinates}, {.size = world, .rank = 0});
  CHECK(less.state_bytes() == plan.state_bytes() - 4 * coordinates);
  CHECK(less.workspace_bytes() == plan.workspace_bytes() - plan.payload_bytes());
  CHECK(less.state_fingerprint() != plan.state_fingerprint());
}

TEST_CASE("[feedback] the weight of what is kept: decay, gain, and none every few steps")
{
  constexpr decayed_feedback f{.decay = .5f, .reset_every = 3};
  for (std::uint64_t step = 0; step < 9; ++step) {
    CHECK(f.kept_weight(step, 4.0f) == (step % 3 == 0 ? 0.0f : 2.0f));
    CHECK(decayed_feedback{}.kept_weight(step, 4.0f) == 4.0f);
    CHECK(averaged_feedback{.reset_every = 4}.kept_weight(step, 3.0f) ==
          (step % 4 == 0 ? 0.0f : 3.0f));
  }
}

TEST_CASE("[feedback] a step that is not finite leaves what is kept without decay or reset")
{
  clan_codec codec;
  codec.feedback = {.decay = .5f, .reset_every = 1};
  tests::loopback_run<clan_codec> run{codec, layout{coordinates}, 2, seed};
  auto in = tests::normal_gradients(2, coordinates, 7);
  run.exchange(in);
  auto const all = residuals_of(run.plan(), run.state());
  std::vector<float> const before(all.begin(), all.end());
  in[1][5] = std::nanf("");
  run.exchange(in);
  CHECK(std::equal(all.begin(), all.end(), before.begin()));
}

TEST_CASE("[feedback] what is kept in bfloat16 is one of two neighbours, and itself on average")
{
  for (float const value :
       {1.0f, 1.0f + 0x1p-9f, -3.7f, 0.0f, -0x1.234567p-20f, 0x1.8p-140f, 0x1.fdffffp127f}) {
    CAPTURE(value);
    double sum = 0, least = 1e300, largest = -1e300;
    for (std::uint32_t draw = 0; draw < 0x10000u; ++draw) {
      double const kept = to_float(detail::kept_value<bfloat16>(value, draw + 0x30000u));
      sum += kept;
      least   = std::min(least, kept);
      largest = std::max(largest, kept);
      REQUIRE(kept == detail::round_to_kept<bfloat16>(value, draw));
    }
    // Sums of 2^16 numbers of 8 bits are exact.
    CHECK(sum == 0x1p16 * static_cast<double>(value));
    float const down = detail::bits_float(detail::float_bits(value) & 0xffff0000u);
    CHECK(std::abs(largest - least) <=
          std::abs(
            static_cast<double>(detail::bits_float(detail::float_bits(down) + 0x10000u) - down)));
  }
  // Nothing that is finite becomes infinite, and nothing else becomes finite.
  constexpr float largest = std::numeric_limits<float>::max();
  CHECK(to_float(detail::kept_value<bfloat16>(-largest, 0xffffu)) == -0x1.fep127f);
  float const infinite = std::numeric_limits<float>::infinity();
  CHECK(to_float(detail::kept_value<bfloat16>(infinite, 0xffffu)) == infinite);
  CHECK(std::isnan(to_float(detail::kept_value<bfloat16>(std::nanf(""), 0xffffu))));
}

// Where rounded values lie between their two neighbours, and how many went up: of those whose place is below or above 1/2.
struct roundings {
  double expected[2] = {}, up[2] = {};
  int count = 0;

  // `error` is by how much `value` may be wrong. Values that this may put beside another pair of neighbours are left out.
  void add(double kept, double value, double error)
  {
    auto const exact = static_cast<float>(std::abs(value));
    double const low =
      static_cast<double>(detail::bits_float(detail::float_bits(exact) & 0xffff0000u));
    double const gap = static_cast<double>(
                         detail::bits_float((detail::float_bits(exact) & 0xffff0000u) + 0x10000u)) -
                       low;
    double const place = (std::abs(value) - low) / gap;
    if (place * gap < 2 * error || (1 - place) * gap < 2 * error) { return; }
    double const went = (std::copysign(kept, kept * value) - low) / gap;
    bool const either = went == 0 || went == 1;
    REQUIRE(either);
    expected[place < .5 ? 0 : 1] += place;
    up[place < .5 ? 0 : 1] += went;
    ++count;
  }
  // A sum of n independent errors of at most 1 in all is beyond 5 sqrt(n) / 2 once in a million times (Hoeffding: 2 exp(-12.5)).
  void check() const
  {
    REQUIRE(count > 1000);
    for (int side = 0; side < 2; ++side) {
      CHECK(std::abs(expected[side] - up[side]) < 2.5 * std::sqrt(count));
    }
  }
};

TEST_CASE("[feedback] ranks and owners of two shots keep bfloat16s of what they lose")
{
  constexpr std::size_t padded = 1024;
  using feedback               = kept_in<bfloat16, decayed_feedback>;
  codec<fixed_chunks<256>, partial_hadamard<256>, scaled_codes<lloyd_max<1>>, two_shot, feedback>
    codec{};
  codec.feedback = {{.decay = .5f}};
  tests::loopback_run<decltype(codec)> run{codec, layout{coordinates}, world, seed};
  values of_owners(padded);
  std::vector<values> e(world, values(padded));
  roundings by_ranks, by_owners;
  for (int step = 0; step < 8; ++step) {
    auto const in = gradients_of(step);
    values mean   = combine(.5, of_owners, 0, of_owners);
    std::vector<values> lost(world);
    for (std::size_t k = 0; k < world; ++k) {
      values given = in_double(in[k]);
      given.resize(padded);
      auto const p = combine(1, given, .5, e[k]);
      auto const c = compress<1>(p, static_cast<std::uint64_t>(step));
      lost[k]      = combine(1, p, -1, c);
      mean         = combine(1, mean, 1. / world, c);
    }
    auto const sent = compress<1>(mean, static_cast<std::uint64_t>(step));
    auto const& out = run.exchange(in);
    CAPTURE(step);
    double largest = 0;
    for (double const v : sent) { largest = std::max(largest, std::abs(v)); }
    for (std::size_t k = 0; k < world; ++k) {
      REQUIRE(are_near(out[k], sent, sent));
      auto const kept = residuals_of(run.plan(static_cast<int>(k)), run.state(static_cast<int>(k)));
      REQUIRE(kept.size() == 2 * size + coordinates);
      for (std::size_t i = 0; i < coordinates; ++i) {
        e[k][i] = static_cast<double>(to_float(kept.last(coordinates)[i]));
        by_ranks.add(e[k][i], lost[k][i], 1e-6 * largest);
      }
      for (std::size_t chunk = k, own = 0; chunk < padded / size; chunk += world, ++own) {
        for (std::size_t i = 0; i < size; ++i) {
          // Owners keep sums, not means.
          double const now     = static_cast<double>(to_float(kept[own * size + i]));
          std::size_t const at = chunk * size + i;
          by_owners.add(now, world * (mean[at] - sent[at]), 1e-6 * world * largest);
          of_owners[at] = now / world;
        }
      }
    }
  }
  by_ranks.check();
  by_owners.check();
  using floats    = tests::rotated_codes<256, lloyd_max<1>, two_shot, decayed_feedback>;
  auto const wide = floats{}.plan(layout{coordinates}, {.size = world, .rank = 0});
  CHECK(run.plan().state_bytes() == wide.state_bytes() - 2 * (2 * size + coordinates));
  CHECK(run.plan().workspace_bytes() == wide.workspace_bytes());
  CHECK(run.plan().state_fingerprint() != wide.state_fingerprint());
}

TEST_CASE("[feedback] what waits for its turn grows in bfloat16 by what was added")
{
  // Chunks of large values travel, the others never do. To the nearest 1.2 would be added as 1 from 64 on.
  constexpr std::size_t count = 4096;
  constexpr int steps         = 200;
  codec<top_chunks<64>, no_rotation, cast<tersum::half>, in_wire, kept_in<bfloat16>> codec{};
  tests::loopback_run<decltype(codec)> run{codec, layout{count}, 1, seed};
  std::vector<std::vector<float>> in(1, std::vector<float>(count, 1.2f));
  std::fill(in[0].begin(), in[0].begin() + count / 2, 3000.0f);
  for (int step = 0; step < steps; ++step) { run.exchange(in); }
  double sum = 0;
  int waited = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double const kept = static_cast<double>(to_float(run.residual()[i]));
    if (i < count / 2) { continue; }
    sum += kept - steps * static_cast<double>(1.2f);
    ++waited;
  }
  // A step rounds by at most 1, the spacing of bfloat16s from 128 to 256, and the mean of n coordinates in a step has at
  // most the variance 1 / (4 n), if draws are independent; five standard deviations.
  CHECK(std::abs(sum / waited) < 5 * std::sqrt(steps / (4. * waited)));
}

}  // namespace
