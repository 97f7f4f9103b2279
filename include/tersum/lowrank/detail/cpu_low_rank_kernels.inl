// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products of blocks for one instruction set. Included once for each by cpu_factor.hpp, after vectors.inl.
//!
//! All instruction sets add in the same order: within a block ascending, by fused multiply-adds or in double, where products
//! of floats are exact; then the blocks, ascending.

typedef double doubles __attribute__((vector_size(TERSUM_SIMD_WIDTH * 4)));

TERSUM_SIMD doubles load_doubles(double const* from)
{
  doubles v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

//! @brief to[a][lane] += sum over `terms` of factors[a * stride + t * step] * tile[t][lane], for `Rows` rows.
template <int Rows>
TERSUM_SIMD void multiply_rows(float const* factors,
                               std::size_t stride,
                               std::size_t step,
                               int terms,
                               float const* tile,
                               float* to)
{
  constexpr int vectors = width == 16 ? 4 : 2;
  for (int lane = 0; lane < low_rank_block; lane += vectors * width) {
    floats sum[extent(Rows)][extent(vectors)] = {};
    for (int t = 0; t < terms; ++t) {
      floats v[vectors];
      TERSUM_UNROLL
      for (int i = 0; i < vectors; ++i) {
        v[i] = load(tile + t * low_rank_block + lane + i * width);
      }
      TERSUM_UNROLL
      for (int a = 0; a < Rows; ++a) {
        floats const f =
          broadcast(factors[static_cast<unsigned>(a) * stride + static_cast<unsigned>(t) * step]);
        TERSUM_UNROLL
        for (int i = 0; i < vectors; ++i) { sum[a][i] = fma(f, v[i], sum[a][i]); }
      }
    }
    TERSUM_UNROLL
    for (int a = 0; a < Rows; ++a) {
      TERSUM_UNROLL
      for (int i = 0; i < vectors; ++i) {
        float* const at = to + a * low_rank_block + lane + i * width;
        store(at, load(at) + sum[a][i]);
      }
    }
  }
}

//! @brief to[a][lane] += sum over `terms` of factors[a * stride + t * step] * tile[t][lane]; 64 lanes.
TERSUM_TARGET inline void multiply_block(float const* factors,
                                         std::size_t stride,
                                         std::size_t step,
                                         int rows,
                                         int terms,
                                         float const* tile,
                                         float* to)
{
  int a = 0;
  for (; a + 4 <= rows; a += 4) {
    multiply_rows<4>(factors + static_cast<unsigned>(a) * stride,
                     stride,
                     step,
                     terms,
                     tile,
                     to + a * low_rank_block);
  }
  for (; a < rows; ++a) {
    multiply_rows<1>(factors + static_cast<unsigned>(a) * stride,
                     stride,
                     step,
                     terms,
                     tile,
                     to + a * low_rank_block);
  }
}

//! @brief to[j][i] = from[i][j]; 64 by 64, a square of vectors at a time. Rows whose numbers differ by half of the square
//! are interleaved, as often as halving the square takes.
TERSUM_TARGET inline void transpose_block(float const* from, float* to)
{
  for (int row = 0; row < low_rank_block; row += width) {
    for (int column = 0; column < low_rank_block; column += width) {
      floats square[width];
      TERSUM_UNROLL
      for (int i = 0; i < width; ++i) {
        square[i] = load(from + (row + i) * low_rank_block + column);
      }
      TERSUM_UNROLL
      for (int left = width; left > 1; left /= 2) {
        floats next[width];
        TERSUM_UNROLL
        for (int i = 0; i < width / 2; ++i) {
          next[2 * i]     = interleave<0>(square[i], square[i + width / 2]);
          next[2 * i + 1] = interleave<1>(square[i], square[i + width / 2]);
        }
        TERSUM_UNROLL
        for (int i = 0; i < width; ++i) { square[i] = next[i]; }
      }
      TERSUM_UNROLL
      for (int i = 0; i < width; ++i) {
        store(to + (column + i) * low_rank_block + row, square[i]);
      }
    }
  }
}

//! @brief residual[i] = kept_of_matrix(whole[i] - sent[i]).
TERSUM_TARGET inline void keep_bounded_residual(float const* whole,
                                                float const* sent,
                                                float* residual,
                                                std::size_t count)
{
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    floats const rest = load(whole + i) - load(sent + i);
    auto const known  = (to_bits(rest) & 0x7fffffffu) < float_bits(kept_below);
    store(residual + i, known ? rest : floats{});
  }
  for (; i < count; ++i) { residual[i] = kept_of_matrix(whole[i] - sent[i]); }
}

