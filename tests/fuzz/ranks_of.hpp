// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What exchange_ranks.hpp declares, for one codec.

#pragma once

#include "exchange_ranks.hpp"
#include "guarded_memory.hpp"

#include <tersum/codec_kinds.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! The CPU, where what arrives may be something else than what was sent.
struct tampering_executor : cpu_executor {
  tampering const* tamper = nullptr;

  template <reduce_op Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    disturb(const_cast<typename Op::element*>(a), count);
    status const s = cpu_executor::reduce(op, to, a, b, count);
    disturb(to, count);
    return s;
  }

  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    status const s = cpu_executor::copy(to, from, count);
    disturb(to, count);
    return s;
  }

 private:
  template <class T>
  void disturb(T* data, std::size_t count) const
  {
    if (tamper != nullptr && *tamper) { (*tamper)(std::as_writable_bytes(std::span{data, count})); }
  }
};

template <class Codec, class Element>
class ranks_of final : public tried_ranks {
  static constexpr bool shards    = ending_in_shards<Codec>;
  static constexpr bool publishes = publishing<Codec>;
  static constexpr bool cut       = shards || publishes;
  using rank_type =
    std::conditional_t<cut, loopback_shard<Codec, Element>, loopback_rank<Codec, Element>>;

 public:
  //! Shards are unequal in every second length, and some of them empty.
  ranks_of(Codec const& codec, layout const& gradient, int world, int shift)
  {
    if constexpr (cut) {
      if (gradient.coordinates % 2 != 0) { cuts_ = unequal(gradient.coordinates, world); }
    }
    for (int rank = 0; rank < world; ++rank) {
      tersum::v0::world const of{.size = world, .rank = rank};
      if constexpr (cut) {
        plans_.push_back(codec.plan(gradient, of, cuts_));
      } else {
        plans_.push_back(codec.plan(gradient, of));
      }
    }
    if (!check().ok()) { return; }
    for (auto const& plan : plans_) {
      std::size_t const shifted = static_cast<std::size_t>(shift) * sizeof(Element);
      gradients_.emplace_back(gradient.coordinates * sizeof(Element), shifted);
      states_.emplace_back(plan.state_bytes());
      workspaces_.emplace_back(plan.workspace_bytes());
      auto const values = gradients_.back().bytes();
      std::span const whole{reinterpret_cast<Element*>(values.data()), gradient.coordinates};
      if constexpr (cut) {
        auto const memory =
          shards_.emplace_back(plan.shard_size() * sizeof(Element), shifted).bytes();
        std::span const own{reinterpret_cast<Element*>(memory.data()), plan.shard_size()};
        auto const state = states_.back().bytes(), workspace = workspaces_.back().bytes();
        if constexpr (publishes) {
          ranks_.push_back({plan, own, whole, state, workspace});
        } else {
          ranks_.push_back({plan, whole, own, state, workspace});
        }
      } else {
        ranks_.push_back({plan, whole, states_.back().bytes(), workspaces_.back().bytes()});
      }
    }
  }

  [[nodiscard]] status check() const override
  {
    for (auto const& plan : plans_) {
      if (status const s = plan.check(); !s.ok()) { return s; }
    }
    return {};
  }

  [[nodiscard]] status initialize(exchange_settings const& settings, std::uint64_t seed) override
  {
    for (auto const& r : ranks_) {
      std::ranges::fill(r.state, settings.filling);
      if constexpr (publishes) { std::ranges::fill(r.got, Element{}); }
      status const s = tersum::initialize(executor_of(settings), r.plan, r.state, seed);
      if (!s.ok()) { return s; }
    }
    return {};
  }

