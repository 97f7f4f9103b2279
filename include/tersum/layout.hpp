// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a gradient is made of, and who exchanges it.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tersum::inline v0 {

//! @brief One parameter tensor of a bucket, row-major.
struct tensor {
  std::string_view name = {};  //!< The caller's; the library does not read it.
  std::uint64_t rows    = 0;
  std::uint64_t columns =
    1;  //!< 1: a vector, which bypasses the codec if `layout::bypass_vectors` is true.
  std::uint64_t offset = 0;  //!< Its first coordinate in the bucket.
  //! Chunkers that choose by norms multiply the tensor's energies by it. Above 1 the tensor gets more of the bits; at 0
  //! it gets what the other tensors leave.
  float weight = 1;

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return rows * columns; }
};

//! @brief A gradient: one vector, or a bucket of many tensors that cover it without gaps, in ascending order.
//!
//! The tensors are the caller's and must live as long as the plan. Vectors (one row or one column) and tensors of fewer
//! than `bypass_below` coordinates are not compressed: they are summed in float32, in the same exchange.
struct layout {
  std::uint64_t coordinates       = 0;   //!< Length of the gradient.
  std::span<tensor const> tensors = {};  //!< Empty: one vector, compressed as a whole.
  std::uint64_t bypass_below      = 0;   //!< Tensors of fewer coordinates bypass the codec.
  bool bypass_vectors             = true;

  //! Whether a tensor of this bucket is summed uncompressed.
  [[nodiscard]] constexpr bool bypasses(tensor const& t) const noexcept
  {
    return (bypass_vectors && (t.rows == 1 || t.columns == 1)) || t.size() < bypass_below;
  }
};

//! @brief The ranks of an exchange, and which of them this is.
struct world {
  int size = 1;  //!< Ranks, 1 to 65534.
  int rank = 0;  //!< This one, 0 to size - 1.
};

}  // namespace tersum::inline v0
