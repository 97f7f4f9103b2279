// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What kernels of a form with parts are given besides.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/wire.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Parts of equal size, one for each rank. `payload` is what this rank sends.
template <class Residual>
struct part_args {
  std::uint32_t* received;      // of two_shot
  std::uint32_t* gathered;      // what all ranks decode
  Residual* owner_residual;     // chunk_size values for each owned chunk, or null
  std::uint64_t part_words;     // of two_shot
  std::uint32_t inverse_world;  // (2^32 - 1) / ranks
  float share;                  // 1 / ranks
};

//! @brief The same where the ways differ.
template <class Residual>
struct two_way_args : part_args<Residual> {
  std::uint64_t mean_words;  // of a part of the mean
};

}  // namespace tersum::inline v0::detail
