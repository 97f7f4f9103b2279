// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an engineer would write by hand instead of block-scope pieces, beside the same of pieces: the table of docs/kernels.md.
//! Chunks have 1024 floats, all of them whole and aligned, and compilers know it. In a plain kernel a lane has four neighbours of each 128.

#pragma once

#include <tersum/block/block_norm.hpp>
#include <tersum/block/block_scan.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/block/thread_codes.hpp>
#include <tersum/block/thread_norm.hpp>
#include <tersum/block/thread_values.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/block_levels.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/quantize/thread_scaled_floats.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/rotate/thread_hadamard.hpp>

#include <cuda_fp8.h>

namespace plain_kernels {

using chunk    = tersum::block_chunk<1024>;
using array    = tersum::block_values<1024>;
using striped  = tersum::block_values<1024, true>;
using norm     = tersum::block_norm<1024, true>;
using rotation = tersum::block_hadamard<1024>;
using levels   = tersum::block_levels<1024, tersum::lloyd_max<4>>;
using codes = tersum::block_codes<1024, tersum::stochastic_quantizer<4>, tersum::saturating_sum<4>>;

inline __device__ std::uint64_t warp()
{
  return (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
}

inline __device__ void load(float const* from, float (&v)[32])
{
  auto const* fours = reinterpret_cast<float4 const*>(from + 1024 * warp()) + threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    float4 const x = fours[32 * r];
    v[4 * r]       = x.x;
    v[4 * r + 1]   = x.y;
    v[4 * r + 2]   = x.z;
    v[4 * r + 3]   = x.w;
  }
}

inline __device__ std::uint64_t thread()
{
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

//! Neighbours of one thread.
template <int Size>
inline __device__ void load_own(float const* from, float (&v)[Size])
{
#pragma unroll
  for (int i = 0; i < Size; i += 4) {
    float4 const x = reinterpret_cast<float4 const*>(from + Size * thread())[i / 4];
    v[i] = x.x, v[i + 1] = x.y, v[i + 2] = x.z, v[i + 3] = x.w;
  }
}

template <int Size>
inline __device__ void rotate_own(std::uint64_t key, float (&v)[Size])
{
  constexpr int words = (Size + 31) / 32;
#pragma unroll
  for (int w = 0; w < words; ++w) {
    std::uint32_t const signs = tersum::sign_bits(thread() * words + w, key);
#pragma unroll
    for (int i = 32 * w; i < Size && i < 32 * w + 32; ++i) {
      v[i] = (signs >> i % 32 & 1u) != 0 ? -v[i] : v[i];
    }
  }
#pragma unroll
  for (int bit = 1; bit < Size; bit *= 2) {
#pragma unroll
    for (int i = 0; i < Size; ++i) {
      if ((i & bit) == 0) {
        float const a = v[i], b = v[i | bit];
        v[i]       = a + b;
        v[i | bit] = a - b;
      }
    }
  }
}

template <int Size>
inline __device__ void plain_rotate_own(float const* from, std::uint64_t key, float* to)
{
  float v[Size];
  load_own(from, v);
  rotate_own(key, v);
#pragma unroll
  for (int i = 0; i < Size; i += 4) {
    reinterpret_cast<float4*>(to + Size * thread())[i / 4] =
      float4{v[i], v[i + 1], v[i + 2], v[i + 3]};
  }
}

inline __device__ void store(float const (&v)[32], float* to)
{
  auto* fours = reinterpret_cast<float4*>(to + 1024 * warp()) + threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    fours[32 * r] = float4{v[4 * r], v[4 * r + 1], v[4 * r + 2], v[4 * r + 3]};
  }
}

//! Five levels in registers, five by shuffles.
inline __device__ void transform(float (&v)[32])
{
#pragma unroll
  for (int bit = 1; bit < 32; bit *= 2) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if ((i & bit) == 0) {
        float const a = v[i], b = v[i | bit];
        v[i]       = a + b;
        v[i | bit] = a - b;
      }
    }
  }
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) {
    float const sign = (threadIdx.x & bit) != 0 ? -1.0f : 1.0f;
#pragma unroll
    for (int i = 0; i < 32; ++i) { v[i] = fmaf(v[i], sign, __shfl_xor_sync(~0u, v[i], bit)); }
  }
}

