// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/concepts.md, whose codec is that of a preset.

#include <tersum/tersum.hpp>

#include <type_traits>

// code 1

using preset = std::remove_const_t<decltype(tersum::presets::rotated_sat4)>;
static_assert(std::is_same_v<rotated, preset>);
static_assert(codec.coder.range.clip == tersum::presets::rotated_sat4.coder.range.clip);
