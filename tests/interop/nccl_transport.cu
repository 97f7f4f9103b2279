// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What `nccl_transport` moves, adds and reports.

#include <tersum/interop/nccl.cuh>

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <interop/conformance.hpp>
#include <interop/nccl_conformance.hpp>
#include <span>
#include <thread>
#include <utility>

namespace tersum::tests {

namespace {

//! Host memory over a transport of device memory: it is copied there and back, and every call waits.
class staged_nccl {
 public:
  explicit staged_nccl(nccl_transport const& over) : over_(over) {}

  [[nodiscard]] int rank() const noexcept { return over_.rank(); }
  [[nodiscard]] int size() const noexcept { return over_.size(); }
  [[nodiscard]] status check() const noexcept { return over_.check(); }
  void refuse(status const& why) const noexcept { over_.refuse(why); }

  [[nodiscard]] status exchange_word(int to,
                                     std::uint64_t value,
                                     int from,
                                     std::uint64_t& received) const
  {
    return over_.exchange_word(to, value, from, received);
  }

  [[nodiscard]] status all_to_all(std::byte const* data,
                                  rank_blocks const& blocks,
                                  std::byte* received) const
  {
    std::size_t const arriving = blocks.bytes(rank()) * static_cast<std::size_t>(size());
    return staged({data, blocks.begin_byte(size())},
                  {received, arriving},
                  [&](std::byte const* there, std::byte* back) {
                    return over_.all_to_all(there, blocks, back);
                  });
  }

  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const& blocks) const
  {
    return in_place({data, blocks.begin_byte(size())},
                    [&](std::byte* there) { return over_.all_gather(there, blocks); });
  }

  template <reduce_op Op>
  requires nccl_knows<Op>
  [[nodiscard]] status all_reduce(wire<Op> const& round) const
  {
    return in_place({reinterpret_cast<std::byte*>(round.data), round.bytes()},
                    [&](std::byte* there) {
                      auto* const elements = reinterpret_cast<typename Op::element*>(there);
                      return over_.all_reduce(wire<Op>{elements, round.count, round.op});
                    });
  }

 private:
  template <class Body>
  [[nodiscard]] status in_place(std::span<std::byte> data, Body const& body) const
  {
    return staged(data, data, [&](std::byte const* there, std::byte* back) -> status {
      if (cudaMemcpyAsync(back, there, data.size(), cudaMemcpyDeviceToDevice, over_.stream()) !=
          cudaSuccess) {
        return failed();
      }
      return body(back);
    });
  }

  template <class Body>
  [[nodiscard]] status staged(std::span<std::byte const> sent,
                              std::span<std::byte> received,
                              Body const& body) const
  {
    std::byte* there = nullptr;
    std::byte* back  = nullptr;
    if (cudaMalloc(&there, sent.size() + 1) != cudaSuccess ||
        cudaMalloc(&back, received.size() + 1) != cudaSuccess ||
        cudaMemcpy(there, sent.data(), sent.size(), cudaMemcpyHostToDevice) != cudaSuccess) {
      return failed();
    }
    status outcome = body(there, back);
    if (outcome.ok()) { outcome = over_.wait(); }
    if (outcome.ok() &&
        cudaMemcpy(received.data(), back, received.size(), cudaMemcpyDeviceToHost) != cudaSuccess) {
      outcome = failed();
    }
    cudaFree(there);
    cudaFree(back);
    return outcome;
  }

  [[nodiscard]] static status failed() noexcept
  {
    return {error_code::execution_failed, "staging failed"};
  }

  nccl_transport const& over_;
};

//! Parts of another world are refused before anything is moved.
int check_other_world(nccl_rank const& on, nccl_transport const& nccl)
{
  auto const reduce = reduce_over(nccl, cuda_executor{on.stream});
  scatter_wire<std::uint32_t> const scattered{.count = 4, .ranks = on.ranks + 1};
  gather_wire<std::uint32_t> const gathered{.count = 4, .ranks = on.ranks + 1};
  constexpr error_code invalid = error_code::invalid_argument;
  if (reduce(gathered).code == invalid && reduce(scattered).code == invalid) { return 0; }
  std::printf("rank %d of %d: parts of another world are taken\n", on.rank, on.ranks);
  return 1;
}

//! On two streams an exchange would be in no order.
int check_other_stream(nccl_rank const& on, nccl_transport const& nccl)
{
  wire<native_sum<float>> const round{.count = 4};
  if (reduce_over(nccl, cuda_executor{cudaStream_t{}})(round).code ==
      error_code::invalid_argument) {
    return 0;
  }
  std::printf("rank %d of %d: an executor on another stream is taken\n", on.rank, on.ranks);
  return 1;
}

}  // namespace