//! @brief gram[k][l] += sum over the block of columns[k][i] * columns[l][i], in double, for k <= l (and some below).
//! @param tile  tile[i][l] = columns[l][i] in double, rows of `max_rank`, of 64 terms.
template <int Rows>
TERSUM_SIMD void gram_rows(double const* tile, int k, int rank, double* gram)
{
  constexpr int lanes   = width / 2;
  constexpr int vectors = 2;
  int const begin       = k / (lanes * vectors) * (lanes * vectors);
  for (int l = begin; l < rank; l += lanes * vectors) {
    doubles sum[extent(Rows)][extent(vectors)] = {};
    for (int t = 0; t < low_rank_block; ++t) {
      double const* const row = tile + t * max_rank;
      TERSUM_UNROLL
      for (int i = 0; i < vectors; ++i) {
        doubles const v = load_doubles(row + l + i * lanes);
        TERSUM_UNROLL
        for (int a = 0; a < Rows; ++a) { sum[a][i] += row[k + a] * v; }
      }
    }
    TERSUM_UNROLL
    for (int a = 0; a < Rows; ++a) {
      TERSUM_UNROLL
      for (int i = 0; i < vectors; ++i) {
        double* const at = gram + (k + a) * max_rank + l + i * lanes;
        doubles const v  = load_doubles(at) + sum[a][i];
        __builtin_memcpy(at, &v, sizeof(v));
      }
    }
  }
}

//! @brief gram[k][l] += sum over 64 terms t of tile[t][k] * tile[t][l], l not below k; rows of `max_rank`.
TERSUM_TARGET inline void gram_block(double const* tile, int rank, double* gram)
{
  for (int k = 0; k < rank; k += 4) { gram_rows<4>(tile, k, rank, gram); }
}

//! @brief The sum of a[i] * b[i] in double. Products go to accumulator i mod 64; then the upper half of the accumulators is
//! added to the lower half, until one is left.
TERSUM_TARGET inline double dot_product(float const* a, float const* b, std::uint64_t count)
{
  double sum[64]        = {};
  std::uint64_t const e = count / 64 * 64;
  for (std::uint64_t i = 0; i < e; i += 64) {
    for (unsigned j = 0; j < 64; ++j) {
      sum[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    }
  }
  for (std::uint64_t i = e; i < count; ++i) {
    sum[i - e] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (unsigned left = 32; left > 0; left /= 2) {
    for (unsigned j = 0; j < left; ++j) { sum[j] += sum[j + left]; }
  }
  return sum[0];
}

//! @brief to[i] - share * from[i], rounded to double and to float.
TERSUM_TARGET inline void subtract_column(float* to,
                                          double share,
                                          float const* from,
                                          std::uint64_t count)
{
  for (std::uint64_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(
      __builtin_fma(-share, static_cast<double>(from[i]), static_cast<double>(to[i])));
  }
}

TERSUM_SIMD doubles fma(doubles a, doubles b, doubles c)
{
#if TERSUM_SIMD_WIDTH == 16
  return (doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif TERSUM_SIMD_WIDTH == 8
  return (doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return doubles{__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#endif
}

//! @brief One step of the elimination of a square of rows of `max_rank`; see `factor_archetype::eliminate`.
TERSUM_TARGET inline void eliminate_row(double* square, int rank, int j)
{
  constexpr int lanes = width / 2;
  double* const row   = square + j * max_rank;
  if (row[j] < dependent_below) { return; }
  double const root = 1.0 / std::sqrt(row[j]);
  for (int l = 0; l < rank; ++l) { row[l] = row[l] * root; }
  row[j] = root;
  for (int k = j + 1; k < rank; ++k) {
    double* const to     = square + k * max_rank;
    doubles const shares = doubles{} - row[k];
    to[j]                = 0.0;
    for (int l = 0; l < rank; l += lanes) {
      doubles const v = fma(shares, load_doubles(row + l), load_doubles(to + l));
      __builtin_memcpy(to + l, &v, sizeof(v));
    }
  }
}
