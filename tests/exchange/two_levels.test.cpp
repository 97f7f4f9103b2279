// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges on two levels, among ranks that are threads: what they have in common with an exchange of the hosts' means, and what
//! they refuse.

#include "../../examples/two_levels/recipe.hpp"
#include "support/bad_input.hpp"
#include "support/count_allocations.hpp"
#include "support/fnv_digest.hpp"
#include "support/mismatches.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/two_levels.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

using namespace tersum;
using tests::mentions;

namespace {

using values = std::vector<float>;

using whole_floats  = sharded_codec<fixed_chunks<1024>, no_rotation, cast<float>>;
using floats_back   = values_codec<fixed_chunks<1024>, no_rotation, cast<float>>;
using two_shots     = presets::two_shot<4>;
using exact_within  = two_level_codec<two_shots, whole_floats, floats_back>;
using with_feedback = two_level_codec<std::remove_const_t<decltype(presets::allocated_2_ef)>,
                                      whole_floats,
                                      floats_back>;

struct alignas(16) block {
  std::byte bytes[16];
};

// Memory aligned to 16 bytes.
struct memory {
  explicit memory(std::size_t bytes) : blocks(bytes / 16 + 1), size(bytes) {}
  [[nodiscard]] std::span<std::byte> span() { return {blocks.front().bytes, size}; }

  std::vector<block> blocks;
  std::size_t size;
};

// What a rank gives to a round.
template <class Round>
std::span<std::byte const> sent_in(Round const& round, int own)
{
  if constexpr (requires {
                  round.parts;
                  round.sent;
                }) {
    return std::as_bytes(std::span{round.sent, round.count});
  } else if constexpr (requires { round.parts; }) {
    return std::as_bytes(std::span{round.data + round.begin(own), round.size(own)});
  } else if constexpr (requires { round.sent; }) {
    return std::as_bytes(
      std::span{round.sent, static_cast<std::size_t>(round.ranks) * round.count});
  } else if constexpr (requires { typename Round::op_type; }) {
    return std::as_bytes(std::span{round.data, round.count});
  } else {
    return std::as_bytes(
      std::span{round.data + static_cast<std::size_t>(own) * round.count, round.count});
  }
}

// Hosts and their ranks, each a thread when they exchange.
template <class Codec>
class cluster {
 public:
  cluster(Codec const& codec, layout const& gradient, int hosts, int per_host)
    : hosts_(hosts), per_host_(per_host)
  {
    for (int host = 0; host < hosts; ++host) { within_.emplace_back(per_host); }
    for (int number = 0; number < per_host; ++number) { between_.emplace_back(hosts); }
    for (int rank = 0; rank < hosts * per_host; ++rank) {
      plans_.push_back(codec.plan(gradient, {.size = hosts * per_host, .rank = rank}, per_host));
      REQUIRE(plans_.back().check().ok());
      states_.emplace_back(plans_.back().state_bytes());
      workspaces_.emplace_back(plans_.back().workspace_bytes());
      scratches_.emplace_back(scratch_bytes(plans_.back()));
      REQUIRE(initialize(cpu_executor{}, plans_.back(), states_.back().span(), 77).ok());
    }
  }

  //! One exchange, in place.
  void exchange(std::vector<values>& gradients)
  {
    std::vector<status> outcomes(gradients.size());
    on_all_ranks([&](int rank, auto const& within, auto const& between) {
      auto const r = static_cast<std::size_t>(rank);
      cpu_executor const exec{};
      outcomes[r] = all_reduce_mean(exec,
                                    plans_[r],
                                    gradients[r],
                                    states_[r].span(),
                                    workspaces_[r].span(),
                                    reduce_over(within, between, exec, scratches_[r].span()));
    });
    for (status const& s : outcomes) {
      CAPTURE(s.message);
      REQUIRE(s.ok());
    }
  }

  //! Calls body(rank, within, between) on a thread for each rank.
  template <class Body>
  void on_all_ranks(Body const& body)
  {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < hosts_ * per_host_; ++rank) {
      threads.emplace_back([&, rank] {
        int const host = rank / per_host_, number = rank % per_host_;
        loopback_transport const within{within_[static_cast<std::size_t>(host)], number};
        loopback_transport const between{between_[static_cast<std::size_t>(number)], host};
        body(rank, within, between);
      });
    }
    for (std::thread& thread : threads) { thread.join(); }
  }

  [[nodiscard]] auto const& plan(std::size_t rank) const { return plans_[rank]; }
  [[nodiscard]] std::span<std::byte> state(std::size_t rank) { return states_[rank].span(); }

