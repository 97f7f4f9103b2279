// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite over NCCL: what each rank does, be it a process or a thread.

#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tersum::tests {

//! @brief A rank's communicator, which blocks, and a stream of its own.
struct nccl_rank {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream     = nullptr;
  int rank                = 0;
  int ranks               = 1;
  bool brief              = false;   //!< One shape of each preset.
  std::uint64_t longest   = 300007;  //!< Coordinates of the longest one on the device.
  unsigned (*loads)()     = [] {
    return 0U;
  };  //!< How many launches of this thread have loaded a kernel.
};

//! @brief Memory that a rank takes and gives back on its stream: cudaFree would wait for all kernels of the device, also those of
//! ranks beside this one that wait for its next kernel.
class stream_memory {
 public:
  stream_memory(cudaStream_t stream, std::size_t bytes) : stream_(stream)
  {
    if (cudaMallocAsync(&data_, bytes, stream) != cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess) {
      data_ = nullptr;
    }
  }
  stream_memory(stream_memory const&)            = delete;
  stream_memory& operator=(stream_memory const&) = delete;
  ~stream_memory()
  {
    if (data_ != nullptr) { cudaFreeAsync(data_, stream_); }
  }

  //! Null where there is none.
  template <class T>
  [[nodiscard]] T* as() const
  {
    return static_cast<T*>(data_);
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

//! @name Checks
//! Every rank calls them. @return  How many failed on this rank; each is printed.
//! @{

//! The suite of all transports, its host memory staged in device memory.
[[nodiscard]] int check_nccl_transport(nccl_rank const& on);

//! @brief The last rank is gone and nobody has noticed: a transport can be destroyed all the same, without waiting.
[[nodiscard]] int check_nccl_unnoticed_absence(nccl_rank const& on, std::chrono::milliseconds away);

//! Presets on the device, each schedule, whole and in pieces, from a CUDA graph too, against a loopback on the CPU.
[[nodiscard]] int check_nccl_codecs(nccl_rank const& on);

//! Those presets of one of TERSUM_GROUPS groups, each of which is compiled apart.
template <int Group>
[[nodiscard]] int check_nccl_group(nccl_rank const& on);

//! What can be wrong with how blocks wait for one another.
enum class flag_fault : std::uint32_t {
  none,
  set_before_stores,  //!< A flag is set without a release.
  set_for_device,     //!< Its release is not for other ranks.
  no_barrier,         //!< It is set before other threads of the block have come so far.
  no_acquire,         //!< It is read without an acquire.
  turn_before,        //!< That of the turn before is enough.
  forgets_calls,      //!< Turns are counted from the beginning of each call.
  not_set,            //!< A rank leaves one out.
};

//! @brief How `nccl_symmetric` and `nccl_fused` are tried.
struct symmetric_shape {
  int blocks                = 32;
  std::uint64_t coordinates = 60001;  //!< of exchanges
  bool must_run             = false;  //!< That ranks do not reach one another is a failure.
  flag_fault fault          = flag_fault::none;
};

//! Rounds of every kind and whole exchanges over memory that all ranks reach.
[[nodiscard]] int check_nccl_symmetric(nccl_rank const& on, symmetric_shape const& shape);

//! Exchanges in one kernel, of several layouts, one after the other and from a CUDA graph.
[[nodiscard]] int check_nccl_fused(nccl_rank const& on, symmetric_shape const& shape);

//! @brief Two exchanges in one kernel whose flags have the fault of `shape`.
//! @return  1 where the device finds one, else 0.
[[nodiscard]] int check_nccl_fused_fault(nccl_rank const& on,
                                         bool two_shot,
                                         symmetric_shape const& shape);

//! That arguments which do not suit are refused, and ranks that do not all reach one another.
[[nodiscard]] int check_nccl_fused_refusals(nccl_rank const& on, int blocks);

//! `reduce_scatter_mean` on the device, from a CUDA graph too, against a loopback on the CPU.
[[nodiscard]] int check_nccl_shards(nccl_rank const& on);

//! The same, and `all_gather_values`, over memory that all ranks reach.
[[nodiscard]] int check_nccl_symmetric_shards(nccl_rank const& on, symmetric_shape const& shape);

//! @brief The last rank does nothing for `away`, while the others wait for it with a shorter timeout.
//! @param on  Its communicator does not block, and is aborted by this.
[[nodiscard]] int check_nccl_absence(nccl_rank const& on,
                                     std::chrono::milliseconds timeout,
                                     std::chrono::milliseconds away);
//! @}

}  // namespace tersum::tests