inline __device__ void flip(std::uint64_t key, float (&v)[32])
{
  std::uint32_t const word = tersum::sign_bits(32 * warp() + threadIdx.x % 32, key);
#pragma unroll
  for (int i = 0; i < 32; ++i) { v[i] = (word >> i & 1u) != 0 ? -v[i] : v[i]; }
}

__global__ void __launch_bounds__(128) plain_copy_kernel(float const* from, float* to)
{
  float v[32];
  load(from, v);
  store(v, to);
}

__global__ void __launch_bounds__(128)
  plain_rotate_kernel(float const* from, std::uint64_t key, float* to)
{
  float v[32];
  load(from, v);
  flip(key, v);
  transform(v);
  store(v, to);
}

__global__ void __launch_bounds__(128) plain_norm_kernel(float const* from, float* norms)
{
  float v[32], sum = 0;
  load(from, v);
#pragma unroll
  for (int i = 0; i < 32; ++i) { sum = fmaf(v[i], v[i], sum); }
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) { sum += __shfl_xor_sync(~0u, sum, bit); }
  if (threadIdx.x % 32 == 0) { norms[warp()] = sum; }
}

__global__ void __launch_bounds__(128) plain_largest_kernel(float const* from, float* largest)
{
  float v[32], most = 0;
  load(from, v);
#pragma unroll
  for (int i = 0; i < 32; ++i) { most = fmaxf(most, fabsf(v[i])); }
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) {
    most = fmaxf(most, __shfl_xor_sync(~0u, most, bit));
  }
  if (threadIdx.x % 32 == 0) { largest[warp()] = most; }
}

__global__ void __launch_bounds__(128)
  plain_hadamard_32_kernel(float const* from, std::uint64_t key, float* to)
{
  plain_rotate_own<32>(from, key, to);
}

__global__ void __launch_bounds__(128)
  plain_hadamard_64_kernel(float const* from, std::uint64_t key, float* to)
{
  plain_rotate_own<64>(from, key, to);
}

__global__ void __launch_bounds__(128)
  plain_encode_kernel(float const* from, std::uint64_t key, float scale, std::uint16_t* to)
{
  float v[32];
  load(from, v);
  flip(key, v);
  transform(v);
  tersum::philox_block random{};
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    if (r % 4 == 0) {
      auto const counter = static_cast<std::uint32_t>((32 * warp() + threadIdx.x % 32) * 2);
      random             = tersum::philox4x32<7>({{counter + (r / 4)}}, key);
    }
    unsigned packed = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float const u  = static_cast<float>(random.word[r % 4] >> (8 * j) & 255u) * 0x1p-8f + 0x1p-9f;
      int const code = __float2int_rd(fmaf(v[4 * r + j], scale, u));
      packed |= (static_cast<unsigned>(min(max(code, -7), 7)) & 15u) << (4 * j);
    }
    to[256 * warp() + 32 * r + threadIdx.x % 32] = static_cast<std::uint16_t>(packed);
  }
}

__global__ void __launch_bounds__(128)
  plain_decode_kernel(std::uint16_t const* from, std::uint64_t key, float scale, float* to)
{
  float v[32];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    unsigned const packed = from[256 * warp() + 32 * r + threadIdx.x % 32];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float const code = static_cast<float>(static_cast<int>(packed << (28 - 4 * j)) >> 28);
      v[4 * r + j]     = __fmul_rn(scale, code);
    }
  }
  transform(v);
  flip(key, v);
  store(v, to);
}

