// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports. Every rank knows all ranks' gradients, runs the loopback by itself and compares.

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <interop/conformance.hpp>
#include <interop/expected_parts.hpp>
#include <interop/presets.hpp>
#include <interop/twin.hpp>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tersum::tests {

std::vector<float> make_gradient(std::size_t size, int world, int rank, int step)
{
  std::mt19937 random(static_cast<unsigned>(1000 * step + rank + 1));
  std::vector<float> out(size);
  for (float& value : out) { value = static_cast<float>(random() % 20001) / 1e4f - 1.0f; }
  if (step == steps - 1 && rank == world - 1) {
    out[size / 3] = std::numeric_limits<float>::quiet_NaN();
  }
  return out;
}

namespace {

void add_values(tersum::description& to, std::vector<float> const& values)
{
  for (float const value : values) {
    to = {"value", to, std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value};
  }
}

//! Whether a number is the same on all ranks; the answer is, too.
bool same_on_all(any_transport const& over, std::uint64_t mine)
{
  int const n           = over.size();
  std::uint64_t passing = mine;
  bool all              = true;
  for (int hop = 1; hop < n; ++hop) {
    std::uint64_t received = 0;
    if (!over.exchange_word((over.rank() + 1) % n, passing, (over.rank() + n - 1) % n, received)
           .ok()) {
      return false;
    }
    all     = all && received == mine;
    passing = received;
  }
  return all;
}

template <class Codec>
expectation run_loopback(Codec const& codec, layout const& shape, int world, reduction_order order)
{
  expectation out;
  std::vector<rank_memory<Codec>> ranks;
  for (int k = 0; k < world; ++k) {
    ranks.emplace_back(codec.plan(shape, {.size = world, .rank = k}));
    out.ok = ranks.back().begin().ok() && out.ok;
  }
  for (int step = 0; step < steps; ++step) {
    std::vector<loopback_rank<Codec, float>> all;
    for (int k = 0; k < world; ++k) {
      auto& mine    = ranks[static_cast<std::size_t>(k)];
      mine.gradient = make_gradient(shape.coordinates, world, k, step);
      all.push_back({mine.plan, mine.gradient, mine.state(), mine.workspace()});
    }
    out.ok = out.ok && loopback_exchange(cpu_executor{}, all, order).ok();
    out.means.push_back(ranks[0].gradient);
    out.non_finite.push_back(ranks[0].header().last_was_non_finite());
  }
  return out;
}

template <class Codec>
expectation const& expected_of(
  std::string_view name, Codec const& codec, layout const& shape, int world, reduction_order order)
{
  using key = std::tuple<std::string, std::uint64_t, std::size_t, int, reduction_order>;
  static std::mutex guard;
  static std::map<key, expectation> known;
  key const which{name, shape.coordinates, shape.tensors.size(), world, order};
  std::lock_guard const lock{guard};
  auto at = known.find(which);
  if (at == known.end()) {
    at = known.emplace(which, run_loopback(codec, shape, world, order)).first;
  }
  return at->second;
}

class suite {
 public:
  explicit suite(any_transport const& over, bool brief = false) : over_(over), brief_(brief) {}
  [[nodiscard]] int failures() const { return failures_; }

  void expect(bool ok, char const* what, char const* name, char const* way, std::size_t size)
  {
    if (ok) { return; }
    ++failures_;
    std::printf("rank %d of %d: %s, %s, %zu coordinates: %s\n",
                over_.rank(),
                over_.size(),
                name,
                way,
                size,
                what);
  }

