// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels: each is one body on the CUDA context.

#pragma once

#include <tersum/baseline/detail/block_lookup.hpp>
#include <tersum/baseline/detail/block_per_hop.hpp>
#include <tersum/block/cuda_context.cuh>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/reduce/detail/array_reduction.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

// A variable template, because nvcc does not take a member template of a dependent type in __launch_bounds__.
template <class Kernel, class Codec>
inline constexpr int threads_of = Kernel::template threads<Codec>;

// Kernels are hidden: every shared library has its own, compiled for its own architectures.
template <class Kernel, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(threads_of<Kernel, Codec>,
                                                                        Kernel::blocks)
  exchange_kernel(exchange_args<Codec, Element> args, Kernel kernel)
{
  kernel(cuda_context{}, args);
}

// A kernel on chunks. The number of the first chunk is an argument of its own: as a member of another one it would cost
// more instructions and registers for some codecs, with nvcc 13.0.
template <class Kernel, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(threads_of<Kernel, Codec>)
  chunk_kernel(exchange_args<Codec, Element> args, std::uint64_t first)
{
  Kernel kernel;
  kernel.first = first;
  kernel(cuda_context{}, args);
}

// One of a call on arrays, which holds its arguments.
template <class Kernel>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(Kernel::threads)
  block_kernel(Kernel kernel)
{
  kernel(cuda_context{});
}

template <class Op>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(reduce_threads)
  reduce_vectors_kernel(element_vector<typename Op::element>* to,
                        element_vector<typename Op::element> const* a,
                        element_vector<typename Op::element> const* b,
                        std::size_t count)
{
  reduce_vectors_of<Op>(cuda_context{}, to, a, b, count);
}

template <class Op>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(reduce_threads)
  reduce_elements_kernel(typename Op::element* to,
                         typename Op::element const* a,
                         typename Op::element const* b,
                         std::size_t count)
{
  reduce_elements<Op>(cuda_context{}, to, a, b, count);
}

template <class Op>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(reduce_threads)
  reduce_segments_kernel(
    Op op, std::uint32_t* to, std::uint32_t const* a, std::uint32_t const* b, std::size_t count)
{
  reduce_segments(cuda_context{}, op, to, a, b, count);
}

template <class Op>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
  threads_per_block<codec_of_op<Op>>) requantize_elements_kernel(typename Op::element* to,
                                                                 typename Op::element const* a,
                                                                 typename Op::element const* b,
                                                                 std::size_t count)
{
  requantize_elements<Op>(cuda_context{}, to, a, b, count);
}

template <int Bits, int Ranks>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(reduce_threads)
  reduce_once_kernel(word4* to, rank_arrays<word4, Ranks> from, std::size_t count)
{
  reduce_once<Bits>(cuda_context{}, to, from, count);
}

template <class Item>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(item_threads)
  item_kernel(Item item, std::size_t count)
{
  each_item(cuda_context{}, item, count);
}

}  // namespace tersum::inline v0::detail
