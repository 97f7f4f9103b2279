// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The current CUDA device as a device of the shared library.

#pragma once

#include "codec_of.hpp"

#include <tersum/tersum.cuh>

#include <cuda_runtime_api.h>

namespace shared_library {

//! @brief Exchanges only enqueue; what is done with states waits.
struct cuda_device {
  int threads;

  [[nodiscard]] static tersum::cuda_executor executor(void* stream)
  {
    return tersum::cuda_executor{static_cast<cudaStream_t>(stream)};
  }

  template <class Codec>
  [[nodiscard]] static tersum::status check(tersum::plan<Codec> const& plan,
                                            std::span<std::byte const> state,
                                            tersum::state_seal const* seal,
                                            void* stream)
  {
    return seal == nullptr ? tersum::check_state(executor(stream), plan, state)
                           : tersum::check_state(executor(stream), plan, state, *seal);
  }

  template <class Codec>
  [[nodiscard]] static tersum::status seal(tersum::plan<Codec> const& plan,
                                           std::span<std::byte const> state,
                                           tersum::state_seal& made,
                                           void* stream)
  {
    return tersum::seal_state(executor(stream), plan, state, made);
  }

  [[nodiscard]] static tersum::status copy(std::byte* to,
                                           std::byte const* from,
                                           std::size_t bytes,
                                           void* stream)
  {
    auto const on = static_cast<cudaStream_t>(stream);
    // Waiting would end the caller's capture.
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error               = cudaStreamIsCapturing(on, &capture);
    if (error == cudaSuccess && capture != cudaStreamCaptureStatusNone) {
      return {tersum::error_code::unsupported,
              "the stream is being captured: save or load a state before or afterwards"};
    }
    if (error == cudaSuccess) { error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on); }
    if (error == cudaSuccess) { error = cudaStreamSynchronize(on); }
    if (error == cudaSuccess) { return {}; }
    return {tersum::error_code::execution_failed,
            "the CUDA runtime could not copy a state",
            static_cast<int>(error)};
  }
};

}  // namespace shared_library
