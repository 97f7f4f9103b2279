// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form of `all_gather_values`: every rank encodes its own shard, and all ranks decode all shards.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/needs.hpp>
#include <tersum/form/detail/published_shards.hpp>
#include <tersum/form/detail/suits_own_scales.hpp>
#include <tersum/form/form.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <string_view>

namespace tersum::inline v0 {

//! @brief Each rank sends the codes of its own shard to all ranks, which decode them. For `all_gather_values`.
//!
//! It has these rounds: an all-gather of what bypasses the codec, in float, and one of the codes. Every rank decodes every
//! shard, its own too, so all ranks end with the same bits.
//!
//! Chunks begin where a tensor or a shard begins. The codes of a chunk are those of `two_shot`, with `fixed_chunks`.
//!
//! With `error_feedback` the owner of a shard adds what its codes lost to the next values. With `difference_feedback` codes
//! are of the difference to what all ranks hold. In a metric both are divided by scales, which all ranks have of all coordinates;
//! those that the library keeps follow what was decoded: values, or differences.
struct publish {
  static constexpr bool in_shards = true;
  constexpr description describe() const { return {"publish"}; }

  using first_round = stage_list<>;
  template <class Coder>
  using rounds_of = stage_list<rounds::publish_bypass, rounds::publish_parts>;
  template <class Coder>
  using payload_kind = payload::published;
  template <class Chunker>
  using norm_scalar = bfloat16;
  template <class Coder>
  using mean_coder = Coder;
  template <class Codec, class Coder>
  using counts = detail::published_shards<Codec>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    TERSUM_NEEDS(
      "tersum: publish takes fixed_chunks: how many bits a shard gets must not depend on the values",
      !selecting_chunker<Chunker>);
    return detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
  }
};
static_assert(form<publish>);

}  // namespace tersum::inline v0
