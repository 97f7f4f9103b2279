// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Measures the parts of an exchange, on any back end.
//!
//! A `Backend` is constructed from an executor and the bytes that will be taken, and has `exec()`, `take<T>(count)`,
//! `fill(gradient)`, `copy(to, from)`, `same(bytes, bytes)`, `writes_all(out, state, work)`, `alternate(state, turns, work, copy)`
//! and `turns_for(bytes)`. What goes wrong is thrown.

#pragma once

#include "support/operation.hpp"
#include "support/traffic.hpp"

#include <tersum/exchange/exchange.hpp>
#include <tersum/layout.hpp>
#include <tersum/single_process/loopback.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tersum_bench {

using bytes = std::span<std::byte>;

inline void require(tersum::status const& status)
{
  if (!status.ok()) { throw std::runtime_error{std::string{status.message}}; }
}

//! Ranks of an exchange, and of codecs whose parts are re-encoded by owners.
inline constexpr int world_size = 4;

template <class Codec>
inline constexpr bool needs_matrices = tersum::is_low_rank<Codec>;

//! Whether a rank decodes what several sent, part by part.
template <class Codec>
inline constexpr bool adds_parts =
  tersum::scattering<Codec> || tersum::sharding<Codec> || tersum::copying<Codec>;

//! Whether all ranks get what each has encoded.
template <class Codec>
inline constexpr bool gathers = tersum::gathering<Codec> || tersum::copying<Codec>;

//! Whether payloads are summed pairwise on their way.
template <class Codec>
inline constexpr bool has_sum =
  !needs_matrices<Codec> && !adds_parts<Codec> && !tersum::gathering<Codec>;

//! @brief Whether there is something to measure. The stages of low-rank codecs have a benchmark of their own.
template <class Codec>
[[nodiscard]] constexpr bool has_part(part what)
{
  if (what >= part::exchange) { return !tersum::sharding<Codec>; }
  switch (what) {
    case part::norms: return tersum::agrees<Codec> && !needs_matrices<Codec>;
    case part::encode: return !tersum::feeds_back<Codec> && !needs_matrices<Codec>;
    case part::encode_feedback: return tersum::feeds_back<Codec> && !needs_matrices<Codec>;
    case part::recompress: return tersum::scattering<Codec>;
    case part::reduce: return has_sum<Codec>;
    default: return true;
  }
}

//! How an exchange is cut into tensors.
enum class cut : std::uint8_t {
  whole,    //!< One vector, or where factors are sent one matrix.
  tensors,  //!< Matrices of 1024 columns and at most 1024 rows.
  misaligned,  //!< The same with a bias of ten coordinates before each, and what is left of a row at the end.
};

//! @brief A gradient of `n` coordinates, n a multiple of 1024.
template <class Codec>
class gradient_shape {
 public:
  explicit gradient_shape(std::uint64_t n, cut how = cut::whole) : n_(n)
  {
    if (how == cut::whole) {
      if (needs_matrices<Codec>) { add(n / columns, columns); }
      return;
    }
    while (next_ < n) {
      if (how == cut::misaligned) { add(std::min<std::uint64_t>(bias, n - next_), 1); }
      if (auto const rows = std::min((n - next_) / columns, columns); rows > 0) {
        add(rows, columns);
      } else if (next_ < n) {
        add(n - next_, 1);
      }
    }
  }
  gradient_shape(gradient_shape const&)            = delete;
  gradient_shape& operator=(gradient_shape const&) = delete;

  [[nodiscard]] tersum::layout layout() const { return {.coordinates = n_, .tensors = tensors_}; }

 private:
  static constexpr std::uint64_t columns = 1024;
  static constexpr std::uint64_t bias    = 10;

  void add(std::uint64_t rows, std::uint64_t of_columns)
  {
    tensors_.push_back({.rows = rows, .columns = of_columns, .offset = next_});
    next_ += rows * of_columns;
  }

  std::uint64_t n_;
  std::uint64_t next_ = 0;
  std::vector<tersum::tensor> tensors_{};
};

//! @brief One rank's memory, and an array of the size of its gradient for the reference.
template <class Element>
struct rank_memory {
  std::span<Element> gradient;
  std::span<Element> other;
  bytes state;
  bytes workspace;