  //! The same as `exchange`, with digests of what each rank gives to the rounds within its host and between hosts. After the first
  //! no rank may ask for memory.
  void digest_exchange(std::vector<values>& gradients,
                       std::vector<tests::fnv_digest>& of_within,
                       std::vector<tests::fnv_digest>& of_between,
                       bool first)
  {
    std::vector<status> outcomes(gradients.size());
    std::vector<std::uint64_t> asked(gradients.size());
    on_all_ranks([&](int rank, auto const& within, auto const& between) {
      auto const r = static_cast<std::size_t>(rank);
      cpu_executor const exec{};
      auto const over     = reduce_over(within, between, exec, scratches_[r].span());
      auto const digested = [&](auto const& reduce, int own, tests::fnv_digest& into) {
        return [&reduce, own, &into](auto const& round) {
          into.add(sent_in(round, own));
          return reduce(round);
        };
      };
      two_levels const collective{digested(over.within, rank % per_host_, of_within[r]),
                                  digested(over.between, rank / per_host_, of_between[r])};
      asked[r] = tests::allocations_of([&] {
        outcomes[r] = all_reduce_mean(
          exec, plans_[r], gradients[r], states_[r].span(), workspaces_[r].span(), collective);
      });
    });
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      REQUIRE(outcomes[r] == status{});
      CHECK((first || asked[r] == 0));
    }
  }

 private:
  int hosts_, per_host_;
  std::deque<loopback_group> within_, between_;
  std::vector<tersum::plan<Codec>> plans_;
  std::deque<memory> states_, workspaces_, scratches_;
};

// Small integers: sums of up to 2^10 of them, and means of a power of two of them, are exact.
std::vector<values> integers(int ranks, std::size_t d, int step)
{
  std::vector<values> out(static_cast<std::size_t>(ranks), values(d));
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    for (std::size_t i = 0; i < d; ++i) {
      auto const mixed = (i * 2654435761u + rank * 40503u + static_cast<unsigned>(step) * 97u) >> 7;
      out[rank][i]     = static_cast<float>(mixed % 41) - 20.0f;
    }
  }
  return out;
}

bool are_equal(values const& a, values const& b)
{
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// What an exchange of the codec between the hosts makes of their means of one shard, over some steps.
template <class Codec>
class exchange_of_means {
 public:
  exchange_of_means(Codec const& codec, std::uint64_t d, int hosts, std::uint64_t seed)
  {
    for (int host = 0; host < hosts; ++host) {
      auto const plan = codec.plan(layout{d}, {.size = hosts, .rank = host});
      means_.emplace_back(d);
      auto const state     = memory_.emplace_back(plan.state_bytes()).span();
      auto const workspace = memory_.emplace_back(plan.workspace_bytes()).span();
      REQUIRE(initialize(cpu_executor{}, plan, state, seed).ok());
      ranks_.push_back({plan, means_.back(), state, workspace});
    }
  }
  values const& operator()(std::vector<values> const& means)
  {
    for (std::size_t host = 0; host < means.size(); ++host) {
      std::copy(means[host].begin(), means[host].end(), means_[host].begin());
    }
    std::span<loopback_rank<Codec, float> const> const all{ranks_};
    REQUIRE(loopback_all_reduce_mean(cpu_executor{}, all, reduction_order::direct).ok());
    return means_[0];
  }

 private:
  std::deque<values> means_;
  std::deque<memory> memory_;
  std::vector<loopback_rank<Codec, float>> ranks_;
};

// The same exchanges in one thread.
template <class Codec>
class one_thread {
 public:
  one_thread(Codec const& codec, layout const& gradient, int hosts, int per_host)
  {
    for (int rank = 0; rank < hosts * per_host; ++rank) {
      auto const plan = codec.plan(gradient, {.size = hosts * per_host, .rank = rank}, per_host);
      gradients_.emplace_back(gradient.coordinates);
      auto const state     = memory_.emplace_back(plan.state_bytes()).span();
      auto const workspace = memory_.emplace_back(plan.workspace_bytes()).span();
      REQUIRE(initialize(cpu_executor{}, plan, state, 77).ok());
      ranks_.push_back({plan, gradients_.back(), state, workspace});
    }
  }
  std::deque<values> const& exchange(std::vector<values> const& in)
  {
    for (std::size_t rank = 0; rank < in.size(); ++rank) {
      std::copy(in[rank].begin(), in[rank].end(), gradients_[rank].begin());
    }
    std::span<loopback_rank<Codec, float> const> const all{ranks_};
    status done;
    CHECK(tests::allocations_of([&] {
            done = loopback_all_reduce_mean(cpu_executor{}, all, reduction_order::direct);
          }) == 0);
    REQUIRE(done.ok());
    return gradients_;
  }
  [[nodiscard]] loopback_rank<Codec, float> const& operator[](std::size_t rank) const
  {
    return ranks_[rank];
  }

 private:
  std::deque<values> gradients_;
  std::deque<memory> memory_;
  std::vector<loopback_rank<Codec, float>> ranks_;
};

// Where nothing is lost within hosts, all that happens to a shard is the exchange of the hosts' means.
template <class Codec>
void check_shards(Codec const& codec, std::size_t d, int hosts, int per_host, int steps)
{
  CAPTURE(d);
  cluster<Codec> ranks{codec, {d}, hosts, per_host};
  auto const m = static_cast<std::size_t>(per_host);
  std::deque<exchange_of_means<typename Codec::between_type>> expected;
  for (std::size_t shard = 0; shard < m; ++shard) {
    // The seed of the second exchange, as two_levels.ipp gives it.
    expected.emplace_back(
      codec.between, d * (shard + 1) / m - d * shard / m, hosts, 77 + 0x9e3779b97f4a7c15u);
  }
  for (int step = 0; step < steps; ++step) {
    auto gradients = integers(hosts * per_host, d, step);
    values want;
    for (std::size_t shard = 0; shard < m; ++shard) {
      std::vector<values> means;
      for (int host = 0; host < hosts; ++host) {
        auto& mean = means.emplace_back();
        for (std::size_t i = d * shard / m; i < d * (shard + 1) / m; ++i) {
          float sum = 0;
          for (std::size_t k = 0; k < m; ++k) {
            sum += gradients[static_cast<std::size_t>(host) * m + k][i];
          }
          mean.push_back(sum / static_cast<float>(per_host));
        }
      }
      values const& of_shard = expected[shard](means);
      want.insert(want.end(), of_shard.begin(), of_shard.end());
    }
    ranks.exchange(gradients);
    for (values const& got : gradients) {
      CHECK(got == want);  // but for the signs of zeros, which sums lose
      CHECK(are_equal(got, gradients[0]));
    }
  }
}

}  // namespace

