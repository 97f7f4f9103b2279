// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All presets on the current CUDA device.

#include "../presets/for_each_preset.hpp"
#include "codec_of.hpp"

#include <tersum/tersum.cuh>

namespace shared_library {

namespace {

//! @brief The current device. Exchanges only enqueue; what is done with states waits.
struct cuda_device {
  int threads;

  [[nodiscard]] tersum::cuda_executor executor(void* stream) const
  {
    return tersum::cuda_executor{static_cast<cudaStream_t>(stream)};
  }

  template <class Codec>
  [[nodiscard]] tersum::status check(tersum::plan<Codec> const& plan,
                                     std::span<std::byte const> state,
                                     tersum::state_seal const* seal,
                                     void* stream) const
  {
    return seal == nullptr ? tersum::check_state(executor(stream), plan, state)
                           : tersum::check_state(executor(stream), plan, state, *seal);
  }

  template <class Codec>
  [[nodiscard]] tersum::status seal(tersum::plan<Codec> const& plan,
                                    std::span<std::byte const> state,
                                    tersum::state_seal& made,
                                    void* stream) const
  {
    return tersum::seal_state(executor(stream), plan, state, made);
  }

  [[nodiscard]] static tersum::status copy(std::byte* to,
                                           std::byte const* from,
                                           std::size_t bytes,
                                           void* stream)
  {
    auto const on     = static_cast<cudaStream_t>(stream);
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on);
    if (error == cudaSuccess) { error = cudaStreamSynchronize(on); }
    if (error == cudaSuccess) { return {}; }
    return {tersum::error_code::execution_failed,
            "the CUDA runtime could not copy a state",
            static_cast<int>(error)};
  }
};

}  // namespace

made_codec make_on_cuda(tersum_options const& options)
{
  return make_named<cuda_device>([](auto const& visit) { examples::for_each_preset(visit); },
                                 options);
}

}  // namespace shared_library
