// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The emulator is held to the golden files.

#pragma once

#include "emulated_executor.hpp"
#include "golden_exchange.hpp"
#include "preset_lists.hpp"

#include <tersum/types.hpp>

#include <interop/presets.hpp>

namespace tersum::tests {

template <class Element, class Codec>
void check_emulated(std::string const& name, Codec const& codec)
{
  check_golden<Element, host_buffer>(emulated_executor{}, name, codec);
}

}  // namespace tersum::tests

//! Holds the kernel bodies of the preset of that name, for gradients of float or of bfloat16.
#define TERSUM_HOLD(name)                                                                          \
  tersum::tests::check_emulated<float>(#name, tersum::tests::of_any_matrix(tersum::presets::name))
#define TERSUM_HOLD_BFLOAT16(name)                                                                 \
  tersum::tests::check_emulated<tersum::bfloat16>(#name, tersum::presets::name)
