// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes the reader of .npy files: a vector of finite numbers or a sentence, and never more memory than the file has.

#include "examples/compare_codecs/npy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  int const file = memfd_create("npy", 0);
  if (file < 0) { std::abort(); }
  if (write(file, data, size) != static_cast<ssize_t>(size)) { std::abort(); }
  auto const read = compare_codecs::read_npy("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (!read) { return 0; }
  if (read.value.size() * 2 > size) { std::abort(); }
  for (float const v : read.value) {
    if (!std::isfinite(v)) { std::abort(); }
  }
  return 0;
}
