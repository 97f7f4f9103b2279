// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: errors, streams and events.

#include "runtime_state.hpp"

#include <algorithm>
#include <cstdio>

namespace tersum::simulator {

namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t create_stream(cudaStream_t* stream, unsigned flags)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  *stream = new CUstream_st{flags, {}, 0, 0};
  state.streams.insert(*stream);
  return cudaSuccess;
}

// A call that needs a stream, which must not be recording.
cudaError_t wait_for(cudaStream_t handle)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  auto* const stream = stream_of(handle);
  if (stream == nullptr) { return cudaErrorInvalidResourceHandle; }
  if (stream->captured) {
    stream->captured->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

cudaError_t record_event(cudaEvent_t event, cudaStream_t handle)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  auto* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) { return cudaErrorInvalidResourceHandle; }
  event->recorded   = true;
  event->captured   = stream->captured;
  event->stream     = stream;
  event->after_work = stream->recorded;
  event->at         = std::chrono::steady_clock::now();
  return cudaSuccess;
}

// What is enqueued comes later than all that is done already; a capture follows the event to the stream that waits.
cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  auto* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) { return cudaErrorInvalidResourceHandle; }
  if (stream->captured && event->captured != stream->captured) {
    if (!event->recorded) { return cudaSuccess; }
    stream->captured->broken = true;
    return cudaErrorStreamCaptureIsolation;
  }
  if (event->captured && state.captures.count(event->captured) == 1) {
    if (event->stream != stream) {
      event->stream->joined = std::max(event->stream->joined, event->after_work);
    }
    if (!stream->captured) {
      if (is_default(handle)) { return cudaErrorStreamCaptureImplicit; }
      stream->captured = event->captured;
      stream->recorded = 1;  // it has to be joined, even without work of its own
      stream->joined   = 0;
    }
  }
  return cudaSuccess;
}

}  // namespace

CUstream_st* stream_of(cudaStream_t handle)
{
  static CUstream_st* const by_default = new CUstream_st;
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    return by_default;
  }
  return runtime_state::get().streams.count(handle) == 1 ? handle : nullptr;
}

bool is_default(cudaStream_t handle) { return stream_of(handle) == stream_of(nullptr); }

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
  delete stream;
  return result(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return result(wait_for(stream)); }

cudaError_t cudaStreamQuery(cudaStream_t stream) { return result(wait_for(stream)); }

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

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
  return result(wait_event(stream, event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data)
{
  return result(enqueue(stream, [=] {
    function(data);
    return cudaSuccess;
  }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags)
{
  *event          = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return result(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t* event)
{
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  delete event;
  return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  return result(record_event(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
  if (event->captured) { return result(cudaErrorCapturedEvent); }
  return result(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
{
  if (!start->recorded || !end->recorded || !start->timed || !end->timed) {
    return result(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return result(cudaSuccess);
}

}  // extern "C"
