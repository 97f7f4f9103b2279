// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A GPU averages a gradient through NCCL, by a codec whose codes NCCL itself can sum.

#include "support/error_of.hpp"

#include <tersum/interop/thrust.cuh>
#include <tersum/tersum.cuh>

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

// NCCL has no 16-bit integers: sums that need 16-bit lanes go through guard_lanes<16>, that is uint32.
template <class T>
constexpr ncclDataType_t nccl_type = std::same_as<T, float>              ? ncclFloat32
                                     : std::same_as<T, tersum::half>     ? ncclFloat16
                                     : std::same_as<T, tersum::bfloat16> ? ncclBfloat16
                                     : std::same_as<T, std::int8_t>      ? ncclInt8
                                     : std::same_as<T, std::uint32_t>    ? ncclUint32
                                                                         : ncclNumTypes;

int main()
{
  int devices = 0;
  if (auto const error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    return std::printf("skipped: %s\n", cudaGetErrorString(error)), 77;
  }

  // 4-bit codes in lanes of 8 bits: the sum of up to 18 ranks is exact, and a native sum of int8. rotated_sat4 halves
  // the bytes, but NCCL cannot saturate 4-bit lanes: the assertion below would say so. Such a codec needs a transport
  // that applies wire::op_type to two elements, as the one of 01_exchange_on_the_cpu.cpp does.
  constexpr tersum::codec<tersum::fixed_chunks<1024>,
                          tersum::partial_hadamard<1024>,
                          tersum::summed_codes<tersum::rms_range<tersum::no_headroom>,
                                               tersum::stochastic_quantizer<4>,
                                               tersum::widening_sum<4, 8>>,
                          tersum::in_wire>
    codec{.coder = {.range = {.clip = 3.0f}}};

  std::vector<float> values(1 << 20);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761u % 2001) / 1000.0f - 1.0f;
  }
  // The process is the only rank. With more, each has its own rank here and in the communicator (ncclCommInitRank).
  auto const plan = codec.plan({.coordinates = values.size()}, {.size = 1, .rank = 0});

  cudaStream_t stream;
  ncclComm_t communicator;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      ncclCommInitAll(&communicator, 1, nullptr) != ncclSuccess) {
    return std::fprintf(stderr, "no stream or communicator\n"), 1;
  }
  // All memory is the caller's. Thrust aligns to more than the 16 bytes that are needed, and throws where there is none; what
  // it fills is ready when the default stream is.
  thrust::device_vector<float> gradient(values.begin(), values.end());
  thrust::device_vector<std::byte> memory(plan.state_bytes());
  thrust::device_vector<std::byte> scratch(plan.workspace_bytes());
  auto const state     = tersum::device_span(memory);
  auto const workspace = tersum::device_span(scratch);
  cudaStreamSynchronize(nullptr);

  // NCCL's own error comes back in status::native.
  auto const reduce = [&](auto wire) {
    using op = typename decltype(wire)::op_type;
    static_assert(op::native, "NCCL cannot sum this: use widening_sum or guard_lanes");
    constexpr auto type = nccl_type<typename op::element>;
    static_assert(type != ncclNumTypes, "NCCL has no such integers: use guard_lanes");
    constexpr auto operation =
      std::same_as<op, tersum::native_sum<typename op::element>> ? ncclSum : ncclMax;
    return ncclAllReduce(wire.data, wire.data, wire.count, type, operation, communicator, stream);
  };
  tersum::cuda_executor const exec{stream};
  auto outcome = initialize(exec, plan, state, 42);  // once, with the same seed on every rank
  // Every training step. The call only enqueues.
  if (outcome.ok()) { outcome = all_reduce_mean(exec, plan, gradient, state, workspace, reduce); }
  auto const finished = cudaStreamSynchronize(stream);
  if (!outcome.ok() || finished != cudaSuccess) {
    auto const* const why = outcome.ok() ? cudaGetErrorString(finished) : outcome.message.data();
    return std::fprintf(stderr, "%s\n", why), 1;
  }
  std::vector<float> mean(values.size());
  thrust::copy(gradient.begin(), gradient.end(), mean.begin());
  std::printf("%.3f bits a coordinate, error %.5f\n",
              plan.bits_per_coordinate(),
              support::error_of(mean, values));
}
