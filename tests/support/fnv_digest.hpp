// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A digest of bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::tests {

//! FNV-1a in 64 bits.
class fnv_digest {
 public:
  void add(std::span<std::byte const> bytes)
  {
    std::uint64_t hash = hash_;
    for (std::byte const* at = bytes.data(); at != bytes.data() + bytes.size(); ++at) {
      hash = (hash ^ static_cast<std::uint64_t>(*at)) * 1099511628211u;
    }
    hash_ = hash;
    size_ += bytes.size();
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::uint64_t hash_ = 14695981039346656037u;
  std::uint64_t size_ = 0;
};

}  // namespace tersum::tests
