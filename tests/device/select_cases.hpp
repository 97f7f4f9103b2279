// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The selection of chunks on any executor, against sorting, and against what an exchange chooses.

#pragma once

#include "placed_array.hpp"

#include <tersum/device/chunk_norms.hpp>
#include <tersum/device/select_chunks.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace tersum::tests {

template <class Placement, class T>
using array_on = typename Placement::template array<T>;

//! Norms over sixteen octaves, some of them equal, some zero or infinite.
template <class Norm>
[[nodiscard]] std::vector<Norm> sample_norms(std::size_t count)
{
  std::mt19937 random(17);
  std::normal_distribution<float> octave{0.0f, 4.0f};
  std::vector<Norm> norms(count);
  for (std::size_t i = 0; i < count; ++i) {
    float value = std::exp2(octave(random));
    if (i % 5 == 0) { value = 1.5f; }
    if (i % 31 == 0) { value = 0.0f; }
    if (i % 97 == 0) { value = std::numeric_limits<float>::infinity(); }
    norms[i] = from_float<Norm>(value);
  }
  return norms;
}

//! The `most` largest by a stable sort; of equal ones the first, or those from the one on to which the golden ratio points.
template <class Norm>
[[nodiscard]] std::vector<bool> largest_norms(std::vector<Norm> const& norms,
                                              std::size_t most,
                                              std::uint64_t turn = 0)
{
  std::vector<std::size_t> order(norms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return to_float(norms[a]) > to_float(norms[b]);
  });
  if (most < order.size()) {
    float const least = to_float(norms[order[most]]);
    auto const equal  = [&](std::size_t i) { return to_float(norms[i]) == least; };
    auto const begin  = std::find_if(order.begin(), order.end(), equal);
    auto const end    = std::find_if_not(begin, order.end(), equal);
    double const part = static_cast<double>(turn) * (std::sqrt(5.0) - 1) / 2;
    auto const first  = (part - std::floor(part)) * static_cast<double>(end - begin);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(first), end);
  }
  std::vector<bool> taken(norms.size());
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) { taken[order[i]] = true; }
  return taken;
}

//! @param few  Whether to take of them one number that the budget ends amid, and all that are not zero.
template <class Norm, class Placement>
void check_top_chunks(Placement const& on,
                      std::size_t count,
                      std::uint64_t turn = 0,
                      bool few           = false)
{
  CAPTURE(count);
  CAPTURE(turn);
  auto const norms = sample_norms<Norm>(count);
  array_on<Placement, Norm> const from{norms};
  std::size_t const above_zero = static_cast<std::size_t>(
    std::count_if(norms.begin(), norms.end(), [](Norm n) { return to_float(n) > 0; }));
  for (std::size_t const most :
       {std::size_t{0}, std::size_t{1}, count / 8, count / 2, above_zero}) {
    if (few && most != count / 8 && most != above_zero) { continue; }
    CAPTURE(most);
    // [select_chunks]
    array_on<Placement, std::uint32_t> const places{count};
    array_on<Placement, std::byte> const workspace{select_chunks_workspace_bytes()};
    std::span<Norm const> const read = from.span();
    auto const rule                  = rule_of(top_chunks<64>{}, static_cast<std::uint32_t>(most));
    REQUIRE(select_chunks(on.exec, rule, read, workspace.span(), places.span(), turn) == status{});
    // [select_chunks]
    auto const got          = places.read();
    auto const want         = largest_norms(norms, most, turn);
    std::uint32_t number    = 0;
    std::size_t differences = 0;
    for (std::size_t c = 0; c < count; ++c) {
      auto const place = chunk_place::of(got[c]);
      bool const same  = want[c] ? place.level == 1 && place.number == number : got[c] == 0;
      if (!same) { ++differences; }
      if (want[c]) { ++number; }
    }
    CHECK(differences == 0);
    auto const bytes = workspace.read();
    chosen_chunks chosen;
    std::memcpy(&chosen, bytes.data(), sizeof(chosen));
    CHECK(chosen.count[1] == number);
    CHECK(chosen.count[0] == count - number);
  }
}