TEST_CASE("[two levels] each shard is an exchange of the hosts' means")
{
  check_shards(exact_within{}, 9001, 3, 4, 2);
  check_shards(exact_within{}, 4096, 2, 2, 1);
  for (std::size_t const d : {0u, 1u, 3u, 1023u}) { check_shards(exact_within{}, d, 2, 4, 1); }
  SUBCASE("one host, or one rank on each")
  {
    check_shards(exact_within{}, 2050, 1, 4, 1);
    check_shards(exact_within{}, 2050, 3, 1, 1);
  }
  SUBCASE("with a budget and feedback between hosts")
  {
    check_shards(with_feedback{presets::allocated_2_ef}, 20000, 2, 2, 3);
  }
}

TEST_CASE("[two levels] halves within hosts round each coordinate twice")
{
  constexpr std::size_t d = 4096;  // shards of one chunk
  using codec             = two_level_codec<cast_codec<float>>;
  cluster<codec> ranks{codec{}, {d}, 2, 4};
  one_thread<codec> alone{codec{}, {d}, 2, 4};
  auto gradients = integers(8, d, 0);
  for (std::size_t k = 0; k < 8; ++k) {
    // Chunks of all sizes, far outside of what a half can hold, and in each small and large values.
    for (std::size_t i = 0; i < d; ++i) {
      gradients[k][i] *=
        std::ldexp(1.0f, (static_cast<int>(i / 1024) - 2) * 45 - (i % 3 == 0 ? 9 : 0));
    }
  }
  std::vector<double> want(d), size(d);
  for (values const& gradient : gradients) {
    for (std::size_t i = 0; i < d; ++i) {
      want[i] += static_cast<double>(gradient[i]) / 8;
      size[i] += std::abs(static_cast<double>(gradient[i])) / 8;
    }
  }
  auto const& same = alone.exchange(gradients);
  ranks.exchange(gradients);
  tests::mismatches wrong;
  for (std::size_t rank = 0; rank < 8; ++rank) {
    values const& got = gradients[rank];
    CHECK(are_equal(got, gradients[0]));
    CHECK(are_equal(got, same[rank]));
    for (std::size_t i = 0; i < d; ++i) {
      // Half of a unit of a half's 11 bits of each gradient, and of the mean; a few roundings of floats.
      double const room = size[i] * (0x1p-11 + 0x1p-20) + std::abs(want[i]) * 0x1p-11;
      double const off  = std::abs(static_cast<double>(got[i]) - want[i]);
      wrong.expect(off <= room, true, got[i], want[i], i);
    }
  }
  CHECK(wrong.report() == "");
}

