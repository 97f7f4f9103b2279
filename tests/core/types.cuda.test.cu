// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The 16-bit storage types against the CUDA intrinsics on the device, over every pattern there is.

#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>

namespace {

static_assert(sizeof(tersum::half) == sizeof(__half) && alignof(tersum::half) == alignof(__half));
static_assert(sizeof(tersum::bfloat16) == sizeof(__nv_bfloat16) &&
              alignof(tersum::bfloat16) == alignof(__nv_bfloat16));

// Each comparison answers whether ours and the intrinsic give the same bits for one pattern.
struct float_to_half {
  static constexpr std::uint64_t patterns = std::uint64_t{1} << 32;
  __device__ static bool same(std::uint32_t bits)
  {
    float const value = __uint_as_float(bits);
    return tersum::to_half(value).bits == __half_as_ushort(__float2half_rn(value));
  }
};

struct float_to_bfloat16 {
  static constexpr std::uint64_t patterns = std::uint64_t{1} << 32;
  __device__ static bool same(std::uint32_t bits)
  {
    float const value = __uint_as_float(bits);
    return tersum::to_bfloat16(value).bits == __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

struct half_to_float {
  static constexpr std::uint64_t patterns = std::uint64_t{1} << 16;
  __device__ static bool same(std::uint32_t bits)
  {
    auto const pattern = static_cast<std::uint16_t>(bits);
    return __float_as_uint(tersum::to_float(tersum::half::from_bits(pattern))) ==
           __float_as_uint(__half2float(__ushort_as_half(pattern)));
  }
};

struct bfloat16_to_float {
  static constexpr std::uint64_t patterns = std::uint64_t{1} << 16;
  __device__ static bool same(std::uint32_t bits)
  {
    auto const pattern = static_cast<std::uint16_t>(bits);
    return __float_as_uint(tersum::to_float(tersum::bfloat16::from_bits(pattern))) ==
           __float_as_uint(__bfloat162float(__ushort_as_bfloat16(pattern)));
  }
};

struct outcome {
  unsigned long long compared;
  unsigned long long differ;
  unsigned long long first;  // the lowest pattern that differs
};

// Of every step-th pattern.
template <class Comparison>
__global__ void compare_all(outcome* result, std::uint64_t step)
{
  std::uint64_t const stride  = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long compared = 0, differ = 0;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i * step < Comparison::patterns;
       i += stride) {
    std::uint64_t const bits = i * step;
    ++compared;
    if (Comparison::same(static_cast<std::uint32_t>(bits))) { continue; }
    ++differ;
    atomicMin(&result->first, bits);
  }
  atomicAdd(&result->compared, compared);
  if (differ != 0) { atomicAdd(&result->differ, differ); }
}

// Storage that a caller hands over as __half or __nv_bfloat16 is read as ours.
__global__ void convert_one(std::uint16_t* out)
{
  out[0] = tersum::detail::bit_cast<tersum::half>(__float2half_rn(1.5f)).bits;
  out[1] = tersum::detail::bit_cast<tersum::bfloat16>(__float2bfloat16_rn(1.5f)).bits;
}

}  // namespace

// Not in the unnamed namespace: doctest opens one of its own in here, which nvcc cannot tell from ours.
TEST_CASE_TEMPLATE("[types] every conversion gives the bits of the CUDA intrinsic",
                   Comparison,
                   float_to_half,
                   float_to_bfloat16,
                   half_to_float,
                   bfloat16_to_float)
{
  outcome result{.compared = 0, .differ = 0, .first = Comparison::patterns};
  outcome* on_device = nullptr;
  REQUIRE(cudaMalloc(&on_device, sizeof result) == cudaSuccess);
  REQUIRE(cudaMemcpy(on_device, &result, sizeof result, cudaMemcpyHostToDevice) == cudaSuccess);
  // With TERSUM_SMALL set, 2^16 patterns of each type: a step that is odd meets all exponents and low bits.
  bool const small         = std::getenv("TERSUM_SMALL") != nullptr;
  std::uint64_t const step = small && Comparison::patterns >> 16 > 1 ? 65537 : 1;
  compare_all<Comparison><<<small ? 8 : 1024, 256>>>(on_device, step);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(&result, on_device, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaFree(on_device) == cudaSuccess);

  CAPTURE(result.first);
  CHECK(result.differ == 0);
  CHECK(result.compared == (Comparison::patterns + step - 1) / step);
}

TEST_CASE("[types] the CUDA types reinterpret as ours")
{
  std::uint16_t result[2]  = {};
  std::uint16_t* on_device = nullptr;
  REQUIRE(cudaMalloc(&on_device, sizeof result) == cudaSuccess);
  convert_one<<<1, 1>>>(on_device);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(result, on_device, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaFree(on_device) == cudaSuccess);
  CHECK(result[0] == 0x3e00);
  CHECK(result[1] == 0x3fc0);
}
