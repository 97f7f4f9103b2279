// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A factor in memory of the CPU, as orthogonalizers see it, and the thread that has it in hand.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr int low_rank_block =
  64;  //!< Rows or columns of a matrix that a product takes at once.

#define TERSUM_SIMD_SOURCE <tersum/lowrank/detail/cpu_low_rank_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

// clang-format off
TERSUM_KERNEL(multiply_block)
TERSUM_KERNEL(transpose_block)
TERSUM_KERNEL(keep_bounded_residual)
TERSUM_KERNEL(gram_block)
TERSUM_KERNEL(dot_product)
TERSUM_KERNEL(subtract_column)
TERSUM_KERNEL(eliminate_row)
// clang-format on

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

//! @brief `rank` columns of `length` floats, one after the other.
class cpu_factor {
 public:
  cpu_factor(instruction_set set, float* values, std::uint64_t length, int rank)
    : set_(set), values_(values), length_(length), rank_(rank)
  {
  }

  [[nodiscard]] int rank() const { return rank_; }

  [[nodiscard]] double* gram()
  {
    double tile[low_rank_block * max_rank] = {};
    std::fill_n(gram_, max_rank * max_rank, 0.0);
    for (std::uint64_t begin = 0; begin < length_; begin += low_rank_block) {
      int const here = lengths(begin);
      for (int k = 0; k < rank_; ++k) {
        float const* const from = column(k) + begin;
        for (int i = 0; i < here; ++i) { tile[i * max_rank + k] = static_cast<double>(from[i]); }
      }
      std::fill(tile + here * max_rank, tile + low_rank_block * max_rank, 0.0);
      gram_block(set_, tile, rank_, gram_);
    }
    return gram_;
  }

  [[nodiscard]] double* scales() { return scales_; }
  [[nodiscard]] float* triangle() { return triangle_; }

  template <class Body>
  void each(int count, Body const& body) const
  {
    for (int i = 0; i < count; ++i) { body(i); }
  }

  template <class Body>
  [[nodiscard]] float largest(int count, Body const& body) const
  {
    float most = 0;
    for (int i = 0; i < count; ++i) { most = maximum(most, body(i)); }
    return most;
  }

  void eliminate(int j) { eliminate_row(set_, gram_, rank_, j); }

  void multiply()
  {
    float tile[max_rank * low_rank_block], out[max_rank * low_rank_block];
    for (std::uint64_t begin = 0; begin < length_; begin += low_rank_block) {
      int const here = lengths(begin);
      for (int k = 0; k < rank_; ++k) {
        float* const row = std::copy_n(column(k) + begin, here, tile + k * low_rank_block);
        std::fill(row, tile + (k + 1) * low_rank_block, 0.0f);
      }
      std::fill_n(out, rank_ * low_rank_block, 0.0f);
      for (int k = 0; k < rank_; k += 8) {
        int const rows = std::min(8, rank_ - k);
        multiply_block(set_,
                       triangle_ + k,
                       1u,
                       std::size_t{max_rank},
                       rows,
                       k + rows,
                       tile,
                       out + k * low_rank_block);
      }
      for (int k = 0; k < rank_; ++k) {
        std::copy_n(out + k * low_rank_block, here, column(k) + begin);
      }
    }
  }

  [[nodiscard]] double dot(int k, int l) const
  {
    return dot_product(set_, column(k), column(l), length_);
  }

  void subtract(int k, double share, int l)
  {
    subtract_column(set_, column(k), share, column(l), length_);
  }

  void scale(int k, double factor)
  {
    float* const to = column(k);
    for (std::uint64_t i = 0; i < length_; ++i) {
      to[i] = static_cast<float>(factor * static_cast<double>(to[i]));
    }
  }

 private:
  [[nodiscard]] float* column(int k) const { return values_ + static_cast<unsigned>(k) * length_; }

  [[nodiscard]] int lengths(std::uint64_t begin) const
  {
    return static_cast<int>(std::min<std::uint64_t>(low_rank_block, length_ - begin));
  }

  instruction_set set_;
  float* values_;
  std::uint64_t length_;
  int rank_;
  double gram_[max_rank * max_rank];
  double scales_[max_rank];
  float triangle_[max_rank * max_rank];
};

//! @brief A thread of the host that has the factors of a matrix in hand.
struct host_hand : host_group {
  using product = wide_product;

  instruction_set set;

  explicit host_hand(instruction_set with) : set(with) {}

  [[nodiscard]] static constexpr unsigned rank() { return 0; }
  [[nodiscard]] static constexpr unsigned size() { return 1; }

  [[nodiscard]] double square(float const* column, std::uint64_t length) const
  {
    return dot_product(set, column, column, length);
  }
  static void sync_lanes() {}
};

}  // namespace tersum::inline v0::detail
