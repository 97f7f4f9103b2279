// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes what is read back as a state: one that was made for another plan is refused before anything is written, seed, step
//! and flags may be any numbers, a seal finds flipped bits, and what `check_state` believes without one keeps to its memory.

#include "random_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

//! Says at the end what became of states of which bits were flipped.
struct damage_counts {
  std::uint64_t damaged = 0, refused = 0;

  ~damage_counts()
  {
    std::fprintf(stderr,
                 "damaged states: %llu, refused without a seal: %llu\n",
                 static_cast<unsigned long long>(damaged),
                 static_cast<unsigned long long>(refused));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  using namespace tersum::tests;
  static auto const codecs = tried_codecs();
  static input_counts counts;
  number_source source{std::span{data, size}};
  auto const e     = draw_exchange(source, codecs, 4000);
  auto const ranks = e.codec.make(e.gradient(), e.world, e.first.shift);
  if (!ranks->check().ok()) {
    ++counts.refused;
    return -1;
  }
  ++counts.exchanged;
  auto const must = [&](bool holds, char const* what) {
    if (holds) { return; }
    std::fprintf(stderr, "%s: %s\n", e.text().c_str(), what);
    std::abort();
  };
  must(ranks->initialize(e.first, e.seed).ok(), "initialize fails");
  gradients values = make_gradients(e.kinds[0], e.coordinates, e.world, 1e38f, source);
  must(ranks->exchange(e.first, values).ok(), "the exchange fails");

  // What says which plan it was made for, on one rank.
  int const who    = source.from_to(0, e.world - 1);
  auto const state = ranks->state(who);
  std::vector<std::byte> const saved(state.begin(), state.end());
  std::size_t const first = offsetof(tersum::state_header, tensors);
  std::size_t const last  = offsetof(tersum::state_header, sign_key);
  std::size_t const at = source.one_in(2) ? offsetof(tersum::state_header, layout) + source.below(8)
                                          : first + source.below(last - first);
  state[at] ^= static_cast<std::byte>(1 + source.below(255));
  values = make_gradients(gradient_kind::normal, e.coordinates, e.world, 1e38f, source);
  ranks->round(values);
  gradients const before = values;
  must(!ranks->exchange(e.first, values).ok(), "a state of another plan is taken");
  must(values == before, "a refused exchange has written the gradient");
  std::ranges::copy(saved, state.begin());

  // What is any number, the same on all ranks.
  for (std::size_t i = 0; i < offsetof(tersum::state_header, tensors); ++i) {
    auto const any = static_cast<std::byte>(source.below(256));
    for (int rank = 0; rank < e.world; ++rank) { ranks->state(rank)[i] = any; }
  }
  must(ranks->exchange(e.first, values).ok(), "the exchange fails");
  must(ranks->intact(), "something was written beside the memory");
  for (auto const& of_rank : values) {
    must(std::ranges::equal(
           of_rank, values[0], [](float a, float b) { return a == b || (a != a && b != b); }),
         "the ranks differ");
  }

  // Bits that flip on one rank: in half of the inputs in what says where things lie.
  std::ranges::copy(saved, state.begin());
  must(ranks->check_state(who).ok(), "a state is refused");
  tersum::state_seal const seal = ranks->seal_state(who);
  must(ranks->check_state(who, seal).ok(), "a state is refused with its seal");
  std::size_t const end = source.one_in(2) ? ranks->common_bytes() : state.size();
  for (int flips = source.from_to(1, 4); flips > 0; --flips) {
    state[source.below(end)] ^= static_cast<std::byte>(1u << source.below(8));
  }
  if (std::ranges::equal(saved, state)) { return 0; }
  static damage_counts damage;
  ++damage.damaged;
  must(!ranks->check_state(who, seal).ok(), "a seal does not find flipped bits");
  if (!ranks->check_state(who).ok()) {
    ++damage.refused;
    return 0;
  }
  values = make_gradients(gradient_kind::normal, e.coordinates, e.world, 1e38f, source);
  must(ranks->exchange(e.first, values).ok(), "the exchange fails");
  must(ranks->intact(), "something was written beside the memory");
  return 0;
}
