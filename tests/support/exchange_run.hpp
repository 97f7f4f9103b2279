// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of any codec among several ranks on any executor, in which a test may watch every round.

#pragma once

#include "count_allocations.hpp"
#include "host_buffer.hpp"
#include "same_bytes.hpp"

#include <tersum/exchange/wires.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <ostream>
#include <span>
#include <type_traits>
#include <vector>

namespace tersum::tests {

using boundaries = std::vector<std::uint64_t>;

inline constexpr std::uint64_t exchange_seed = 0x0123456789abcdef;

//! @brief What is exchanged, and how often: gradients of `Given` whose mean is written as `Got`, to shards where the codec has some, or
//! shards of `Given` whose values all ranks get as `Got`.
template <class Codec, class Given, class Got = Given>
struct exchange_case {
  Codec codec{};
  layout gradient{};
  int world = 2;
  boundaries cuts{};  //!< Of shards. None: equal parts.
  int steps = 3;
  int misaligned =
    0;  //!< How many elements after a multiple of 16 bytes gradients and shards begin.
  int non_finite_step   = -1;  //!< The step, from 0, in which gradients hold a NaN and an Inf.
  reduction_order order = ending_in_shards<Codec> ? reduction_order::direct : reduction_order::ring;
  bool hostile       = false;  //!< What arrives in every round is not what was sent: see `disturb`.
  std::uint64_t seed = exchange_seed;

  //! Every rank's gradient, or the values of all ranks' shards.
  using given_type =
    std::conditional_t<publishing<Codec>, std::vector<Given>, std::vector<std::vector<Given>>>;

  //! What make(rank) gives to each rank; of values, which nobody has to sum, make(0).
  template <class Make>
  [[nodiscard]] given_type given_by(Make const& make) const
  {
    if constexpr (publishing<Codec>) {
      return make(0);
    } else {
      given_type all;
      for (int rank = 0; rank < world; ++rank) { all.push_back(make(rank)); }
      return all;
    }
  }

  friend std::ostream& operator<<(std::ostream& out, exchange_case const& c)
  {
    return out << c.gradient.coordinates << " coordinates, " << c.gradient.tensors.size()
               << " tensors, " << c.world << " ranks, " << c.steps << " steps, " << c.misaligned
               << " elements misaligned, not finite in step " << c.non_finite_step
               << (c.hostile ? ", hostile" : "");
  }
};

inline void require_ok(status const& s)
{
  CAPTURE(s.message);
  REQUIRE(s == status{});
}

//! @brief Scales of three sizes, and zeros.
template <class Scale>
void write_scales(std::span<Scale> scales)
{
  for (std::size_t i = 0; i < scales.size(); ++i) {
    float const size = std::ldexp(1.0f, -static_cast<int>(i % 3) * 4);
    scales[i]        = i % 7 == 0 ? 0.0f : size * (1.0f + 0.1f * static_cast<float>(i % 5));
  }
}

//! @brief Elements of a rank's workspace that a round sends or has brought.
template <class T>
struct wire_piece {
  using element = T;

  std::size_t rank, offset, count;

  [[nodiscard]] std::size_t bytes() const { return count * sizeof(T); }
};

//! @brief The ranks and their memory. The values that a rank holds are zeros at first.
//! @tparam Buffer  Memory of the executor, with the members of `host_buffer`.
template <class Buffer, class Codec, class Given, class Got = Given>
class exchange_run {
  static constexpr bool cut = ending_in_shards<Codec> || publishing<Codec>;

 public:
  using rank_type =
    std::conditional_t<cut, loopback_shard<Codec, Given, Got>, loopback_rank<Codec, Given>>;
  using given_type = typename exchange_case<Codec, Given, Got>::given_type;
  using got_type   = std::vector<std::vector<Got>>;