//! Signs, Hadamard, and the nearest of the levels of `lloyd_max<4>`, by a search of three steps.
__global__ void __launch_bounds__(128)
  plain_levels_kernel(float const* from, std::uint64_t key, std::uint16_t* to, float* scales)
{
  __shared__ float level[8], end[8];
  if (threadIdx.x < 8) {
    level[threadIdx.x] = tersum::lloyd_max<4>{}.decode(threadIdx.x);
    end[threadIdx.x] =
      .5f * (level[threadIdx.x] + tersum::lloyd_max<4>{}.decode(threadIdx.x + 1 & 7u));
  }
  __syncthreads();
  float v[32], square = 0, product = 0;
  load(from, v);
  flip(key, v);
  transform(v);
#pragma unroll
  for (int i = 0; i < 32; ++i) { square = fmaf(v[i], v[i], square); }
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) { square += __shfl_xor_sync(~0u, square, bit); }
  float const to_rms = square > 0 ? sqrtf(1024 / square) : 0.0f;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    unsigned packed = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float const x = fabsf(v[4 * r + j] * to_rms);
      unsigned cell = x >= end[3] ? 4 : 0;
      cell += x >= end[cell + 1] ? 2 : 0;
      cell += x >= end[cell] ? 1 : 0;
      product = fmaf(fabsf(v[4 * r + j]), level[cell], product);
      packed |= (cell | (v[4 * r + j] < 0 ? 8u : 0u)) << (4 * j);
    }
    to[256 * warp() + 32 * r + threadIdx.x % 32] = static_cast<std::uint16_t>(packed);
  }
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) { product += __shfl_xor_sync(~0u, product, bit); }
  if (threadIdx.x % 32 == 0) { scales[warp()] = square > 0 ? square / product : 0.0f; }
}

//! Signs, Hadamard of 16, and NVFP4 at random. A thread has 16 values.
__global__ void __launch_bounds__(128) plain_nvfp4_kernel(float const* from,
                                                          float unit,
                                                          std::uint64_t key,
                                                          std::uint64_t seed,
                                                          uint2* to,
                                                          std::uint8_t* scales)
{
  std::uint64_t const block = thread();
  float v[16], most = 0;
  load_own(from, v);
  rotate_own(key, v);
#pragma unroll
  for (int i = 0; i < 16; ++i) { most = fmaxf(most, fabsf(v[i])); }
  // The E4M3 that is not below: its distance is 2^-9 at least.
  float const ratio    = most / (24 * unit);
  int const exponent   = max(static_cast<int>(__float_as_uint(ratio) >> 23) - 127, -6);
  float const distance = __uint_as_float(static_cast<unsigned>(exponent + 124) << 23);
  auto const code =
    min(static_cast<unsigned>(ceilf(ratio / distance)) + 8u * static_cast<unsigned>(exponent + 6),
        126u);
  float const scale      = fminf(ceilf(ratio / distance) * distance, 448.0f);
  float const inverse    = scale > 0 ? 1 / (4 * unit * scale) : 0.0f;
  auto const random      = tersum::philox4x32<7>({{static_cast<std::uint32_t>(block)}}, seed);
  std::uint32_t words[2] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float const u =
      static_cast<float>(random.word[i / 4] >> (8 * (i % 4)) & 255u) * 0x1p-8f + 0x1p-9f;
    float const x        = fabsf(v[i] * inverse);
    float const per_unit = x < 2 ? 2.0f : x < 4 ? 1.0f : 0.5f;  // numbers lie .5, 1 and 2 apart
    unsigned const base  = x < 2 ? 0u : x < 4 ? 2u : 4u;
    unsigned const near  = min(base + static_cast<unsigned>(fmaf(x, per_unit, u)), 7u);
    words[i / 8] |= (near | (v[i] < 0 ? 8u : 0u)) << (4 * (i % 8));
  }
  to[block]     = uint2{words[0], words[1]};
  scales[block] = static_cast<std::uint8_t>(code);
}

//! MXFP4 to nearest. A thread has 32 values.
__global__ void __launch_bounds__(128)
  plain_mxfp4_kernel(float const* from, uint4* to, std::uint8_t* scales)
{
  float v[32], most = 0;
  load_own(from, v);
#pragma unroll
  for (int i = 0; i < 32; ++i) { most = fmaxf(most, fabsf(v[i])); }
  unsigned const code    = max(__float_as_uint(most) >> 23, 2u) - 2;
  float const inverse    = __uint_as_float((254 - code) << 23);
  std::uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    float const x        = fabsf(v[i] * inverse);
    float const per_unit = x < 2 ? 2.0f : x < 4 ? 1.0f : 0.5f;
    float const base     = x < 2 ? 0.0f : x < 4 ? 2.0f : 4.0f;
    unsigned const near  = min(__float2uint_rn(fmaf(x, per_unit, base)), 7u);
    words[i / 8] |= (near | (v[i] < 0 ? 8u : 0u)) << (4 * (i % 8));
  }
  to[thread()]     = uint4{words[0], words[1], words[2], words[3]};
  scales[thread()] = static_cast<std::uint8_t>(code);
}

