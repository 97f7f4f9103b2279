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
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

inline constexpr int symmetric_threads = 512;  //!< Threads of a block.
inline constexpr int symmetric_loads   = 8;    //!< Of a thread that are under way together.

//! @brief Waits for the same block of all ranks. It keeps a reference to the communicator, which therefore is a parameter that
//! cannot change: of another one the compiler would make a copy in local memory.
using symmetric_barrier = ncclLsaBarrierSession<ncclCoopCta>;

//! @brief The same place in the windows of all ranks, which lie one after the other.
struct symmetric_place {
  char* first;  //!< of rank 0
  std::size_t stride;
  int rank, ranks;

  __device__ symmetric_place(ncclWindow_t window, std::size_t offset, int own, int all)
    : first{static_cast<char*>(ncclGetLsaPointer(window, offset, 0))},
      stride{
        static_cast<std::size_t>(static_cast<char*>(ncclGetLsaPointer(window, offset, 1)) - first)},
      rank{own}, ranks{all}
  {
  }

  __device__ symmetric_place(ncclDevComm const& comm, ncclWindow_t window, std::size_t offset)
    : symmetric_place{window, offset, comm.lsaRank, comm.lsaSize}
  {
  }

  //! The same so many bytes on.
  [[nodiscard]] __device__ symmetric_place behind(std::size_t bytes) const
  {
    symmetric_place result{*this};
    result.first += bytes;
    return result;
  }

  //! Bytes from the window of rank 0 to that of another one.
  [[nodiscard]] __device__ std::size_t offset_of(int of) const
  {
    return static_cast<std::size_t>(of) * stride;
  }

  //! The value `index` of a rank.
  template <class T>
  [[nodiscard]] __device__ T* at(std::size_t index, int of) const
  {
    auto* const p = reinterpret_cast<T*>(first + offset_of(of) + index * sizeof(T));
    __builtin_assume(__isGlobal(p));
    return p;
  }

  //! @brief Stores a value with all ranks, from this one on: no rank is the first of all.
  template <class T>
  __device__ void store_to_all(std::size_t index, T const& value) const
  {
    for (int i = 0, to = rank; i < ranks; ++i) {
      cuda_context{}.store(at<T>(index, to), value);
      if (++to == ranks) { to = 0; }
    }
  }
};

//! @brief Calls use(rank, value) for values of the ranks `begin` to `end`, at most symmetric_loads, in their order. They are all
//! loaded before, those from this rank on first, so that ranks do not all begin with the same one.
template <class T, class Use>
__device__ __forceinline__ void load_from_ranks(
  symmetric_place const& from, std::size_t index, int begin, int end, Use const& use)
{
  T value[symmetric_loads];
  int const own = from.rank;
  TERSUM_UNROLL
  for (int k = 0; k < symmetric_loads; ++k) {
    if (begin + k < end && begin + k >= own) {
      value[k] = cuda_context{}.load(from.at<T>(index, begin + k));
    }
  }
  TERSUM_UNROLL
  for (int k = 0; k < symmetric_loads; ++k) {
    if (begin + k < end && begin + k < own) {
      value[k] = cuda_context{}.load(from.at<T>(index, begin + k));
    }
  }
  TERSUM_UNROLL
  for (int k = 0; k < symmetric_loads; ++k) {
    if (begin + k < end) { use(begin + k, value[k]); }
  }
}

//! @brief Reduces every `step`th from `at` to `end`, all of which this rank owns: reads them from all ranks and calls
//! store(index, result). They are elements, or, with `Together`, so many at a time.
template <int Together, class Op, class Store>
__device__ __forceinline__ void reduce_strided(symmetric_place const& place,
                                               std::size_t at,
                                               std::size_t end,
                                               std::size_t step,
                                               Op const& op,
                                               Store const& store)
{
  constexpr int together = Together;
  using element          = typename Op::element;
  using vector           = neighbours<element, together>;
  // Bytes stay in words until they are added: those of symmetric_loads vectors would take a register each.
  using loaded =
    std::conditional_t<sizeof(element) == 1 && sizeof(vector) == sizeof(uint4), uint4, vector>;
  int const ranks = place.ranks;
  for (; at < end; at += step) {
    vector sum{};
    auto const add = [&](int rank, vector const& v) {
      if (rank == 0) {
        sum = v;
      } else {
        combine<Op, together>(cuda_context{}, op, sum, v, at * together);
      }
    };
    for (int first = 0; first < ranks; first += symmetric_loads) {
      int const last = minimum(first + symmetric_loads, ranks);
      load_from_ranks<loaded>(place, at, first, last, [&](int rank, loaded const& v) {
        if constexpr (std::is_same_v<loaded, vector>) {
          add(rank, v);
        } else {
          add(rank, bit_cast<vector>(v));
        }
      });
    }
    store(at, sum);
  }
}

