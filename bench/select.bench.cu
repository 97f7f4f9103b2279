// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The choice of chunks on a CUDA device beside cub::DeviceRadixSort of the same norms with their indices, which is what a
//! choice by sorting starts with. Times are of one call, launches included. Without a device there is nothing to run.

#include "support/cuda_bench.cuh"

#include <tersum/device/select_chunks.hpp>
#include <tersum/presets.hpp>

#include <cub/device/device_radix_sort.cuh>

#include <cmath>
#include <random>

namespace {

using namespace tersum_bench;

constexpr auto codec = tersum::presets::topkc_b2;

//! Norms of bfloat16 that are spread over sixteen octaves.
std::vector<tersum::bfloat16> sample_norms(std::size_t chunks)
{
  std::mt19937_64 engine{7};
  std::normal_distribution<float> octave{0.0f, 4.0f};
  std::vector<tersum::bfloat16> norms(chunks);
  for (auto& norm : norms) { norm = tersum::to_bfloat16(std::exp2(octave(engine))); }
  return norms;
}

template <class T>
std::span<T> to_device(device_memory& room, std::vector<T> const& from)
{
  auto const to = room.take<T>(from.size());
  require(cudaMemcpy(to.data(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return to;
}

//! Norms are read and a place of four bytes is written for each; the reference copies the norms.
void run_on_norms(benchmark::State& state,
                  std::size_t chunks,
                  std::size_t turns,
                  auto const& work,
                  auto const& copy,
                  timed_stream& stream)
{
  run_times const times = alternate(state, stream, turns, work, copy);
  auto const size       = static_cast<double>(chunks * sizeof(tersum::bfloat16));
  set_counters(state, chunks * 64, 0, 3 * size, size, times);
}

void run_select(benchmark::State& state, std::size_t chunks)
{
  auto const plan = codec.plan(tersum::layout{chunks * 64}, tersum::world{});
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  auto const copy         = room.take<tersum::bfloat16>(chunks);
  std::size_t const turns = turns_for(chunks * sizeof(tersum::bfloat16));
  auto const sample       = sample_norms(chunks);
  struct arrays {
    std::span<tersum::bfloat16 const> norms;
    std::span<std::byte> workspace;
    std::span<std::uint32_t> places;
  };
  std::vector<arrays> of_turn;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    of_turn.push_back({to_device(room, sample),
                       room.take<std::byte>(tersum::select_chunks_workspace_bytes()),
                       room.take<std::uint32_t>(chunks)});
  }
  auto const rule = plan.selection_rule();
  auto const work = [&](std::size_t turn) {
    auto const& [norms, workspace, places] = of_turn[turn];
    require(tersum::select_chunks(exec, rule, norms, workspace, places));
  };
  if (!writes_all(stream, std::as_writable_bytes(of_turn[0].places), {}, [&] { work(0); })) {
    throw std::runtime_error{"some of the places were not written"};
  }
  run_on_norms(
    state,
    chunks,
    turns,
    work,
    [&](std::size_t turn) { require(exec.copy(copy.data(), of_turn[turn].norms.data(), chunks)); },
    stream);
}

void run_sort(benchmark::State& state, std::size_t chunks)
{
  timed_stream stream;
  device_memory room;
  tersum::cuda_executor const exec{stream.get()};
  auto const copy         = room.take<tersum::bfloat16>(chunks);
  std::size_t const turns = turns_for(chunks * sizeof(tersum::bfloat16));
  auto const sample       = sample_norms(chunks);
  std::vector<std::span<tersum::bfloat16>> norms;
  for (std::size_t turn = 0; turn < turns; ++turn) { norms.push_back(to_device(room, sample)); }
  auto const sorted = room.take<std::uint16_t>(chunks);
  std::vector<std::uint32_t> counted(chunks);
  for (std::size_t i = 0; i < chunks; ++i) { counted[i] = static_cast<std::uint32_t>(i); }
  auto const indices = to_device(room, counted);
  auto const order   = room.take<std::uint32_t>(chunks);
  std::size_t bytes  = 0;
  auto const sort    = [&](void* scratch, std::size_t turn) {
    // The bits of norms that are not negative ascend with them.
    auto const* const keys = reinterpret_cast<std::uint16_t const*>(norms[turn].data());
    require(cub::DeviceRadixSort::SortPairsDescending(scratch,
                                                      bytes,
                                                      keys,
                                                      sorted.data(),
                                                      indices.data(),
                                                      order.data(),
                                                      static_cast<int>(chunks),
                                                      0,
                                                      16,
                                                      stream.get()));
  };
  sort(nullptr, 0);
  auto const scratch = room.take<std::byte>(bytes);
  run_on_norms(
    state,
    chunks,
    turns,
    [&](std::size_t turn) { sort(scratch.data(), turn); },
    [&](std::size_t turn) { require(exec.copy(copy.data(), norms[turn].data(), chunks)); },
    stream);
}

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  std::vector<std::size_t> numbers{100'000, 1'000'000, 10'000'000};
  if (small()) { numbers.assign(1, 1000); }
  for (std::size_t const chunks : numbers) {
    add(
      "select", "topkc_b2", "float", chunks * 64, [=](auto& state) { run_select(state, chunks); });
    add("sort", "topkc_b2", "float", chunks * 64, [=](auto& state) { run_sort(state, chunks); });
  }
  return true;
}();

}  // namespace
