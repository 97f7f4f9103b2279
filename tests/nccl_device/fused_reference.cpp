// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definition of fused_cases.hpp.

#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <map>
#include <mutex>
#include <nccl_device/fused_cases.hpp>
#include <string>
#include <tuple>
#include <utility>

namespace tersum::tests {

namespace {

struct alignas(16) unit {
  std::byte bytes[16];
};

std::span<std::byte> bytes_of(std::vector<unit>& memory)
{
  return {reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(unit)};
}

template <class Codec, class Element>
std::vector<std::vector<float>> run(Codec const& codec, Element, layout const& shape, int world)
{
  cpu_executor const exec{};
  auto const all = static_cast<std::size_t>(world);
  std::vector<std::vector<Element>> gradients(all, std::vector<Element>(shape.coordinates));
  std::vector<std::vector<unit>> states(all), workspaces(all);
  std::vector<loopback_rank<Codec, Element>> ranks;
  for (std::size_t r = 0; r < all; ++r) {
    auto const plan = codec.plan(shape, {.size = world, .rank = static_cast<int>(r)});
    states[r].resize(plan.state_bytes() / sizeof(unit) + 1);
    workspaces[r].resize(plan.workspace_bytes() / sizeof(unit) + 1);
    ranks.push_back({plan, gradients[r], bytes_of(states[r]), bytes_of(workspaces[r])});
    if (!initialize(exec, plan, bytes_of(states[r]), 7).ok()) { return {}; }
  }
  std::vector<std::vector<float>> means;
  for (int step = 0; step < fused_steps; ++step) {
    for (std::size_t r = 0; r < all; ++r) {
      gradients[r]      = gradient_in<Element>(shape.coordinates, world, static_cast<int>(r), step);
      ranks[r].gradient = gradients[r];
    }
    if (!loopback_exchange(exec, ranks, reduction_order::direct).ok()) { return {}; }
    means.push_back(in_floats(gradients[0]));
  }
  return means;
}

}  // namespace

std::vector<std::vector<float>> const& expected_fused(std::string_view name,
                                                      layout const& shape,
                                                      int world)
{
  static std::mutex guard;
  static std::map<std::tuple<std::string, std::size_t, std::size_t, int>,
                  std::vector<std::vector<float>>>
    known;
  std::lock_guard const lock{guard};
  auto const [entry, is_new] =
    known.try_emplace({std::string(name), shape.coordinates, shape.tensors.size(), world});
  auto& means = entry->second;
  if (is_new) {
    for_each_fused_case([&](std::string_view of, auto const& codec, auto element) {
      if (of == name) { means = run(codec, element, shape, world); }
    });
  }
  return means;
}

}  // namespace tersum::tests
