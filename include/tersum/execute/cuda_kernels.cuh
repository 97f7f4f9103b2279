// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels: each is one body on the CUDA context.

#pragma once

#include <tersum/chunk/block_magnitudes.hpp>
#include <tersum/chunk/block_norms.hpp>
#include <tersum/chunk/block_select.hpp>
#include <tersum/chunk/block_top_coordinates.hpp>
#include <tersum/execute/block_initialize.hpp>
#include <tersum/execute/cuda_context.cuh>
#include <tersum/lowrank/low_rank_launches.hpp>
#include <tersum/quantize/block_cast.hpp>
#include <tersum/quantize/block_decode.hpp>
#include <tersum/quantize/block_encode.hpp>
#include <tersum/range/block_settle.hpp>
#include <tersum/reduce/block_lookup.hpp>
#include <tersum/reduce/block_reduce.hpp>
#include <tersum/rotate/block_full_hadamard.hpp>
#include <tersum/schedule/block_per_hop.hpp>
#include <tersum/schedule/block_two_shot.hpp>

#include <cstddef>
#include <cstdint>

// Kernels are hidden: every shared library has its own, compiled for its own architectures.
#define TERSUM_KERNEL                                                                              \
  template <class Codec, class Element>                                                            \
  __attribute__((visibility("hidden"))) __global__ void
#define TERSUM_EDGE_KERNEL                                                                         \
  template <bool Edge, class Codec, class Element>                                                 \
  __attribute__((visibility("hidden"))) __global__ void

namespace tersum::inline v0::detail {

template <class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(256)
  initialize_kernel(exchange_args<Codec, Element> args,
                    record_batch batch,
                    std::uint64_t seed,
                    std::uint64_t coordinates,
                    std::uint64_t fingerprint)
{
  initialize_tensors(cuda_context{}, args, batch, seed, coordinates, fingerprint);
}

TERSUM_EDGE_KERNEL __launch_bounds__(128)
  norms_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  chunk_norms<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  magnitudes_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  chunk_magnitudes<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_KERNEL __launch_bounds__(tensor_threads)
  tensor_norms_kernel(exchange_args<Codec, Element> args)
{
  tensor_norms(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(select_threads)
  select_kernel(exchange_args<Codec, Element> args, int first, int last)
{
  select_phases_of(cuda_context{}, args, first, last);
}

TERSUM_KERNEL __launch_bounds__(coordinate_threads)
  send_coordinates_kernel(exchange_args<Codec, Element> args)
{
  send_coordinates(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(coordinate_threads)
  clear_coordinates_kernel(exchange_args<Codec, Element> args)
{
  clear_coordinates(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(coordinate_threads)
  add_coordinates_kernel(exchange_args<Codec, Element> args, std::uint64_t rank)
{
  add_coordinates(cuda_context{}, args, rank);
}

TERSUM_KERNEL __launch_bounds__(coordinate_threads)
  receive_coordinates_kernel(exchange_args<Codec, Element> args)
{
  receive_coordinates(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(settle_threads) settle_kernel(exchange_args<Codec, Element> args)
{
  settle_steps(cuda_context{}, args);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  encode_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  encode_chunks<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  decode_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  decode_chunks<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_KERNEL __launch_bounds__(tensor_threads) finish_kernel(exchange_args<Codec, Element> args)
{
  finish_exchange(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(full_pass_threads)
  full_forward_kernel(exchange_args<Codec, Element> args, int pass)
{
  full_forward_pass(cuda_context{}, args, pass);
}

TERSUM_KERNEL __launch_bounds__(full_pass_threads)
  full_backward_kernel(exchange_args<Codec, Element> args, int pass)
{
  full_backward_pass(cuda_context{}, args, pass);
}

template <bool Encode, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(cast_threads)
  cast_kernel(exchange_args<Codec, Element> args)
{
  if constexpr (Codec::selects) {
    cast_selected<Encode>(cuda_context{}, args);
  } else {
    cast_chunks<Encode>(cuda_context{}, args);
  }
}

template <bool Encode, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(256)
  bypass_kernel(exchange_args<Codec, Element> args)
{
  bypass_tensors<Encode>(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(part_threads)
  clear_parts_kernel(exchange_args<Codec, Element> args, std::uint32_t* parts, std::uint32_t first)
{
  clear_parts(cuda_context{}, args, parts, first);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  encode_parts_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  encode_parts<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_KERNEL __launch_bounds__(threads_per_block<Codec>)
  recompress_kernel(exchange_args<Codec, Element> args)
{
  recompress_part(cuda_context{}, args);
}

TERSUM_KERNEL __launch_bounds__(part_threads)
  inspect_parts_kernel(exchange_args<Codec, Element> args)
{
  inspect_parts(cuda_context{}, args);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  keep_rest_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  keep_rest<Edge>(cuda_context{}, args, first_chunk);
}

TERSUM_KERNEL __launch_bounds__(threads_per_block<Codec>)
  keep_owner_rest_kernel(exchange_args<Codec, Element> args)
{
  keep_owner_rest(cuda_context{}, args);
}

TERSUM_EDGE_KERNEL __launch_bounds__(threads_per_block<Codec>)
  decode_parts_kernel(exchange_args<Codec, Element> args, std::uint64_t first_chunk)
{
  decode_parts<Edge>(cuda_context{}, args, first_chunk);
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
  threads_per_block<codec_of_op<Op>>) recode_elements_kernel(typename Op::element* to,
                                                             typename Op::element const* a,
                                                             typename Op::element const* b,
                                                             std::size_t count)
{
  recode_elements<Op>(cuda_context{}, to, a, b, count);
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

template <class Kernel, class Codec, class Element>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(Kernel::threads,
                                                                        Kernel::blocks)
  low_rank_kernel(Kernel kernel, exchange_args<Codec, Element> args)
{
  kernel(cuda_context{}, args);
}

}  // namespace tersum::inline v0::detail

#undef TERSUM_KERNEL
#undef TERSUM_EDGE_KERNEL