//! @brief The same, which writes the result to all ranks.
template <int Together, class Op>
__device__ __forceinline__ void reduce_strided(
  symmetric_place const& place, std::size_t at, std::size_t end, std::size_t step, Op const& op)
{
  auto const store = [&](std::size_t index, auto const& sum) { place.store_to_all(index, sum); };
  reduce_strided<Together>(place, at, end, step, op, store);
}

//! @brief Reduces the elements `begin` to `end`, which this rank owns, by all blocks. With `Vectors` it takes 16 bytes at a time.
template <bool Vectors, class Op>
__device__ void reduce_symmetric(symmetric_place const& place,
                                 std::size_t begin,
                                 std::size_t end,
                                 Op const& op)
{
  constexpr int together = Vectors ? in_vector<typename Op::element> : 1;
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * symmetric_threads;
  std::size_t const first =
    begin / together + static_cast<std::size_t>(blockIdx.x) * symmetric_threads + threadIdx.x;
  reduce_strided<together>(place, first, end / together, step, op);
}

//! @brief The whole all-reduce of `count` elements at a byte of the window, of which this rank owns the vectors of 16 bytes `begin`
//! to `end`. No element has two writers.
template <class Op>
__global__ void __launch_bounds__(symmetric_threads, 1)
  symmetric_kernel(ncclDevComm const __grid_constant__ comm,
                   ncclWindow_t window,
                   std::size_t offset,
                   std::size_t count,
                   std::size_t begin,
                   std::size_t end,
                   Op op)
{
  ncclCoopCta cta;
  symmetric_barrier everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have written what they bring
  using element                  = typename Op::element;
  constexpr std::size_t together = in_vector<element>;
  symmetric_place const place{comm, window, offset};
  bool const last = comm.lsaRank == comm.lsaSize - 1;
  if (offset % 16 == 0) {
    reduce_symmetric<true>(place, begin * together, end * together, op);
    if (last) { reduce_symmetric<false>(place, count / together * together, count, op); }
  } else {
    reduce_symmetric<false>(place, begin * together, last ? count : end * together, op);
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // all ranks have received their results
}

//! @brief A part of the windows cut into vectors of 16 bytes and the elements before and behind them.
struct symmetric_cut {
  std::size_t before, vectors, behind;

  template <class Element>
  [[nodiscard]] static __device__ symmetric_cut of(std::size_t byte, std::size_t count)
  {
    std::size_t const head = minimum((16 - byte % 16) % 16 / sizeof(Element), count);
    std::size_t const full = (count - head) * sizeof(Element) / 16;
    return {head, full, count - head - full * (16 / sizeof(Element))};
  }
};

//! @brief Copies `count` values of this rank to the same place of all others, several at a time.
template <class T>
__device__ void push_symmetric(symmetric_place const& place, std::size_t count)
{
  constexpr std::size_t together = 4;
  std::size_t const step         = static_cast<std::size_t>(gridDim.x) * symmetric_threads;
  std::size_t at = static_cast<std::size_t>(blockIdx.x) * symmetric_threads + threadIdx.x;
  for (; at < count; at += together * step) {
    T value[together];
    TERSUM_UNROLL
    for (std::size_t k = 0; k < together; ++k) {
      if (at + k * step < count) {
        value[k] = cuda_context{}.load(place.at<T>(at + k * step, place.rank));
      }
    }
    for (int i = 1, rank = place.rank; i < place.ranks; ++i) {
      if (++rank == place.ranks) { rank = 0; }
      TERSUM_UNROLL
      for (std::size_t k = 0; k < together; ++k) {
        if (at + k * step < count) {
          cuda_context{}.store(place.at<T>(at + k * step, rank), value[k]);
        }
      }
    }
  }
}

//! @brief This rank's part, written to all other ranks. Parts of `count` elements lie one after the other from `offset` on.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads, 1)
  symmetric_gather_kernel(ncclDevComm const __grid_constant__ comm,
                          ncclWindow_t window,
                          std::size_t offset,
                          std::size_t count)
{
  ncclCoopCta cta;
  symmetric_barrier everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  // It lies at the same byte of all windows, and these at multiples of 4096.
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(Element);
  auto const cut = symmetric_cut::of<Element>(mine, count);
  symmetric_place const place{comm, window, mine};
  std::size_t const first = cut.before * sizeof(Element);
  push_symmetric<Element>(place, cut.before);
  push_symmetric<uint4>(place.behind(first), cut.vectors);
  push_symmetric<Element>(place.behind(first + cut.vectors * 16), cut.behind);
  everyone.sync(cta, cuda::memory_order_acq_rel);
}

//! @brief Copies `count` values of every rank, those of rank r to `to` + r `stride`.
template <class T>
__device__ void pull_symmetric(symmetric_place const& place,
                               std::size_t count,
                               T* to,
                               std::size_t stride)
{
  std::size_t const step = static_cast<std::size_t>(gridDim.x) * symmetric_threads;
  std::size_t at         = static_cast<std::size_t>(blockIdx.x) * symmetric_threads + threadIdx.x;
  int const ranks        = place.ranks;
  for (; at < count; at += step) {
    for (int first = 0; first < ranks; first += symmetric_loads) {
      load_from_ranks<T>(
        place, at, first, minimum(first + symmetric_loads, ranks), [&](int rank, T const& value) {
          cuda_context{}.store(to + static_cast<std::size_t>(rank) * stride + at, value);
        });
    }
  }
}

//! @brief Every rank's part for this one, read from it; `received` is this rank's alone.
template <class Element>
__global__ void __launch_bounds__(symmetric_threads, 1)
  symmetric_scatter_kernel(ncclDevComm const __grid_constant__ comm,
                           ncclWindow_t window,
                           std::size_t offset,
                           std::size_t count,
                           Element* received)
{
  ncclCoopCta cta;
  symmetric_barrier everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  std::size_t const bytes = count * sizeof(Element);
  std::size_t const mine  = offset + static_cast<std::size_t>(comm.lsaRank) * bytes;
  bool const aligned      = (mine | bytes | reinterpret_cast<std::uintptr_t>(received)) % 16 == 0;
  symmetric_place const place{comm, window, mine};
  if (aligned) {
    pull_symmetric(place, bytes / 16, reinterpret_cast<uint4*>(received), bytes / 16);
  } else {
    pull_symmetric(place, count, received, count);
  }
  everyone.sync(cta, cuda::memory_order_acq_rel);  // nobody overwrites what another still reads
}

//! @brief The sum of every rank's part for this one; `sum` is this rank's alone.
template <class Op>
__global__ void __launch_bounds__(symmetric_threads, 1)
  symmetric_sum_kernel(ncclDevComm const __grid_constant__ comm,
                       ncclWindow_t window,
                       std::size_t offset,
                       std::size_t count,
                       typename Op::element* sum)
{
  ncclCoopCta cta;
  symmetric_barrier everyone{cta, comm, ncclTeamTagLsa(), blockIdx.x};
  everyone.sync(cta, cuda::memory_order_acq_rel);
  using element                  = typename Op::element;
  constexpr std::size_t together = in_vector<element>;
  std::size_t const mine =
    offset + static_cast<std::size_t>(comm.lsaRank) * count * sizeof(element);
  bool const aligned        = (mine | reinterpret_cast<std::uintptr_t>(sum)) % 16 == 0;
  std::size_t const vectors = aligned ? count / together : 0;
  std::size_t const step    = static_cast<std::size_t>(gridDim.x) * symmetric_threads;
  std::size_t const first = static_cast<std::size_t>(blockIdx.x) * symmetric_threads + threadIdx.x;
  symmetric_place const place{comm, window, mine};
  auto const store = [&](std::size_t at, auto const& value) {
    cuda_context{}.store(reinterpret_cast<std::remove_cvref_t<decltype(value)>*>(sum) + at, value);
  };
  reduce_strided<together>(place, first, vectors, step, Op{}, store);
  reduce_strided<1>(place, vectors * together + first, count, step, Op{}, store);
  everyone.sync(cta, cuda::memory_order_acq_rel);  // nobody overwrites what another still reads
}

}  // namespace detail

}  // namespace tersum::inline v0

#endif  // NCCL_VERSION_CODE >= 22800
