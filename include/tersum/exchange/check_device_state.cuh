// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! States on a CUDA device that are saved and loaded: the calls of check_state.hpp, in the order of a stream.
//!
//!     seal_state(exec, plan, state, seal)      before saving both
//!     check_state(exec, plan, state, seal)     after loading both
//!
//! Each call waits until the stream has done all that was enqueued, and copies the bytes in pieces to the host, where they are
//! looked at. It allocates nothing. It cannot be captured in a CUDA graph, and refuses a stream that is being captured, whose
//! capture goes on. Seals are those of the host: a state can be sealed on a device and checked on the host, and the other way
//! round.

#pragma once

#if !defined(__CUDACC__)
#error                                                                                             \
  "tersum/exchange/check_device_state.cuh needs nvcc; include <tersum/exchange/check_state.hpp> from other compilers"
#endif

#include <tersum/exchange/check_state.hpp>
#include <tersum/execute/cuda_executor.cuh>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tersum::inline v0 {

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
                                state_seal& seal) noexcept;

//! @brief Whether a state on a device can be used with a plan. Waits for the stream of the executor.
//!
//! *Errors*: those of `check_state` on the host, with the same sentences, and those of `seal_state`.
template <tuning_holder... Of, class Codec>
[[nodiscard]] status check_state(basic_cuda_executor<Of...> const& exec,
                                 plan<Codec> const& plan,
                                 std::span<std::byte const> state) noexcept;

//! @brief The same, and whether the bytes are those that were sealed, with the errors of both.
template <tuning_holder... Of, class Codec>
[[nodiscard]] status check_state(basic_cuda_executor<Of...> const& exec,
                                 plan<Codec> const& plan,
                                 std::span<std::byte const> state,
                                 state_seal const& seal) noexcept;

}  // namespace tersum::inline v0

#include <tersum/exchange/detail/check_device_state.ipp>