  [[nodiscard]] status exchange(exchange_settings const& settings, gradients& of_ranks) override
  {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      put(of_ranks[rank], ranks_[rank]);
      std::ranges::fill(ranks_[rank].workspace, settings.filling);
    }
    auto const& ranks = ranks_;
    auto const order  = cut ? reduction_order::direct : settings.order;
    auto const run    = [&] { return loopback_exchange(executor_of(settings), ranks, order); };
    status s;
    if constexpr (publishes) {
      std::vector<std::vector<Element>> held;
      for (auto const& r : ranks) { held.emplace_back(r.got.begin(), r.got.end()); }
      s = run();
      // A refused exchange may write neither the values nor, as for others, what was given.
      bool const kept = std::ranges::equal(ranks, held, [](auto const& r, auto const& before) {
        return std::memcmp(r.got.data(), before.data(), r.got.size_bytes()) == 0;
      });
      if (!s.ok() && kept) { return s; }
    } else if constexpr (shards) {
      for (auto& shard : shards_) { std::ranges::fill(shard.bytes(), settings.filling); }
      s = run();
      if (s.ok()) { assemble_shards(); }
    } else {
      s = run();
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::ranges::transform(
        whole(ranks_[rank]), of_ranks[rank].begin(), [](Element v) { return to_float(v); });
    }
    return s;
  }

  void round(gradients& of_ranks) const override
  {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::size_t at = 0;
      for (float& v : of_ranks[rank]) {
        v = owns(ranks_[rank], at++) ? to_float(from_float<Element>(v)) : 0;
      }
    }
  }

  [[nodiscard]] std::span<std::byte> state(int rank) override { return at(rank).state; }

  [[nodiscard]] state_seal seal_state(int rank) const override
  {
    return tersum::seal_state(at(rank).plan, at(rank).state);
  }

  [[nodiscard]] status check_state(int rank) const override
  {
    return tersum::check_state(at(rank).plan, at(rank).state);
  }

  [[nodiscard]] status check_state(int rank, state_seal const& seal) const override
  {
    return tersum::check_state(at(rank).plan, at(rank).state, seal);
  }

  [[nodiscard]] std::size_t common_bytes() const override
  {
    std::size_t end = plans_[0].state_bytes();
    for (std::size_t const own : {residual_offset(), plans_[0].offset("owner_residual")}) {
      if (own != 0) { end = std::min(end, own); }
    }
    return end;
  }

  [[nodiscard]] std::span<float const> residual(int rank) override
  {
    if constexpr (!feeds_back<Codec>) { return {}; }
    std::uint64_t length = plans_[0].coordinates();
    if constexpr (publishes) { length = at(rank).plan.shard_size(); }
    return {reinterpret_cast<float const*>(at(rank).state.data() + residual_offset()), length};
  }

  [[nodiscard]] std::span<tensor_record const> records(int rank) override
  {
    return {
      reinterpret_cast<tensor_record const*>(at(rank).state.data() + plans_[0].offset("records")),
      static_cast<std::size_t>(header(rank).tensors)};
  }

  [[nodiscard]] std::span<chunk_entry const> table(int rank) override
  {
    if constexpr (sends<Codec, payload::factors> || sends<Codec, payload::coordinates>) {
      return {};
    } else {
      return {
        reinterpret_cast<chunk_entry const*>(at(rank).state.data() + plans_[0].offset("table")),
        static_cast<std::size_t>(header(rank).chunks)};
    }
  }

  [[nodiscard]] bool travels() const override
  {
    if constexpr (requires { plans_[0].travels(); }) { return plans_[0].travels(); }
    return true;
  }

  [[nodiscard]] bool compresses() const override
  {
    bool all_bypass = false;
    if constexpr (requires { plans_[0].all_bypass(); }) { all_bypass = plans_[0].all_bypass(); }
    return travels() && !all_bypass && plans_[0].compressed() > 0;
  }

  [[nodiscard]] int world() const override { return static_cast<int>(plans_.size()); }

  [[nodiscard]] bool intact() const override
  {
    auto const whole = [](auto const& memory) { return memory.intact(); };
    return std::ranges::all_of(gradients_, whole) && std::ranges::all_of(shards_, whole) &&
           std::ranges::all_of(states_, whole) && std::ranges::all_of(workspaces_, whole);
  }

 private:
  //! Boundaries of shards, the first of which is empty among three ranks and more.
  [[nodiscard]] static std::vector<std::uint64_t> unequal(std::uint64_t length, int world)
  {
    std::vector<std::uint64_t> cuts{0};
    for (int rank = 1; rank < world; ++rank) {
      auto const r = static_cast<std::uint64_t>(rank);
      cuts.push_back(length / 3 * (r - 1) / static_cast<std::uint64_t>(world));
    }
    cuts.push_back(length);
    return cuts;
  }

  //! What has all coordinates.
  [[nodiscard]] static std::span<Element> whole(rank_type const& r)
  {
    if constexpr (publishes) {
      return r.got;
    } else if constexpr (shards) {
      return r.given;
    } else {
      return r.gradient;
    }
  }

  //! Whether a rank gives that coordinate: of values only those of its shard.
  [[nodiscard]] static bool owns([[maybe_unused]] rank_type const& r,
                                 [[maybe_unused]] std::uint64_t at)
  {
    if constexpr (publishes) {
      std::uint64_t const begin = r.plan.shard_begin(r.plan.ranks().rank);
      return at >= begin && at < begin + r.plan.shard_size();
    }
    return true;
  }

  //! Writes what a rank gives.
  static void put(std::vector<float> const& given, rank_type const& r)
  {
    if constexpr (publishes) {
      auto const begin = static_cast<std::ptrdiff_t>(r.plan.shard_begin(r.plan.ranks().rank));
      std::transform(given.begin() + begin,
                     given.begin() + begin + std::ssize(r.given),
                     r.given.begin(),
                     [](float v) { return from_float<Element>(v); });
    } else {
      std::ranges::transform(
        given, whole(r).begin(), [](float v) { return from_float<Element>(v); });
    }
  }

  //! Gives every rank the mean of which each has a shard.
  void assemble_shards()
  {
    for (std::size_t owner = 0; owner < ranks_.size(); ++owner) {
      auto const begin =
        static_cast<std::ptrdiff_t>(ranks_[owner].plan.shard_begin(static_cast<int>(owner)));
      for (auto const& r : ranks_) {
        std::ranges::copy(ranks_[owner].got, r.given.begin() + begin);
      }
    }
  }

  [[nodiscard]] std::size_t residual_offset() const { return plans_[0].offset("residual"); }

  [[nodiscard]] static tampering_executor executor_of(exchange_settings const& settings)
  {
    tampering_executor exec{};
    exec.threads      = settings.threads;
    exec.instructions = settings.instructions;
    exec.tamper       = &settings.tamper;
    return exec;
  }

  [[nodiscard]] rank_type const& at(int rank) const
  {
    return ranks_[static_cast<std::size_t>(rank)];
  }

  std::vector<std::uint64_t> cuts_;
  std::vector<plan<Codec>> plans_;
  std::deque<guarded_memory> gradients_, shards_, states_, workspaces_;
  std::vector<rank_type> ranks_;
};

