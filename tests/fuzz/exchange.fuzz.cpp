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
  number_source source{std::span{data, size}};
  auto e = draw_exchange(source, codecs);
  if (static_cast<std::uint64_t>(e.world) * e.coordinates > 12000) {
    return -1;
  }  // too slow to be worth it
  verdict const v = try_exchange(e, source);
  if (!v.broken.empty()) {
    std::fprintf(stderr, "%s: %s\n", e.text().c_str(), v.broken.c_str());
    std::abort();
  }
  return 0;
}
