// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reads a vector from a NumPy `.npy` file, format versions 1.0, 2.0 and 3.0.

#pragma once

#include "or_error.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace compare_codecs {

//! @brief The value of an IEEE 754 binary16; exact for every bit pattern, NaN stays NaN.
[[nodiscard]] float float_from_half(std::uint16_t bits) noexcept;

//! @brief Reads a 1-D array of little-endian float32 (`<f4`) or float16 (`<f2`).
//!
//! Everything in the file is checked against its size before memory is taken, so that a wrong
//! header cannot ask for more than a small multiple of the file.
//!
//! @return The coordinates, all finite, or a sentence that names the file.
[[nodiscard]] or_error<std::vector<float>> read_npy(std::filesystem::path const& file);

}  // namespace compare_codecs
