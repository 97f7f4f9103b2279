// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of world.hpp.

#include "support/simulator/memory.hpp"
#include "world.hpp"

#include <tersum/types.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tersum::simulator {

std::atomic<std::chrono::milliseconds> nccl_world::patience{std::chrono::seconds(60)};
std::atomic<int> nccl_world::reach{std::numeric_limits<int>::max()};

namespace {

//! Says what is wrong with memory that an operation reads or writes; empty when nothing is.
std::string inspect(void const* data, std::size_t bytes, bool reads)
{
  if (bytes == 0) { return {}; }
  auto const address           = reinterpret_cast<std::uint64_t>(data);
  allocation const* const room = global_memory::get().find(address);
  if (room == nullptr || !room->holds(address, bytes)) { return "memory that is not the device's"; }
  if (reads && !room->written(address, bytes)) { return "memory that was never written"; }
  return {};
}

void write(void* to, void const* from, std::size_t bytes)
{
  if (bytes == 0) { return; }
  auto const address = reinterpret_cast<std::uint64_t>(to);
  std::memmove(to, from, bytes);
  global_memory::get().find(address)->mark_written_by_host(address, bytes);
}

template <class T>
T combine(T a, T b, ncclRedOp_t op)
{
  if constexpr (std::is_integral_v<T>) {
    using bits = std::make_unsigned_t<T>;
    return op == ncclMax
             ? std::max(a, b)
             : static_cast<T>(static_cast<bits>(static_cast<bits>(a) + static_cast<bits>(b)));
  } else {
    float const x = to_float(a), y = to_float(b);
    return from_float<T>(op == ncclMax ? std::max(x, y) : x + y);
  }
}

//! In the order of a ring, as NCCL would with few ranks.
template <class T>
void add_up(std::vector<nccl_operation> const& calls)
{
  bool const scatters    = calls[0].call == nccl_call::reduce_scatter;
  std::size_t const part = calls[0].count, n = calls.size();
  std::size_t const count = scatters ? part * n : part;
  std::vector<T> sum(count), next(count);
  for (std::size_t block = 0; block < n; ++block) {
    std::size_t const begin = count * block / n, end = count * (block + 1) / n;
    for (std::size_t hop = 0; hop < n; ++hop) {
      auto const* const from = calls[(block + hop) % n].from;
      std::memcpy(next.data() + begin, from + begin * sizeof(T), (end - begin) * sizeof(T));
      for (std::size_t i = begin; i < end; ++i) {
        sum[i] = hop == 0 ? next[i] : combine(sum[i], next[i], calls[0].op);
      }
    }
  }
  for (std::size_t rank = 0; rank < n; ++rank) {
    if (calls[0].call == nccl_call::reduce && static_cast<int>(rank) != calls[0].peer) { continue; }
    write(calls[rank].to, sum.data() + (scatters ? rank * part : 0), part * sizeof(T));
  }
}

void perform(std::vector<nccl_operation> const& calls)
{
  std::size_t const bytes = calls[0].count * nccl_bytes(calls[0].type);
  if (calls[0].call == nccl_call::all_gather) {
    for (std::size_t sender = 0; sender < calls.size(); ++sender) {
      for (nccl_operation const& call : calls) {
        write(call.to + sender * bytes, calls[sender].from, bytes);
      }
    }
    return;
  }
  switch (calls[0].type) {
    case ncclInt8: return add_up<std::int8_t>(calls);
    case ncclUint8: return add_up<std::uint8_t>(calls);
    case ncclInt32: return add_up<std::int32_t>(calls);
    case ncclUint32: return add_up<std::uint32_t>(calls);
    case ncclUint64: return add_up<std::uint64_t>(calls);
    case ncclFloat16: return add_up<half>(calls);
    case ncclBfloat16: return add_up<bfloat16>(calls);
    case ncclFloat32: return add_up<float>(calls);
    default: std::fputs("simulated NCCL: a type that it cannot add\n", stderr); std::abort();
  }
}

}  // namespace

std::size_t nccl_bytes(ncclDataType_t type)
{
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclUint64: return 8;
    default: return 0;
  }
}

bool nccl_world::join(int rank)
{
  lock const held{mutex_};
  if (std::find(joined_.begin(), joined_.end(), rank) != joined_.end()) { return false; }
  joined_.push_back(rank);
  changed_.notify_all();
  return true;
}

bool nccl_world::complete() const
{
  lock const held{mutex_};
  return joined_.size() == static_cast<std::size_t>(ranks_) && !broken_;
}

bool nccl_world::wait_until_complete()
{
  static std::atomic<bool> const never{false};
  lock held{mutex_};
  auto const all = [&] { return joined_.size() == static_cast<std::size_t>(ranks_); };
  return await(held, all, never, "the communicator to be complete");
}

void nccl_world::leave()
{
  lock const held{mutex_};
  broken_ = true;
  changed_.notify_all();
}

void nccl_world::wake()
{
  lock const held{mutex_};
  changed_.notify_all();
}

