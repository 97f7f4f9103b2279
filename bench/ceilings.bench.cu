// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the memory of a CUDA device can do at most, in kernels that do nothing else: `copy`, `read`, `write`, and `half_sectors`,
//! where each thread stores 32 bytes of its own as two vectors of 16, as a decoder does, so that an instruction of a warp meets 32
//! sectors half filled. Without a device there is nothing to run.

#include "support/cuda_bench.cuh"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace {

using namespace tersum_bench;

constexpr unsigned block_threads = 256;
constexpr unsigned block_vectors = 4 * block_threads;  // of 16 bytes
using vectors                    = std::span<uint4>;

__global__ void __launch_bounds__(block_threads) copy_kernel(uint4* to, uint4 const* from)
{
  std::size_t const first = std::size_t{blockIdx.x} * block_vectors + threadIdx.x;
  uint4 held[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) { held[i] = from[first + i * block_threads]; }
#pragma unroll
  for (int i = 0; i < 4; ++i) { to[first + i * block_threads] = held[i]; }
}

// Stores what it has read only if that is some number, which it will not be.
__global__ void __launch_bounds__(block_threads) read_kernel(uint4* to, uint4 const* from)
{
  std::size_t const first = std::size_t{blockIdx.x} * block_vectors + threadIdx.x;
  std::uint32_t all       = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint4 const one = from[first + i * block_threads];
    all += one.x * 0x9e3779b1U + one.y * 0x85ebca77U + one.z * 0xc2b2ae3dU + one.w;
  }
  if (all == 0x7f4a7c15U) { to[threadIdx.x] = {all, all, all, all}; }
}

__global__ void __launch_bounds__(block_threads) write_kernel(uint4* to, uint4 const*)
{
  std::size_t const first = std::size_t{blockIdx.x} * block_vectors + threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; ++i) { to[first + i * block_threads] = {blockIdx.x, threadIdx.x, 7, 11}; }
}

__global__ void __launch_bounds__(block_threads) half_sectors_kernel(uint4* to, uint4 const*)
{
  std::size_t const first = std::size_t{blockIdx.x} * block_vectors;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    uint4* const own = to + first + 2 * (i * block_threads + threadIdx.x);
    own[0]           = {blockIdx.x, threadIdx.x, 7, 11};
    own[1]           = {blockIdx.x, threadIdx.x, 13, 17};
  }
}

using kernel = void (*)(uint4*, uint4 const*);

//! @param passes  Of the array, read or written.
void run(benchmark::State& state, std::uint64_t n, kernel of, double passes, bool writes)
{
  std::size_t const count = n * sizeof(float) / sizeof(uint4);
  std::size_t const turns = turns_for(count * sizeof(uint4));
  cuda_backend room{{}, 0};
  std::vector<vectors> to, from;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    auto const values = room.take<float>(n);
    room.fill(values);
    from.push_back({reinterpret_cast<uint4*>(values.data()), count});
    to.push_back(room.take<uint4>(count));
  }
  auto const work = [&](std::size_t turn) {
    auto const blocks = static_cast<unsigned>(count / block_vectors);
    of<<<blocks, block_threads, 0, room.exec().stream>>>(to[turn].data(), from[turn].data());
    require(cudaGetLastError());
  };
  if (writes && !room.writes_all(std::as_writable_bytes(to[0]), {}, [&] { work(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  run_times const times =
    room.alternate(state, turns, work, [&](std::size_t turn) { room.copy(to[turn], from[turn]); });
  auto const array = static_cast<double>(n * sizeof(float));
  set_counters(state, n, 0, passes * array, array, times);
}

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  std::uint64_t const n = small() ? 32768 : std::uint64_t{1} << 28;
  auto const add_kernel = [&](std::string_view name, kernel of, double passes, bool writes) {
    add("ceiling", name, "float", n, [=](benchmark::State& state) {
      run(state, n, of, passes, writes);
    });
  };
  add_kernel("copy", copy_kernel, 2, true);
  add_kernel("read", read_kernel, 1, false);
  add_kernel("write", write_kernel, 1, true);
  add_kernel("half_sectors", half_sectors_kernel, 1, true);
  return true;
}();

}  // namespace
