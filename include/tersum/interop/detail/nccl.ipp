// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl.cuh.

namespace tersum::inline v0 {

// Calls that NCCL makes progress on together; keeps the first error.
class nccl_transport::group {
 public:
  group() noexcept { add(ncclGroupStart()); }
  void add(ncclResult_t result) noexcept
  {
    if (first_ == ncclSuccess || first_ == ncclInProgress) { first_ = result; }
  }
  [[nodiscard]] ncclResult_t end() noexcept
  {
    add(ncclGroupEnd());
    return first_;
  }

 private:
  ncclResult_t first_ = ncclSuccess;
};

inline nccl_transport::nccl_transport(ncclComm_t comm,
                                      cudaStream_t stream,
                                      std::chrono::milliseconds timeout) noexcept
  : comm_(comm), stream_(stream), timeout_(timeout)
{
  ready_ = await_result(ncclInProgress);
  if (ready_.ok()) { ready_ = await_result(ncclCommUserRank(comm_, &rank_)); }
  if (ready_.ok()) { ready_ = await_result(ncclCommCount(comm_, &size_)); }
  if (!ready_.ok()) { return; }
  if (cudaError_t const e = cudaMallocAsync(&words_, 2 * sizeof *words_, stream_);
      e != cudaSuccess) {
    ready_ = {error_code::execution_failed,
              "no device memory for two words in the order of the stream",
              static_cast<int>(e)};
  }
}

inline nccl_transport::~nccl_transport()
{
  if (words_ != nullptr) { cudaFreeAsync(words_, stream_); }
}

inline status nccl_transport::check_stream(cudaStream_t executors) const noexcept
{
  if (executors == stream_) { return {}; }
  return {error_code::invalid_argument,
          "the transport's stream is not the executor's: give it that one"};
}

inline status nccl_transport::wait(cudaStream_t stream) const noexcept
{
  if (aborted_) { return ready_; }
  auto const end = std::chrono::steady_clock::now() + timeout_;
  for (;;) {
    cudaError_t const done = cudaStreamQuery(stream);
    // The runtime remembers that a stream was not ready, and a launch would take it for its own error.
    if (done == cudaErrorNotReady) { (void)cudaGetLastError(); }
    if (done != cudaSuccess && done != cudaErrorNotReady) {
      return abort({error_code::execution_failed,
                    "the stream failed: native is the error of the CUDA runtime",
                    static_cast<int>(done)});
    }
    ncclResult_t state        = ncclSuccess;
    ncclResult_t const answer = ncclCommGetAsyncError(comm_, &state);
    if (answer != ncclSuccess || (state != ncclSuccess && state != ncclInProgress)) {
      return abort({error_code::transport_failed,
                    "NCCL reports an error of the communicator",
                    static_cast<int>(answer != ncclSuccess ? answer : state)});
    }
    // That the stream is done counts only if the communicator has not failed: one that fails may let go of the stream.
    if (done == cudaSuccess) { return {}; }
    if (std::chrono::steady_clock::now() > end) { return abort(late()); }
    std::this_thread::yield();
  }
}

inline status nccl_transport::exchange_word(int to,
                                            std::uint64_t value,
                                            int from,
                                            std::uint64_t& received) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  constexpr std::size_t bytes = sizeof value;
  if (cudaError_t const e = cudaMemcpyAsync(words_, &value, bytes, cudaMemcpyDefault, stream_);
      e != cudaSuccess) {
    return copied(e);
  }
  group together;
  together.add(ncclSend(words_, bytes, ncclUint8, to, comm_, stream_));
  together.add(ncclRecv(words_ + 1, bytes, ncclUint8, from, comm_, stream_));
  if (status const s = await_result(together.end()); !s.ok()) { return s; }
  // Waits first, with the time limit: a copy to pageable memory would block for ever if a rank never came.
  if (status const s = wait(); !s.ok()) { return s; }
  return copied(cudaMemcpyAsync(&received, words_ + 1, bytes, cudaMemcpyDefault, stream_) ==
                    cudaSuccess
                  ? cudaStreamSynchronize(stream_)
                  : cudaGetLastError());
}

