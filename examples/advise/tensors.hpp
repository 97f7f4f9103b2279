// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The tensors of a gradient, by name and shape, from what training frameworks leave behind.

#pragma once

#include <compare_codecs/gradient_sets.hpp>
#include <compare_codecs/or_error.hpp>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace advise {

using compare_codecs::layer;
using compare_codecs::or_error;

//! @brief Reads names and shapes; no values are read.
//! @param file  A `layers.csv` (name,rows,columns,offset), a folder that has one, a `.safetensors` file, of which the header
//!              is read, or an `.npz` file whose arrays are stored without compression, of which the headers are.
//! @return The tensors in the order of the file, one after the other: those of more than two dimensions as rows of all but the
//!         first, those of one as a row; or a sentence that names the file.
[[nodiscard]] or_error<std::vector<layer>> read_tensors(std::filesystem::path const& file);

//! @brief Coordinates of all tensors.
[[nodiscard]] std::uint64_t coordinates_of(std::vector<layer> const& tensors);

}  // namespace advise
