// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Arrays in the memory of an executor, so that one test serves the CPU, the emulator and a device.

#pragma once

#include "support/exchange_fixture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace tersum::tests {

//! @brief `count` elements in a buffer of the executor's memory, `host_buffer` or `device_buffer`.
template <class Buffer, class T>
class placed_array {
 public:
  //! @param misplaced  Elements from a multiple of 16 bytes to the first one.
  explicit placed_array(std::vector<T> const& values, std::size_t misplaced = 0)
    : count_{values.size()}, buffer_{
                               values.size() * sizeof(T), misplaced * sizeof(T), std::byte{0xa5}}
  {
    if (count_ > 0) { buffer_.write(std::as_bytes(std::span{values})); }
  }

  //! Elements that hold nothing in particular.
  explicit placed_array(std::size_t count, std::size_t misplaced = 0)
    : count_{count}, buffer_{count * sizeof(T), misplaced * sizeof(T), std::byte{0xa5}}
  {
  }

  [[nodiscard]] std::span<T> span() const
  {
    return {reinterpret_cast<T*>(buffer_.contents().data()), count_};
  }

  [[nodiscard]] std::vector<T> read() const
  {
    std::vector<T> out(count_);
    if (count_ == 0) { return out; }
    byte_string const bytes = buffer_.read(0, count_ * sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

 private:
  std::size_t count_;
  Buffer buffer_;
};

//! @brief An executor and the kind of its memory.
template <class Executor, class Buffer>
struct placement {
  template <class T>
  using array = placed_array<Buffer, T>;

  Executor exec;
  std::size_t most = ~std::size_t{0};  //!< Elements of the longest arrays that are worth the time.
};

//! Sizes about those of a chunk, a prime number, and a large one.
[[nodiscard]] inline std::vector<std::size_t> sizes_about(std::size_t chunk, std::size_t most)
{
  std::vector<std::size_t> sizes{0,
                                 1,
                                 chunk - 1,
                                 chunk,
                                 chunk + 1,
                                 static_cast<std::size_t>(prime_from(5 * chunk)),
                                 40 * chunk + 17};
  std::erase_if(sizes, [most](std::size_t size) { return size > most; });
  return sizes;
}

}  // namespace tersum::tests