  //! @param fill  What state and workspace hold before: nothing may depend on it.
  template <class Executor>
  exchange_run(Executor const& exec, exchange_case<Codec, Given, Got> const& c, std::byte fill = {})
    : case_(c)
  {
    for (int rank = 0; rank < c.world; ++rank) {
      auto const plan = plan_of(rank);
      require_ok(plan.check());
      auto const memory = [&](std::deque<Buffer>& of, std::size_t bytes, std::size_t element) {
        return of.emplace_back(bytes, static_cast<std::size_t>(c.misaligned) * element, fill)
          .contents();
      };
      std::size_t const all = plan.coordinates();
      std::size_t own       = all;
      if constexpr (cut) { own = plan.shard_size(); }
      std::size_t const put = publishing<Codec> ? own : all, out = publishing<Codec> ? all : own;
      auto const given     = memory(given_, put * sizeof(Given), sizeof(Given));
      auto const state     = memory(states_, plan.state_bytes(), 0);
      auto const workspace = memory(workspaces_, plan.workspace_bytes(), 0);
      std::span const in{reinterpret_cast<Given*>(given.data()), put};
      if constexpr (cut) {
        auto const got = memory(got_, out * sizeof(Got), sizeof(Got));
        if (publishing<Codec>) { got_.back().write(byte_string(got.size())); }
        ranks_.push_back({plan, in, {reinterpret_cast<Got*>(got.data()), out}, state, workspace});
      } else {
        ranks_.push_back({plan, in, state, workspace});
      }
      require_ok(initialize(exec, plan, state, c.seed));
    }
  }

  //! @brief One step: what every rank gets.
  //! @param watch  watch(round, arrived) is called before each round and, with `arrived`, after it.
  //! @{
  template <class Executor, class... Watch>
  got_type exchange(Executor const& exec, given_type const& in, Watch const&... watch)
  {
    write(in);
    status done;
    auto const asked = allocations_of([&] { done = perform(exec, watch...); });
    require_ok(done);
    // For several threads the runtime of OpenMP may ask.
    if constexpr (std::same_as<Executor, cpu_executor>) { CHECK((asked == 0 || exec.threads > 1)); }
    return read();
  }

  void write(given_type const& in) const
  {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if constexpr (publishing<Codec>) {
        auto const& plan = ranks_[rank].plan;
        auto const begin = static_cast<std::size_t>(plan.shard_begin(static_cast<int>(rank)));
        given_[rank].write(std::as_bytes(std::span{in}.subspan(begin, plan.shard_size())));
      } else {
        given_[rank].write(std::as_bytes(std::span{in[rank]}));
      }
    }
  }

  template <class Executor>
  [[nodiscard]] status perform(Executor const& exec)
  {
    return loopback_exchange(exec, ranks_, case_.order);
  }
  template <class Executor, class Watch>
  [[nodiscard]] status perform(Executor const& exec, Watch const& watch)
  {
    auto const show = [&](auto round, bool arrived) {
      uncounted_allocations const of_the_test;
      watch(round, arrived);
    };
    return walk(typename Codec::stages{}, [&]<class Entry>(Entry entry) -> status {
      if constexpr (is_round<Entry>) {
        show(entry, false);
        status const s = detail::loopback_round(exec, ranks_, case_.order, entry);
        show(entry, true);
        return s;
      } else {
        return detail::for_each_rank(
          ranks_, [&](auto const& r) { return exec.perform(entry, r.plan, r.arrays().of(entry)); });
      }
    });
  }