  template <class Codec>
  void preset(char const* name, Codec const& codec)
  {
    auto const planned = [&](layout const& shape) {
      return codec.plan(shape, {.size = over_.size(), .rank = 0});
    };
    std::vector<layout> taken;
    layout telling;
    bool travels = false;
    for (layout const& shape : shapes) {
      if (!planned(shape).check().ok()) { continue; }
      taken.push_back(shape);
      if (something_travels(planned(shape))) {
        telling = shape;
        travels = true;
      }
    }
    if (taken.empty()) {
      expect(planned(shapes[1]).check().code == error_code::world_too_large,
             "no shape can be exchanged",
             name,
             "any way",
             0);
      return;
    }
    for (layout const& shape : large_shapes) {
      if (travels) { break; }
      telling = shape;
      travels = something_travels(planned(shape));
      if (travels) { taken.push_back(shape); }
    }
    expect(travels, "nothing travels", name, "any way", 0);
    if (brief_) { taken = {telling}; }
    for (layout const& shape : taken) {
      bool const bypasses = planned(shape).bypassed() > 0;  // in float, where the order counts
      way<schedule::direct>(name, "direct", codec, shape, reduction_order::direct, true);
      if (over_.reduces()) {
        bool const equal = (any_order<Codec>() && !bypasses) || over_.size() <= 2;
        way<schedule::in_wire>(name, "in the wire", codec, shape, reduction_order::ring, equal);
      }
    }
    // What this rank has decoded since it began: one round of messages for all of it.
    expect(same_on_all(over_, decoded_.hash()), "the ranks differ", name, "any way", 0);
  }

  //! reduce_scatter_mean, or all_gather_values: equal and uneven shards, a vector and a bucket.
  template <class Given, class Got = Given, class Codec>
  void parts(char const* name, Codec const& codec)
  {
    cpu_executor const exec;
    int const n = over_.size(), me = over_.rank();
    for (layout const& shape : {shapes[1], shapes[2]}) {
      for (bool const uneven : {false, true}) {
        char const* const way = uneven ? "uneven" : "equal";
        auto const size       = static_cast<std::size_t>(shape.coordinates);
        auto const want       = expected_parts<Given, Got>(codec, shape, uneven, n);
        expect(!want.empty(), "the loopback failed", name, way, size);
        auto const cuts = shard_cuts(shape.coordinates, n, uneven);
        rank_memory<Codec> mine(codec.plan(shape, {.size = n, .rank = me}, cuts));
        std::vector<Got> got(got_size(mine.plan));
        std::vector<word4> scratch(scratch_bytes(mine.plan) / 16 + 1);
        expect(mine.begin().ok(), "initialize failed", name, way, size);
        for (std::size_t step = 0; step < want.size(); ++step) {
          auto const given     = given_to<Given>(mine.plan, static_cast<int>(step));
          auto const bytes     = std::as_writable_bytes(std::span{scratch});
          auto const state     = mine.state();
          auto const workspace = mine.workspace();
          status outcome;
          if constexpr (publishing<Codec>) {
            outcome = all_gather_values(
              exec, mine.plan, given, got, state, workspace, reduce_over(over_, exec));
          } else {
            outcome = reduce_scatter_mean(exec,
                                          mine.plan,
                                          given,
                                          got,
                                          state,
                                          workspace,
                                          reduce_over<schedule::direct>(over_, exec, bytes));
          }
          expect(outcome.ok(), outcome.message.data(), name, way, size);
          expect(same(got, want[step][static_cast<std::size_t>(me)]),
                 "differs from the loopback",
                 name,
                 way,
                 size);
        }
      }
    }
  }

 private:
  template <schedule Schedule, class Codec>
  void way(char const* name,
           char const* way,
           Codec const& codec,
           layout const& shape,
           reduction_order order,
           bool equals_loopback)
  {
    int const n     = over_.size();
    auto const size = static_cast<std::size_t>(shape.coordinates);
    cpu_executor const exec;
    rank_memory<Codec> mine(codec.plan(shape, {.size = n, .rank = over_.rank()}));
    expectation const& loopback = expected_of(name, codec, shape, n, order);
    expect(loopback.ok, "the loopback failed", name, way, size);
    std::vector<word4> scratch(scratch_bytes(mine.plan) / 16 + 1);
    expect(mine.begin().ok(), "initialize failed", name, way, size);
    for (int step = 0; step < steps; ++step) {
      auto const at        = static_cast<std::size_t>(step);
      mine.gradient        = make_gradient(size, n, over_.rank(), step);
      status const outcome = all_reduce_mean(
        exec,
        mine.plan,
        mine.gradient,
        mine.state(),
        mine.workspace(),
        reduce_over<Schedule>(over_, exec, std::as_writable_bytes(std::span{scratch})));
      if (outcome.code == error_code::unsupported && !over_.reduces_all()) { return; }
      expect(outcome.ok(), outcome.message.data(), name, way, size);
      add_values(decoded_, mine.gradient);
      expect(mine.header().last_was_non_finite() == loopback.non_finite[at],
             "the flag of the NaN differs from the loopback's",
             name,
             way,
             size);
      // Where nothing travels nobody hears of a NaN, nor where chunks are drawn and another one is.
      bool const heard = something_travels(mine.plan) && !draws_chunks<Codec>();
      expect(mine.header().last_was_non_finite() == (step == steps - 1) || !heard,
             "the flag tells something else than whether a rank has a NaN",
             name,
             way,
             size);
      if (equals_loopback) {
        expect(
          same(mine.gradient, loopback.means[at]), "differs from the loopback", name, way, size);
      }
    }
  }

