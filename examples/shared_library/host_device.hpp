// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The host as a device of the shared library.

#pragma once

#include "codec_of.hpp"

#include <tersum/execute/cpu_executor.hpp>

#include <cstring>

namespace shared_library {

struct host_device {
  int threads;

  [[nodiscard]] tersum::cpu_executor executor(void*) const { return {.threads = threads}; }

  template <class Codec>
  [[nodiscard]] static tersum::status check(tersum::plan<Codec> const& plan,
                                            std::span<std::byte const> state,
                                            tersum::state_seal const* seal,
                                            void*)
  {
    return seal == nullptr ? tersum::check_state(plan, state)
                           : tersum::check_state(plan, state, *seal);
  }

  template <class Codec>
  [[nodiscard]] static tersum::status seal(tersum::plan<Codec> const& plan,
                                           std::span<std::byte const> state,
                                           tersum::state_seal& made,
                                           void*)
  {
    made = tersum::seal_state(plan, state);
    return {};
  }

  [[nodiscard]] static tersum::status copy(std::byte* to,
                                           std::byte const* from,
                                           std::size_t bytes,
                                           void*)
  {
    std::memcpy(to, from, bytes);
    return {};
  }
};

}  // namespace shared_library