TEST_CASE("[two levels] what bypasses is exact, and every tensor has chunks of its own")
{
  std::vector<tensor> const tensors{{.rows = 60, .columns = 40, .offset = 0},
                                    {.rows = 500, .offset = 2400},
                                    {.rows = 33, .columns = 31, .offset = 2900},
                                    {.rows = 7, .offset = 3923}};
  layout const bucket{.coordinates = 3930, .tensors = tensors};
  cluster<exact_within> ranks{exact_within{}, bucket, 2, 4};
  CHECK(ranks.plan(1).bypassed() == 0);  // the shard lies within the first matrix
  CHECK(ranks.plan(2).bypassed() == 500);
  CHECK(ranks.plan(3).bypassed() == 7);
  auto gradients = integers(8, bucket.coordinates, 0);
  auto const in  = gradients;
  ranks.exchange(gradients);
  double lost = 0, energy = 0;
  tests::mismatches wrong;
  for (std::size_t i = 0; i < bucket.coordinates; ++i) {
    float sum = 0;
    for (values const& gradient : in) { sum += gradient[i]; }
    bool const bypasses = (i >= 2400 && i < 2900) || i >= 3923;
    if (bypasses) {
      wrong.expect(gradients[0][i], sum / 8, i);
    } else {
      lost += std::pow(static_cast<double>(gradients[0][i] - sum / 8), 2);
      energy += std::pow(static_cast<double>(sum / 8), 2);
    }
  }
  CHECK(wrong.report() == "");
  CHECK(lost > 0);
  // Two encodings of 4 bits lose .0095 each of what they encode; the hosts' means have at most twice the mean's energy.
  CHECK(lost < .04 * energy);
  for (values const& got : gradients) { CHECK(are_equal(got, gradients[0])); }
}

TEST_CASE(
  "[two levels] allocated widths lose less than half of what SDP4Bit's recipe loses, at fewer bits")
{
  using codec = two_level_codec<std::remove_const_t<decltype(presets::allocated_4)>>;
  for (char const* const set : {"step20", "step300"}) {
    CAPTURE(set);
    auto const in       = tests::sample_gradients(set);
    std::size_t const d = in[0].size();
    auto const error_of = [&](values const& estimate) {
      double lost = 0;
      for (std::size_t i = 0; i < d; ++i) {
        double mean = 0;
        for (values const& gradient : in) { mean += static_cast<double>(gradient[i]) / 4; }
        lost += std::pow(mean - static_cast<double>(estimate[i]), 2);
      }
      return lost;
    };
    one_thread<codec> ranks{codec{presets::allocated_4}, {d}, 2, 2};
    double const ours = error_of(ranks.exchange(in)[0]);
    CHECK(ours > 0);
    CHECK(ours < error_of(sdp4bit::recipe_mean(in, 2, true)) / 2);
    auto const plan = codec{presets::allocated_4}.plan({d}, {.size = 4, .rank = 1}, 2);
    CHECK(2 * plan.bits_per_coordinate() < sdp4bit::recipe_bits);  // two ranks of a host
  }
}

namespace {

// Of three exchanges of two hosts with three ranks each: what all ranks sent within hosts, between them, and the means.
struct digests {
  std::uint64_t within, between, means;

  friend bool operator==(digests const&, digests const&) = default;
  friend std::ostream& operator<<(std::ostream& out, digests const& d)
  {
    return out << std::hex << "{0x" << d.within << ", 0x" << d.between << ", 0x" << d.means << '}';
  }
};

template <class Codec>
digests digest(Codec const& codec)
{
  cluster<Codec> ranks{codec, {9001}, 2, 3};
  std::vector<tests::fnv_digest> within(6), between(6);
  tests::fnv_digest means;
  for (int step = 0; step < 3; ++step) {
    auto gradients = integers(6, 9001, step);
    ranks.digest_exchange(gradients, within, between, step == 0);
    means.add(std::as_bytes(std::span{gradients[0]}));
  }
  auto const of_all = [](std::vector<tests::fnv_digest> const& all) {
    tests::fnv_digest out;
    for (auto const& one : all) {
      std::uint64_t const value[] = {one.value(), one.size()};
      out.add(std::as_bytes(std::span{value}));
    }
    return out.value();
  };
  return {of_all(within), of_all(between), means.value()};
}

}  // namespace

