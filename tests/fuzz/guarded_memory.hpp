// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Memory of an exact size between guards. Under the address sanitizer touching one ends the program; else `intact` finds it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TERSUM_FUZZ_ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TERSUM_FUZZ_ADDRESSES 1
#endif
#endif
#if defined(TERSUM_FUZZ_ADDRESSES)
#include <sanitizer/asan_interface.h>
#endif

namespace tersum::tests {

class guarded_memory {
 public:
  //! @param shift  Bytes by which the memory begins behind a multiple of 64.
  explicit guarded_memory(std::size_t bytes, std::size_t shift = 0)
    : all_(bytes + shift + 3 * guard, mark), bytes_(bytes)
  {
    auto const address = reinterpret_cast<std::uintptr_t>(all_.data());
    begin_             = guard + (64 - address % 64) % 64 + shift;
#if defined(TERSUM_FUZZ_ADDRESSES)
    __asan_poison_memory_region(all_.data(), begin_);
    __asan_poison_memory_region(all_.data() + begin_ + bytes_, all_.size() - begin_ - bytes_);
#endif
  }
  guarded_memory(guarded_memory const&)            = delete;
  guarded_memory& operator=(guarded_memory const&) = delete;
  ~guarded_memory()
  {
#if defined(TERSUM_FUZZ_ADDRESSES)
    __asan_unpoison_memory_region(all_.data(), all_.size());
#endif
  }

  [[nodiscard]] std::span<std::byte> bytes() { return std::span{all_}.subspan(begin_, bytes_); }

  [[nodiscard]] bool intact() const
  {
#if defined(TERSUM_FUZZ_ADDRESSES)
    return true;
#else
    auto const is_mark = [](std::byte b) { return b == mark; };
    auto const begin   = all_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(all_.begin(), begin, is_mark) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), all_.end(), is_mark);
#endif
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr std::byte mark{0x5e};

  std::vector<std::byte> all_;
  std::size_t bytes_;
  std::size_t begin_ = 0;
};

}  // namespace tersum::tests
