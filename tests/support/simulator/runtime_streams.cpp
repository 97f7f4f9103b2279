// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: errors, streams, and the work that they do or record.

#include "runtime_state.hpp"

#include <cstdio>

namespace tersum::simulator {

namespace {

thread_local cudaError_t last_error = cudaSuccess;

using lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

CUstream_st* stream_of(cudaStream_t handle)
{
  lock const held{runtime_state::get().guard};
  static CUstream_st* const by_default = new CUstream_st;
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return by_default;
  }
  return runtime_state::get().streams.count(handle) == 1 ? handle : nullptr;
}

bool is_default(cudaStream_t handle) { return stream_of(handle) == stream_of(nullptr); }

cudaError_t catch_up(CUstream_st* stream, std::size_t pieces)
{
  while (stream->done < pieces && !stream->waiting.empty()) {
    work const next = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    ++stream->done;
    if (auto const error = next(); error != cudaSuccess) { return error; }
  }
  return cudaSuccess;
}

namespace {

cudaError_t create_stream(cudaStream_t* stream, unsigned flags)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  *stream          = new CUstream_st;
  (*stream)->flags = flags;
  state.streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t finish(CUstream_st* stream)
{
  if (stream->worker.joinable()) { stream->worker.join(); }
  return catch_up(stream, stream->done + stream->waiting.size());
}

// Whether a late stream has done all; it begins when it is asked first.
cudaError_t ask(CUstream_st* stream)
{
  if (!stream->worker.joinable()) {
    if (stream->waiting.empty()) { return cudaSuccess; }
    stream->works  = true;
    stream->worker = std::thread([stream] {
      (void)catch_up(stream, stream->done + stream->waiting.size());
      stream->works = false;
    });
  }
  return stream->works ? cudaErrorNotReady : finish(stream);
}

// A call that needs a stream, which must not be recording.
cudaError_t wait_for(cudaStream_t handle, bool only_asks)
{
  auto& state               = runtime_state::get();
  CUstream_st* const stream = stream_of(handle);
  {
    lock const held{state.guard};
    if (stream == nullptr) { return cudaErrorInvalidResourceHandle; }
    if (stream->captured) {
      stream->captured->broken = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return only_asks ? ask(stream) : finish(stream);
}

}  // namespace

runtime_state& runtime_state::get()
{
  static runtime_state* const one = new runtime_state;
  return *one;
}

cudaError_t result(cudaError_t error)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  if (state.broken != cudaSuccess) { error = state.broken; }
  if (error != cudaSuccess) { last_error = error; }
  return error;
}

void break_device(char const* why)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  std::fprintf(stderr, "simulator: %s\n", why);
  state.broken = cudaErrorLaunchFailure;
}

cudaError_t not_while_capturing()
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  for (auto const& c : state.captures) {
    bool const own = c->thread == std::this_thread::get_id();
    if (c->mode == cudaStreamCaptureModeGlobal ||
        (own && c->mode == cudaStreamCaptureModeThreadLocal)) {
      c->broken = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return cudaSuccess;
}

void postpone(cudaStream_t stream)
{
  lock const held{runtime_state::get().guard};
  stream->late = true;
}

void wait_for_own_streams()
{
  std::vector<CUstream_st*> own;
  {
    lock const held{runtime_state::get().guard};
    for (auto* const stream : runtime_state::get().streams) {
      if (stream->late && !stream->captured && stream->owner == std::this_thread::get_id()) {
        own.push_back(stream);
      }
    }
  }
  for (auto* const stream : own) { (void)finish(stream); }
}

cudaError_t enqueue(cudaStream_t handle, work one)
{
  auto& state = runtime_state::get();
  {
    lock const held{state.guard};
    if (state.broken != cudaSuccess) { return state.broken; }
    auto* const stream = stream_of(handle);
    if (stream == nullptr) { return cudaErrorInvalidResourceHandle; }
    if (stream->captured) {
      if (stream->captured->broken) { return cudaErrorStreamCaptureInvalidated; }
      stream->captured->recorded.push_back(std::move(one));
      ++stream->recorded;
      return cudaSuccess;
    }
    if (is_default(handle)) {  // which waits for those streams that wait for it
      for (auto* const other : state.streams) {
        if (other->captured && (other->flags & cudaStreamNonBlocking) == 0) {
          other->captured->broken = true;
          return cudaErrorStreamCaptureImplicit;
        }
      }
    }
  }
  if (auto* const stream = stream_of(handle); stream->late) {
    if (stream->worker.joinable()) { stream->worker.join(); }
    stream->waiting.push_back(std::move(one));
    return cudaSuccess;
  }
  return one();
}

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

cudaError_t cudaGetLastError()
{
  auto const error = result(last_error);
  last_error       = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return result(last_error); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags)
{
  return result(create_stream(stream, flags));
}

cudaError_t cudaStreamCreate(cudaStream_t* stream)
{
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  if (state.streams.erase(stream) == 0) { return result(cudaErrorInvalidResourceHandle); }
  if (stream->captured) { stream->captured->broken = true; }
  if (stream->worker.joinable()) { stream->worker.join(); }
  delete stream;
  return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return result(wait_for(stream, false)); }

cudaError_t cudaStreamQuery(cudaStream_t stream) { return result(wait_for(stream, true)); }

cudaError_t cudaDeviceSynchronize()
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  for (auto const& c : state.captures) {
    c->broken = true;
    return result(cudaErrorStreamCaptureUnsupported);
  }
  return result(cudaSuccess);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
  return result(enqueue(stream, [=] {
    function(data);
    return cudaSuccess;
  }));
}

}  // extern "C"