//! Places and what was chosen are those of the CPU, under rules of one, three and seven widths: for norms over many octaves, for
//! norms within one, whose first digits are equal, for equal ones, and where the budget pays for empty chunks; each in another turn.
template <class Placement>
void check_choice_as_cpu(Placement const& on, std::size_t count)
{
  CAPTURE(count);
  std::mt19937 random(29);
  std::normal_distribution<float> small{0.0f, 0.1f};
  std::vector<float> within(count), equal(count, 3.0f), few(count);
  for (float& norm : within) { norm = std::exp2(small(random)); }
  for (std::size_t i = 0; i < count; ++i) {
    few[i] = i % 3 == 0 ? std::ldexp(1.0f, -static_cast<int>(random() % 9)) : 0.0f;
  }
  auto const several = allocated_chunks<256, 2, 4, 8>{};
  auto const words   = std::uint64_t{count} * 32;
  // Keys whose middles do not tell the step, though norms have few bits; not all first steps are paid.
  chunk_rule alike = rule_of(several, saturating_sum<8>{}, 4, words / 3);
  for (std::uint32_t step = 1; step < alike.steps; ++step) {
    alike.offset[step] = alike.offset[0] - (step << 20) - step;
  }
  chunk_rule const rules[] = {alike,
                              rule_of(top_chunks<64>{}, static_cast<std::uint32_t>(count / 3)),
                              rule_of(top_chunks<64>{}, static_cast<std::uint32_t>(count / 2)),
                              rule_of(several, saturating_sum<8>{}, 4, words),
                              rule_of(several, saturating_sum<8>{}, 4, words * 2 - 40),
                              presets::allocated_two_shot<>{.chunker = {.bits = 3}}
                                .plan(layout{count * 512}, world{.size = 4, .rank = 0})
                                .selection_rule()};
  std::uint64_t turn       = 0;
  for (auto const& norms : {sample_norms<float>(count), within, equal, few}) {
    array_on<Placement, float> const from{norms};
    for (chunk_rule const& rule : rules) {
      CAPTURE(&rule - rules);
      CAPTURE(turn);
      std::vector<word4> room(select_chunks_workspace_bytes() / 16);
      std::vector<std::uint32_t> want(count);
      auto const memory = std::as_writable_bytes(std::span{room});
      REQUIRE(
        select_chunks(
          cpu_executor{}, rule, std::span<float const>{norms}, memory, std::span{want}, turn) ==
        status{});
      array_on<Placement, std::uint32_t> const places{count};
      array_on<Placement, std::byte> const workspace{select_chunks_workspace_bytes()};
      std::span<float const> const read = from.span();
      REQUIRE(select_chunks(on.exec, rule, read, workspace.span(), places.span(), turn) ==
              status{});
      CHECK(places.read() == want);
      CHECK(std::memcmp(workspace.read().data(), room.data(), sizeof(chosen_chunks)) == 0);
    }
    ++turn;
  }
}

