// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form of `all_gather_values`: every rank encodes its own shard, and all ranks decode all shards.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/detail/shard_bounds.hpp>
#include <tersum/form/detail/suits_coder.hpp>
#include <tersum/form/form.hpp>
#include <tersum/layout.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace tersum::inline v0::detail {

//! @brief What kernels of published values are given besides. In `gather_bypass` and `encode` the gradient is the rank's shard, in
//! all other stages the values of all ranks.
struct values_args {
  std::uint32_t* gathered;
  shard_record* records;  // one a rank
  float* held;            // of differences: a value for each of the shard, or null
  std::uint64_t begin;    // coordinates of this rank's shard
  std::uint64_t end;
};

//! @brief A part for each rank, which holds its shard.
template <class Codec>
struct published_shards : recorded_parts<Codec, cut_shards> {
  using parts_type = values_args;

  constexpr published_shards(Codec const& codec,
                             layout const& values,
                             world const& ranks,
                             std::span<std::uint64_t const> boundaries)
    : recorded_parts<Codec, cut_shards>(codec, values, ranks, boundaries)
  {
    if (!this->is_made()) { return; }
    // Where all parts are of one size they lie one after the other, as an all-gather has them.
    this->count_words();
    std::uint64_t const first = this->part_words(0);
    bool equal                = true;
    for (int rank = 1; rank < ranks.size; ++rank) {
      equal = equal && this->part_words(rank) == first;
    }
    stride_ = equal ? first : 0;
  }

  //! @name Parts
  //! Which words of the payload each rank's shard takes. They ask every tensor of the layout.
  //! @{

  //! Of rank `world.size` where all parts end.
  [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
  {
    auto const r = static_cast<std::uint64_t>(rank);
    if (stride_ != 0) { return r * stride_; }
    // A bound of the chunks before: each piece has at most one more than whole chunks of its size.
    std::uint64_t compressed = 0, pieces = r;
    std::uint64_t const begin = this->shard_begin(rank);
    codec_counts<Codec>::for_each_record([&](tensor_record const& record) {
      if (record.chunks == 0 || record.offset >= begin) { return; }
      compressed += minimum(record.size, begin - record.offset);
      ++pieces;
    });
    constexpr std::uint64_t size = Codec::chunk_size;
    std::uint64_t const chunks   = (compressed + (size - 1) * (pieces + 1)) / size;
    return round_up(chunks * (this->chunk_words() + 1) + 3 * r, 4);
  }
  //! From the whole records: among many ranks pieces of them are many.
  [[nodiscard]] constexpr std::uint64_t chunks_of(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t const end   = this->shard_begin(rank + 1);
    std::uint64_t chunks      = 0;
    codec_counts<Codec>::for_each_record([&](tensor_record const& record) {
      std::uint64_t const first = maximum(record.offset, begin);
      std::uint64_t const last  = minimum(record.offset + record.size, end);
      if (record.chunks != 0 && first < last) {
        chunks += (last - first + Codec::chunk_size - 1) / Codec::chunk_size;
      }
    });
    return chunks;
  }
  //! The coordinates before a rank's shard that bypass the codec.
  [[nodiscard]] constexpr std::uint64_t bypass_begin(int rank) const noexcept
  {
    std::uint64_t const begin = this->shard_begin(rank);
    std::uint64_t bypassed    = 0;
    codec_counts<Codec>::for_each_record([&](tensor_record const& record) {
      if (record.chunks != 0 || record.offset >= begin) { return; }
      bypassed += minimum(record.size, begin - record.offset);
    });
    return bypassed;
  }
  [[nodiscard]] constexpr std::uint64_t own_bypassed() const noexcept
  {
    return this->bypassed() == 0 ? 0 : bypass_begin(this->rank() + 1) - bypass_begin(this->rank());
  }
  //! The ranks' parts of what bypasses, as `gather_wire_of` asks for them.
  struct bypass_parts {
    published_shards counts;

    [[nodiscard]] constexpr std::uint64_t part_word(int rank) const noexcept
    {
      return counts.bypass_begin(rank);
    }
    [[nodiscard]] constexpr std::uint64_t part_words(int rank) const noexcept
    {
      return counts.bypass_begin(rank + 1) - counts.bypass_begin(rank);
    }
  };
  //! Calls visit(shard_record) for the ranks in order, as the state holds them.
  template <class Visitor>
  constexpr void for_each_shard(Visitor visit) const
  {
    std::uint32_t first = 0;
    for (int rank = 0; rank < this->world_.size; ++rank) {
      auto const chunks = static_cast<std::uint32_t>(chunks_of(rank));
      visit(shard_record{part_word(rank), first, chunks});
      first += chunks;
    }
  }
  [[nodiscard]] constexpr std::uint64_t own_coordinates() const noexcept
  {
    return check_world(this->world_).ok() ? this->shard_size() : 0;
  }
  //! @}

  constexpr void take_state(section_list& state, auto& args) const noexcept
  {
    recorded_parts<Codec, cut_shards>::take_state(state, args);
    state.own_last(this->own_part());  // the residual
  }
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    args.payload = args.parts.gathered = work.take<std::uint32_t>("gathered", this->all_words());
    work.share("gathered", "payload");
  }
  constexpr void take_received(section_list& work, auto& args) const noexcept
  {
    if (codes_differences<Codec>) { args.parts.held = work.take<float>("held", own_coordinates()); }
  }

 private:
  std::uint64_t stride_ = 0;  // words of every part, if all have as many
};

}  // namespace tersum::inline v0::detail

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
struct publish : usual_form {
  static constexpr bool in_shards = true;
  constexpr description describe() const { return {"publish"}; }

  using first_round = stage_list<>;
  template <class Coder>
  using rounds_of = stage_list<rounds::publish_bypass, rounds::publish_parts>;
  template <class Coder>
  using payload_kind = payload::published;
  template <class Codec, class Coder>
  using counts = detail::published_shards<Codec>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    TERSUM_NEEDS(
      "tersum: publish takes fixed chunks: how many bits a shard gets must not depend on the values",
      !selecting_chunker<Chunker>);
    return detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
  }
};
static_assert(form<publish>);

}  // namespace tersum::inline v0