//! MXFP8 to nearest, by the conversion of sm_89, of which older devices have none. A thread has 32 values.
__global__ void __launch_bounds__(128)
  plain_mxfp8_kernel(float const* from, uint4* to, std::uint8_t* scales)
{
  float v[32], most = 0;
  load_own(from, v);
#pragma unroll
  for (int i = 0; i < 32; ++i) { most = fmaxf(most, fabsf(v[i])); }
  unsigned const code    = max(__float_as_uint(most) >> 23, 8u) - 8;
  float const inverse    = __uint_as_float((254 - code) << 23);
  std::uint32_t words[8] = {};
#pragma unroll
  for (int i = 0; i < 32; i += 2) {
    std::uint32_t const two =
      __nv_cvt_float2_to_fp8x2({v[i] * inverse, v[i + 1] * inverse}, __NV_SATFINITE, __NV_E4M3);
    words[i / 4] |= two << (8 * (i % 4));
  }
  to[2 * thread()]     = uint4{words[0], words[1], words[2], words[3]};
  to[2 * thread() + 1] = uint4{words[4], words[5], words[6], words[7]};
  scales[thread()]     = static_cast<std::uint8_t>(code);
}

//! Values to codes of 4 bits, two's complement, in words. A thread has 32 of them.
__global__ void __launch_bounds__(128) plain_pack_kernel(float const* from, uint4* to)
{
  float v[32];
  load_own(from, v);
  std::uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    words[i / 8] |= (static_cast<unsigned>(__float2int_rn(v[i])) & 15u) << (4 * (i % 8));
  }
  to[thread()] = uint4{words[0], words[1], words[2], words[3]};
}

//! And words to floats.
__global__ void __launch_bounds__(128) plain_unpack_kernel(uint4 const* from, float* to)
{
  uint4 const four             = from[thread()];
  std::uint32_t const words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
  for (int i = 0; i < 32; i += 4) {
    auto const code = [&](int j) {
      return static_cast<float>(static_cast<int>(words[i / 8] << (28 - 4 * (i % 8 + j))) >> 28);
    };
    reinterpret_cast<float4*>(to + 32 * thread())[i / 4] =
      float4{code(0), code(1), code(2), code(3)};
  }
}

//! Factors of chunks whose norms are known.
__global__ void __launch_bounds__(128) plain_step_kernel(float const* norms, tersum::chunk_step* to)
{
  float const step = norms[thread()] * (2.75f / 32 / 7);
  to[thread()]     = {256 / (step * 32), step / 32 / 8, 0, 0};
}

//! The sums of the integers below, in each block.
__global__ void __launch_bounds__(256) plain_scan_kernel(std::uint32_t const* from, uint2* to)
{
  __shared__ std::uint32_t sums[8];
  std::uint32_t const value = from[thread()];
  std::uint32_t upto        = value;
#pragma unroll
  for (unsigned apart = 1; apart < 32; apart *= 2) {
    std::uint32_t const other = __shfl_up_sync(~0u, upto, apart);
    upto += threadIdx.x % 32 >= apart ? other : 0u;
  }
  if (threadIdx.x % 32 == 31) { sums[threadIdx.x / 32] = upto; }
  __syncthreads();
  std::uint32_t below = upto - value, total = 0;
#pragma unroll
  for (unsigned warp = 0; warp < 8; ++warp) {
    below += warp < threadIdx.x / 32 ? sums[warp] : 0u;
    total += sums[warp];
  }
  to[thread()] = uint2{below, total};
}

