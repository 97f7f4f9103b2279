// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a gradient is made of, and who exchanges it.

#pragma once

#include <tersum/description.hpp>
#include <tersum/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
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
  constexpr description describe() const { return {"tensor", rows, columns, offset, weight}; }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return rows * columns; }
};

//! @brief Tensors of the caller: a span of them, which a temporary vector cannot become.
struct tensor_list : std::span<tensor const> {
  constexpr tensor_list() = default;
  constexpr tensor_list(tensor const* first, std::size_t count) : span{first, count} {}

  //! @param tensors  A vector or array with a name, or a span.
  template <std::ranges::contiguous_range Tensors>
  requires std::convertible_to<Tensors&, std::span<tensor const>>
  constexpr tensor_list(Tensors&& tensors) : span{tensors}
  {
    static_assert(std::ranges::borrowed_range<Tensors>,
                  "tersum: layout.tensors must live as long as the plan, and a temporary does not: "
                  "give the vector of tensors a name");
  }
};

//! @brief A gradient: one vector, or a bucket of many tensors that cover it without gaps, in ascending order.
//!
//! The tensors are the caller's: layouts and plans keep their address, so they must live as long as the plan and its copies, at
//! the same place and unchanged. A temporary vector does not compile. Vectors (one row or one column) and tensors of fewer
//! than `bypass_below` coordinates are not compressed: they are summed in float32, in the same exchange.
struct layout {
  std::uint64_t coordinates  = 0;   //!< Length of the gradient.
  tensor_list tensors        = {};  //!< Empty: one tensor, which is no vector.
  std::uint64_t bypass_below = 0;   //!< Tensors of fewer coordinates bypass the codec.
  bool bypass_vectors        = true;
  //! Where a chunker's budget does not pay for a single chunk, all coordinates bypass the codec. If false they become zeros.
  bool bypass_unpaid = true;
  std::uint64_t first =
    0;  //!< Where the gradient is a part of a bucket: its first coordinate in it.
  std::uint64_t whole =
    0;  //!< And the bucket's length, which the tensors cover. 0: the gradient is all of the bucket.

  //! @brief A part of this gradient, such as a rank's shard: with the pieces that it has of the tensors, of which those bypass
  //! that would bypass whole.
  //! @param begin  Its first coordinate.
  //! @param end    The coordinate after its last one, at most `coordinates`.
  [[nodiscard]] constexpr layout part(std::uint64_t begin, std::uint64_t end) const noexcept
  {
    layout piece      = *this;
    piece.coordinates = end - begin;
    piece.first       = first + begin;
    piece.whole       = bucket();
    return piece;
  }

  //! Coordinates of the bucket.
  [[nodiscard]] constexpr std::uint64_t bucket() const noexcept
  {
    return whole != 0 ? whole : coordinates;
  }

  //! Whether a tensor of this bucket is summed uncompressed.
  [[nodiscard]] constexpr bool bypasses(tensor const& t) const noexcept
  {
    return (bypass_vectors && (t.rows == 1 || t.columns == 1)) || t.size() < bypass_below;
  }

  //! All of it but names.
  constexpr description describe() const
  {
    description all{
      "layout", coordinates, bypass_below, bypass_vectors, bypass_unpaid, first, whole};
    for (tensor const& t : tensors) { all = {"with", all, t}; }
    return all;
  }
};

//! @brief The ranks of an exchange, and which of them this is.
//!
//! Among several ranks each has to say which it is: all ranks as number 0 would exchange wrong means without a sign of it. So
//! `plan::check` refuses a plan that is made of a size alone. It has all sizes that are the same on every rank.
struct world {
  int size = 1;  //!< Ranks, 1 to 65534.
  int rank =
    -1;  //!< This one, 0 to size - 1. -1: not said, which suffices where there is one rank.
};

namespace detail {

//! Whether these can be the ranks of an exchange.
[[nodiscard]] constexpr status check_world(world const& ranks) noexcept
{
  if (ranks.size < 1 || ranks.size > 65534) {
    return {error_code::invalid_argument, "world.size must be between 1 and 65534"};
  }
  if (ranks.rank == -1 && ranks.size > 1) {
    return {error_code::invalid_argument,
            "world.rank is not given: each of several ranks must say which one it is"};
  }
  if (ranks.rank < 0 || ranks.rank >= ranks.size) {
    return {error_code::invalid_argument, "world.rank must be between 0 and world.size - 1"};
  }
  return {};
}

//! The same ranks, where one rank alone is number 0 without saying so.
[[nodiscard]] constexpr world with_only_rank(world const& ranks) noexcept
{
  return ranks.size == 1 && ranks.rank == -1 ? world{.size = 1, .rank = 0} : ranks;
}

//! @brief Whether the tensors of a gradient, or of the bucket that it is a part of, cover it without gaps, in ascending order.
//! Sizes that wrap cover nothing.
[[nodiscard]] constexpr bool is_covered(layout const& gradient) noexcept
{
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end            = 0;
  for (tensor const& t : gradient.tensors) {
    if (t.columns != 0 && t.rows > (most - end) / t.columns) { return false; }
    if (t.offset != end) { return false; }
    end = t.offset + t.size();
  }
  return gradient.tensors.empty() || end == gradient.bucket();
}

//! @brief Whether tensors cover a gradient of a length whose bytes can be counted: what bypasses, or lies in matrices, has no
//! chunks that would be too many.
[[nodiscard]] constexpr status check_layout(layout const& gradient) noexcept
{
  if (!is_covered(gradient)) {
    return {error_code::invalid_argument,
            "layout.tensors must cover layout.coordinates without gaps, in ascending order"};
  }
  if (gradient.first > gradient.bucket() ||
      gradient.coordinates > gradient.bucket() - gradient.first) {
    return {error_code::invalid_argument, "layout.first and coordinates lie beyond layout.whole"};
  }
  if (gradient.coordinates > std::uint64_t{1} << 48) {
    return {error_code::invalid_argument, "layout.coordinates is above 2^48"};
  }
  return {};
}

}  // namespace detail

}  // namespace tersum::inline v0

//! @cond
template <>
inline constexpr bool std::ranges::enable_borrowed_range<tersum::tensor_list> = true;
//! @endcond
