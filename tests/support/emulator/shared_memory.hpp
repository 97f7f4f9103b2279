// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The shared memory of the block that runs.

#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace tersum::emulator {

//! @brief Exactly the bytes asked for, so that an overrun is one of the heap, which ASan sees.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes) : bytes_{bytes}, data_{::operator new(bytes, alignment)}
  {
  }
  shared_memory(shared_memory const&)            = delete;
  shared_memory& operator=(shared_memory const&) = delete;
  ~shared_memory() { ::operator delete(data_, alignment); }

  //! Where none was asked for, an address that nothing lies at, so that any use of it fails.
  [[nodiscard]] void* data() const { return bytes_ > 0 ? data_ : reinterpret_cast<void*>(16); }

  //! Every aligned float is a NaN, and every word is far out of any range.
  void poison() { std::memset(data_, 0xFF, bytes_); }

 private:
  static constexpr std::align_val_t alignment{16};

  std::size_t bytes_;
  void* data_;
};

}  // namespace tersum::emulator
