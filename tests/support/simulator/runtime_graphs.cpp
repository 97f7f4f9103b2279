// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The CUDA runtime: captures and graphs.

#include "runtime_state.hpp"

namespace tersum::simulator {

namespace {

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

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

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

}  // extern "C"