  template <class Plan>
  [[nodiscard]] static std::size_t bytes_of(Plan const& plan)
  {
    constexpr std::size_t alignment = 4096;
    return 2 * plan.coordinates() * sizeof(Element) + plan.state_bytes() + plan.workspace_bytes() +
           4 * alignment;
  }

  template <class Backend, class Plan>
  [[nodiscard]] static rank_memory take(Backend& room, Plan const& plan)
  {
    rank_memory const taken{room.template take<Element>(plan.coordinates()),
                            room.template take<Element>(plan.coordinates()),
                            room.template take<std::byte>(plan.state_bytes()),
                            room.template take<std::byte>(plan.workspace_bytes())};
    room.fill(taken.gradient);
    require(initialize(room.exec(), plan, taken.state, 1));
    return taken;
  }
};

//! @brief The local parts of an exchange.
template <class Backend, class Codec, class Element>
class local_bench {
 public:
  using memory = rank_memory<Element>;

  local_bench(Codec const& codec, typename Backend::executor const& exec, std::uint64_t n)
    : shape_(n),
      plan_(codec.plan(shape_.layout(), {.size = adds_parts<Codec> ? world_size : 1, .rank = 0})),
      turns_(Backend::turns_for(n * sizeof(Element))), room_(exec, turns_ * memory::bytes_of(plan_))
  {
    require(plan_.check());
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      ranks_.push_back(memory::take(room_, plan_));
      agree(ranks_[turn]);
      encode(ranks_[turn]);
      receive(ranks_[turn]);
    }
  }

  //! @tparam Decodes  Without it there is less to compile.
  template <bool Decodes = true>
  void run(benchmark::State& state, part what)
  {
    auto const work = [&](memory const& m) {
      switch (what) {
        case part::norms: return agree(m);
        case part::encode:
        case part::encode_feedback: return encode(m);
        case part::local: return agree(m), encode(m);
        case part::recompress: return recompress(m);
        default:
          if constexpr (tersum::sharding<Codec>) {
            auto const shard = m.gradient.first(plan_.shard_size());
            require(decode_shard(room_.exec(), plan_, shard, m.state, m.workspace));
          } else if constexpr (Decodes) {
            require(tersum::decode(room_.exec(), plan_, m.gradient, m.state, m.workspace));
          }
      }
    };
    memory const& first = ranks_[0];
    if (!room_.writes_all(output(what), first.state, [&] { work(first); })) {
      throw std::runtime_error{"some of the output was not written"};
    }
    run_times const times = room_.alternate(
      state,
      turns_,
      [&](std::size_t turn) { work(ranks_[turn]); },
      [&](std::size_t turn) { room_.copy(ranks_[turn].other, ranks_[turn].gradient); });
    traffic<Codec, Element> const moved{plan_};
    set_counters(state, plan_, moved.of(what), moved.gradient(), times);
  }

 private:
  void agree(memory const& m)
  {
    require(measure(room_.exec(), plan_, m.gradient, m.state, m.workspace));
  }

  void encode(memory const& m)
  {
    require(tersum::encode(room_.exec(), plan_, m.gradient, m.state, m.workspace));
  }

  void recompress(memory const& m)
  {
    if constexpr (tersum::scattering<Codec>) {
      require(tersum::recompress(room_.exec(), plan_, m.gradient, m.state, m.workspace));
    }
  }

  // As if all ranks had sent what this one sends to itself, and all parts had the codes of its own.
  void receive(memory const& m)
  {
    auto const repeat = [&](auto* to, auto const* from, std::size_t count) {
      for (std::size_t rank = 0; rank < world_size; ++rank) {
        if (to + rank * count == from) { continue; }
        require(room_.exec().copy(to + rank * count, from, count));
      }
    };
    if constexpr (tersum::sharding<Codec>) {
      auto const shards = shards_wire(plan_, m.workspace);
      repeat(shards.received, shards.sent, shards.count / world_size);
    } else if constexpr (tersum::scattering<Codec>) {
      auto const scattered = scattered_wire(plan_, m.workspace);
      repeat(scattered.received, scattered.sent, scattered.count);
      recompress(m);
    }
    if constexpr (tersum::scattering<Codec> || tersum::copying<Codec>) {
      auto const gathered = gathered_wire(plan_, m.workspace);
      repeat(gathered.gathered, gathered.gathered, gathered.count);
    }
  }

  [[nodiscard]] bytes output(part what)
  {
    memory const& m = ranks_[0];
    if constexpr (tersum::sharding<Codec>) {
      if (what == part::decode) {
        return std::as_writable_bytes(m.gradient.first(plan_.shard_size()));
      }
    }
    if (what == part::decode) { return std::as_writable_bytes(m.gradient); }
    if constexpr (tersum::scattering<Codec> || gathers<Codec>) {
      if (what == part::recompress || gathers<Codec>) {
        auto const part = gathered_wire(plan_, m.workspace);
        return std::as_writable_bytes(std::span{part.gathered, part.count});
      }
    }
    if constexpr (gathers<Codec>) {
      return {};
    } else {
      // Of shards the first: others have room for a chunk that a boundary cuts.
      constexpr std::size_t parts = tersum::sharding<Codec> ? world_size : 1;
      return what == part::norms
               ? m.workspace.subspan(plan_.offset("agreed"), plan_.agreed_bytes())
               : m.workspace.subspan(plan_.offset("payload"), plan_.payload_bytes() / parts);
    }
  }

  gradient_shape<Codec> shape_;
  tersum::plan<Codec> plan_;
  std::size_t turns_;
  Backend room_;
  std::vector<memory> ranks_{};
};

