// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes what arrives: in every round of an exchange, bytes of the wire are overwritten before and after each addition. Nothing is asked
//! of the means. Nothing may be read or written beyond the memory of the plan, and the next initialized exchange is as if nothing had been.

#include "random_exchange.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tersum::tests {

namespace {

//! Overwrites some bytes of a wire.
void disturb(std::span<std::byte> wire, number_source& source)
{
  if (wire.empty() || source.one_in(3)) { return; }
  switch (source.below(4)) {
    case 0:  // one bit
      wire[source.below(wire.size())] ^= std::byte{1} << source.below(8);
      break;
    case 1:  // some bytes
      for (int left = source.from_to(1, 16); left > 0; --left) {
        wire[source.below(wire.size())] = static_cast<std::byte>(source.below(256));
      }
      break;
    case 2:  // everything
      for (std::byte& b : wire) { b = static_cast<std::byte>(source.random()); }
      break;
    default: std::ranges::fill(wire, static_cast<std::byte>(source.below(256)));
  }
}

}  // namespace

}  // namespace tersum::tests

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  using namespace tersum::tests;
  static auto const codecs = tried_codecs();
  static input_counts counts;
  number_source source{std::span{data, size}};
  auto e           = draw_exchange(source, codecs, 4000);
  auto const ranks = e.codec.make(e.gradient(), e.world, e.first.shift);
  if (e.world < 2 || !ranks->check().ok()) {
    ++counts.refused;
    return -1;
  }
  ++counts.exchanged;
  auto const must = [&](bool holds, char const* what) {
    if (holds) { return; }
    std::fprintf(stderr, "%s: %s\n", e.text().c_str(), what);
    std::abort();
  };
  e.first.tamper = [&](std::span<std::byte> wire) { disturb(wire, source); };
  must(ranks->initialize(e.first, e.seed).ok(), "initialize fails");
  gradients values;
  for (gradient_kind const kind : e.kinds) {
    values = make_gradients(kind, e.coordinates, e.world, 1e38f, source);
    must(ranks->exchange(e.first, values).ok(), "the exchange fails");
    must(ranks->intact(), "something was written beside the memory");
  }
  e.first.tamper = {};
  must(ranks->initialize(e.first, e.seed).ok(), "initialize fails");
  values = make_gradients(gradient_kind::normal, e.coordinates, e.world, 1e38f, source);
  must(ranks->exchange(e.first, values).ok(), "the exchange fails");
  must(!ranks->header(0).last_was_non_finite(), "what arrived long ago is not forgotten");
  for (auto const& of_rank : values) {
    must(std::memcmp(of_rank.data(), values[0].data(), of_rank.size() * sizeof(float)) == 0,
         "the ranks differ");
  }
  return 0;
}