//! chunk_norms and select_chunks make the places of an exchange, of one width and of several.
template <class Placement>
void check_choice_of_exchange(Placement const& on, std::size_t coordinates)
{
  CAPTURE(coordinates);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(coordinates);
  for (std::size_t i = 0; i < coordinates; ++i) {
    gradient[i] = normal(random) * std::exp2(static_cast<float>(i / 256 % 9));
  }
  auto const compare = [&](auto const& codec) {
    using codec_type = std::remove_cvref_t<decltype(codec)>;
    auto const plan  = codec.plan(layout{.coordinates = coordinates, .bypass_unpaid = false},
                                 world{.size = 1, .rank = 0});
    REQUIRE(plan.check() == status{});
    std::vector<word4> state(plan.state_bytes() / 16 + 1),
      workspace(plan.workspace_bytes() / 16 + 1);
    auto const states = std::as_writable_bytes(std::span{state});
    auto const works  = std::as_writable_bytes(std::span{workspace});
    cpu_executor const host;
    auto copy = gradient;
    REQUIRE(initialize(host, plan, states, 3) == status{});
    REQUIRE(measure(host, plan, copy, states, works) == status{});
    REQUIRE(encode(host, plan, copy, states, works) == status{});
    std::vector<std::uint32_t> want(plan.chunks());
    std::memcpy(
      want.data(), works.data() + plan.offset("places"), want.size() * sizeof(std::uint32_t));

    array_on<Placement, float> const values{gradient}, norms{plan.chunks()};
    array_on<Placement, std::uint32_t> const places{plan.chunks()};
    array_on<Placement, std::byte> const scratch{select_chunks_workspace_bytes()};
    REQUIRE(chunk_norms(on.exec, codec.chunker, values.span(), norms.span()) == status{});
    // The exchange compares what it sends.
    using scalar = typename codec_type::norm_scalar;
    std::vector<scalar> sent;
    for (float const norm : norms.read()) { sent.push_back(from_float<scalar>(norm)); }
    array_on<Placement, scalar> const agreed{sent};
    std::span<scalar const> const read = agreed.span();
    REQUIRE(select_chunks(on.exec, plan.selection_rule(), read, scratch.span(), places.span()) ==
            status{});
    CHECK(places.read() == want);
  };
  compare(presets::topkc_b2);
  compare(presets::allocated_sat_4);
}

//! `rule_of` for several widths is the plan's rule under the same budget.
inline void check_rule_of_widths()
{
  auto const codec = presets::allocated_sat_4;
  for (int const ranks : {1, 4, 16}) {
    auto const plan  = codec.plan(layout{100000}, world{.size = ranks, .rank = 0});
    auto const want  = plan.selection_rule();
    auto const words = static_cast<std::uint64_t>(want.capacity) * want.unit_words;
    auto const got   = rule_of(codec.chunker, saturating_sum<8>{}, ranks, words);
    CHECK(std::memcmp(&got, &want, sizeof(got)) == 0);
  }
}

template <class Placement>
void check_select_arguments(Placement const& on)
{
  std::vector<std::uint32_t> const marks(16, 0xabcdu);
  array_on<Placement, float> const norms{std::vector<float>(16, 1.0f)};
  array_on<Placement, std::uint32_t> const places{marks};
  array_on<Placement, std::byte> const workspace{select_chunks_workspace_bytes() + 16};
  auto const rule    = rule_of(top_chunks<64>{}, 4);
  auto const refuses = [&](std::string_view names,
                           chunk_rule const& told,
                           std::span<float const> from,
                           std::span<std::byte> work,
                           std::span<std::uint32_t> to) {
    CAPTURE(names);
    status const s = select_chunks(on.exec, told, from, work, to);
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find(names) != std::string_view::npos);
    CHECK(places.read() == marks);
  };
  std::span<float const> const from = norms.span();
  std::span<std::byte> const work   = workspace.span();
  std::span<std::uint32_t> const to = places.span();
  auto weighted                     = rule;
  weighted.weighted                 = 1;
  refuses("places has not", rule, from, work, to.first(15));
  refuses("rule has weights", weighted, from, work, to);
  refuses("workspace is smaller", rule, from, work.first(100), to);
  refuses("workspace is a null pointer, or not aligned", rule, from, work.subspan(4), to);
  refuses("norms is a null", rule, {static_cast<float const*>(nullptr), 16}, work, to);
  refuses("places is a null", rule, from, work, {static_cast<std::uint32_t*>(nullptr), 16});
  refuses("places overlaps norms", rule, {reinterpret_cast<float const*>(to.data()), 16}, work, to);
}

}  // namespace tersum::tests
