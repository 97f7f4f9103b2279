// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of faults.hpp.

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/presets.hpp>
#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <interop/faults.hpp>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace tersum::tests {

namespace {

//! What an exchange left behind on this rank.
struct trial {
  status outcome;    //!< of pieces: the first that is not ok
  bool kept = true;  //!< the gradient of each exchange that failed is what it was
  bool means =
    true;  //!< each exchange that succeeded has left the mean, within the error of the codec
};

// Messages of these are longer than what transports send ahead; those of the other plan are longer still.
constexpr std::size_t coordinates = 200003, other_coordinates = 300007;

struct exchange_memory {
  std::vector<word4> state, workspace, scratch;
  std::vector<float> gradient, shard;
};

//! Memory for ever.
exchange_memory& new_memory()
{
  static std::mutex guard;
  static std::deque<exchange_memory> kept;
  std::scoped_lock const lock{guard};
  return kept.emplace_back();
}

template <class Codec>
auto plan_of(Codec const& codec, any_transport const& over, bool odd)
{
  return codec.plan({.coordinates = odd ? other_coordinates : coordinates},
                    {.size = over.size(), .rank = over.rank()});
}

std::span<std::byte> bytes_of(std::vector<word4>& words)
{
  return std::as_writable_bytes(std::span{words});
}

//! Whether every value is this constant, within the head-room of 4 bits.
bool is_near(std::span<float const> values, double constant)
{
  double error = 0;
  for (float const value : values) { error += (value - constant) * (value - constant); }
  return error < 0.2 * constant * constant * static_cast<double>(values.size());
}

template <class Codec>
struct one_exchange {
  one_exchange(Codec const& codec, any_transport const& on, bool odd)
    : over{on}, plan{plan_of(codec, on, odd)}, memory{new_memory()}
  {
    memory.state.resize(plan.state_bytes() / 16 + 1);
    memory.workspace.resize(plan.workspace_bytes() / 16 + 1);
    memory.scratch.resize(scratch_bytes(plan) / 16 + 1);
    memory.gradient.assign(plan.coordinates(), 1.0f + static_cast<float>(on.rank()));
  }

  //! @param is_right  Whether the memory holds what the exchange should leave in it.
  template <class Body, class Check>
  trial run(Body const& body, Check const& is_right)
  {
    auto const gradient = memory.gradient, shard = memory.shard;
    status outcome = initialize(exec, plan, state(), 42);
    if (outcome.ok()) { outcome = body(); }
    return {.outcome = outcome,
            .kept    = outcome.ok() || (memory.gradient == gradient && memory.shard == shard),
            .means   = !outcome.ok() || is_right()};
  }

  //! Of the constant gradients of all ranks.
  [[nodiscard]] double mean() const { return 0.5 * (over.size() + 1); }

  template <class Body>
  trial run(Body const& body)
  {
    return run(body, [this] { return is_near(memory.gradient, mean()); });
  }

  template <schedule Schedule>
  trial all_reduce(std::function<void()> const& before_payload)
  {
    auto const reduce        = reduce_over<Schedule>(over, exec, bytes_of(memory.scratch));
    constexpr int last_round = copying<Codec> ? 0 : 1;
    int rounds               = 0;
    return run([&] {
      return all_reduce_mean(
        exec, plan, memory.gradient, state(), workspace(), [&](auto const& round) {
          if (rounds++ == last_round) { before_payload(); }
          return reduce(round);
        });
    });
  }

  trial in_parts(std::function<void()> const& before_payload)
  {
    auto const reduce = reduce_over<schedule::direct>(over, exec, bytes_of(memory.scratch));
    return run([&] {
      status s = measure(exec, plan, memory.gradient, state(), workspace());
      if (s.ok()) { s = reduce(agreed_wire(plan, workspace())); }
      if (s.ok()) { s = encode(exec, plan, memory.gradient, state(), workspace()); }
      before_payload();
      if (s.ok()) { s = reduce(payload_wire(plan, workspace())); }
      if (s.ok()) { s = decode(exec, plan, memory.gradient, state(), workspace()); }
      return s;
    });
  }

  trial reduce_scatter(std::function<void()> const& before_payload)
  {
    auto const reduce = reduce_over<schedule::direct>(over, exec, bytes_of(memory.scratch));
    memory.shard.assign(plan.shard_size(), 0.0f);
    return run(
      [&] {
        return reduce_scatter_mean(
          exec, plan, memory.gradient, memory.shard, state(), workspace(), [&](auto const& round) {
            before_payload();
            return reduce(round);
          });
      },
      [&] { return is_near(memory.shard, mean()); });
  }

  trial gather_values(std::function<void()> const& before_payload)
  {
    auto const gather = reduce_over(over, exec);
    memory.shard.assign(plan.shard_size(), 1.0f + static_cast<float>(over.rank()));
    return run(
      [&] {
        return all_gather_values(
          exec, plan, memory.shard, memory.gradient, state(), workspace(), [&](auto const& round) {
            before_payload();
            return gather(round);
          });
      },
      [&] {
        bool right = true;
        for (int k = 0; k < over.size(); ++k) {
          std::size_t const begin = plan.shard_begin(k), end = plan.shard_begin(k + 1);
          right = right && is_near(std::span{memory.gradient}.subspan(begin, end - begin), k + 1);
        }
        return right;
      });
  }

