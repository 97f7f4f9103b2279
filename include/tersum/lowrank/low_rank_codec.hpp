// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codec that sends factors of matrices, and how thin they are: PowerSGD, and its form of one round.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/lowrank/detail/factor_counts.hpp>
#include <tersum/lowrank/orthogonalizers.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

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
//! @tparam Orthogonalizer  `robust_cholesky_qr2` or `gram_schmidt`.
template <int Rank, orthogonalizer Orthogonalizer = robust_cholesky_qr2>
struct low_rank {
  static_assert(Rank >= 1 && Rank <= max_rank, "tersum: low_rank<Rank> needs 1 <= Rank <= 64");
  using orthogonalizer_type = Orthogonalizer;
  static constexpr int rank = Rank;
  constexpr description describe() const
  {
    return {"low_rank", Rank, least_saving, Orthogonalizer{}};
  }

  //! A matrix bypasses the codec if it has no more elements than both its factors times this number; with 0 none does.
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

//! @brief Sums low-rank factors of the matrices of a bucket; vectors and matrices that would not shrink are summed exactly.
//!
//! Use it for large matrices whose spectrum falls quickly, with feedback. It needs `layout::tensors`, whose rows and
//! columns are the matrices (convolutions: output channels x the rest).
//!
//! Paired: round 1 sums P = M Q, round 2 sums Q = M^T P with the orthonormal P, and the mean is P Q^T. The next
//! exchange starts from Q. Alternating: one round, P = M Q with the orthonormal Q of the exchange before, or Q = M^T P,
//! in turns. Half of the matrices begin with each, so that all exchanges have one length.
//!
//! With feedback, M is the gradient plus what the mean of the last exchange left out. Without it, the power iteration still
//! goes on from exchange to exchange. Sources: Vogels et al., PowerSGD (NeurIPS'19); Zhang et al., ACP-SGD (ICDCS'23).
//!
//! @tparam LowRank   `low_rank<r, Orthogonalizer>`.
//! @tparam Coder     Of the factors: it converts them to float, half or bfloat16, which every transport adds.
//! @tparam Schedule  `paired` or `alternating`.
//! @tparam Feedback  `error_feedback` or `no_feedback`.
template <class LowRank,
          coder Coder                = detail::floats_in_wire::coder_type,
          low_rank_schedule Schedule = low_rank_schedule::paired,
          feedback Feedback          = error_feedback>
struct low_rank_codec {
  using low_rank_type  = LowRank;
  using coder_type     = Coder;
  using quantizer_type = typename Coder::quantizer_type;
  using feedback_type  = Feedback;
  using metric_type    = plain_metric;
  static_assert(
    conversion<quantizer_type>,
    "tersum: a low_rank_codec takes a coder that converts: every transport adds its factors");
  static_assert(
    std::is_same_v<typename detail::residual_of_feedback<Feedback>::type, float>,
    "tersum: a low_rank_codec keeps its residual in float: kept_in is for codecs of chunks");
  //! Paired factors have two rounds, alternating ones one.
  using agreement_kind =
    std::conditional_t<Schedule == low_rank_schedule::paired, agreement::factors, agreement::none>;
  using payload_kind = payload::factors;
  using payload_op   = native_sum<typename quantizer_type::element>;
  using counts_type  = detail::factor_counts<low_rank_codec>;
  using agreed_op =
    native_sum<typename quantizer_type::element>;  //!< Of the first round of a paired exchange.
  constexpr description describe() const
  {
    return {
      "low_rank_codec", low_rank, typename quantizer_type::element{}, Schedule, feedback, metric};
  }

  static constexpr int rank                   = LowRank::rank;
  static constexpr low_rank_schedule schedule = Schedule;

  static constexpr bool rotates_all = false;
  static constexpr int chunk_size   = 64;  //!< Rows or columns that kernels take at once.

  //! The order of an exchange.
  using stages =
    join_stages<stage::open,
                stage::gather_bypass,
                stages_if<Schedule == low_rank_schedule::paired, stage::measure, rounds::agree>,
                rounds::sum_bypass,
                stage::orthonormalize,
                stage::encode,
                rounds::reduce_payload,
                stage::return_bypass,
                stage::receive,
                stage::decode,
                stage::finish>;

  LowRank low_rank{};
  Feedback feedback{};
  plain_metric metric{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<low_rank_codec> plan(layout const& gradient,
                                                            world const& ranks) const
  {
    return tersum::plan<low_rank_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

// The stages of factors, which executors find by their arguments.
#include <tersum/lowrank/detail/cpu_low_rank.hpp>
#include <tersum/lowrank/detail/low_rank_launches.hpp>
