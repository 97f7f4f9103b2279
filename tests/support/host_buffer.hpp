// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Memory of which it shows when something beside it is touched, and bytes that no rank would send.

#pragma once

#include "sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <span>
#include <vector>

namespace tersum::tests {

using byte_string = std::vector<std::byte>;

//! Bytes before and behind the memory of a rank that must not change. ASan needs none, and sees what is read, too.
inline constexpr std::size_t guard_bytes = sanitized ? 0 : 4096;

//! @brief Host memory that ends where its contents end, so that an overrun is one of the heap, which ASan sees. Without
//! ASan it lies between bytes that must not change.
class host_buffer {
 public:
  //! @param bytes      Its size; every byte holds `fill`.
  //! @param misplaced  How far after a multiple of 16 it begins.
  host_buffer(std::size_t bytes, std::size_t misplaced, std::byte fill)
    : whole_{bytes + misplaced + 2 * guard_bytes}, memory_{static_cast<std::byte*>(
                                                     ::operator new(whole_, alignment))},
      contents_{memory_ + guard_bytes + misplaced, bytes}
  {
    std::fill_n(memory_, whole_, guard);
    std::fill(contents_.begin(), contents_.end(), fill);
  }
  host_buffer(host_buffer const&)            = delete;
  host_buffer& operator=(host_buffer const&) = delete;
  ~host_buffer()
  {
    auto const untouched = [](std::byte const* first, std::byte const* last) {
      return std::all_of(first, last, [](std::byte b) { return b == guard; });
    };
    CHECK(untouched(memory_, contents_.data()));
    CHECK(untouched(contents_.data() + contents_.size(), memory_ + whole_));
    ::operator delete(memory_, alignment);
  }

  [[nodiscard]] std::span<std::byte> contents() const { return contents_; }

  void write(std::span<std::byte const> from, std::size_t offset = 0) const
  {
    std::copy(from.begin(), from.end(), contents_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  [[nodiscard]] byte_string read(std::size_t offset, std::size_t bytes) const
  {
    auto const part = contents_.subspan(offset, bytes);
    return {part.begin(), part.end()};
  }

 private:
  static constexpr std::align_val_t alignment{16};
  static constexpr std::byte guard{0xc3};

  std::size_t whole_;
  std::byte* memory_;
  std::span<std::byte> contents_;
};

//! @brief Makes of bytes of a wire what no rank would send. `number` modulo 3 says what: flipped bits, one in 32 bytes and
//! one in four of the first 64; or bytes at random; or nothing but ones.
inline void disturb(std::span<std::byte> bytes, int number)
{
  std::mt19937 random(static_cast<unsigned>(977 + number));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto const any = static_cast<std::uint32_t>(random());
    if (number % 3 == 1) { bytes[at] = static_cast<std::byte>(any >> 24); }
    if (number % 3 == 2) { bytes[at] = std::byte{0xff}; }
    if (number % 3 == 0 && any % (at < 64 ? 4 : 32) == 0) {
      bytes[at] ^= std::byte{1} << static_cast<int>(any >> 29);
    }
  }
}

}  // namespace tersum::tests
