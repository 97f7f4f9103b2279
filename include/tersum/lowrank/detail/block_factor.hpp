// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A factor in memory of a device, as orthogonalizers see it: all threads of a block work on it together. Kernel body parts.

#pragma once

#include <tersum/block/detail/ordered_sums.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

inline constexpr int factor_threads = 256;  //!< Threads of a block that works on one factor.

//! Two neighbours of shared memory in one access.
struct alignas(16) two_doubles {
  double first, second;
};

//! @brief sum of a[i] * b[i] in double by one warp: the order of the CPU's `dot_product`.
template <class Context>
[[nodiscard]] TERSUM_BODY double warp_dot(Context const& ctx,
                                          float const* a,
                                          float const* b,
                                          std::uint64_t count)
{
  double low = 0, high = 0;
  for (std::uint64_t i = ctx.thread_rank() % 32; i < count; i += 64) {
    low =
      Context::fma(static_cast<double>(ctx.load(a + i)), static_cast<double>(ctx.load(b + i)), low);
    if (i + 32 < count) {
      high = Context::fma(
        static_cast<double>(ctx.load(a + i + 32)), static_cast<double>(ctx.load(b + i + 32)), high);
    }
  }
  return warp_total(ctx, low + high);
}

//! @brief The columns of the factor of one matrix, with the members of `factor_archetype`. Every sum has the order that it
//! has in `cpu_factor`. All threads of the block make the same calls.
//! @tparam Rank  No factor has more columns.
template <class Context, int Rank>
class block_factor {
 public:
  static constexpr int columns = (Rank + 3) / 4 * 4;
  //! How many blocks of 64 terms are multiplied at a time.
  static constexpr int at_once = 64 / columns;
  static constexpr int tiles = columns / 4 * (columns / 4 + 1) / 2;  //!< Squares of 4 x 4 products.
  static constexpr int stride =
    66;  //!< Doubles from one column of 64 terms to the next in shared memory.

  //! Shared memory, bytes.
  static constexpr int shared =
    8 * (columns * max_rank + at_once * columns * stride + max_rank) + 4 * (columns * max_rank + 8);
  static_assert(at_once * tiles <= factor_threads);

  TERSUM_BODY block_factor(Context const& ctx, float* values, std::uint64_t length, int rank)
    : ctx_(ctx), values_(values), length_(length), rank_(rank),
      gram_(static_cast<double*>(ctx.shared())), tile_(gram_ + columns * max_rank),
      scales_(tile_ + at_once * columns * stride),
      triangle_(reinterpret_cast<float*>(scales_ + max_rank)),
      words_(reinterpret_cast<std::uint32_t*>(triangle_ + columns * max_rank))
  {
  }

  [[nodiscard]] TERSUM_BODY int rank() const { return rank_; }
  [[nodiscard]] TERSUM_BODY double* scales() const { return scales_; }
  [[nodiscard]] TERSUM_BODY float* triangle() const { return triangle_; }

  template <class Body>
  TERSUM_BODY void each(int count, Body const& body) const
  {
    for (int i = thread(); i < count; i += factor_threads) { body(i); }
    ctx_.sync_block();
  }

  template <class Body>
  [[nodiscard]] TERSUM_BODY float largest(int count, Body const& body) const
  {
    float most = 0;
    for (int i = thread(); i < count; i += factor_threads) { most = maximum(most, body(i)); }
    // The bits of floats that are not negative have the order of the floats.
    std::uint32_t const of_warp = ctx_.warp_max(Context::bits(most));
    if (thread() % 32 == 0) { words_[thread() / 32] = of_warp; }
    ctx_.sync_block();
    std::uint32_t all = 0;
    for (int warp = 0; warp < factor_threads / 32; ++warp) { all = maximum(all, words_[warp]); }
    ctx_.sync_block();
    return Context::from_bits(all);
  }

