// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rotation of every chunk of an array, and the way back.

#pragma once

#include <tersum/device/arrays.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief Coordinates of the rotated array: those of `coordinates` values in whole chunks.
template <int Size>
[[nodiscard]] constexpr std::size_t rotated_size(partial_hadamard<Size> const&,
                                                 std::size_t coordinates) noexcept
{
  constexpr std::size_t size = Size;
  return (coordinates / size + (coordinates % size != 0 ? 1 : 0)) * size;
}

//! @brief Flips the random signs of each chunk and multiplies it by the Hadamard matrix of +-1.
//!
//! Nothing is scaled: values grow by sqrt(Size), which `make_chunk_step` allows for. *Reads* `values`, *writes* `rotated`,
//! both of the executor's memory, both in the order of the coordinates; the last chunk is padded with zeros. `rotated` may be
//! `values` where that is an array of floats of whole chunks; otherwise they must not overlap. `values` needs the alignment
//! of its elements; one that is aligned to 16 bytes is faster. *Needs* no workspace. *Errors*: rotated.size() is not
//! rotated_size(rotator, values.size()), 2^31 chunks or more, a null address, `rotated` not aligned to 16 bytes, an overlap.
//!
//! The butterflies have the order of the wire format, so every executor makes the same bits, and they are those that an
//! exchange quantizes. If a value is not finite, no value of its chunk is afterwards. Enqueued on the executor; does not
//! synchronize.
//! @param key  `sign_key(step, seed)`: the same on every rank, fresh in every step.
template <executor Executor, int Size, readable_values Values>
[[nodiscard]] status rotate(Executor const& exec,
                            partial_hadamard<Size> const& rotator,
                            Values const& values,
                            std::span<float> rotated,
                            std::uint64_t key);

//! @brief The inverse of `rotate`, scaled by 1 / Size: the values again, up to rounding.
//!
//! *Reads* `rotated`, *writes* the `values` that there are. Elements of 16 bits are rounded to the nearest one that is
//! finite, so that halves end at +-65504. The same conditions and errors as for `rotate`.
template <executor Executor, int Size, writable_values Values>
[[nodiscard]] status rotate_back(Executor const& exec,
                                 partial_hadamard<Size> const& rotator,
                                 std::span<float const> rotated,
                                 Values&& values,
                                 std::uint64_t key);

}  // namespace tersum::inline v0

#include <tersum/device/detail/rotate.ipp>
