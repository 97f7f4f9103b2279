// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of nccl_symmetric.cuh: rounds over memory that NCCL maps into all ranks.

#pragma once

#include <tersum/block/cuda_context.cuh>
#include <tersum/config.hpp>
#include <tersum/reduce/detail/array_reduction.hpp>

#include <nccl.h>

#if NCCL_VERSION_CODE >= 22800

#include <nccl_device.h>

#include <cstddef>

namespace tersum::inline v0 {

namespace detail {

inline constexpr int symmetric_threads = 512;  //!< Threads of a block.

//! @brief Reduces the elements `begin` to `end`, which this rank owns: reads them from all ranks and writes the result to
//! all ranks. With `Vectors` it takes 16 bytes at a time.
template <bool Vectors, class Op>
__device__ void reduce_symmetric(ncclDevComm const& comm,
                                 ncclWindow_t window,
                                 std::size_t offset,
                                 std::size_t begin,
                                 std::size_t end,
                                 Op const& op)
{
  using element          = typename Op::element;
  constexpr int together = Vectors ? element_vector<element>::count : 1;
  using vector           = neighbours<element, together>;
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x * together;
  std::size_t at =
    begin + (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * together;
  for (; at < end; at += step) {
    std::size_t const byte = offset + at * sizeof(element);
    vector sum             = *static_cast<vector const*>(ncclGetLsaPointer(window, byte, 0));
    for (int rank = 1; rank < comm.lsaSize; ++rank) {
      vector const other = *static_cast<vector const*>(ncclGetLsaPointer(window, byte, rank));
      combine<Op, together>(cuda_context{}, op, sum, other, at);
    }
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      *static_cast<vector*>(ncclGetLsaPointer(window, byte, rank)) = sum;
    }
  }
}

//! @brief The whole all-reduce of `count` elements at a byte of the window. No element has two writers.
template <class Op>
__global__ void __launch_bounds__(symmetric_threads) symmetric_kernel(ncclDevComm comm,
                                                                      ncclWindow_t window,
                                                                      std::size_t offset,
                                                                      std::size_t count,
                                                                      std::size_t begin,
                                                                      std::size_t end,
                                                                      Op op)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have written what they bring
  using element                  = typename Op::element;
  constexpr std::size_t together = element_vector<element>::count;
  if (offset % 16 == 0) {
    reduce_symmetric<true>(comm, window, offset, begin * together, end * together, op);
    if (comm.lsaRank == comm.lsaSize - 1) {
      reduce_symmetric<false>(comm, window, offset, count / together * together, count, op);
    }
  } else {
    bool const last = comm.lsaRank == comm.lsaSize - 1;
    reduce_symmetric<false>(
      comm, window, offset, begin * together, last ? count : end * together, op);
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have received their results
}

//! @brief This rank's part, written to all other ranks.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads) symmetric_gather_kernel(ncclDevComm comm,
                                                                             ncclWindow_t window,
                                                                             std::size_t offset,
                                                                             std::size_t count)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(Element);
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t at         = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; at < count; at += step) {
    std::size_t const byte = mine + at * sizeof(Element);
    Element const value =
      *static_cast<Element const*>(ncclGetLsaPointer(window, byte, comm.lsaRank));
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      if (rank == comm.lsaRank) { continue; }
      *static_cast<Element*>(ncclGetLsaPointer(window, byte, rank)) = value;
    }
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);
}

//! @brief Every rank's part for this one, read from it; `received` is this rank's alone.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads) symmetric_scatter_kernel(
  ncclDevComm comm, ncclWindow_t window, std::size_t offset, std::size_t count, Element* received)
{
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(Element);
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t at         = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; at < count; at += step) {
    for (int rank = 0; rank < comm.lsaSize; ++rank) {
      received[static_cast<std::size_t>(rank) * count + at] =
        *static_cast<Element const*>(ncclGetLsaPointer(window, mine + at * sizeof(Element), rank));
    }
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // nobody overwrites what another still reads
}

}  // namespace detail

}  // namespace tersum::inline v0

#endif  // NCCL_VERSION_CODE >= 22800
