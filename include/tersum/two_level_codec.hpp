// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec for ranks on hosts: they add within their host first, and exchange codes of the host's mean between hosts.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/two_level_counts.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/sharded_codec.hpp>
#include <tersum/types.hpp>
#include <tersum/values_codec.hpp>

namespace tersum::inline v0 {

//! @brief The ranks of a host add their gradients among themselves; each then exchanges its shard of the host's mean with the
//! ranks of the same number on other hosts, by a codec; and gathers the other shards from its host.
//!
//! Use it where links between hosts are slower than those within: all ranks of a host share the former, each with codes of its
//! own shard only, so that a host sends each coordinate once. And fewer means of less noise are encoded: the error is that of
//! `Between` among the hosts.
//!
//! It has these rounds: those of `Scatter` and, at the end, of `Gather` among the ranks of a host, and in between those of
//! `Between` among hosts. `all_reduce_mean` takes a `two_levels`, which has a collective for each; `reduce_over` makes it of
//! two transports. What bypasses the codec is summed in float on both levels. All ranks end with the same bits.
//!
//! Exchange it in parts by those of `plan::scatter()`, `plan::between()` and `plan::gather()`: `reduce_scatter_mean` from
//! the gradient to `plan::shard`, `all_reduce_mean` of that, `all_gather_values` back.
//! @tparam Between  Any codec of `all_reduce_mean` that takes parts of a bucket: all but low rank.
//! @tparam Scatter  A `sharded_codec`: floats, halves, or codes of 8 bits.
//! @tparam Gather   A `values_codec` without differences.
template <class Between,
          class Scatter = sharded_codec<fixed_chunks<1024>, no_rotation, cast<half>>,
          class Gather  = values_codec<fixed_chunks<1024>, no_rotation, cast<half>>>
struct two_level_codec {
  using between_type = Between;
  using scatter_type = Scatter;
  using gather_type  = Gather;
  using feedback_type =
    no_feedback;  //!< Of its own. `Between` may have one, and so may the others.
  using agreement_kind = typename Between::agreement_kind;
  using payload_kind   = payload::levels;
  using counts_type    = detail::two_level_counts<two_level_codec>;

  static_assert(sharding<Scatter>,
                "tersum: the second argument of two_level_codec is a sharded_codec");
  static_assert(
    publishing<Gather> && !codes_differences<Gather>,
    "tersum: the third argument of two_level_codec is a values_codec without differences");
  static_assert(!in_shards<Between> && !summing<Between> && !nesting<Between> &&
                  !sends<Between, payload::factors> && !sends<Between, payload::levels>,
                "tersum: the first argument of two_level_codec is a codec of all_reduce_mean for a "
                "part of a bucket, which may cut matrices");

  Between between{};
  Scatter scatter{};
  Gather gather{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  //! @param ranks           The ranks of all hosts: those of a host have consecutive numbers.
  //! @param ranks_per_host  The same on every host.
  [[nodiscard]] constexpr tersum::plan<two_level_codec> plan(layout const& gradient,
                                                             world const& ranks,
                                                             int ranks_per_host) const
  {
    return tersum::plan<two_level_codec>{*this, gradient, ranks, ranks_per_host};
  }
};

template <class Between>
two_level_codec(Between) -> two_level_codec<Between>;

}  // namespace tersum::inline v0