__global__ void __launch_bounds__(128) plain_add_kernel(uint4* sums, uint4 const* others)
{
  std::uint64_t const i = std::uint64_t{blockIdx.x} * 128 + threadIdx.x;
  auto const add        = [](unsigned a, unsigned b) {
    unsigned sum = 0;
#pragma unroll
    for (int at = 0; at < 32; at += 4) {
      int const lane =
        (static_cast<int>(a << (28 - at)) >> 28) + (static_cast<int>(b << (28 - at)) >> 28);
      sum |= (static_cast<unsigned>(min(max(lane, -7), 7)) & 15u) << at;
    }
    return sum;
  };
  uint4 const a = sums[i], b = others[i];
  sums[i] = uint4{add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

//! A thread's chunk of arrays that compilers need no edges of.
inline __device__ chunk whole_chunk(tersum::cuda_context const& ctx,
                                    float const* from,
                                    float const* to = nullptr)
{
  //! [whole]
  chunk mine  = chunk::numbered(ctx, 0);
  mine.offset = mine.chunk * chunk::size;
  mine.length = chunk::size;
  __builtin_assume(reinterpret_cast<std::uintptr_t>(from) % 16 == 0);
  //! [whole]
  __builtin_assume(reinterpret_cast<std::uintptr_t>(to) % 16 == 0);
  return mine;
}

template <class Array>
inline __device__ void pieces_copy(float const* from, float* to)
{
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from, to);
  float v[32];
  Array::load(ctx, mine, from, v);
  Array::store(ctx, mine, v, to);
}

__global__ void __launch_bounds__(128) pieces_copy_kernel(float const* from, float* to)
{
  pieces_copy<array>(from, to);
}

__global__ void __launch_bounds__(128) pieces_striped_kernel(float const* from, float* to)
{
  pieces_copy<striped>(from, to);
}

__global__ void __launch_bounds__(128)
  pieces_rotate_kernel(float const* from, std::uint64_t key, float* to)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from, to);
  float v[32];
  array::load(ctx, mine, from, v);
  rotation::forward(ctx, mine, key, shared, v);
  array::store(ctx, mine, v, to);
}

__global__ void __launch_bounds__(128) pieces_norm_kernel(float const* from, float* norms)
{
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from);
  float v[32];
  striped::load(ctx, mine, from, v);
  float const square = norm::squared(ctx, mine, nullptr, v);
  if (mine.exists() && mine.thread == 0) { norms[mine.chunk] = square; }
}

__global__ void __launch_bounds__(256)
  pieces_norm_8192_kernel(float const* from, std::uint64_t count, float* norms)
{
  using wide = tersum::block_norm<8192>;
  __shared__ alignas(16) float storage[wide::storage_floats];
  tersum::cuda_context const ctx;
  auto const mine = wide::chunk::of(ctx, count);
  float v[32];
  tersum::block_values<8192>::load(ctx, mine, from, v);
  float const square = wide::squared(ctx, mine, storage, v);
  if (mine.exists() && mine.thread == 0) { norms[mine.chunk] = square; }
}

__global__ void __launch_bounds__(128) pieces_largest_kernel(float const* from, float* largest)
{
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from);
  float v[32];
  striped::load(ctx, mine, from, v);
  float const most = norm::largest(ctx, mine, nullptr, v);
  if (mine.exists() && mine.thread == 0) { largest[mine.chunk] = most; }
}

__global__ void __launch_bounds__(128) pieces_thread_norm_kernel(float const* from, float2* norms)
{
  tersum::cuda_context const ctx;
  float v[32];
  tersum::thread_values<32>::load(ctx, from + 32 * thread(), v);
  //! [norm]
  float const square  = tersum::thread_norm<32>::squared(ctx, v);
  float const largest = tersum::thread_norm<32>::largest(ctx, v);
  //! [norm]
  norms[thread()] = {square, largest};
}

template <int Size>
inline __device__ void pieces_rotate_own(float const* from, std::uint64_t key, float* to)
{
  tersum::cuda_context const ctx;
  float v[Size];
  tersum::thread_values<Size>::load(ctx, from + Size * thread(), v);
  tersum::thread_hadamard<Size>::forward(ctx, thread(), key, v);
  tersum::thread_values<Size>::store(ctx, v, to + Size * thread());
}