  std::span<std::byte> state() { return bytes_of(memory.state); }
  std::span<std::byte> workspace() { return bytes_of(memory.workspace); }

  cpu_executor exec;
  any_transport const& over;
  tersum::plan<Codec> plan;
  exchange_memory& memory;
};

//! agree_on for the plan of a way, over both transports.
status agree(way how, any_transport const& first, any_transport const& second, bool odd)
{
  auto const ask = [odd](auto const& codec, any_transport const& over) {
    return agree_on(over, plan_of(codec, over, odd), 42);
  };
  switch (how) {
    case way::two_shots: return ask(presets::two_shot_4, first);
    case way::gathered: return ask(presets::gathered_4, first);
    case way::shards: return ask(presets::sharded_4, first);
    case way::values: return ask(presets::values_4, first);
    default: break;
  }
  status const one = ask(presets::rotated_sat4, first);
  if (how != way::in_pieces) { return one; }
  status const two = ask(presets::rotated_sat4, second);
  return one.ok() ? two : one;
}

//! @brief One exchange. Its rank is `odd` if it has another plan than the other ranks.
trial exchange(way how,
               any_transport const& first,
               any_transport const& second,
               bool odd,
               std::function<void()> const& before_payload)
{
  auto const& in_one_shot = presets::rotated_sat4;
  one_exchange whole{in_one_shot, first, odd};
  switch (how) {
    case way::in_wire: return whole.all_reduce<schedule::in_wire>(before_payload);
    case way::direct: return whole.all_reduce<schedule::direct>(before_payload);
    case way::two_shots:
      return one_exchange{presets::two_shot_4, first, odd}.all_reduce<schedule::direct>(
        before_payload);
    case way::gathered:
      return one_exchange{presets::gathered_4, first, odd}.all_reduce<schedule::direct>(
        before_payload);
    case way::shards:
      return one_exchange{presets::sharded_4, first, odd}.reduce_scatter(before_payload);
    case way::values:
      return one_exchange{presets::values_4, first, odd}.gather_values(before_payload);
    case way::in_parts: return whole.in_parts(before_payload);
    case way::agreement: before_payload(); return {.outcome = agree(how, first, second, odd)};
    case way::in_pieces: break;
  }
  trial of[2];
  one_exchange other{in_one_shot, second, odd};
  {
    std::jthread const beside{[&] { of[1] = other.template all_reduce<schedule::direct>([] {}); }};
    of[0] = whole.all_reduce<schedule::direct>(before_payload);
  }
  return {.outcome = of[0].outcome.ok() ? of[1].outcome : of[0].outcome,
          .kept    = of[0].kept && of[1].kept,
          .means   = of[0].means && of[1].means};
}

}  // namespace

char const* name_of(way how)
{
  constexpr char const* names[]{"in the wire",
                                "direct",
                                "two shots",
                                "gathered",
                                "shards",
                                "values",
                                "in parts",
                                "in pieces",
                                "agree_on"};
  return names[static_cast<int>(how)];
}

bool fails(fault_name const& fault, way how)
{
  // Where agree_on itself is tried it answers unlike plans, as a refusal.
  return fault != "late" && fault != "refused" && !(fault == "unlike" && how == way::agreement);
}

int check_fault(fault_name const& fault,
                way how,
                any_transport const& first,
                any_transport const& second,
                bool told,
                std::function<void()> const& misbehave,
                std::function<bool()> const& usable)
{
  int failures      = 0;
  auto const expect = [&](bool ok, char const* what, status const& got) {
    if (ok) { return; }
    ++failures;
    std::printf("%s, %s, rank %d: %s: \"%s\"\n",
                fault.c_str(),
                name_of(how),
                first.rank(),
                what,
                got.message.data());
  };
  bool const odd = first.rank() == first.size() - 1 && (fault == "unlike" || fault == "refused");
  if (fault == "refused") {
    status const asked = agree(how, first, second, odd);
    expect(asked.code == error_code::invalid_argument, "unlike plans were accepted", asked);
  }
  auto const tried = exchange(how, first, second, odd, misbehave);
  expect(tried.kept, "a gradient was overwritten by an exchange that failed", tried.outcome);
  expect(tried.means, "an exchange that succeeded did not leave the mean", tried.outcome);
  if (fault == "late") {
    expect(tried.outcome.ok(), "a rank that is not too late was not waited for", tried.outcome);
  } else if (!fails(fault, how)) {
    expect(tried.outcome.code == error_code::invalid_argument, "it was not refused", tried.outcome);
    status const asked = agree(how, first, second, false);
    expect(asked.ok(), "equal plans are refused after unlike ones", asked);
    auto const next = exchange(how, first, second, false, [] {});
    expect(next.outcome.ok() && next.means, "nothing works after a refusal", next.outcome);
  } else if (told) {
    expect(tried.outcome.code == error_code::transport_failed, "nobody said so", tried.outcome);
    // What arrives late meets nothing: the transport is done with, and says so without waiting.
    expect(!usable(), "a transport that failed can be used", first.check());
    auto const again = exchange(how, first, second, odd, [] {});
    expect(again.outcome.code == error_code::transport_failed && again.kept,
           "an exchange over a transport that failed",
           again.outcome);
  }
  return failures;
}

}  // namespace tersum::tests
