// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes random exchanges: the first bytes choose an exchange, which is held to the laws.

#include "random_exchange.hpp"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  using namespace tersum::tests;
  static auto const codecs = tried_codecs();
  static input_counts counts;
  number_source source{std::span{data, size}};
  auto const e    = draw_exchange(source, codecs, 4000);
  verdict const v = try_exchange(e, source);
  ++(v.refused ? counts.refused : counts.exchanged);
  if (!v.broken.empty()) {
    std::fprintf(stderr, "%s: %s\n", e.text().c_str(), v.broken.c_str());
    std::abort();
  }
  return v.refused ? -1 : 0;
}
