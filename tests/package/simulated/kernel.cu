// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A kernel of one's own that adds packed codes, or, with the argument `race`, has threads that do not wait for each other.

#include <tersum/reduce/saturating_sum.hpp>

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void add(std::uint32_t* sum, std::uint32_t const* other, unsigned count)
{
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) { sum[i] = tersum::saturating_add<4>{}(sum[i], other[i]); }
}

__global__ void race(std::uint32_t* out)
{
  __shared__ std::uint32_t shared[64];
  shared[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = shared[63 - threadIdx.x];  // of a thread of the other warp, without a barrier
}

int main(int argc, char** argv)
{
  bool const races     = argc > 1 && std::strcmp(argv[1], "race") == 0;
  unsigned const count = argc > 1 && !races ? static_cast<unsigned>(std::atoi(argv[1])) : 64;
  std::vector<std::uint32_t> a(count), b(count), sum(count);
  for (unsigned i = 0; i < count; ++i) { a[i] = 0x76543210u + i, b[i] = 0x01234567u * i; }
  std::uint32_t *x = nullptr, *y = nullptr;
  std::size_t const bytes = count * sizeof(std::uint32_t);
  bool ok = cudaMalloc(&x, bytes) == cudaSuccess && cudaMalloc(&y, bytes) == cudaSuccess &&
            cudaMemcpy(x, a.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess &&
            cudaMemcpy(y, b.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess;
  if (races) {
    race<<<1, 64>>>(x);
  } else {
    add<<<(count + 127) / 128, 128>>>(x, y, count);
  }
  ok = ok && cudaMemcpy(sum.data(), x, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
  for (unsigned i = 0; i < count && ok && !races; ++i) {
    ok = sum[i] == tersum::saturating_add<4>{}(a[i], b[i]);
  }
  std::puts(ok ? "ok" : cudaGetErrorString(cudaGetLastError()));
  return ok ? 0 : 1;
}