  [[nodiscard]] TERSUM_BODY double* gram()
  {
    // A thread multiplies four columns by four others, over one of the blocks of 64 terms that are in shared memory.
    int const group = thread() / tiles;
    int first = 0, second = thread() % tiles;
    while (second >= columns / 4 - first) {
      second -= columns / 4 - first;
      ++first;
    }
    second += first;
    each(columns * max_rank, [this](int i) { gram_[i] = 0.0; });
    for (std::uint64_t begin = 0; begin < length_; begin += at_once * 64u) {
      each(at_once * columns * 64, [this, begin](int i) {
        int const k             = i / 64 % columns;
        std::uint64_t const row = begin + static_cast<unsigned>(i / (64 * columns) * 64 + i % 64);
        bool const there        = k < rank_ && row < length_;
        tile_[i / 64 * stride + i % 64] =
          there ? static_cast<double>(ctx_.load(column(k) + row)) : 0.0;
      });
      double sum[4][4] = {};
      if (group < at_once) {
        double const* const from = tile_ + group * columns * stride;
        for (int t = 0; t < 64; t += 2) {
          two_doubles a[4], b[4];
          TERSUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            a[i] =
              ctx_.load(reinterpret_cast<two_doubles const*>(from + (4 * first + i) * stride + t));
            b[i] =
              ctx_.load(reinterpret_cast<two_doubles const*>(from + (4 * second + i) * stride + t));
          }
          TERSUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            TERSUM_UNROLL
            for (int j = 0; j < 4; ++j) {
              sum[i][j] = Context::fma(a[i].first, b[j].first, sum[i][j]);
              sum[i][j] = Context::fma(a[i].second, b[j].second, sum[i][j]);
            }
          }
        }
      }
      for (int g = 0; g < at_once; ++g) {
        if (group == g) {
          TERSUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            TERSUM_UNROLL
            for (int j = 0; j < 4; ++j) {
              double& to = gram_[(4 * first + i) * max_rank + 4 * second + j];
              to         = to + sum[i][j];
            }
          }
        }
        ctx_.sync_block();
      }
    }
    return gram_;
  }

  TERSUM_BODY void eliminate(int j) const
  {
    double* const row  = gram_ + j * max_rank;
    double const pivot = row[j];
    ctx_.sync_block();
    if (pivot < dependent_below) { return; }
    double const root = 1.0 / ::sqrt(pivot);
    each(rank_, [=](int l) { row[l] = l == j ? root : row[l] * root; });
    each((rank_ - 1 - j) * max_rank, [=, this](int i) {
      int const k = j + 1 + i / max_rank, l = i % max_rank;
      if (l >= rank_) { return; }
      double& to = gram_[k * max_rank + l];
      to         = Context::fma(0.0 - row[k], row[l], l == j ? 0.0 : to);
    });
  }

  TERSUM_BODY void multiply() const
  {
    constexpr int each_of = columns / 4;  // columns of the product that a thread has
    float* const tile     = reinterpret_cast<float*>(tile_);
    int const lane        = thread() % 64;
    int const mine        = thread() / 64 * each_of;
    for (std::uint64_t begin = 0; begin < length_; begin += 64) {
      each(rank_ * 64, [this, begin, tile](int i) {
        std::uint64_t const row = begin + static_cast<unsigned>(i % 64);
        tile[i]                 = row < length_ ? ctx_.load(column(i / 64) + row) : 0.0f;
      });
      float sum[extent(each_of)] = {};
      for (int l = 0; l < rank_; ++l) {
        float const v = tile[l * 64 + lane];
        TERSUM_UNROLL
        for (int i = 0; i < each_of; ++i) {
          sum[i] = Context::fma(triangle_[l * max_rank + mine + i], v, sum[i]);
        }
      }
      std::uint64_t const row = begin + static_cast<unsigned>(lane);
      TERSUM_UNROLL
      for (int i = 0; i < each_of; ++i) {
        if (mine + i < rank_ && row < length_) {
          ctx_.store(column(mine + i) + row, Context::add(sum[i], 0.0f));
        }
      }
      ctx_.sync_block();
    }
  }

  [[nodiscard]] TERSUM_BODY double dot(int k, int l) const
  {
    // Every warp computes the sum for itself. The barrier keeps columns from changing before all warps have read them.
    double const sum = warp_dot(ctx_, column(k), column(l), length_);
    ctx_.sync_block();
    return sum;
  }

  TERSUM_BODY void subtract(int k, double share, int l) const
  {
    for_each_row([&](std::uint64_t i) {
      ctx_.store(column(k) + i,
                 static_cast<float>(Context::fma(-share,
                                                 static_cast<double>(ctx_.load(column(l) + i)),
                                                 static_cast<double>(ctx_.load(column(k) + i)))));
    });
  }

  TERSUM_BODY void scale(int k, double factor) const
  {
    for_each_row([&](std::uint64_t i) {
      ctx_.store(column(k) + i,
                 static_cast<float>(factor * static_cast<double>(ctx_.load(column(k) + i))));
    });
  }

 private:
  [[nodiscard]] TERSUM_BODY int thread() const { return static_cast<int>(ctx_.thread_rank()); }
  [[nodiscard]] TERSUM_BODY float* column(int k) const
  {
    return values_ + static_cast<unsigned>(k) * length_;
  }

  template <class Body>
  TERSUM_BODY void for_each_row(Body const& body) const
  {
    for (std::uint64_t i = ctx_.thread_rank(); i < length_; i += factor_threads) { body(i); }
    ctx_.sync_block();
  }

  Context const& ctx_;
  float* values_;
  std::uint64_t length_;
  int rank_;
  double* gram_;
  double* tile_;
  double* scales_;
  float* triangle_;
  std::uint32_t* words_;
};

}  // namespace tersum::inline v0::detail
