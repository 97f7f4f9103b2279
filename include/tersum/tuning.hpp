// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The numbers that decide how fast the library is, and nothing else.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

//! @brief How `cpu_executor` cuts its work, where that is not chunk by chunk. Stretches are what one thread does at a time.
//!
//! Where no page is named nobody has measured more than that the default is not slower than its neighbours.
struct cpu_tuning {
  std::uint64_t item_stretch       = 4096;   //!< Items of `each`.
  std::uint64_t step_stretch       = 4096;   //!< Chunks whose steps are derived.
  std::uint64_t coordinate_stretch = 16384;  //!< Coordinates, where each is chosen.

  //! Chunks that a further thread of a selection must have: fewer take less time than to wake it up.
  std::uint64_t least_selected = 8192;

  //! Bytes of an array that a further thread of a reduction must have, likewise.
  std::size_t least_reduced = 65536;

  //! Bytes ahead of which memory is asked for, to read and to write: of 4096 and 8192 what measured better. Twice and half of
  //! it made no difference (docs/developer/cpu_kernels.md, "What did not help"). Compiled into the loops: the defaults count.
  std::uintptr_t read_ahead  = 8192;
  std::uintptr_t write_ahead = 4096;  //!< Also of the arrays that a reduction reads.
};

//! @brief How kernels are cut into blocks. Threads are those of a block.
//!
//! Block sizes are not measured one by one: the table of kernels says how many blocks a multiprocessor holds, and docs/developer/codegen.md
//! what a thread does. The sizes that decide in which order floats are added are not here, since the order is part of the wire format.
struct cuda_tuning {
  int step_threads = 128;  //!< A chunk a thread: the steps.
  int cast_threads = 128;  //!< Eight coordinates a thread: conversions.
  int part_threads = 256;  //!< A chunk or a word a thread: the parts of two shots.
  int pass_threads = 256;  //!< 32 coordinates a thread: a pass of a rotation of whole tensors.
  int coordinate_threads = 256;  //!< A coordinate a thread, where each is chosen.
  int item_threads       = 256;  //!< An item a thread.
  int record_threads     = 256;  //!< A chunk a thread: the first state.
  int bypass_threads     = 256;  //!< A coordinate a thread: tensors that bypass a codec.

  //! Up to how many coordinates, padding included, the kernel that encodes derives the steps of its chunks, which saves a launch.
  //! Beyond, a kernel before it does, which has a thread for each chunk.
  std::uint64_t derive_in_encode = 1 << 20;

  //! Whether the short kernels of an exchange (steps, selections, the encoding that derives steps, the end) are launched while the kernel
  //! before them ends, by a programmatic dependent launch, where all architectures of the build are sm_90 or later; no device has run it.
  bool overlap_launches = true;

  int reduce_threads = 256;  //!< Sums of payloads,
  int reduce_vectors = 4;    //!< so many accesses of 16 bytes a thread, all in flight at once.

  //! A selection: a power of two of threads from 32 to 1024, and up to how many chunks one block does all of it; beyond, several with so
  //! many chunks a thread, which wait for each other, or more where fewer blocks are resident at once (a cooperative launch).
  int select_threads          = 512;
  std::uint64_t select_alone  = 4096;
  std::uint64_t select_chunks = 1;

  //! @name Blocks that share a multiprocessor at least, which bounds their registers
  //! The most for which nothing spills on any architecture (docs/developer/codegen.md).
  //! @{
  int select_blocks           = 4;   //!< Of a selection, of one width,
  int select_blocks_of_widths = 3;   //!< and of several.
  int encode_blocks_of_widths = 9;   //!< Codes of several widths: encoding
  int decode_blocks_of_widths = 9;   //!< and decoding; sums by butterflies, of one width, too;
  int decode_blocks           = 10;  //!< decoding parts of up to 4 bits; on sm_100 one fewer;
  int decode_blocks_of_scales = 5;   //!< decoding parts in a metric that the library keeps.
  int owner_blocks            = 8;   //!< What the owners of parts keep, without a metric.
  int product_blocks          = 3;   //!< Low rank: products with a factor,
  int factor_blocks           = 2;   //!< orthonormal columns,
  int rebuild_blocks          = 4;   //!< the mean and what it leaves,
  int small_blocks            = 8;   //!< and what only copies.
  //! @}
};

//! @brief Numbers that change how fast the library is, and never a byte: not on the wire, not in a state, not of a gradient.
//!
//! One constant serves both executors. What kernels need to know at compile time is a member of a type there:
//!
//!     struct mine {
//!       static constexpr tersum::tuning tuned{.cpu  = {.least_reduced = 1 << 20},
//!                                             .cuda = {.select_threads = 1024, .select_blocks = 2}};
//!     };
//!     tersum::cpu_executor{.tuning = mine::tuned};
//!     tersum::basic_cuda_executor<mine>{stream};
struct tuning {
  cpu_tuning cpu   = {};
  cuda_tuning cuda = {};
};

//! A type with a tuning: kernels cannot have one as their template argument, since nvcc 13.0 does not take values of classes.
template <class T>
concept tuning_holder = requires
{
  {
    T::tuned
    } -> std::convertible_to<tuning>;
};

namespace detail {

//! @brief The tuning of a block context or of an executor: its member `tuned`, or the defaults.
template <class T>
inline constexpr tuning tuning_of{};

template <tuning_holder T>
inline constexpr tuning tuning_of<T> = T::tuned;

//! @brief The tuning of at most one holder, or else the defaults.
template <tuning_holder... Of>
inline constexpr tuning chosen{};

template <tuning_holder Of>
inline constexpr tuning chosen<Of> = Of::tuned;

//! @brief A block context with the tuning of at most one holder.
template <class Context, tuning_holder... Of>
struct tuned_context : Context {
  static constexpr tuning tuned = chosen<Of...>;
};

//! @brief What a kernel is compiled for: a number, or that which a member of `cuda_tuning` has.
template <tuning Tuning>
[[nodiscard]] constexpr int number_of(int number) noexcept
{
  return number;
}

template <tuning Tuning>
[[nodiscard]] constexpr int number_of(int cuda_tuning::*member) noexcept
{
  return Tuning.cuda.*member;
}

}  // namespace detail

}  // namespace tersum::inline v0
