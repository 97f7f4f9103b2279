// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the functions of the simulated CUDA runtime share: errors, streams and captures.
//!
//! Work of a stream is done when it is enqueued, by the thread that enqueues it; streams of several threads work at the same
//! time. Work of a stream that is postponed is done when something waits for it, and not earlier: so what two streams of
//! a thread do in the wrong order, for want of an event, shows.

#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace tersum::simulator {

using work = std::function<cudaError_t()>;

//! @brief Work that is recorded, and the rules while it is.
struct capture {
  std::vector<work> recorded{};
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  cudaStream_t origin        = nullptr;
  std::thread::id thread     = std::this_thread::get_id();
  bool broken                = false;  //!< a call was made that may not be captured
};

//! @brief What threads share. Locked by `guard`, but not while work is done.
struct runtime_state {
  std::recursive_mutex guard;
  std::set<cudaStream_t> streams;
  std::set<std::shared_ptr<capture>> captures;
  cudaError_t broken = cudaSuccess;  //!< the error that a kernel left, which all later calls return

  [[nodiscard]] static runtime_state& get();
};

//! Of the device: one, or as many as TERSUM_SIMULATED_MULTIPROCESSORS says in the environment.
[[nodiscard]] int multiprocessors();

//! Launches of this thread whose kernels had not been loaded before: a device may be idle until it has loaded one.
[[nodiscard]] unsigned launches_that_load();

//! Remembers an error for `cudaGetLastError`, and returns it; or the one that all calls return by now.
cudaError_t result(cudaError_t error);

//! Says on stderr what a kernel did, after which every call fails.
void break_device(char const* why);

//! The stream of a handle; null for one that does not exist. Legacy and per-thread default streams are one.
CUstream_st* stream_of(cudaStream_t handle);

bool is_default(cudaStream_t handle);

//! Does what a late stream was given up to some piece of work. Not under the lock: work may wait for other threads.
cudaError_t catch_up(CUstream_st* stream, std::size_t pieces);

//! From now on this stream works as late as it may, and says so when it is asked. It is used by one thread.
void postpone(cudaStream_t stream);

//! Does all that late streams of the calling thread were given: its device does not free memory before that.
void wait_for_own_streams();

//! Does work of a stream, or records it.
cudaError_t enqueue(cudaStream_t stream, work one);

//! cudaSuccess, or what a call that must wait or may not be recorded returns while a capture forbids it, which breaks it.
cudaError_t not_while_capturing();

//! Copies within and between the host and device memory, of which it knows the bounds. Returns an error for wrong ranges.
cudaError_t copy_memory(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind);

}  // namespace tersum::simulator

//! @brief A stream: the type that `cudaStream_t` points to.
struct CUstream_st {
  unsigned flags = cudaStreamDefault;
  std::shared_ptr<tersum::simulator::capture> captured{};
  std::size_t recorded  = 0;  //!< pieces of work in this capture
  std::size_t joined    = 0;  //!< of them, those that another stream waits for
  bool late             = false;
  std::thread::id owner = std::this_thread::get_id();
  std::deque<tersum::simulator::work> waiting{};  //!< of one that is late
  std::size_t done = 0;                           //!< pieces of work that waited once
  std::thread worker{};  //!< does what waits while the stream's own thread only asks
  std::atomic<bool> works{false};
};

struct CUevent_st {
  bool recorded = false;
  bool timed    = true;
  std::chrono::steady_clock::time_point at{};
  std::shared_ptr<tersum::simulator::capture>
    captured{};  //!< where it was recorded, and after how much of which stream
  cudaStream_t stream    = nullptr;
  std::size_t after_work = 0;
  std::size_t after_late = 0;  //!< pieces of work that waited there
};

struct CUgraph_st {
  std::vector<tersum::simulator::work> recorded;
};

struct CUgraphExec_st {
  std::vector<tersum::simulator::work> recorded;
};