  any_transport const& over_;
  bool brief_;
  tersum::description decoded_{"decoded"};
  int failures_ = 0;
};

}  // namespace

expectation const& expected(std::string_view preset,
                            layout const& shape,
                            int world,
                            reduction_order order)
{
  static expectation const none{.ok = false, .means = {}, .non_finite = {}};
  expectation const* out = &none;
  for_each_preset([&](char const* name, auto const& codec) {
    if (name == preset) { out = &expected_of(name, codec, shape, world, order); }
  });
  return *out;
}

std::vector<std::uint64_t> shard_cuts(std::uint64_t size, int world, bool uneven)
{
  if (!uneven) { return {}; }
  std::vector<std::uint64_t> cuts{0};
  for (int k = 1; k < world; ++k) {
    auto const r = static_cast<std::uint64_t>(k);
    cuts.push_back(size / 3 * (r - 1) / static_cast<std::uint64_t>(world) + (r > 1 ? 7 : 0));
  }
  cuts.push_back(size);
  return cuts;
}

namespace {

//! What one rank gets, step after step.
std::vector<std::vector<float>> of_rank(std::vector<std::vector<std::vector<float>>> all, int rank)
{
  std::vector<std::vector<float>> out;
  for (auto& of_step : all) { out.push_back(std::move(of_step[static_cast<std::size_t>(rank)])); }
  return out;
}

}  // namespace

std::vector<std::vector<float>> expected_shards(layout const& shape,
                                                bool uneven,
                                                int world,
                                                int rank)
{
  return of_rank(expected_parts<float>(presets::sharded<2, error_feedback>{}, shape, uneven, world),
                 rank);
}

std::vector<std::vector<float>> expected_summed_shards(layout const& shape,
                                                       bool uneven,
                                                       int world,
                                                       int rank)
{
  return of_rank(expected_parts<float>(shards_in_integers, shape, uneven, world), rank);
}

std::vector<std::vector<float>> expected_differences(layout const& shape, bool uneven, int world)
{
  return of_rank(
    expected_parts<float>(presets::values<4, difference_feedback>{}, shape, uneven, world), 0);
}

int check_presets(any_transport const& over, bool brief)
{
  suite s(over, brief);
  if (!over.check().ok()) { s.expect(false, over.check().message.data(), "the transport", "", 0); }
  for_each_preset([&](char const* name, auto const& codec) { s.preset(name, codec); });
  s.parts<float>("shards", presets::sharded<2, error_feedback>{});
  s.parts<bfloat16>("shards in bfloat16", presets::sharded<2, error_feedback>{});
  s.parts<float>("values with feedback", presets::values<4, error_feedback>{});
  s.parts<half>("values in half", presets::values<4, error_feedback>{});
  s.parts<float>("differences of values", presets::values<4, difference_feedback>{});
  return s.failures();
}

