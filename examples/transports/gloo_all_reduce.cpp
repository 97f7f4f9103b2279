// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients over Gloo at 4 bits a coordinate. One process for each rank:
//! tersum.example.gloo_all_reduce RANK RANKS FOLDER [ADDRESS] [COORDINATES]; the ranks meet in a folder that all see.

#include "../support/aligned_bytes.hpp"
#include "../support/error_of.hpp"

#include <tersum/interop/gloo.hpp>
#include <tersum/tersum.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <vector>

namespace {

tersum::status train(tersum::gloo_transport const& gloo, std::size_t size)
{
  // Every rank makes the same plan, but for its rank.
  auto const& codec = tersum::presets::rotated_sat4;
  auto const plan   = codec.plan({.coordinates = size}, {.size = gloo.size(), .rank = gloo.rank()});
  constexpr std::uint64_t seed = 42;
  if (auto const s = agree_on(gloo, plan, seed); !s.ok()) { return s; }

  // All memory is the caller's, aligned to 16 bytes.
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  support::aligned_bytes scratch{scratch_bytes(plan)};
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, state, seed); !s.ok()) { return s; }

  // The ranks have one gradient, so that its mean is known without another exchange.
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(size), mean(size);
  for (int step = 0; step < 3; ++step) {
    for (float& value : gradient) { value = normal(random); }
    mean = gradient;

    // What a training loop adds.
    auto const begin = std::chrono::steady_clock::now();
    auto const outcome =
      all_reduce_mean(exec, plan, mean, state, workspace, reduce_over(gloo, exec, scratch));
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
    if (!outcome.ok()) { return outcome; }

    if (gloo.rank() == 0) {
      std::printf(
        "step %d: error %.5f, %.2f ms\n", step, support::error_of(mean, gradient), took.count());
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 4) {
    return std::fprintf(stderr, "usage: RANK RANKS FOLDER [ADDRESS] [COORDINATES]\n"), 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = argc > 4 ? argv[4] : "127.0.0.1";
    auto device         = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(argv[3]);
    // [transport]
    auto context =
      std::make_shared<gloo::rendezvous::Context>(std::atoi(argv[1]), std::atoi(argv[2]));
    context->connectFullMesh(store, device);
    tersum::gloo_transport const transport{context, std::chrono::seconds(10)};
    // [transport]
    auto const outcome =
      train(transport, argc > 5 ? std::strtoull(argv[5], nullptr, 10) : 1'000'000);
    if (!outcome.ok()) { return std::fprintf(stderr, "%s\n", outcome.message.data()), 1; }
  } catch (std::exception const& error) {  // Gloo throws while it connects
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