  [[nodiscard]] got_type read() const
  {
    got_type out;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      auto const bytes = result(rank);
      auto& values     = out.emplace_back(bytes.size() / sizeof(Got));
      if (!bytes.empty()) { std::memcpy(values.data(), bytes.data(), bytes.size()); }
    }
    return out;
  }
  //! @}

  //! @brief Calls visit(wire_piece) for all that the ranks send in a round, or for what has arrived from others.
  template <class Round, class Visit>
  void for_each_piece(Round round, bool arrived, Visit const& visit) const
  {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      auto const& r    = ranks_[rank];
      auto const wire  = wire_of(round, r.plan, r.workspace);
      int const own    = static_cast<int>(rank);
      auto const piece = [&]<class T>(T* first, std::size_t count) {
        if (count == 0) { return; }  // a wire of nothing has no data
        auto const at = reinterpret_cast<std::byte const*>(first) - r.workspace.data();
        visit(wire_piece<std::remove_const_t<T>>{rank, static_cast<std::size_t>(at), count});
      };
      if constexpr (requires { wire.gathered; }) {
        for (int part = 0; part < wire.ranks; ++part) {
          if ((part == own) != arrived) {
            piece(wire.gathered + wire.begin(part), wire.size(part));
          }
        }
      } else if constexpr (requires { wire.sent; }) {
        for (int part = 0; part < wire.ranks && !arrived; ++part) {
          piece(wire.sent + wire.begin(part), wire.size(part));
        }
        if (arrived) { piece(wire.received, size() * wire.size(own)); }
      } else if constexpr (requires { wire.sum; }) {
        for (int part = 0; part < wire.ranks && !arrived; ++part) {
          piece(wire.data + wire.begin(part), wire.size(part));
        }
        if (arrived) { piece(wire.sum, wire.size(own)); }
      } else {
        piece(wire.data, wire.count);
      }
    }
  }

  //! Puts what no rank would send in the place of what has arrived.
  template <class Round>
  void disturb(Round round, int number) const
  {
    for_each_piece(round, true, [&](auto const& piece) {
      byte_string bytes = read(piece);
      tests::disturb(bytes, number + 16 * static_cast<int>(piece.rank));
      write(piece, bytes);
    });
  }
  template <class T>
  [[nodiscard]] byte_string read(wire_piece<T> const& piece) const
  {
    return workspaces_[piece.rank].read(piece.offset, piece.bytes());
  }
  template <class T>
  void write(wire_piece<T> const& piece, byte_string const& bytes) const
  {
    workspaces_[piece.rank].write(bytes, piece.offset);
  }

  void fill_workspaces(std::byte with) const
  {
    for (Buffer const& all : workspaces_) { all.write(byte_string(all.contents().size(), with)); }
  }
  //! Gives every rank scales of its metric.
  void write_scales() const
  {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      auto const& r = ranks_[rank];
      std::vector<metric_scale<Codec>> scales(metric_scales(r.plan, r.state).size());
      tests::write_scales(std::span{scales});
      states_[rank].write(std::as_bytes(std::span{scales}), r.plan.offset("scales"));
    }
  }
  //! Gives every rank the gain of its feedback.
  void write_gains(float gain) const
  {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      states_[rank].write(std::as_bytes(std::span{&gain, 1}), ranks_[rank].plan.offset("gain"));
    }
  }

  [[nodiscard]] rank_type const& operator[](std::size_t rank) const { return ranks_[rank]; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  //! The bytes of what a rank keeps.
  [[nodiscard]] byte_string kept(std::size_t rank) const { return all_of(states_[rank]); }
  //! The bytes of what a rank got.
  [[nodiscard]] byte_string result(std::size_t rank) const
  {
    return all_of(cut ? got_[rank] : given_[rank]);
  }

 protected:
  exchange_case<Codec, Given, Got> case_;

 private:
  [[nodiscard]] static byte_string all_of(Buffer const& memory)
  {
    return memory.read(0, memory.contents().size());
  }
  [[nodiscard]] auto plan_of(int rank) const
  {
    world const ranks{.size = case_.world, .rank = rank};
    if constexpr (cut) {
      return case_.codec.plan(case_.gradient, ranks, case_.cuts);
    } else {
      return case_.codec.plan(case_.gradient, ranks);
    }
  }

  std::deque<Buffer> given_, got_, states_, workspaces_;
  std::vector<rank_type> ranks_;
};

//! What the ranks got, one shard after the other, or the values that all of them have.
template <class Codec, class Got>
[[nodiscard]] std::vector<Got> joined(std::vector<std::vector<Got>> const& out)
{
  std::vector<Got> all;
  for (auto const& of_rank : out) {
    if (!ending_in_shards<Codec>) {
      REQUIRE(same_bytes(of_rank, out[0]));
    } else {
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    }
  }
  return ending_in_shards<Codec> ? all : out[0];
}

}  // namespace tersum::tests
