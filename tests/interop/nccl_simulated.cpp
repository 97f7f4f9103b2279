// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite over a simulated NCCL on a simulated device: ranks are threads of this process.

#include <doctest/doctest.h>

#include <chrono>
#include <interop/nccl_conformance.hpp>
#include <interop/simulated/on_all_ranks.hpp>
#include <interop/simulated/world.hpp>
#include <support/simulator/runtime_state.hpp>
#include <vector>

using namespace tersum;
using tests::on_all_ranks;
using namespace std::chrono_literals;

namespace {

struct patience {
  explicit patience(std::chrono::milliseconds limit) { simulator::nccl_world::patience = limit; }
  ~patience() { simulator::nccl_world::patience = 60s; }
};

// How a rank's call ends, on the host or later.
ncclResult_t outcome(tests::nccl_rank const& on, ncclResult_t called)
{
  (void)cudaStreamSynchronize(on.stream);
  ncclResult_t later = ncclSuccess;
  if (ncclCommGetAsyncError(on.communicator, &later) != ncclSuccess) { return ncclInternalError; }
  return called != ncclSuccess ? called : later;
}

struct device_words {
  device_words()
  {
    REQUIRE(cudaMalloc(&data, 64) == cudaSuccess);
    REQUIRE(cudaMemset(data, 0, 64) == cudaSuccess);
  }
  device_words(device_words const&) = delete;
  ~device_words() { cudaFree(data); }
  void* data = nullptr;
};

}  // namespace

TEST_CASE("[nccl] the stand-in sees calls that do not match")
{
  device_words const memory[2];
  auto const fails = [&](auto call) {
    patience const short_one{300ms};
    return on_all_ranks(2, true, [&](tests::nccl_rank& on) {
      return outcome(on, call(on, memory[on.rank].data)) != ncclSuccess ? 1 : 0;
    });
  };
  auto const send = [](tests::nccl_rank& on, void* data, std::size_t count, ncclDataType_t type) {
    return ncclSend(data, count, type, 1 - on.rank, on.communicator, on.stream);
  };
  auto const receive = [](tests::nccl_rank& on, void* data, std::size_t count) {
    return ncclRecv(data, count, ncclUint8, 1 - on.rank, on.communicator, on.stream);
  };
  CHECK(fails([&](auto& on, void* data) {
          return on.rank == 0 ? send(on, data, 8, ncclUint8) : receive(on, data, 8);
        }) == 0);
  // Another number or type, a send alone, two that send first, unlike collectives, roots and parts, memory of the host.
  CHECK(fails([&](auto& on, void* data) {
          return on.rank == 0 ? send(on, data, 8, ncclUint8) : receive(on, data, 4);
        }) == 2);
  CHECK(fails([&](auto& on, void* data) {
          return on.rank == 0 ? send(on, data, 8, ncclInt8) : receive(on, data, 8);
        }) == 2);
  CHECK(fails([&](auto& on, void* data) {
          return on.rank == 0 ? send(on, data, 8, ncclUint8) : ncclSuccess;
        }) >= 1);
  CHECK(fails([&](auto& on, void* data) {
          ncclResult_t const sent = send(on, data, 8, ncclUint8);
          return sent == ncclSuccess ? receive(on, data, 8) : sent;
        }) == 2);
  CHECK(fails([&](auto& on, void* data) {
          return ncclAllReduce(
            data, data, on.rank == 0 ? 4 : 8, ncclFloat32, ncclSum, on.communicator, on.stream);
        }) == 2);
  CHECK(fails([&](auto& on, void* data) {
          return ncclReduce(
            data, data, 4, ncclFloat32, ncclSum, on.rank, on.communicator, on.stream);
        }) == 2);
  CHECK(fails([&](auto& on, void* data) {
          return ncclReduceScatter(data,
                                   static_cast<char*>(data) + 56,
                                   on.rank == 0 ? 1 : 2,
                                   ncclFloat32,
                                   ncclSum,
                                   on.communicator,
                                   on.stream);
        }) == 2);
  CHECK(fails([&](auto& on, void*) {
          char mine[8] = {};
          return on.rank == 0 ? send(on, mine, 8, ncclUint8) : receive(on, mine, 8);
        }) == 2);
}

TEST_CASE("[nccl] the transport moves, adds and agrees")
{
  for (int const ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    CHECK(on_all_ranks(ranks, true, [](tests::nccl_rank& on) {
            on.brief = true;
            return tests::check_nccl_transport(on);
          }) == 0);
  }
}

TEST_CASE("[nccl] a communicator need not block")
{
  CHECK(on_all_ranks(3, false, [](tests::nccl_rank& on) {
          on.brief = true;
          return tests::check_nccl_transport(on);
        }) == 0);
}

TEST_CASE("[nccl] exchanges on the device")
{
  for (int const ranks : {1, 2, 3, 4, 8}) {
    CAPTURE(ranks);
    CHECK(on_all_ranks(ranks, true, [](tests::nccl_rank& on) {
            on.brief   = on.ranks != 2;
            on.longest = on.ranks > 2 ? 8001 : 20001;
            return tests::check_nccl_codecs(on);
          }) == 0);
  }
}

TEST_CASE("[nccl] a rank stays away")
{
  for (int const ranks : {2, 3}) {
    CAPTURE(ranks);
    CHECK(on_all_ranks(ranks, false, [](tests::nccl_rank& on) {
            simulator::postpone(on.stream);
            return tests::check_nccl_absence(on, 500ms, 1s);
          }) == 0);
  }
}

TEST_CASE("[nccl] a transport ends although a rank is gone and nobody has noticed")
{
  CHECK(on_all_ranks(2, true, [](tests::nccl_rank& on) {
          simulator::postpone(on.stream);
          return tests::check_nccl_unnoticed_absence(on, 500ms);
        }) == 0);
}

TEST_CASE("[nccl] the communicator fails because a rank stays away")
{
  patience const short_one{300ms};
  CHECK(on_all_ranks(2, false, [](tests::nccl_rank& on) {
          return tests::check_nccl_absence(on, 10s, 1s);
        }) == 0);
}
