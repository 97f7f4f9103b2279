// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Packed codes, or their sums over the ranks, to values.

#pragma once

#include <tersum/device/quantize.hpp>

namespace tersum::inline v0 {

//! @brief values[..] = step of the chunk times the sum of the codes of `world` ranks.
//!
//! *Reads* `words` and one step a chunk, *writes* `values`, all in the executor's memory; they must not overlap. Elements of
//! 16 bits are rounded to the nearest one that is finite. *Needs* no workspace. *Errors*: those of `quantize`, and a world that
//! the lanes of `reducer` cannot hold. A step that is NaN makes NaNs of its chunk.
//!
//! The values are those of a `codec` of the same policies without a rotation, on every executor. Enqueued on the executor;
//! does not synchronize.
//! @param quantizer  What made the codes.
//! @param reducer    What added them.
//! @param world      How many ranks' codes the words sum, 1 or more.
//! @param steps      Of each chunk; `chunk_step::decode` makes the mean over the world.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp decode
template <executor Executor,
          chunker Chunker,
          quantizer Quantizer,
          reducer Reducer,
          writable_values Values>
[[nodiscard]] status dequantize(Executor const& exec,
                                Chunker const& chunker,
                                Quantizer const& quantizer,
                                Reducer const& reducer,
                                std::span<std::uint32_t const> words,
                                int world,
                                std::span<float const> steps,
                                Values&& values);

}  // namespace tersum::inline v0

#include <tersum/device/detail/dequantize.ipp>