//! @brief Payload + payload, in its place as transports add. The reference copies one payload.
template <class Element, class Backend, class Codec>
void run_reduce(benchmark::State& state,
                Codec const& codec,
                typename Backend::executor const& exec,
                std::uint64_t n)
{
  auto const plan         = codec.plan(tersum::layout{n}, tersum::world{});
  std::size_t const size  = plan.payload_bytes();
  std::size_t const turns = Backend::turns_for(size);
  using memory            = rank_memory<Element>;
  Backend room{exec, memory::bytes_of(plan) + 3 * turns * (size + 4096)};
  memory const m = memory::take(room, plan);
  require(measure(room.exec(), plan, m.gradient, m.state, m.workspace));
  require(encode(room.exec(), plan, m.gradient, m.state, m.workspace));
  auto const payload = payload_wire(plan, m.workspace);
  using element      = typename decltype(payload)::element;
  struct pair {
    std::span<element> a, b, to;
  };
  std::vector<pair> pairs;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    auto const take = [&] { return room.template take<element>(payload.count); };
    pair const p{take(), take(), take()};
    require(room.exec().copy(p.a.data(), payload.data, payload.count));
    require(room.exec().copy(p.b.data(), payload.data, payload.count));
    pairs.push_back(p);
  }
  auto const add = [&](pair const& p, std::span<element> to) {
    require(room.exec().reduce(payload.op, to.data(), p.a.data(), p.b.data(), payload.count));
  };
  if (!room.writes_all(
        std::as_writable_bytes(pairs[0].to), {}, [&] { add(pairs[0], pairs[0].to); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  run_times const times = room.alternate(
    state,
    turns,
    [&](std::size_t turn) { add(pairs[turn], pairs[turn].a); },
    [&](std::size_t turn) { room.copy(pairs[turn].to, pairs[turn].b); });
  auto const one = static_cast<double>(size);
  set_counters(state, plan, 3 * one, one, times);
}

//! Inputs that take turns in an exchange, at most: small ones are found in the cache, as they are where gradients were just made.
inline constexpr std::size_t most_exchanges = 16;

//! @brief What an exchange is measured on, and how.
struct exchange_form {
  int ranks   = world_size;
  cut tensors = cut::whole;
  bool replayed =
    false;  //!< From a captured graph: the back end has `capture(work)`, which gives a graph.
};

[[nodiscard]] constexpr exchange_form form_of(part what)
{
  return {.ranks    = what == part::exchange ? world_size : 2,
          .tensors  = what == part::pair_tensors      ? cut::tensors
                      : what == part::pair_misaligned ? cut::misaligned
                                                      : cut::whole,
          .replayed = what == part::pair_replayed};
}

//! @brief Whether a codec takes a gradient that is cut like this; some take one vector only.
template <class Codec>
[[nodiscard]] bool takes(Codec const& codec, std::uint64_t n, exchange_form const& form)
{
  gradient_shape<Codec> const shape{n, form.tensors};
  return codec.plan(shape.layout(), {.size = form.ranks, .rank = 0}).check().ok();
}

//! @brief The exchange of some ranks in this memory. The reference copies all their gradients.
//!
//! Where the back end has `profile(work)`, it is given one exchange that comes after another one.
template <class Element, class Backend, class Codec>
void run_exchange(benchmark::State& state,
                  Codec const& codec,
                  typename Backend::executor const& exec,
                  std::uint64_t n,
                  exchange_form const& form = {})
{
  gradient_shape<Codec> const shape{n, form.tensors};
  auto const size    = static_cast<std::size_t>(form.ranks);
  auto const plan_of = [&](int rank) {
    return codec.plan(shape.layout(), {.size = form.ranks, .rank = rank});
  };
  using memory    = rank_memory<Element>;
  using rank_type = tersum::loopback_rank<Codec, Element>;
  std::size_t const turns =
    std::min(Backend::turns_for(size * n * sizeof(Element)), most_exchanges);
  Backend room{exec, turns * size * memory::bytes_of(plan_of(0))};
  std::vector<std::vector<rank_type>> ranks(turns);
  std::vector<std::span<Element>> sources;
  for (auto& world : ranks) {
    for (int rank = 0; rank < form.ranks; ++rank) {
      auto const plan = plan_of(rank);
      require(plan.check());
      memory const m = memory::take(room, plan);
      room.copy(m.other, m.gradient);
      sources.push_back(m.other);
      world.push_back({plan, m.gradient, m.state, m.workspace});
    }
  }
  auto const work = [&](std::size_t turn) { require(loopback_exchange(room.exec(), ranks[turn])); };
  work(0);
  if (!room.same(std::as_writable_bytes(ranks[0].front().gradient),
                 std::as_writable_bytes(ranks[0].back().gradient))) {
    throw std::runtime_error{"the ranks ended with different means"};
  }
  // The copy also makes gradients of the means again.
  auto const restore = [&](std::size_t turn) {
    for (std::size_t rank = 0; rank < size; ++rank) {
      room.copy(ranks[turn][rank].gradient, sources[turn * size + rank]);
    }
  };
  restore(0);
  if constexpr (requires { room.profile([] {}); }) {
    room.profile([&] { work(0); });
  }
  auto const measured = [&](auto const& work_of_turn) {
    run_times const times = room.alternate(state, turns, work_of_turn, restore);
    auto const one        = static_cast<double>(n * sizeof(Element));
    set_counters(state, ranks[0][0].plan, 2 * one, one, times);
  };
  if constexpr (requires { room.capture([] {}); }) {
    if (form.replayed) {
      std::vector<decltype(room.capture([] {}))> graphs;
      for (std::size_t turn = 0; turn < turns; ++turn) {
        graphs.push_back(room.capture([&] { work(turn); }));
      }
      return measured([&](std::size_t turn) { graphs[turn].launch(); });
    }
  }
  measured(work);
}

//! @brief Measures any part of the exchange that a codec has.
template <class Element, class Backend, class Codec>
void run_part(benchmark::State& state,
              part what,
              Codec const& codec,
              typename Backend::executor const& exec,
              std::uint64_t n)
{
  if (what >= part::exchange) {
    return run_exchange<Element, Backend>(state, codec, exec, n, form_of(what));
  }
  if constexpr (has_sum<Codec>) {
    if (what == part::reduce) { return run_reduce<Element, Backend>(state, codec, exec, n); }
  }
  local_bench<Backend, Codec, Element>{codec, exec, n}.run(state, what);
}

//! Runs a benchmark's body; what it throws becomes the benchmark's error.
template <class Body>
void guarded(benchmark::State& state, Body const& body)
{
  try {
    body();
  } catch (std::exception const& problem) {
    state.SkipWithError(problem.what());
  }
}

}  // namespace tersum_bench
