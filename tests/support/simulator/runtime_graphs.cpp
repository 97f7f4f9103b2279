// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: events, captures and graphs.

#include "runtime_state.hpp"

#include <algorithm>

namespace tersum::simulator {

namespace {

using lock = std::lock_guard<std::recursive_mutex>;

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

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
  return result(wait_event(stream, event));
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
