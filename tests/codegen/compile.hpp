// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How kernel instances come to be compiled.

#pragma once

#include <type_traits>

namespace {

template <auto const& Preset>
using codec_of = std::remove_cvref_t<decltype(Preset)>;

//! Naming a kernel's address has it compiled.
template <class... Kernel>
void compile(Kernel*... kernels)
{
  void const* volatile kernel = nullptr;
  ((kernel = reinterpret_cast<void const*>(kernels)), ...);
  (void)kernel;
}

}  // namespace
