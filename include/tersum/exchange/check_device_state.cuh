// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! States on a CUDA device that are saved and loaded: the calls of check_state.hpp, in the order of a stream.
//!
//!     seal_state(exec, plan, state, seal)      before saving both
//!     check_state(exec, plan, state, seal)     after loading both
//!
//! Each call waits until the stream has done all that was enqueued, and copies the bytes in pieces to the host, where they are looked at.
//! It allocates nothing. It cannot be captured in a CUDA graph, and refuses a stream that is being captured, whose capture goes on. Seals
//! are those of the host: a state can be sealed on a device and checked on the host, and the other way round.

#pragma once

#if !defined(__CUDACC__)
#error                                                                                             \
  "tersum/exchange/check_device_state.cuh needs nvcc; include <tersum/exchange/check_state.hpp> from other compilers"
#endif

#include <tersum/detail/bits.hpp>
#include <tersum/exchange/check_state.hpp>
#include <tersum/execute/cuda_executor.cuh>
#include <tersum/execute/detail/arithmetic_probe.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace tersum::inline v0 {

namespace detail {

//! @brief The bytes of a state on a device, one piece of them at a time on the host. Once a copy has failed, all bytes are zeros.
class device_bytes {
 public:
  static constexpr std::size_t piece = 32 * 1024;  //!< A multiple of the words of `hash_bytes`.

  device_bytes(cudaStream_t stream, std::byte const* begin, std::size_t bytes) noexcept
    : stream_(stream), begin_(begin), bytes_(bytes)
  {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    keep(cudaStreamIsCapturing(stream, &capture));
    if (result_.ok() && capture != cudaStreamCaptureStatusNone) {
      result_ = {error_code::unsupported,
                 "the stream is being captured: a state is read on the host, so check or seal it "
                 "before or afterwards"};
    }
  }
  device_bytes(device_bytes const&)            = delete;
  device_bytes& operator=(device_bytes const&) = delete;

  //! Whether all that was read came from the device.
  [[nodiscard]] status const& result() const noexcept { return result_; }

  void read(void* to, std::size_t offset, std::size_t bytes) noexcept
  {
    auto* out = static_cast<std::byte*>(to);
    while (bytes > 0) {
      if (offset < first_ || offset >= first_ + held_) { fetch(offset); }
      std::size_t const n = minimum(bytes, first_ + held_ - offset);
      std::memcpy(out, piece_ + (offset - first_), n);
      out += n;
      offset += n;
      bytes -= n;
    }
  }

  //! As `hash_bytes` of all bytes.
  [[nodiscard]] std::uint64_t hash_from(std::uint64_t hash) noexcept
  {
    for (std::size_t at = 0; at < bytes_ && result_.ok(); at += piece) {
      fetch(at);
      hash = hash_bytes(hash, {piece_, held_});
    }
    return hash;
  }

 private:
  void fetch(std::size_t offset) noexcept
  {
    first_ = offset;
    held_  = minimum(piece, bytes_ - offset);
    if (result_.ok()) {
      keep(cudaMemcpyAsync(piece_, begin_ + offset, held_, cudaMemcpyDeviceToHost, stream_));
    }
    if (result_.ok()) { keep(cudaStreamSynchronize(stream_)); }
    if (!result_.ok()) { std::memset(piece_, 0, held_); }
  }

  void keep(cudaError_t error) noexcept
  {
    if (error == cudaSuccess) { return; }
    result_ = {error_code::execution_failed,
               "the CUDA runtime could not read a state from the device",
               static_cast<int>(error)};
  }

  cudaStream_t stream_;
  std::byte const* begin_;
  std::size_t bytes_;
  std::size_t first_ = 0;
  std::size_t held_  = 0;
  status result_{};
  std::byte piece_[piece];
};

}  // namespace detail

//! @brief The seal of a state on a device. Waits for the stream of the executor.
//! @param exec   On whose stream the state was written last.
//! @param plan   The plan of the state.
//! @param state  plan.state_bytes() bytes of the device, as `initialize` or the last exchange left them.
//! @param seal   Receives what to keep beside the bytes, unless there is an error.
//!
//! *Errors*: a state smaller than the plan's; a stream that is captured; what the CUDA runtime says, in `status::native`.
template <tuning_holder... Of, class Codec>
[[nodiscard]] status seal_state(basic_cuda_executor<Of...> const& exec,
                                plan<Codec> const& plan,
                                std::span<std::byte const> state,
                                state_seal& seal) noexcept
{
  if (status const s = detail::check_room(plan, state); !s.ok()) { return s; }
  detail::device_bytes bytes{exec.stream, state.data(), plan.state_bytes()};
  std::uint64_t const hash = detail::hash_of(plan, bytes);
  if (bytes.result().ok()) {
    seal = {.version = state_version, .bytes = plan.state_bytes(), .check = hash};
  }
  return bytes.result();
}

//! @brief Whether a state on a device can be used with a plan, and whether its bytes are those that were sealed, if there is a
//! seal. Waits for the stream of the executor.
//!
//! *Errors*: those of `check_state` on the host, with the same sentences, and those of `seal_state`.
//! @param exec   On whose stream the state was written last.
//! @param plan   The plan of the state.
//! @param state  plan.state_bytes() bytes of the device.
//! @param seal   What was kept beside the bytes, if they were sealed.
template <tuning_holder... Of, class Codec>
[[nodiscard]] status check_state(basic_cuda_executor<Of...> const& exec,
                                 plan<Codec> const& plan,
                                 std::span<std::byte const> state,
                                 std::optional<state_seal> const& seal = {}) noexcept
{
  if (status const s = detail::check_room(plan, state, seal); !s.ok()) { return s; }
  detail::device_bytes bytes{exec.stream, state.data(), plan.state_bytes()};
  if (bytes.result().ok()) {
    // Only where kernels compute otherwise than others this writes: then the state, which may come from elsewhere, is useless here.
    auto* const header = reinterpret_cast<state_header*>(const_cast<std::byte*>(state.data()));
    if (status const s = exec.each(detail::probe_arithmetic{header}, 1); !s.ok()) { return s; }
  }
  status const found = detail::check_bytes(plan, bytes, seal);
  return bytes.result().ok() ? found : bytes.result();
}

}  // namespace tersum::inline v0
