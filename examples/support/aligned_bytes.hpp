// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Host memory for the examples. The library allocates nothing: a program brings the bytes that a plan asks for.

#pragma once

#include <tersum/types.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace support {

//! Bytes that are aligned to 16, as states, workspaces and scratch must be, because `word4` is. They begin as zeros.
class aligned_bytes {
 public:
  explicit aligned_bytes(std::size_t size) : words_(size / sizeof(tersum::word4) + 1) {}

  operator std::span<std::byte>() { return std::as_writable_bytes(std::span{words_}); }

 private:
  std::vector<tersum::word4> words_;
};

}  // namespace support