__global__ void __launch_bounds__(128)
  pieces_hadamard_32_kernel(float const* from, std::uint64_t key, float* to)
{
  pieces_rotate_own<32>(from, key, to);
}

__global__ void __launch_bounds__(128)
  pieces_hadamard_64_kernel(float const* from, std::uint64_t key, float* to)
{
  pieces_rotate_own<64>(from, key, to);
}

__global__ void __launch_bounds__(128)
  pieces_encode_kernel(float const* from, std::uint64_t key, float scale, std::uint32_t* to)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from);
  float v[32];
  std::uint32_t words[codes::words];
  array::load(ctx, mine, from, v);
  rotation::forward(ctx, mine, key, shared, v);
  codes{}.encode(ctx, mine, {.seed = key}, scale, v, words);
  codes::store(ctx, mine, words, to);
}

__global__ void __launch_bounds__(128)
  pieces_decode_kernel(std::uint32_t const* from, std::uint64_t key, float scale, float* to)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, to);
  float v[32];
  std::uint32_t words[codes::words];
  codes::load(ctx, mine, from, words);
  codes::decode(ctx, words, 1, v);
  rotation::backward(ctx, mine, key, shared, v);
  for (float& x : v) { x *= scale; }
  array::store(ctx, mine, v, to);
}

__global__ void __launch_bounds__(128)
  pieces_levels_kernel(float const* from, std::uint64_t key, std::uint32_t* to, float* scales)
{
  __shared__ rotation::storage shared;
  tersum::cuda_context const ctx;
  chunk const mine = whole_chunk(ctx, from);
  float v[32];
  std::uint32_t words[levels::words];
  array::load(ctx, mine, from, v);
  rotation::forward(ctx, mine, key, shared, v);
  float const scale = levels::encode(ctx, mine, nullptr, v, words);
  levels::store(ctx, mine, words, to);
  if (mine.exists() && mine.thread == 0) { scales[mine.chunk] = scale; }
}

__global__ void __launch_bounds__(128) pieces_nvfp4_kernel(float const* from,
                                                           float unit,
                                                           std::uint64_t key,
                                                           std::uint64_t seed,
                                                           uint2* to,
                                                           std::uint8_t* scales)
{
  using nvfp4 = tersum::thread_nvfp4<tersum::independent>;
  tersum::cuda_context const ctx;
  std::uint64_t const block = thread();
  float v[16];
  std::uint32_t words[nvfp4::words];
  tersum::thread_values<16>::load(ctx, from + 16 * block, v);
  tersum::thread_hadamard<16>::forward(ctx, block, key, v);
  scales[block] =
    static_cast<std::uint8_t>(nvfp4::encode(ctx, block, {.seed = seed}, 4 * unit, v, words));
  to[block] = uint2{words[0], words[1]};
}

template <class Codes>
inline __device__ void pieces_mx(float const* from, uint4* to, std::uint8_t* scales)
{
  tersum::cuda_context const ctx;
  float v[32];
  std::uint32_t words[Codes::words];
  tersum::thread_values<32>::load(ctx, from + 32 * thread(), v);
  scales[thread()] = static_cast<std::uint8_t>(Codes::encode(ctx, thread(), {}, 1, v, words));
#pragma unroll
  for (int i = 0; i < Codes::words; i += 4) {
    to[(Codes::words * thread() + i) / 4] =
      uint4{words[i], words[i + 1], words[i + 2], words[i + 3]};
  }
}

__global__ void __launch_bounds__(128)
  pieces_mxfp4_kernel(float const* from, uint4* to, std::uint8_t* scales)
{
  pieces_mx<tersum::thread_mxfp4<>>(from, to, scales);
}

__global__ void __launch_bounds__(128)
  pieces_mxfp8_kernel(float const* from, uint4* to, std::uint8_t* scales)
{
  pieces_mx<tersum::thread_mxfp8<>>(from, to, scales);
}