int check_nccl_transport(nccl_rank const& on)
{
  nccl_transport const nccl{on.communicator, on.stream, std::chrono::seconds(60)};
  staged_nccl const staged{nccl};
  auto const any = forget_type(staged);
  return check_presets(any, on.brief) + check_agreement(any) + check_other_world(on, nccl) +
         check_other_stream(on, nccl);
}

int check_nccl_codecs(nccl_rank const& on)
{
  return [&]<int... Group>(std::integer_sequence<int, Group...>)
  {
    return (check_nccl_shards(on) + ... + check_nccl_group<Group>(on));
  }
  (std::make_integer_sequence<int, TERSUM_GROUPS>{});
}

int check_nccl_absence(nccl_rank const& on,
                       std::chrono::milliseconds timeout,
                       std::chrono::milliseconds away)
{
  int failures      = 0;
  auto const expect = [&](bool ok, char const* what) {
    if (ok) { return; }
    ++failures;
    std::printf("rank %d of %d: a rank stays away: %s\n", on.rank, on.ranks, what);
  };
  nccl_transport const nccl{on.communicator, on.stream, timeout};
  expect(nccl.check().ok(), "the communicator could not be made");
  if (on.rank == on.ranks - 1) {
    std::this_thread::sleep_for(away);
    ncclCommAbort(on.communicator);
    return failures;
  }
  auto const begin       = std::chrono::steady_clock::now();
  std::uint64_t received = 0;
  status const outcome =
    nccl.exchange_word((on.rank + 1) % on.ranks, 1, (on.rank + on.ranks - 1) % on.ranks, received);
  expect(std::chrono::steady_clock::now() - begin < away, "the timeout passed");
  // Rank 0 waits for what never comes; of more than two ranks those in the middle are served.
  if (on.rank == 0) {
    expect(outcome.code == error_code::transport_failed, "nobody said so");
    expect(nccl.aborted(), "the communicator was not given up");
    expect(nccl.check().code == error_code::transport_failed, "the transport goes on");
    wire<native_sum<float>> const next{};
    cudaError_t const stream = cudaStreamSynchronize(on.stream);
    expect(stream == cudaSuccess, "the stream is not free");
    expect(reduce_over(nccl, cuda_executor{on.stream})(next).code == error_code::transport_failed,
           "another round is begun");
  }
  if (!nccl.aborted()) { ncclCommAbort(on.communicator); }
  return failures;
}

int check_nccl_unnoticed_absence(nccl_rank const& on, std::chrono::milliseconds away)
{
  int failures = 0;
  {
    nccl_transport const nccl{on.communicator, on.stream, std::chrono::seconds(60)};
    failures += nccl.check().ok() ? 0 : 1;
    if (on.rank == on.ranks - 1) {
      std::this_thread::sleep_for(away);
    } else {
      std::byte* memory = nullptr;
      failures += cudaMalloc(&memory, 64) == cudaSuccess ? 0 : 1;
      failures += cudaMemsetAsync(memory, 0, 64, on.stream) == cudaSuccess ? 0 : 1;
      auto* const values = reinterpret_cast<float*>(memory);
      failures +=
        nccl.all_reduce(wire<native_sum<float>>{.data = values, .count = 16}).ok() ? 0 : 1;
    }
  }
  if (on.rank != on.ranks - 1 && cudaStreamQuery(on.stream) != cudaErrorNotReady) {
    std::printf(
      "rank %d of %d: the destructor has waited for a rank that is gone\n", on.rank, on.ranks);
    ++failures;
  }
  (void)cudaGetLastError();
  ncclCommAbort(on.communicator);
  return failures;
}

}  // namespace tersum::tests
