// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: errors, streams, events, captures and graphs.

#include "runtime_state.hpp"

#include <algorithm>
#include <cstdio>

namespace tersum::simulator {

namespace {

thread_local cudaError_t last_error = cudaSuccess;

using lock = std::lock_guard<std::recursive_mutex>;

// The stream of a handle; null for one that does not exist. Legacy and per-thread default streams are one.
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

cudaError_t create_stream(cudaStream_t* stream, unsigned flags)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  *stream          = new CUstream_st;
  (*stream)->flags = flags;
  state.streams.insert(*stream);
  return cudaSuccess;
}

// Does what a late stream was given up to some piece of work. Not under the lock: work may wait for other threads.
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

cudaError_t catch_up(CUstream_st* stream)
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
  return stream->works ? cudaErrorNotReady : catch_up(stream);
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
  return only_asks ? ask(stream) : catch_up(stream);
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
  event->after_late = stream->done + stream->waiting.size();
  event->at         = std::chrono::steady_clock::now();
  return cudaSuccess;
}

// What is enqueued comes later than all that is done already; a capture follows the event to the stream that waits.
cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event)
{
  auto& state        = runtime_state::get();
  auto* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) { return cudaErrorInvalidResourceHandle; }
  if (auto* const earlier = event->stream; !event->captured && !stream->captured &&
                                           earlier != nullptr && earlier->late &&
                                           earlier != stream) {
    return enqueue(stream,
                   [earlier, pieces = event->after_late] { return catch_up(earlier, pieces); });
  }
  lock const held{state.guard};
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

cudaError_t end_capture(cudaStream_t handle, cudaGraph_t* graph)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  *graph             = nullptr;
  auto* const origin = stream_of(handle);
  if (origin == nullptr) { return cudaErrorInvalidResourceHandle; }
  auto const ended = origin->captured;
  if (!ended) { return cudaErrorIllegalState; }
  if (ended->origin != origin) {
    ended->broken = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (ended->mode != cudaStreamCaptureModeRelaxed && ended->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  bool joined = true;
  for (auto* const stream : state.streams) {
    if (stream->captured != ended) { continue; }
    joined = joined && (stream == origin || stream->joined == stream->recorded);
    stream->captured.reset();
  }
  state.captures.erase(ended);
  if (ended->broken) { return cudaErrorStreamCaptureInvalidated; }
  if (!joined) { return cudaErrorStreamCaptureUnjoined; }
  *graph = new CUgraph_st{std::move(ended->recorded)};
  return cudaSuccess;
}

cudaError_t run_graph(cudaGraphExec_t graph, cudaStream_t stream)
{
  for (auto const& one : graph->recorded) {
    if (auto const error = enqueue(stream, one); error != cudaSuccess) { return error; }
  }
  return cudaSuccess;
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

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  auto* const stream = stream_of(handle);
  if (stream == nullptr) { return result(cudaErrorInvalidResourceHandle); }
  if (is_default(handle)) { return result(cudaErrorStreamCaptureUnsupported); }
  if (stream->captured) { return result(cudaErrorIllegalState); }
  stream->captured = std::make_shared<capture>();
  stream->recorded = stream->joined = 0;
  stream->captured->mode            = mode;
  stream->captured->origin          = stream;
  state.captures.insert(stream->captured);
  return result(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
  return result(end_capture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status)
{
  auto& state = runtime_state::get();
  lock const held{state.guard};
  auto* const stream = stream_of(handle);
  if (stream == nullptr) { return result(cudaErrorInvalidResourceHandle); }
  *status = !stream->captured          ? cudaStreamCaptureStatusNone
            : stream->captured->broken ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return result(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long)
{
  if (graph == nullptr) { return result(cudaErrorInvalidValue); }
  *executable = new CUgraphExec_st{graph->recorded};
  return result(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
  return result(graph == nullptr ? cudaErrorInvalidValue : run_graph(graph, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
  delete graph;
  return result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
  delete graph;
  return result(cudaSuccess);
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

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  if (auto const error = cudaEventQuery(event); error != cudaSuccess) { return error; }
  bool const late = event->stream != nullptr && event->stream->late;
  return late ? result(catch_up(event->stream, event->after_late)) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
{
  if (!start->recorded || !end->recorded || !start->timed || !end->timed) {
    return result(cudaErrorInvalidResourceHandle);
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return result(cudaSuccess);
}

}  // extern "C"