__global__ void __launch_bounds__(128) pieces_pack_kernel(float const* from, std::uint32_t* to)
{
  tersum::cuda_context const ctx;
  float v[32];
  tersum::thread_values<32>::load(ctx, from + 32 * thread(), v);
  //! [pack]
  using codes = tersum::thread_codes<4>;
  std::uint32_t words[codes::words];
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    codes::put(words, k, static_cast<std::uint32_t>(__float2int_rn(v[k])));
  }
  codes::store(ctx, words, to + codes::words * thread());
  //! [pack]
}

__global__ void __launch_bounds__(128) pieces_unpack_kernel(std::uint32_t const* from, float* to)
{
  using codes = tersum::thread_codes<4>;
  tersum::cuda_context const ctx;
  std::uint32_t words[codes::words];
  codes::load(ctx, from + codes::words * thread(), words);
  float v[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) {
    v[k] = static_cast<float>(static_cast<int>(codes::get(words, k) << 28) >> 28);
  }
  tersum::thread_values<32>::store(ctx, v, to + 32 * thread());
}

__global__ void __launch_bounds__(128)
  pieces_step_kernel(float const* norms, tersum::chunk_step* to)
{
  float const norm = norms[thread()];
  to[thread()] =
    tersum::make_chunk_step<tersum::partial_hadamard<1024>, tersum::stochastic_quantizer<4>>(
      norm * (2.75f / 32 / 7), norm, 8);
}

__global__ void __launch_bounds__(256) pieces_scan_kernel(std::uint32_t const* from, uint2* to)
{
  tersum::cuda_context const ctx;
  std::uint32_t const value = from[thread()];
  //! [scan]
  using scan = tersum::block_scan<256>;
  __shared__ std::uint32_t room[scan::storage_words];
  std::uint32_t total       = 0;
  std::uint32_t const below = scan::exclusive_sum(ctx, value, total, room);
  //! [scan]
  to[thread()] = uint2{below, total};
}

//! Values in chunks of one or two threads to codes in 8 bits, and to levels, and back.
template <int Size, class Element>
__global__ void __launch_bounds__(128) pieces_small_chunks_kernel(
  Element const* from, std::uint64_t count, float scale, float* rounded, float* leveled)
{
  using rotation = tersum::block_hadamard<Size>;
  using codes  = tersum::block_codes<Size, tersum::nearest_quantizer<8>, tersum::saturating_sum<8>>;
  using levels = tersum::block_levels<Size, tersum::lloyd_max<4>>;
  __shared__ typename rotation::storage shared;
  tersum::cuda_context const ctx;
  auto const mine = tersum::block_chunk<Size>::of(ctx, count);
  float v[32], w[32] = {};
  std::uint32_t words[codes::words], few[levels::words];
  tersum::block_values<Size>::load(ctx, mine, from, v);
  rotation::forward(ctx, mine, 5, shared, v);
  float const unit = levels::encode(ctx, mine, nullptr, v, few);
  levels::add(ctx, few, unit / Size, w);
  codes{}.encode(ctx, mine, {}, scale, v, words);
  codes::decode(ctx, words, 1, v);
  rotation::synchronize(ctx);
  rotation::backward(ctx, mine, 5, shared, v);
  for (float& x : v) { x /= scale * Size; }
  tersum::block_values<Size>::store(ctx, mine, v, rounded);
  rotation::synchronize(ctx);
  rotation::backward(ctx, mine, 5, shared, w);
  tersum::block_values<Size>::store(ctx, mine, w, leveled);
}

__global__ void pieces_warp_scan_kernel(std::uint32_t const* from, uint2* to)
{
  tersum::cuda_context const ctx;
  std::uint32_t total = 0;
  std::uint32_t const below =
    tersum::block_scan<32>::exclusive_sum(ctx, from[thread()], total, nullptr);
  to[thread()] = uint2{below, total};
}

__global__ void __launch_bounds__(128) pieces_add_kernel(uint4* sums, uint4 const* others)
{
  constexpr tersum::saturating_add<4> add{};
  std::uint64_t const i = std::uint64_t{blockIdx.x} * 128 + threadIdx.x;
  uint4 const a = sums[i], b = others[i];
  sums[i] = uint4{add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

}  // namespace plain_kernels
