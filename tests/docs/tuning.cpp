// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/tuning.md.

#include <tersum/tersum.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4_ef)>;

void go_on(tersum::plan<codec> const& plan,
           std::span<std::byte> state,
           tersum::plan<codec> const& old_plan,
           std::span<std::byte> old_state,
           float new_scale,
           float old_scale)
{
  // code 1
}

// code 2