//! The codec that is a constant of that name, for gradients of an element.
template <auto const& Codec, class Element>
[[nodiscard]] tried_codec try_codec(std::string_view name, bool sees_all = true)
{
  using codec         = std::remove_cvref_t<decltype(Codec)>;
  auto far            = reach::chunk;
  bool const low_rank = sends<codec, payload::factors>;
  if constexpr (sends<codec, payload::coordinates>) {
    far = reach::codes;
  } else if constexpr (sends<codec, payload::values> && !selects<codec>) {
    far = reach::coordinate;
  } else if constexpr (selects<codec>) {
    far = reach::codes;
  } else if constexpr (per_tensor<codec>) {
    far = reach::tensor;
  }
  if (low_rank) { far = reach::tensor; }
  std::string_view element = "float";
  if constexpr (std::is_same_v<Element, half>) { element = "half"; }
  if constexpr (std::is_same_v<Element, bfloat16>) { element = "bfloat16"; }
  return {.name    = name,
          .element = element,
          .make =
            [](layout const& gradient, int world, int shift) {
              return std::unique_ptr<tried_ranks>{
                new ranks_of<codec, Element>{Codec, gradient, world, shift}};
            },
          .feeds_back    = feeds_back<codec>,
          .tracks        = tracks<codec>,
          .keeps_scales  = keeps_metric<codec>,
          .keeps_values  = codes_differences<codec>,
          .needs_tensors = low_rank,
          .sees_all      = sees_all,
          .flags_shards  = sharding<codec>,
          .publishes     = publishing<codec>,
          .far           = far};
}

//! @brief Lists a codec that this program was built with, while it starts.
struct listed_codec {
  explicit listed_codec(tried_codec const& codec) { all().push_back(codec); }
  static std::vector<tried_codec>& all()
  {
    static std::vector<tried_codec> list;
    return list;
  }
};

}  // namespace tersum::tests

//! Lists the preset of that name, for gradients of an element; in namespace tersum::tests.
#define TERSUM_TRY(preset, element)                                                                \
  static listed_codec const try_##preset##_##element                                               \
  {                                                                                                \
    try_codec<presets::preset, element>(#preset)                                                   \
  }
