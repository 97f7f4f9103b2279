// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec for gradients whose matrices have large and small rows and columns, or many that are zero: it sorts them, and leaves
//! the rest to another codec.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/sorted_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/metric/plain_metric.hpp>
#include <tersum/plan.hpp>

namespace tersum::inline v0 {

//! @brief The ranks agree on the largest magnitude of every row and column, sort the rows and the columns of each matrix by it,
//! and exchange the sorted gradient by `Inner`.
//!
//! A chunk of the sorted gradient has coordinates of about one size: where `Inner` gives chunks bits by their norms, they go where
//! the energy is, and rows and columns that are zero on all ranks, such as those of an embedding that no sample has touched or of
//! a neuron that did not fire, lie together and take none. The chunks of a codec that gives all the same bits are better, too,
//! but less so.
//!
//! The matrices are those of `layout::tensors`. What bypasses the codec, and tensors of one row or column, stay as they are. It has one
//! round more than `Inner`: a byte for each row and column, of which the ranks take the maximum. All ranks end with the same
//! bits. The gradient is copied in float to the workspace and back.
//!
//! In a metric each coordinate is divided by its scale as it is copied, and multiplied as it comes back; keys are of quotients. What
//! counts as a chunk elsewhere is here a tensor: its largest scale says what scales are raised to, and a tensor whose scales are all
//! zeros is exchanged as it is. Under `kept_diagonal` a sorted matrix of which nothing was known starts with a quarter of the smaller
//! one of the agreed largest magnitudes of a coordinate's row and column, another tensor with a quarter of the largest magnitude of
//! its mean, within every 8192 coordinates. Scales are read once more, for the largest.
//!
//! Exchange it in parts by `measure_lines`, `lines_wire` and `sort_matrices`, then `plan::inner()` on `plan::sorted`, then
//! `restore_matrices`.
//! @tparam Inner  Any codec of `all_reduce_mean` for one vector: all but low rank. What would wait for the next step would wait at
//!                a place where other coordinates will be: no feedback, no metric.
//! @tparam Strip  Columns that lie side by side in the sorted gradient, at least 1. With 64 a chunk of 512 is 8 rows of them.
//! @tparam Metric `given_diagonal` or `kept_diagonal`, of coordinates where the caller has them.
template <class Inner, int Strip = 64, metric Metric = plain_metric>
struct sorted_codec {
  using inner_type     = Inner;
  using feedback_type  = no_feedback;
  using metric_type    = Metric;
  using agreement_kind = typename Inner::agreement_kind;
  using payload_kind   = payload::sorted;
  using counts_type    = detail::sorted_counts<sorted_codec>;

  static constexpr int strip = Strip;

  static_assert(Strip >= 1, "tersum: a strip of sorted_codec has at least one column");
  static_assert(!in_shards<Inner> && !summing<Inner> && !nesting<Inner> &&
                  !sends<Inner, payload::factors> && !sends<Inner, payload::levels> &&
                  !sends<Inner, payload::sorted>,
                "tersum: sorted_codec takes a codec of all_reduce_mean that does not look at "
                "matrices");
  static_assert(!Inner::feedback_type::enabled && !in_metric<Inner>,
                "tersum: sorted_codec takes no codec with feedback or a metric: they remember "
                "coordinates by their places, and these change; give the metric to sorted_codec");
  static_assert(
    !has_factored<Metric>,
    "tersum: sorted_codec takes a diagonal metric: it sorts by rows and columns already");

  Inner inner{};
  //! A matrix is sorted if its keys take at most so many bits for each of its coordinates, 0 or above. Where `Inner` has a budget,
  //! keys are paid from it.
  float most_key_bits = 0.5f;
  Metric metric{};

  //! Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<sorted_codec> plan(layout const& gradient,
                                                          world const& ranks) const
  {
    return tersum::plan<sorted_codec>{*this, gradient, ranks};
  }
};

template <class Inner>
sorted_codec(Inner) -> sorted_codec<Inner>;

}  // namespace tersum::inline v0
