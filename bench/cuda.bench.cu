// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parts of an exchange on a CUDA device, timed by events, each beside a device-to-device copy of its input.
//! Without a device there is nothing to run.

#include "support/cuda_bench.cuh"

#include <tersum/block/cuda_context.cuh>
#include <tersum/presets.hpp>
#include <tersum/reduce/detail/array_reduction.hpp>

namespace {

using namespace tersum_bench;

constexpr int ranks = 8;
using payloads      = tersum::detail::rank_arrays<tersum::word4, ranks>;

template <int Bits>
__global__ void __launch_bounds__(tersum::tuning{}.cuda.reduce_threads)
  reduce_once_kernel(tersum::word4* to, payloads from, std::size_t count)
{
  tersum::detail::reduce_once<Bits, ranks>(tersum::cuda_context{}, to, from, count);
}

// The payloads of eight ranks at once, saturated at the end.
template <int Bits>
void run_reduce_once(benchmark::State& state, std::uint64_t n)
{
  std::size_t const count = n * Bits / 128;
  std::size_t const size  = count * sizeof(tersum::word4);
  std::size_t const turns = turns_for(ranks * size);
  cuda_backend room{{}, 0};
  std::vector<payloads> from(turns);
  std::vector<std::span<tersum::word4>> to;
  for (auto& of_ranks : from) {
    to.push_back(room.take<tersum::word4>(count));
    int byte = 0x11;
    for (auto& payload : of_ranks.array) {
      auto const codes = room.take<tersum::word4>(count);
      require(cudaMemsetAsync(codes.data(), byte, size, room.exec().stream));
      payload = codes.data();
      byte += 0x22;
    }
  }
  auto const work = [&](std::size_t turn) {
    constexpr std::size_t threads = tersum::tuning{}.cuda.reduce_threads;
    auto const blocks             = static_cast<unsigned>((count + threads - 1) / threads);
    reduce_once_kernel<Bits>
      <<<blocks, threads, 0, room.exec().stream>>>(to[turn].data(), from[turn], count);
    require(cudaGetLastError());
  };
  if (!room.writes_all(std::as_writable_bytes(to[0]), {}, [&] { work(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  run_times const times = room.alternate(state, turns, work, [&](std::size_t turn) {
    room.copy(to[turn], std::span{from[turn].array[0], count});
  });
  auto const payload    = static_cast<double>(size);
  set_counters(state, n, Bits, (ranks + 1.0) * payload, payload, times);
}

template <int Bits>
void add_reduce_once()
{
  for (std::uint64_t const n : sizes()) {
    add("reduce_once",
        "saturate_once_" + std::to_string(Bits),
        "float",
        n,
        [=](benchmark::State& state) { run_reduce_once<Bits>(state, n); });
  }
}

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  add_presets({"encode", part::encode});
  add_presets({"encode_feedback", part::encode_feedback});
  add_presets({"local", part::local});
  add_presets({"norms", part::norms});
  add_presets({"recompress", part::recompress});
  add_presets({"decode", part::decode});
  add_presets({"reduce", part::reduce});
  add_presets({"exchange", part::exchange});
  add_presets({"pair", part::pair});
  add_presets({"pair_replayed", part::pair_replayed});
  add_presets({"pair_tensors", part::pair_tensors});
  add_presets({"pair_misaligned", part::pair_misaligned});
  add_reduce_once<2>();
  add_reduce_once<4>();
  add_reduce_once<8>();
  return true;
}();

}  // namespace