TEST_CASE("[support] what a thread asks for is counted")
{
  std::unique_ptr<int> held;
  CHECK(tests::allocations_of([&] { held = std::make_unique<int>(3); }) ==
        (tests::allocations_are_counted ? 1 : 0));
  CHECK(tests::allocations_of([&] {
          tests::uncounted_allocations const scope;
          held = std::make_unique<int>(4);
        }) == 0);
  CHECK(*held == 4);
}

TEST_CASE("[two levels] exchanges are what they were, and ask for no memory")
{
  CHECK(digest(with_feedback{presets::allocated_2_ef}) ==
        digests{0x360b4720a9ca636c, 0xbf61517a53520089, 0xca11885dda75310b});
  CHECK(digest(two_level_codec<cast_codec<float>>{}) ==
        digests{0x6fe5b662cfeaa82, 0x582e0b569f4a9b67, 0x510a58618caef119});
}

TEST_CASE("[two levels] all ranks of all hosts learn of a value that is not finite")
{
  cluster<exact_within> ranks{exact_within{}, {9000}, 2, 2};
  auto gradients     = integers(4, 9000, 0);
  gradients[3][8000] = std::numeric_limits<float>::infinity();
  ranks.exchange(gradients);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(header_of(ranks.plan(rank), ranks.state(rank))->last_was_non_finite());
    auto const is_nan = [](float v) { return std::isnan(v); };
    auto const& got   = gradients[rank];
    CHECK(std::none_of(got.begin(), got.begin() + 4500, is_nan));
    CHECK(is_nan(got[8000]));
    CHECK(std::count_if(got.begin(), got.end(), is_nan) <= 3 * 1024);
    CHECK(check_state(ranks.plan(rank), ranks.state(rank)).ok());
  }
  gradients = integers(4, 9000, 1);
  ranks.exchange(gradients);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK_FALSE(header_of(ranks.plan(rank), ranks.state(rank))->last_was_non_finite());
    CHECK(are_equal(gradients[rank], gradients[0]));
  }
}

TEST_CASE("[two levels] a damaged state of any of the three exchanges is found")
{
  auto const plan = exact_within{}.plan({5000}, {.size = 4, .rank = 1}, 2);
  memory state{plan.state_bytes()};
  REQUIRE(initialize(cpu_executor{}, plan, state.span(), 5).ok());
  CHECK(check_state(plan, state.span()).ok());
  for (auto const part : {plan.gather_state(state.span()),
                          plan.scatter_state(state.span()),
                          plan.between_state(state.span())}) {
    part[offsetof(state_header, chunks)] ^= std::byte{1};
    CHECK_FALSE(check_state(plan, state.span()).ok());
    part[offsetof(state_header, chunks)] ^= std::byte{1};
  }
  CHECK(check_state(plan, state.span()).ok());
}

TEST_CASE("[two levels] plans that cannot be")
{
  auto const of = [](int size, int rank, int per_host) {
    return exact_within{}.plan({1000}, {.size = size, .rank = rank}, per_host).check();
  };
  CHECK(of(4, 0, 2).ok());
  for (int const per_host : {0, -1, 3, 8}) {
    CHECK(mentions(of(4, 0, per_host), "ranks_per_host"));
  }
  CHECK(mentions(of(4, 4, 2), "world.rank"));
  CHECK(mentions(of(0, 0, 1), "world.size"));
}

TEST_CASE("[two levels] no host exchanges with one whose ranks differ")
{
  using namespace std::chrono_literals;
  cluster<exact_within> ranks{exact_within{}, {1000}, 3, 2};
  auto const other = exact_within{}.plan({1001}, {.size = 6, .rank = 3}, 2);
  std::vector<status> answers(6);
  ranks.on_all_ranks([&](int rank, auto const& within, auto const& between) {
    auto const r = static_cast<std::size_t>(rank);
    answers[r]   = agree_on(within, between, rank == 3 ? other : ranks.plan(r), 9);
  });
  for (status const& s : answers) { CHECK(s.code == error_code::invalid_argument); }
  ranks.on_all_ranks([&](int rank, auto const& within, auto const& between) {
    auto const r = static_cast<std::size_t>(rank);
    answers[r]   = agree_on(within, between, ranks.plan(r), 9);
  });
  for (status const& s : answers) { CHECK(s.ok()); }
}
