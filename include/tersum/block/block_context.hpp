// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a kernel body sees of its thread, block and machine: the concept that all block-scope templates are written against.

#pragma once

#include <tersum/detail/std.hpp>
#include <tersum/types.hpp>

// clang-format off
namespace tersum::inline v0 {

//! @name Atoms: this thread
//! @{
template <class T> concept has_thread_rank  = requires(T const c) { { c.thread_rank() } -> std::same_as<unsigned>; };       //!< In its block.
template <class T> concept has_block_rank   = requires(T const c) { { c.block_rank() } -> std::same_as<std::uint32_t>; };   //!< In its grid.
template <class T> concept has_block_threads = requires(T const c) { { c.block_threads() } -> std::same_as<unsigned>; };    //!< Threads of its block.
template <class T> concept has_grid_blocks  = requires(T const c) { { c.grid_blocks() } -> std::same_as<std::uint32_t>; };  //!< Blocks of its grid.
//! @}

//! @name Atoms: all threads of a warp, or of a block, call them together
//! @{
template <class T> concept has_sync_warp    = requires(T const c) { c.sync_warp(); };
template <class T> concept has_sync_block   = requires(T const c) { c.sync_block(); };
template <class T> concept has_shuffle      = requires(T const c, std::uint32_t v) { { c.shuffle(v, v) } -> std::same_as<std::uint32_t>; };      //!< The first argument of lane v % 32.
template <class T> concept has_shuffle_xor  = requires(T const c, std::uint32_t v) { { c.shuffle_xor(v, 1u) } -> std::same_as<std::uint32_t>; }; //!< That of lane ^ mask.
template <class T> concept has_warp_sum     = requires(T const c, std::uint32_t v) { { c.warp_sum(v) } -> std::same_as<std::uint32_t>; };
template <class T> concept has_warp_max     = requires(T const c, std::uint32_t v) { { c.warp_max(v) } -> std::same_as<std::uint32_t>; };
//! @}

//! @name Atoms: memory, one access to a value, which is aligned to its size
//! @{
template <class T> concept has_load         = requires(T const c, word4 const* p) { { c.load(p) } -> std::same_as<word4>; };
template <class T> concept has_store        = requires(T const c, word4* p, word4 v) { c.store(p, v); };
template <class T> concept has_store_global = requires(T const c, word4* p, word4 const& v) { c.store_global(p, v); };      //!< Where p is no shared memory.
template <class T> concept has_shared       = requires(T const c) { { c.shared() } -> std::same_as<void*>; };               //!< The memory that the threads of the block share, aligned to 16 bytes.
template <class T> concept has_atomic_add   = requires(T const c, std::uint32_t* p, std::uint32_t v) { c.atomic_add(p, v); }; //!< Of global or shared memory, in no order.
template <class T> concept has_atomic_max   = requires(T const c, std::uint32_t* p, std::uint32_t v) { c.atomic_max(p, v); };
//! Whether this is the last of v calls of a launch, by one thread each, with the same p. What threads stored before they met a calling one at a
//! barrier is seen by the last one, and by those that meet it afterwards. *p is 0 before the first call, and after the last.
template <class T> concept has_is_last      = requires(T const c, std::uint32_t* p, std::uint32_t v) { { c.is_last(p, v) } -> std::same_as<bool>; };
//! @}

//! @name Atoms: arithmetic, each operation rounded once and never contracted into another
//! @{
template <class T> concept has_add          = requires(float v) { { T::add(v, v) } -> std::same_as<float>; };
template <class T> concept has_subtract     = requires(float v) { { T::subtract(v, v) } -> std::same_as<float>; };
template <class T> concept has_multiply     = requires(float v) { { T::multiply(v, v) } -> std::same_as<float>; };
template <class T> concept has_divide       = requires(float v) { { T::divide(v, v) } -> std::same_as<float>; };
template <class T> concept has_square_root  = requires(float v) { { T::square_root(v) } -> std::same_as<float>; };
template <class T> concept has_fma          = requires(float v) { { T::fma(v, v, v) } -> std::same_as<float>; };
template <class T> concept has_wide_fma     = requires(double v) { { T::fma(v, v, v) } -> std::same_as<double>; };
template <class T> concept has_two_at_once  = requires(float& v) { T::butterfly(v, v); T::two_butterflies(v, v, v, v); T::two_fma(v, v, v, v); }; //!< (a, b) becomes sum and difference; so do (a0, b0) and (a1, b1) of a0, a1, b0, b1; a b + c in the place of two a.
template <class T> concept has_moderate     = requires(float v) { { T::divide_moderate(v, v) } -> std::same_as<float>; { T::square_root_moderate(v) } -> std::same_as<float>; }; //!< Of operands and results from 2^-100 to 2^100; others give anything.
template <class T> concept has_root_from_zero = requires(float v) { { T::square_root_from_zero(v) } -> std::same_as<float>; }; //!< Of 0 and of finite numbers from 2^-100 on; of others that is not finite.
template <class T> concept has_fma_within_one = requires(float v) { { T::fma_within_one(v, v, v) } -> std::same_as<float>; };         //!< `fma`, or what is nearest to it from 0 to 1.
template <class T> concept has_max_magnitude  = requires(float v) { { T::max_magnitude(v, v) } -> std::same_as<float>; };              //!< The larger of the first, from 0 on, and the magnitude of the second; NaN if either is.
template <class T> concept has_value        = requires(half v) { { T::value(v) } -> std::same_as<float>; };                        //!< Of float, half and bfloat16.
template <class T> concept has_rounding     = requires(float v) { { T::template element<half>(v) } -> std::same_as<half>; };       //!< To the nearest of these.
template <class T> concept has_finite_rounding = requires(float v) { { T::template finite_element<half>(v) } -> std::same_as<half>; }; //!< To the nearest that is finite.
template <class T> concept has_finite_pack  = requires(float v) { { T::template pack_finite<half>(v, v) } -> std::same_as<std::uint32_t>; };
template <class T> concept has_pack         = requires(float v) { { T::template pack<half>(v, v) } -> std::same_as<std::uint32_t>; }; //!< Two of 16 bits, the first low.
//! @}

//! @name Atoms: words
//! @{
template <class T> concept has_float_bits   = requires(float v) { { T::bits(v) } -> std::same_as<std::uint32_t>; };
template <class T> concept has_from_bits    = requires(std::uint32_t v) { { T::from_bits(v) } -> std::same_as<float>; };
template <class T> concept has_select_bytes = requires(std::uint32_t v) { { T::select_bytes(v, v, v) } -> std::same_as<std::uint32_t>; }; //!< PTX's `prmt`.
template <class T> concept has_add_clamp    = requires(std::int32_t v) { { T::add_clamp(v, v, v) } -> std::same_as<std::int32_t>; };      //!< a + b, from 0 to the third.
template <class T> concept has_population   = requires(std::uint32_t v) { { T::population(v) } -> std::same_as<std::uint32_t>; };         //!< Bits that are 1.
template <class T> concept has_dot_bytes    = requires(std::uint32_t v) { { T::dot_bytes(v, v, v) } -> std::same_as<std::uint32_t>; };    //!< The third + the products of bytes.
template <class T> concept has_add_pair     = requires(std::uint32_t v) { { T::template add_pair<half>(v, v) } -> std::same_as<std::uint32_t>; { T::template add_pair<bfloat16>(v, v) } -> std::same_as<std::uint32_t>; }; //!< Two sums of 16 bits, each exact and rounded once; NaN is 0x7fff.
template <class T> concept has_pair_limits  = requires(std::uint32_t v) { { T::min_pair(v, v) } -> std::same_as<std::uint32_t>; }; //!< The smaller of two numbers of 16 bits, twice.
template <class T> concept has_minus_pair   = requires(float v) { { T::minus_pair(v, v) } -> std::same_as<std::uint32_t>; };              //!< Of each float 16 ones if it has a minus, else zeros; the first low.
template <class T> concept has_product      = requires(std::uint32_t v) { { T::product::of(v, v) } -> std::same_as<std::uint64_t>; };     //!< For `philox4x32`.
//! @}

//! @brief The machine as a thread of a kernel sees it. `cuda_context` is the GPU's. A host context that runs threads as
//! fibers, like that of this project's tests, lets kernels be tested without a GPU.
//!
//! Blocks have one dimension. Kernels must not depend on the order of threads between barriers. It is all that the block
//! code of this library asks of a context, but for `tensor_core_context`; it uses matrices where there are.
template <class T> concept block_context = has_thread_rank<T> && has_block_rank<T> && has_block_threads<T> && has_grid_blocks<T>
  && has_sync_warp<T> && has_sync_block<T> && has_shuffle<T> && has_shuffle_xor<T> && has_warp_sum<T> && has_warp_max<T>
  && has_load<T> && has_store<T> && has_store_global<T> && has_shared<T> && has_atomic_add<T> && has_atomic_max<T> && has_is_last<T>
  && has_add<T> && has_subtract<T> && has_multiply<T> && has_fma<T> && has_wide_fma<T> && has_divide<T> && has_square_root<T>
  && has_two_at_once<T> && has_moderate<T> && has_root_from_zero<T> && has_fma_within_one<T> && has_max_magnitude<T>
  && has_value<T> && has_rounding<T> && has_pack<T> && has_finite_rounding<T> && has_finite_pack<T>
  && has_float_bits<T> && has_from_bits<T> && has_select_bytes<T> && has_add_clamp<T> && has_population<T> && has_dot_bytes<T>
  && has_add_pair<T> && has_pair_limits<T> && has_minus_pair<T> && has_product<T>;

//! @name Atom: the barrier of a grid whose blocks are all resident, in two parts
//! All threads of all blocks call both in turn. What is stored before a block arrives is seen by those that have waited for it. Either is
//! a barrier of the block, too. The barrier needs no memory of the caller.
//! @{
template <class T> concept has_grid_barrier = requires(T const c, std::uint32_t arrival) { { c.arrive_grid() } -> std::same_as<std::uint32_t>; c.wait_grid(arrival); }; //!< The argument is what the first returned.
//! @}

//! A context for kernels whose blocks wait for each other besides.
template <class T> concept grid_context = block_context<T> && has_grid_barrier<T>;

//! @name Atoms: four values of every lane of a warp at once, from and to rows of four floats in shared memory
//! Row i is where lane i points to. Value j of lane l is place l % 4 of row 8 j + l/4: PTX's `ldmatrix` and `stmatrix`.
//! @{
template <class T> concept has_matrices = requires(T const c, float* p) { c.load_matrix(p, p); c.store_matrix(p, p); };
//! @}

//! @name Atoms: products of tiles, which all threads of a warp make together
//! @{
template <class T> concept has_tile_product = requires(T const c, float (&sum)[4], std::uint32_t const (&a)[4], std::uint32_t b) {
  c.multiply_tiles(sum, a, b, b); };  //!< sum += a b, of halves, 16 x 16 by 16 x 8: PTX's `mma.m16n8k16`.
template <class T> concept has_half_tile_product = requires(T const c, std::uint32_t (&product)[2], std::uint32_t const (&a)[4], std::uint32_t b) {
  c.multiply_tiles_to_half(product, a, b, b); };                                                        //!< The same of halves, rounded once to halves.
//! @}

//! A context for the decoding of codes on tensor cores besides.
template <class T> concept tensor_core_context = block_context<T> && has_tile_product<T> && has_half_tile_product<T>;

}  // namespace tersum::inline v0
// clang-format on