inline status nccl_transport::all_to_all(std::byte const* data,
                                         rank_blocks const& blocks,
                                         std::byte* received) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  std::size_t const mine = blocks.bytes(rank_);
  auto const sent = [&](int k) { return std::span{data + blocks.begin_byte(k), blocks.bytes(k)}; };
  auto const arriving = [&](int k) {
    return std::span{received + static_cast<std::size_t>(k) * mine, mine};
  };
  if (mine > 0) {
    if (cudaError_t const e = cudaMemcpyAsync(
          arriving(rank_).data(), sent(rank_).data(), mine, cudaMemcpyDeviceToDevice, stream_);
        e != cudaSuccess) {
      return copied(e);
    }
  }
  return exchange(sent, arriving);
}

inline status nccl_transport::all_gather(std::byte* data, rank_blocks const& blocks) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  auto const block = [&](int k) { return std::span{data + blocks.begin_byte(k), blocks.bytes(k)}; };
  auto const own   = block(rank_);
  bool even        = true;  // Blocks of one size lie one after the other, as NCCL has them.
  for (int k = 0; k < size_; ++k) {
    even = even && blocks.bytes(k) == own.size() &&
           blocks.begin_byte(k) == static_cast<std::size_t>(k) * own.size();
  }
  if (even) {
    return await_result(ncclAllGather(own.data(), data, own.size(), ncclUint8, comm_, stream_));
  }
  return exchange([&](int) { return own; }, block);
}

template <class Sent, class Received>
status nccl_transport::exchange(Sent const& sent, Received const& received) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  group together;
  for (int k = 0; k < size_; ++k) {
    if (k == rank_) { continue; }
    if (auto const to = sent(k); !to.empty()) {
      together.add(ncclSend(to.data(), to.size_bytes(), ncclUint8, k, comm_, stream_));
    }
    if (auto const from = received(k); !from.empty()) {
      together.add(ncclRecv(from.data(), from.size_bytes(), ncclUint8, k, comm_, stream_));
    }
  }
  return await_result(together.end());
}

template <reduce_op Op>
requires nccl_knows<Op> status nccl_transport::all_reduce(wire<Op> const& round)
const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  constexpr ncclDataType_t type = nccl_type<typename Op::element>;
  return await_result(ncclAllReduce(
    round.data, round.data, round.count, type, nccl_operation_of<Op>, comm_, stream_));
}

template <reduce_op Op, class Parts>
requires nccl_knows<Op> status
nccl_transport::reduce_scatter(summed_wire_of<Op, Parts> const& round)
const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  constexpr ncclDataType_t type   = nccl_type<typename Op::element>;
  constexpr ncclRedOp_t operation = nccl_operation_of<Op>;
  std::size_t const first         = round.size(0);
  bool equal                      = true;
  for (int k = 1; k < size_; ++k) { equal = equal && round.size(k) == first; }
  if (equal) {
    return await_result(
      ncclReduceScatter(round.data, round.sum, first, type, operation, comm_, stream_));
  }
  group together;
  for (int k = 0; k < size_; ++k) {
    if (round.size(k) == 0) { continue; }
    auto* const sum = k == rank_ ? round.sum : nullptr;
    together.add(ncclReduce(
      round.data + round.begin(k), sum, round.size(k), type, operation, k, comm_, stream_));
  }
  return await_result(together.end());
}

inline status nccl_transport::await_result(ncclResult_t result) const noexcept
{
  auto const end = std::chrono::steady_clock::now() + timeout_;
  while (result == ncclInProgress) {
    if (ncclResult_t const e = ncclCommGetAsyncError(comm_, &result); e != ncclSuccess) {
      result = e;
    } else if (result == ncclInProgress && std::chrono::steady_clock::now() > end) {
      return abort(late());
    }
  }
  if (result == ncclSuccess) { return {}; }
  status const why{
    error_code::transport_failed, "NCCL returned an error", static_cast<int>(result)};
  bool const only_this_call = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return only_this_call ? why : abort(why);
}

inline status nccl_transport::abort(status const& why) const noexcept
{
  if (!aborted_) { ncclCommAbort(comm_); }
  aborted_ = true;
  ready_   = {error_code::transport_failed,
              "the communicator of NCCL was aborted: make a new one, and a new transport",
              why.native};
  return why;
}

inline status nccl_transport::late() noexcept
{
  return {error_code::transport_failed,
          "NCCL did not end within the timeout: a rank is gone or late"};
}

inline status nccl_transport::copied(cudaError_t error) noexcept
{
  if (error == cudaSuccess) { return {}; }
  return {error_code::execution_failed, "a copy on the stream failed", static_cast<int>(error)};
}

}  // namespace tersum::inline v0
