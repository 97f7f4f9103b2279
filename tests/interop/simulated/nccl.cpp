// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The functions of NCCL that interop/nccl.cuh uses, for ranks that are threads of one process. What is called together is
//! one host function on its stream, which blocks until the other ranks are there, and can be captured.

#include "communicator.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <set>

namespace tersum::simulator {

namespace {

struct registry {
  std::mutex guard;
  std::map<std::uint64_t, std::weak_ptr<nccl_world>> worlds;  // by unique id
  std::map<ncclComm_t, communicator> communicators;           // those that are not destroyed

  static registry& get()
  {
    static registry* const one = new registry;
    return *one;
  }
};

struct called {
  communicator on;
  cudaStream_t stream;
  nccl_operation operation;
};

struct calls_together {
  int depth          = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<called> calls;
};
thread_local calls_together together;

void forget(ncclComm_t handle)
{
  std::lock_guard const lock{registry::get().guard};
  registry::get().communicators.erase(handle);
}

struct batch {
  communicator on;
  std::vector<nccl_operation> operations;
};

void CUDART_CB run_batch(void* data)
{
  auto const& [on, operations] = *static_cast<batch const*>(data);
  if (on->given_up || on->failed != ncclSuccess) { return; }
  ncclResult_t const result = on->world->run(on->rank, operations, on->given_up);
  if (result != ncclSuccess) { on->failed = result; }
}

// The calls of a group on one communicator.
ncclResult_t start(std::vector<called> const& calls)
{
  static std::mutex guard;
  static std::deque<batch> kept;  // graphs may replay them until the program ends
  communicator const& on = calls[0].on;
  if (on->failed != ncclSuccess) { return on->failed; }
  if (!on->world->complete()) { return ncclInvalidUsage; }
  batch one{on, {}};
  for (called const& call : calls) {
    if (call.stream != calls[0].stream) { return ncclInvalidUsage; }
    one.operations.push_back(call.operation);
  }
  void* data = nullptr;
  {
    std::lock_guard const lock{guard};
    data = &kept.emplace_back(std::move(one));
  }
  if (cudaLaunchHostFunc(calls[0].stream, run_batch, data) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  if (on->blocking) { return ncclSuccess; }
  on->in_progress = true;
  return ncclInProgress;
}

ncclResult_t end_group()
{
  if (together.depth == 0) { return ncclInvalidUsage; }
  if (--together.depth > 0) { return ncclSuccess; }
  calls_together const ended = std::exchange(together, {});
  if (ended.error != ncclSuccess) { return ended.error; }
  ncclResult_t outcome = ncclSuccess;
  std::set<communicator> done;
  for (called const& first : ended.calls) {
    if (!done.insert(first.on).second) { continue; }
    std::vector<called> its;
    for (called const& call : ended.calls) {
      if (call.on == first.on) { its.push_back(call); }
    }
    ncclResult_t const result = start(its);
    if (outcome == ncclSuccess || outcome == ncclInProgress) { outcome = result; }
  }
  return outcome;
}

ncclResult_t call(ncclComm_t handle, cudaStream_t stream, nccl_operation const& operation)
{
  ++together.depth;
  communicator const on = find(handle);
  bool const names_one  = operation.call == nccl_call::send ||
                         operation.call == nccl_call::receive ||
                         operation.call == nccl_call::reduce;
  bool const bad_peer =
    names_one && on != nullptr && (operation.peer < 0 || operation.peer >= on->world->ranks());
  bool const bad_type = nccl_bytes(operation.type) == 0;
  bool const bad_op   = operation.op != ncclSum && operation.op != ncclMax;
  if (on == nullptr || bad_peer || bad_type || bad_op) {
    together.error = ncclInvalidArgument;
  } else {
    together.calls.push_back({on, stream, operation});
  }
  ncclResult_t const error = together.error;
  ncclResult_t const ended = end_group();
  return error != ncclSuccess ? error : ended;
}

ncclResult_t connect(
  ncclComm_t* out, int ranks, ncclUniqueId const& id, int rank, ncclConfig_t const* config)
{
  if (ranks < 1 || rank < 0 || rank >= ranks) { return ncclInvalidArgument; }
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  auto const made = std::make_shared<ncclComm>();
  made->rank      = rank;
  made->blocking  = config == nullptr || config->blocking != 0;
  {
    std::lock_guard const lock{registry::get().guard};
    auto& known = registry::get().worlds[number];
    made->world = known.lock();
    if (made->world == nullptr) { known = made->world = std::make_shared<nccl_world>(ranks); }
    registry::get().communicators[made.get()] = made;
  }
  if (made->world->ranks() != ranks || !made->world->join(rank)) { return ncclInvalidUsage; }
  *out = made.get();
  if (!made->blocking) { return ncclInProgress; }
  return made->world->wait_until_complete() ? ncclSuccess : ncclRemoteError;
}

// What a call on arrays does.
nccl_operation of_arrays(nccl_call call,
                         void const* from,
                         void* to,
                         std::size_t count,
                         ncclDataType_t type,
                         ncclRedOp_t op = ncclSum,
                         int peer       = -1)
{
  return {.call  = call,
          .from  = static_cast<std::byte const*>(from),
          .to    = static_cast<std::byte*>(to),
          .count = count,
          .type  = type,
          .op    = op,
          .peer  = peer};
}

}  // namespace

communicator find(ncclComm_t handle)
{
  std::lock_guard const lock{registry::get().guard};
  auto const at = registry::get().communicators.find(handle);
  return at == registry::get().communicators.end() ? nullptr : at->second;
}

}  // namespace tersum::simulator

using namespace tersum::simulator;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id)
{
  static std::atomic<std::uint64_t> last{0};
  std::uint64_t const number = ++last;
  *id                        = {};
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(
  ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config)
{
  return connect(comm, ranks, id, rank, config);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank)
{
  return connect(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommUserRank(ncclComm_t const comm, int* rank)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  *rank = on->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t const comm, int* count)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  *count = on->world->ranks();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  bool const busy = on->in_progress.exchange(false) || (!on->blocking && !on->world->complete());
  *error = on->failed != ncclSuccess ? on->failed.load() : busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
  auto const on = find(comm);
  if (on == nullptr) { return ncclInvalidArgument; }
  on->given_up = true;
  on->world->leave();
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
  return find(comm) == nullptr ? ncclInvalidArgument : ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
  if (find(comm) == nullptr) { return ncclInvalidArgument; }
  forget(comm);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart()
{
  ++together.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return end_group(); }

ncclResult_t ncclSend(void const* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream)
{
  return call(comm, stream, of_arrays(nccl_call::send, data, nullptr, count, type, ncclSum, peer));
}

ncclResult_t ncclRecv(void* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream)
{
  return call(
    comm, stream, of_arrays(nccl_call::receive, nullptr, data, count, type, ncclSum, peer));
}

ncclResult_t ncclAllReduce(void const* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t op,
                           ncclComm_t comm,
                           cudaStream_t stream)
{
  return call(comm, stream, of_arrays(nccl_call::all_reduce, from, to, count, type, op));
}

ncclResult_t ncclAllGather(void const* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclComm_t comm,
                           cudaStream_t stream)
{
  return call(comm, stream, of_arrays(nccl_call::all_gather, from, to, count, type));
}

ncclResult_t ncclReduceScatter(void const* from,
                               void* to,
                               std::size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t op,
                               ncclComm_t comm,
                               cudaStream_t stream)
{
  return call(comm, stream, of_arrays(nccl_call::reduce_scatter, from, to, count, type, op));
}

ncclResult_t ncclReduce(void const* from,
                        void* to,
                        std::size_t count,
                        ncclDataType_t type,
                        ncclRedOp_t op,
                        int root,
                        ncclComm_t comm,
                        cudaStream_t stream)
{
  return call(comm, stream, of_arrays(nccl_call::reduce, from, to, count, type, op, root));
}

char const* ncclGetErrorString(ncclResult_t) { return "simulated NCCL: see stderr"; }

}  // extern "C"
