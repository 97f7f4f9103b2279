// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/kernels/, in the emulator.

#include "examples/kernel_cases.hpp"
#include "support/emulator.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;

struct emulated {
  emulator::thread_order order;

  template <class Pieces, class Body>
  void launch(std::size_t count, Body const& body) const
  {
    using storage = typename Pieces::storage;
    using chunk   = typename Pieces::chunk;
    emulator::launch({.blocks       = static_cast<std::uint32_t>(chunk::blocks(count)),
                      .threads      = chunk::block_threads,
                      .shared_bytes = sizeof(storage)},
                     order,
                     [&](host_context& ctx) { body(ctx, *static_cast<storage*>(ctx.shared())); });
  }

  void encode(std::vector<half> const& values,
              std::vector<float> const& bias,
              std::uint64_t signs,
              std::vector<std::uint32_t>& payload,
              std::vector<float>& steps) const
  {
    launch<bias_in_4_bits::rotation>(values.size(), [&](auto& ctx, auto& shared) {
      bias_in_4_bits::encode(ctx,
                             shared,
                             values.data(),
                             bias.data(),
                             values.size(),
                             bias.size(),
                             {.seed = 5},
                             signs,
                             payload.data(),
                             steps.data());
    });
  }
  void multiply(std::vector<half> const& keys,
                std::vector<float> const& query,
                std::uint64_t signs,
                std::vector<float>& products) const
  {
    std::vector<word4> codes(4 * products.size());
    std::vector<float> scales(products.size());
    kv_page::page const page{products.size(), signs, codes.data(), scales.data()};
    launch<kv_page::rotation>(keys.size(), [&](auto& ctx, auto& shared) {
      kv_page::write(ctx, shared, keys.data(), page);
    });
    launch<kv_page::rotation>(keys.size(), [&](auto& ctx, auto& shared) {
      kv_page::multiply(ctx, shared, query.data(), page, products.data());
    });
  }
  void cast(std::vector<float> const& values,
            float largest,
            std::uint64_t signs,
            std::uint64_t seed,
            std::vector<std::uint32_t>& codes,
            std::vector<std::uint8_t>& scales) const
  {
    emulator::launch({.blocks = 3, .threads = 32}, order, [&](host_context& ctx) {
      cast_to_nvfp4::cast(
        ctx, values.data(), scales.size(), largest, signs, seed, codes.data(), scales.data());
    });
  }
  void all_reduce(std::vector<std::vector<word4>>& payloads) const
  {
    sum_over_peers::peers all{.payload = {}, .count = static_cast<int>(payloads.size()), .rank = 0};
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      all.payload[rank] = payloads[rank].data();
    }
    for (; all.rank < all.count; ++all.rank) {
      emulator::launch({.blocks = 2, .threads = 32}, order, [&](host_context& ctx) {
        sum_over_peers::all_reduce(ctx, all, payloads[0].size());
      });
    }
  }
};

TEST_CASE("[examples] kernels of one's own do what plain loops do, in the emulator")
{
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    emulated const machine{order};
    tests::check_bias(machine);
    tests::check_keys(machine);
    tests::check_cast(machine, 100);
    tests::check_sums(machine);
  }
}

}  // namespace
