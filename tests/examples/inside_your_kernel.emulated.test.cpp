// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/04_inside_your_kernel.cu, in the emulator: plain SGD where nothing is rounded.

#include "../../examples/kernels/inside_your_kernel.hpp"
#include "support/chunk_rotation.hpp"
#include "support/emulator.hpp"

#include <tersum/block/chunk_order.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

namespace example = inside_your_kernel;
using namespace tersum;
using emulator::host_context;

constexpr std::size_t size = example::chunk::size;
constexpr int ranks        = 4;
constexpr float loss_scale = 8;
constexpr float clip       = 10;

// A gradient whose rotated chunks have a code of one, either sign, at ten places and zeros elsewhere. The rows of the Hadamard
// matrix at these places are independent, so that its largest coordinates are 10. What is no whole chunk is zeros.
std::vector<double> on_the_grid(std::size_t count, std::uint64_t key, unsigned rank)
{
  std::mt19937 random(rank);
  std::vector<double> gradient;
  for (std::uint64_t chunk = 0; chunk < count / size; ++chunk) {
    std::vector<double> codes(size);
    for (std::size_t highest = 1; highest < size; highest *= 2) {
      std::size_t const row                   = highest | random() % highest;
      codes[chunk_order<1024>::position(row)] = random() % 2 == 0 ? 1 : -1;
    }
    auto const values = tests::chunk_rotation<1024>{chunk, key}.backward(codes);
    gradient.insert(gradient.end(), values.begin(), values.end());
  }
  gradient.resize(count);
  return gradient;
}

struct training {
  std::size_t count;
  example::step_settings now;
  std::vector<half> gradients;  // of all ranks, one after the other
  std::vector<float> parameters;
  std::uint32_t overflow = 0;

  void run(emulator::thread_order order)
  {
    std::size_t const words = example::chunk::words<4>(count);
    std::vector<std::uint32_t> payloads(ranks * words, 0xdeadbeefu);
    emulator::launch_shape const shape{.blocks =
                                         static_cast<std::uint32_t>(example::chunk::blocks(count)),
                                       .threads      = example::chunk::block_threads,
                                       .shared_bytes = sizeof(example::rotation::storage)};
    auto const shared = [](host_context& ctx) -> example::rotation::storage& {
      return *static_cast<example::rotation::storage*>(ctx.shared());
    };
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      now.draws.rank       = rank;
      auto const* const of = gradients.data() + rank * count;
      auto* const to       = payloads.data() + rank * words;
      emulator::launch(shape, order, [&](host_context& ctx) {
        example::compress(ctx, shared(ctx), now, of, count, &overflow, to);
      });
    }
    emulator::launch(shape, order, [&](host_context& ctx) {
      example::update(
        ctx, shared(ctx), now, payloads.data(), ranks, count, &overflow, parameters.data());
    });
  }
};

// The learning rate and all else are powers of two, so that the update is exact.
training make_training(std::size_t count)
{
  std::uint64_t const key = sign_key(3, 42);
  training t{.count      = count,
             .now        = {.unscale = 1 / loss_scale,
                            .clip    = clip,
                            .rate    = 0.5f,
                            .scale   = make_chunk_step<partial_hadamard<1024>, example::quantizer>(
                       32.0f, clip * 32, ranks),
                            .draws = {.seed = 42, .step = 3},
                            .signs = key},
             .gradients  = {},
             .parameters = std::vector<float>(count, 1.0f)};
  for (unsigned rank = 0; rank < ranks; ++rank) {
    for (double const exact : on_the_grid(count, key, rank)) {
      auto const value = static_cast<float>(exact);
      // What the loss scale leaves beyond the clip comes back to it.
      float const large = std::abs(value) == clip ? 3.0f : 1.0f;
      t.gradients.push_back(to_half(value * loss_scale * large));
    }
  }
  return t;
}

TEST_CASE("[examples] an update from summed codes is that of plain SGD where no code is rounded")
{
  for (std::size_t const count : {std::size_t{100}, 2 * size, 5 * size + 77}) {
    CAPTURE(count);
    training const start = make_training(count);
    std::vector<float> want(count, 1.0f);
    int clipped = 0;
    for (std::size_t i = 0; i < start.gradients.size(); ++i) {
      float const value = to_float(start.gradients[i]) / loss_scale;
      clipped += std::abs(value) > clip ? 1 : 0;
      want[i % count] -= 0.5f * std::min(std::max(value, -clip), clip) / ranks;
    }
    CHECK((clipped > 0) == (count >= size));
    for (auto const order : emulator::thread_orders) {
      CAPTURE(order);
      training now = start;
      now.run(order);
      CHECK(now.overflow == 0);
      CHECK(now.parameters == want);
    }
  }
}

TEST_CASE("[examples] a gradient that overflowed leaves the parameters alone")
{
  for (float const bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    training now                            = make_training(2 * size + 1);
    now.gradients[now.gradients.size() - 1] = to_half(bad);
    now.run(emulator::forward);
    CHECK(now.overflow == 1);
    CHECK(now.parameters == std::vector<float>(now.count, 1.0f));
  }
}

}  // namespace
