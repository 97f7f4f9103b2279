// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of examples/kernels/, on a device.

#include "examples/kernel_cases.hpp"

#include <tersum/block/cuda_context.cuh>

#include <doctest/doctest.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace tersum;

template <class... Args>
__global__ void __launch_bounds__(bias_in_4_bits::chunk::block_threads) encode_kernel(Args... args)
{
  __shared__ bias_in_4_bits::rotation::storage shared;
  bias_in_4_bits::encode(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void __launch_bounds__(kv_page::key::block_threads) write_kernel(Args... args)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::write(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void __launch_bounds__(kv_page::key::block_threads) multiply_kernel(Args... args)
{
  __shared__ kv_page::rotation::storage shared;
  kv_page::multiply(cuda_context{}, shared, args...);
}
template <class... Args>
__global__ void cast_kernel(Args... args)
{
  cast_to_nvfp4::cast(cuda_context{}, args...);
}
template <class... Args>
__global__ void all_reduce_kernel(Args... args)
{
  sum_over_peers::all_reduce(cuda_context{}, args...);
}

// An array that host and device see.
template <class T>
class managed {
 public:
  explicit managed(std::vector<T> const& from)
  {
    REQUIRE(cudaMallocManaged(&data_, from.size() * sizeof(T)) == cudaSuccess);
    std::copy(from.begin(), from.end(), data_);
  }
  managed(managed const&)            = delete;
  managed& operator=(managed const&) = delete;
  ~managed() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

template <class T>
void give(managed<T> const& from, std::vector<T>& to)
{
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::copy_n(from.get(), to.size(), to.begin());
}

struct on_device {
  static void encode(std::vector<tersum::half> const& values,
                     std::vector<float> const& bias,
                     std::uint64_t signs,
                     std::vector<std::uint32_t>& payload,
                     std::vector<float>& steps)
  {
    using chunk = bias_in_4_bits::chunk;
    managed const v{values};
    managed const b{bias};
    managed const p{payload};
    managed const s{steps};
    encode_kernel<<<static_cast<unsigned>(chunk::blocks(values.size())), chunk::block_threads>>>(
      v.get(),
      b.get(),
      std::uint64_t{values.size()},
      std::uint64_t{bias.size()},
      dither_key{.seed = 5},
      signs,
      p.get(),
      s.get());
    give(p, payload);
    give(s, steps);
  }
  static void multiply(std::vector<tersum::half> const& keys,
                       std::vector<float> const& query,
                       std::uint64_t signs,
                       std::vector<float>& products)
  {
    using key = kv_page::key;
    managed const k{keys};
    managed const q{query};
    managed const codes{std::vector<word4>(4 * products.size())};
    managed const scales{products};
    managed const p{products};
    kv_page::page const page{products.size(), signs, codes.get(), scales.get()};
    auto const blocks = static_cast<unsigned>(key::blocks(keys.size()));
    write_kernel<<<blocks, key::block_threads>>>(k.get(), page);
    multiply_kernel<<<blocks, key::block_threads>>>(q.get(), page, p.get());
    give(p, products);
  }
  static void cast(std::vector<float> const& values,
                   float largest,
                   std::uint64_t signs,
                   std::uint64_t seed,
                   std::vector<std::uint32_t>& codes,
                   std::vector<std::uint8_t>& scales)
  {
    managed const v{values};
    managed const c{codes};
    managed const s{scales};
    cast_kernel<<<3, 32>>>(
      v.get(), std::uint64_t{scales.size()}, largest, signs, seed, c.get(), s.get());
    give(c, codes);
    give(s, scales);
  }
  static void all_reduce(std::vector<std::vector<word4>>& payloads)
  {
    std::size_t const size = payloads[0].size();
    std::vector<word4> together;
    for (auto const& payload : payloads) {
      together.insert(together.end(), payload.begin(), payload.end());
    }
    managed const p{together};
    sum_over_peers::peers all{.payload = {}, .count = static_cast<int>(payloads.size()), .rank = 0};
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      all.payload[rank] = p.get() + rank * size;
    }
    for (; all.rank < all.count; ++all.rank) {
      all_reduce_kernel<<<2, 32>>>(all, std::uint64_t{size});
    }
    give(p, together);
    for (std::size_t rank = 0; rank < payloads.size(); ++rank) {
      std::copy_n(
        together.begin() + static_cast<std::ptrdiff_t>(rank * size), size, payloads[rank].begin());
    }
  }
};

TEST_CASE("[examples] kernels of one's own do what plain loops do, on a device")
{
  tests::check_bias(on_device{});
  tests::check_keys(on_device{});
  tests::check_cast(on_device{}, 20);
  tests::check_sums(on_device{});
}

}  // namespace