ncclResult_t nccl_world::run(int rank,
                             std::vector<nccl_operation> const& operations,
                             std::atomic<bool> const& given_up)
{
  lock held{mutex_};
  for (nccl_operation const& operation : operations) {
    std::size_t const bytes = operation.count * nccl_bytes(operation.type);
    std::size_t const all   = bytes * static_cast<std::size_t>(ranks_);
    bool const gathers      = operation.call == nccl_call::all_gather;
    bool const scatters     = operation.call == nccl_call::reduce_scatter;
    bool const writes       = operation.call == nccl_call::reduce ? operation.peer == rank
                                                                  : operation.call != nccl_call::send;
    std::string wrong;
    if (operation.call != nccl_call::receive) {
      wrong = inspect(operation.from, scatters ? all : bytes, true);
    }
    if (writes && wrong.empty()) { wrong = inspect(operation.to, gathers ? all : bytes, false); }
    if (!wrong.empty()) { return fail(ncclInvalidArgument, "a call is given " + wrong); }
  }
  // What is called together moves together: everything is sent before anything is awaited.
  std::vector<std::shared_ptr<letter>> sent;
  for (nccl_operation const& operation : operations) {
    if (operation.call != nccl_call::send) { continue; }
    sent.push_back(std::make_shared<letter>(letter{operation}));
    letters_[{rank, operation.peer}].push_back(sent.back());
  }
  changed_.notify_all();
  for (nccl_operation const& operation : operations) {
    ncclResult_t result = ncclSuccess;
    if (operation.call == nccl_call::receive) {
      result = receive(held, rank, operation, given_up);
    } else if (operation.call != nccl_call::send) {
      result = meet(held, rank, operation, given_up);
    }
    if (result != ncclSuccess) { return result; }
  }
  for (auto const& letter : sent) {
    if (!await(
          held,
          [&] { return letter->taken; },
          given_up,
          "rank " + std::to_string(letter->sent.peer) + " to receive")) {
      return ncclRemoteError;
    }
  }
  return ncclSuccess;
}

std::vector<void*> nccl_world::share(int rank, void* mine)
{
  static std::atomic<bool> const never{false};
  lock held{mutex_};
  sharing& here = sharings_[shared_[rank]++];
  here.pointers.resize(static_cast<std::size_t>(ranks_));
  here.pointers[static_cast<std::size_t>(rank)] = mine;
  ++here.arrived;
  changed_.notify_all();
  auto const all = [&] { return here.arrived == ranks_; };
  return await(held, all, never, "all ranks to register memory") ? here.pointers
                                                                 : std::vector<void*>{};
}

bool nccl_world::await(lock& held,
                       std::function<bool()> const& here,
                       std::atomic<bool> const& given_up,
                       std::string const& what)
{
  auto const end = [&] { return here() || broken_ || given_up; };
  if (!changed_.wait_for(held, patience.load(), end)) {
    (void)fail(ncclSystemError, "a rank waits in vain for " + what);
  }
  return here();
}

ncclResult_t nccl_world::fail(ncclResult_t error, std::string const& what)
{
  if (!broken_) { std::fprintf(stderr, "simulated NCCL: %s\n", what.c_str()); }
  broken_ = true;
  changed_.notify_all();
  return error;
}

ncclResult_t nccl_world::receive(lock& held,
                                 int rank,
                                 nccl_operation const& wanted,
                                 std::atomic<bool> const& given_up)
{
  auto& box = letters_[{wanted.peer, rank}];
  if (!await(
        held,
        [&] { return !box.empty(); },
        given_up,
        "rank " + std::to_string(wanted.peer) + " to send")) {
    return ncclRemoteError;
  }
  auto const got = box.front();
  box.pop_front();
  if (got->sent.count != wanted.count || got->sent.type != wanted.type) {
    return fail(ncclInvalidUsage, "what is sent is not what is received");
  }
  write(wanted.to, got->sent.from, wanted.count * nccl_bytes(wanted.type));
  got->taken = true;
  changed_.notify_all();
  return ncclSuccess;
}

ncclResult_t nccl_world::meet(lock& held,
                              int rank,
                              nccl_operation const& call,
                              std::atomic<bool> const& given_up)
{
  std::uint64_t const number = met_[rank]++;
  meeting& here              = meetings_[number];
  if (here.calls.empty()) { here.calls.resize(static_cast<std::size_t>(ranks_), call); }
  nccl_operation const& other = here.calls[0];
  if (other.call != call.call || other.count != call.count || other.type != call.type ||
      other.op != call.op || other.peer != call.peer) {
    return fail(ncclInvalidUsage, "the ranks call unlike collectives");
  }
  here.calls[static_cast<std::size_t>(rank)] = call;
  if (++here.arrived == ranks_) {
    perform(here.calls);
    here.done = true;
    changed_.notify_all();
  }
  if (!await(
        held, [&] { return here.done; }, given_up, "all ranks of a collective")) {
    return ncclRemoteError;
  }
  if (++here.left == ranks_) { meetings_.erase(number); }
  return ncclSuccess;
}

}  // namespace tersum::simulator
