// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rotation of every chunk of an array, and the way back.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/device/arrays.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! Rotators that rotate chunks: neither `no_rotation` nor those of whole tensors.
template <class T>
concept chunk_rotator = rotator<T> &&(T::rotation_size > 1);

//! @brief Coordinates of the rotated array: those of `coordinates` values in whole chunks.
template <chunk_rotator Rotator>
[[nodiscard]] constexpr std::size_t rotated_size(Rotator const&, std::size_t coordinates) noexcept
{
  constexpr std::size_t size = Rotator::rotation_size;
  return (coordinates / size + (coordinates % size != 0 ? 1 : 0)) * size;
}

//! @brief rotated = each chunk of `values` after `rotator.forward`.
//!
//! `partial_hadamard` flips random signs and multiplies by the matrix of +-1. It does not scale: values grow by the square root
//! of the chunk, which `make_chunk_step` allows for. *Reads* `values`, *writes* `rotated`,
//! both of the executor's memory, both in the order of the coordinates; the last chunk is padded with zeros. `rotated` may be
//! `values` where that is an array of floats of whole chunks; otherwise they must not overlap. `values` needs the alignment
//! of its elements; one that is aligned to 16 bytes is faster. *Needs* no workspace. *Errors*: rotated.size() is not
//! rotated_size(rotator, values.size()), 2^31 chunks or more, a null address, `rotated` not aligned to 16 bytes, an overlap.
//!
//! Every executor makes the same bits, and they are those that an exchange quantizes. A rotator with only the plain form is
//! called on memory, by a host thread or by the threads of a block; chunks of up to 16384 then fit a GPU. If a value is not
//! finite, no value of its chunk is afterwards. Enqueued on the executor; does not synchronize.
//! @param rotator  `partial_hadamard<C>`, or one of your own of 128 to 32768 coordinates.
//! @param key      `sign_key(step, seed)`: the same on every rank, fresh in every step.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp encode
template <executor Executor, chunk_rotator Rotator, readable_values Values>
[[nodiscard]] status rotate(Executor const& exec,
                            Rotator const& rotator,
                            Values const& values,
                            std::span<float> rotated,
                            std::uint64_t key);

//! @brief values = each chunk of `rotated` after `rotator.backward`, divided by what both ways multiply by.
//!
//! *Reads* `rotated`, *writes* the `values` that there are. Elements of 16 bits are rounded to the nearest one that is
//! finite, so that halves end at +-65504. Conditions, errors and stream are those of `rotate`; give its rotator and key.
template <executor Executor, chunk_rotator Rotator, writable_values Values>
[[nodiscard]] status rotate_back(Executor const& exec,
                                 Rotator const& rotator,
                                 std::span<float const> rotated,
                                 Values&& values,
                                 std::uint64_t key);

}  // namespace tersum::inline v0

#include <tersum/device/detail/rotate.ipp>