int check_agreement(any_transport const& over)
{
  suite s(over);
  int const n = over.size(), me = over.rank();
  bool const odd  = me == n - 1;  // this rank has another idea
  auto const plan = [&](auto const& codec, layout const& shape) {
    return codec.plan(shape, {.size = n, .rank = me});
  };
  layout const shape{.coordinates = 4097, .tensors = bucket};
  layout const other{.coordinates = 4097, .tensors = bucket, .bypass_vectors = false};
  auto const good   = plan(presets::rotated_sat4, shape);
  auto const expect = [&](status const& outcome, error_code wanted, char const* what) {
    s.expect(outcome.code == wanted, what, "agree_on", outcome.message.data(), 4097);
  };
  // With one rank there is nobody to disagree with, but it may still disagree with itself.
  error_code const refused = n > 1 ? error_code::invalid_argument : error_code::ok;
  expect(agree_on(over, good, 7), error_code::ok, "equal plans are refused");
  expect(agree_on(over, good, odd ? 8 : 7), refused, "another seed is not seen");
  expect(agree_on(over, odd ? plan(presets::rotated_sat4, other) : good, 7),
         refused,
         "another layout is not seen");
  expect(odd ? agree_on(over, plan(presets::rotated_sat8, shape), 7) : agree_on(over, good, 7),
         refused,
         "another codec is not seen");
  auto changed             = presets::rotated_sat4;
  changed.coder.range.clip = 2.5f;
  expect(
    agree_on(over, odd ? plan(changed, shape) : good, 7), refused, "another parameter is not seen");
  expect(
    agree_on(over, odd ? presets::rotated_sat4.plan(shape, {.size = n + 1, .rank = me}) : good, 7),
    error_code::invalid_argument == refused || odd ? error_code::invalid_argument : refused,
    "another world is not seen");
  auto const cuts = shard_cuts(4097, n, true);
  world const here{.size = n, .rank = me};
  expect(agree_on(over,
                  odd ? presets::sharded_4.plan(shape, here)
                      : presets::sharded_4.plan(shape, here, cuts),
                  7),
         refused,
         "other boundaries of shards are not seen");
  expect(odd ? agree_on(over, presets::values<4, difference_feedback>{}.plan(shape, here), 7)
             : agree_on(over, presets::values_4.plan(shape, here), 7),
         refused,
         "differences instead of values are not seen");
  expect(agree_on(over, good, 7), error_code::ok, "refused after plans that differed");
  return s.failures();
}

status exchange_once(any_transport const& over,
                     bool in_wire,
                     void (*before_payload)(int),
                     bool& gradient_kept)
{
  struct exchange_memory {
    rank_memory<std::remove_cvref_t<decltype(presets::rotated_sat4_ef)>> rank;
    std::vector<word4> scratch;
  };
  // Words may arrive late. The ranks are threads of one process where the transport is a loopback.
  static std::mutex of_kept;
  static std::vector<std::unique_ptr<exchange_memory>> kept;

  cpu_executor const exec;
  auto const plan = presets::rotated_sat4_ef.plan({.coordinates = 1 << 20},
                                                  {.size = over.size(), .rank = over.rank()});
  auto memory     = std::make_unique<exchange_memory>(
    exchange_memory{rank_memory{plan}, std::vector<word4>(scratch_bytes(plan) / 16 + 1)});
  auto& mine         = memory->rank;
  auto const scratch = std::as_writable_bytes(std::span{memory->scratch});
  {
    std::scoped_lock const lock{of_kept};
    kept.push_back(std::move(memory));
  }
  if (status const s = mine.begin(); !s.ok()) { return s; }
  mine.gradient         = make_gradient(1 << 20, over.size(), over.rank(), 0);
  auto const before     = mine.gradient;
  auto const direct     = reduce_over<schedule::direct>(over, exec, scratch);
  auto const by_library = reduce_over<schedule::in_wire>(over, exec, scratch);
  int rounds            = 0;
  status const outcome  = all_reduce_mean(
    exec, mine.plan, mine.gradient, mine.state(), mine.workspace(), [&](auto const& round) {
      if (rounds++ == 1) { before_payload(over.rank()); }
      return in_wire ? by_library(round) : direct(round);
    });
  gradient_kept = mine.gradient == before;
  return outcome;
}

}  // namespace tersum::tests
