// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Which matrices travel as two thin factors, and how thin.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! Which factors travel in one exchange.
enum class low_rank_schedule : std::uint8_t {
  paired,       //!< P, then Q of the new P: two rounds. PowerSGD.
  alternating,  //!< P in one exchange, Q in the next: one round and half the bits. ACP-SGD.
};

//! @brief A matrix M (rows x columns) is approximated by P Q^T, where P is rows x r, Q is columns x r, and r is at most
//! `Rank`. Source: Vogels et al., PowerSGD (NeurIPS'19).
//!
//! @tparam Rank            1 to 64. For a matrix with fewer rows or columns r is their number.
//! @tparam Orthogonalizer  `robust_cholesky_qr2`, `cholesky_qr2` or `gram_schmidt`.
template <int Rank, orthogonalizer Orthogonalizer = robust_cholesky_qr2>
struct low_rank {
  static_assert(Rank >= 1 && Rank <= max_rank, "tersum: low_rank<Rank> needs 1 <= Rank <= 64");
  using orthogonalizer_type = Orthogonalizer;
  static constexpr int rank = Rank;
  constexpr description describe() const
  {
    return {"low_rank", Rank, least_saving, Orthogonalizer{}};
  }

  //! A matrix bypasses the codec if it has no more elements than both its factors times this number. With 0 no matrix
  //! bypasses.
  std::uint32_t least_saving = 2;

  //! Columns of the factors of a matrix; 0 when it bypasses.
  [[nodiscard]] constexpr std::uint64_t rank_of(tensor const& t) const noexcept
  {
    std::uint64_t const r =
      detail::minimum<std::uint64_t>(Rank, detail::minimum(t.rows, t.columns));
    // Divided rather than multiplied, which could wrap.
    return least_saving == 0 ||
               (t.size() > 0 && r * (t.rows + t.columns) <= (t.size() - 1) / least_saving)
             ? r
             : 0;
  }
};

template <class LowRank, gradient_element Wire, low_rank_schedule Schedule, feedback Feedback>
struct low_rank_codec;

}  // namespace tersum::inline v0
