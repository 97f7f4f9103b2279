// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Reads the names and shapes of a gradient's matrices.

#pragma once

#include "gradient_sets.hpp"
#include "or_error.hpp"

#include <filesystem>
#include <vector>

namespace compare_codecs {

//! @brief Reads a file of lines name,rows,columns,offset after a line that says so.
//! @return At least one layer, by rising offset, from 0 on without gap or overlap, or a sentence.
[[nodiscard]] or_error<std::vector<layer>> read_layers_file(std::filesystem::path const& file);

}  // namespace compare_codecs
