// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/chunk/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/block_absmax.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! @brief The distortion of a level of a codec with several widths.
template <class Codec, int Level = 1>
[[nodiscard]] constexpr float level_distortion(int level, int world) noexcept
{
  if constexpr (Level < Codec::chunker_type::level_count) {
    if (level > Level) { return level_distortion<Codec, Level + 1>(level, world); }
  }
  constexpr int width = Codec::chunker_type::widths[Level - 1];
  if constexpr (has_parts<Codec>) {
    // Each rank's encoding, whose errors average like the gradients do, and that of the mean; or those of a ring's
    // hops, of partial sums of 2 to n ranks.
    float const once   = Codec::quantizer_type::template with_bits<width>::distortion();
    double const times = recoding<Codec> ? (world + 3) / 2.0 - 1.0 / world : 2.0;
    return world > 1 ? static_cast<float>(times * static_cast<double>(once)) : once;
  } else {
    return Codec::reducer_type::template with_bits<width>::distortion(world);
  }
}

//! @brief Words of a chunk on a level of a codec with several widths, its scales included.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t level_words(int level) noexcept
{
  if (level == 0) { return 0; }
  auto const codes =
    static_cast<std::uint32_t>(Codec::chunk_size / 32 * Codec::chunker_type::widths[level - 1]);
  if constexpr (has_parts<Codec>) {
    constexpr int scales = scale_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1;
    return codes + static_cast<std::uint32_t>(scales);
  }
  return codes;
}

//! @brief Words of the payload that a unit of a selection's cost stands for.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t selection_unit() noexcept
{
  if constexpr (has_parts<Codec>) {
    return 1;
  } else if constexpr (Codec::several_bits) {
    return Codec::chunk_size / 16;  // two bits a coordinate
  } else if constexpr (Codec::casts) {
    return Codec::chunk_size * sizeof(typename Codec::quantizer_type::element) / 4;
  } else {
    return Codec::chunk_size / 32 * Codec::reducer_type::lane_bits;
  }
}

//! @brief The steps from width to width of a codec with several, those that pay: the convex hull of the distortions.
template <class Codec>
constexpr void rule_steps(selection_rule& rule, int world) noexcept
{
  using chunker = typename Codec::chunker_type;
  int level     = 0;
  float lost    = 1.0f;  // without bits
  while (level < chunker::level_count) {
    int best    = 0;
    float worth = 0;
    for (int next = level + 1; next <= chunker::level_count; ++next) {
      float const less  = lost - level_distortion<Codec>(next, world);
      auto const words  = static_cast<float>(level_words<Codec>(next) - level_words<Codec>(level));
      float const a_bit = less / (words * (32.0f / Codec::chunk_size));
      if (a_bit > worth) {
        worth = a_bit;
        best  = next;
      }
    }
    if (best == 0) { break; }
    rule.level[rule.steps] = static_cast<std::uint32_t>(best);
    rule.cost[rule.steps] =
      (level_words<Codec>(best) - level_words<Codec>(level)) / selection_unit<Codec>();
    rule.offset[rule.steps] = key_bias + float_bits(worth) - float_bits(1.0f);
    lost                    = level_distortion<Codec>(best, world);
    ++rule.steps;
    level = best;
  }
  for (int l = 1; l <= chunker::level_count; ++l) {
    rule.words[l] = level_words<Codec>(l) - (has_parts<Codec> ? 1 : 0);
  }
}

}  // namespace detail

//! @brief One codec applied to one gradient by one world. Every rank makes the same plan but for its rank.
//!
//! Sizes are exact; a zero is a zero. `check` says whether the exchange can be made, and `all_reduce_mean` asks it first.
template <class Codec>
class plan {
 public:
  using codec_type = Codec;

  static constexpr std::size_t alignment = 16;  //!< Of workspace and state, bytes.

  constexpr plan(Codec const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
    std::uint64_t end = 0;
    for (tensor const& t : layout_.tensors) {
      covers_ = covers_ && t.offset == end;
      end     = t.offset + t.size();
    }
    covers_ = covers_ && (layout_.tensors.empty() || end == layout_.coordinates);
    for_each_record([this](tensor_record const& record) {
      ++tensors_;
      chunks_ += record.chunks;
      (record.chunks == 0 ? bypassed_ : compressed_) += record.size;
    });
    if constexpr (Codec::selects) { capacity_ = affordable_units(); }
  }

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @brief Whether this exchange can be made; if not, the sentence says which argument stands in the way.
  [[nodiscard]] constexpr status check() const noexcept
  {
    if (world_.size < 1 || world_.size > 65534) {
      return {error_code::invalid_argument, "world.size must be between 1 and 65534"};
    }
    if (world_.rank < 0 || world_.rank >= world_.size) {
      return {error_code::invalid_argument, "world.rank must be between 0 and world.size - 1"};
    }
    if (!covers_) {
      return {error_code::invalid_argument,
              "layout.tensors must cover layout.coordinates without gaps, in ascending order"};
    }
    if (chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {error_code::invalid_argument, "layout.coordinates has more than 2^31 chunks"};
    }
    if constexpr (Codec::selects) {
      if (chunks_ >= std::uint64_t{1} << 29) {
        return {error_code::invalid_argument, "layout.coordinates has more than 2^29 chunks"};
      }
      if (!(codec_.chunker.bits >= 0 && codec_.chunker.bits <= 64)) {
        return {error_code::invalid_argument, "the chunker's bits must be between 0 and 64"};
      }
      for (tensor const& t : layout_.tensors) {
        if (!(t.weight >= 0 && t.weight <= std::numeric_limits<float>::max())) {
          return {error_code::invalid_argument,
                  "the weight of a tensor must be finite and not negative"};
        }
      }
      if (std::is_same_v<typename Codec::norm_scalar, norm_log> && weighted()) {
        return {error_code::unsupported,
                "tensors have weights, which norm_log cannot take: use bfloat16 or float"};
      }
      if constexpr (Codec::several_bits) {
        if (!(codec_.chunker.weighting >= 0 && codec_.chunker.weighting <= 1)) {
          return {error_code::invalid_argument, "the chunker's weighting must be between 0 and 1"};
        }
      }
    }
    if constexpr (std::is_same_v<typename Codec::norm_scalar, norm_log>) {
      if (world_.size > norm_log::max_world) {
        return {error_code::world_too_large,
                "world.size is above 64, too large for norm_log: use bfloat16 or float"};
      }
    }
    if constexpr (detail::has_parts<Codec> && Codec::selects) {
      if (most_units() > std::numeric_limits<std::uint32_t>::max()) {
        return {error_code::invalid_argument, "layout.coordinates has more than 2^34 coordinates"};
      }
    }
    if constexpr (detail::has_steps<Codec>) {
      using reducer = typename Codec::reducer_type;
      if (world_.size > reducer::max_world(Codec::quantizer_type::max_level)) {
        return {
          error_code::world_too_large,
          "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum"};
      }
    }
    return {};
  }

  //! @name Counts
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept
  {
    return tensors_;
  }  //!< Records of the state.
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept
  {
    return compressed_;
  }  //!< Without padding.
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  //! @}

  //! @name Rounds
  //! Elements and bytes that one rank gives to the all-reduce in each round.
  //! @{
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    if constexpr (!Codec::agrees) {
      return 0;
    } else if constexpr (!detail::has_steps<Codec>) {
      return travels() ? chunks_ : 0;
    } else if constexpr (Codec::per_tensor) {
      return tensors_;
    } else if constexpr (Codec::tracks &&
                         Codec::range_type::measurement == statistic::chunk_magnitude) {
      return chunks_ + tensors_;
    } else {
      return travels() ? chunks_ : 0;
    }
  }

  //! The agreed scalars, in whole elements of their reduction.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agreed_size(agreed_scalars());
  }

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    if constexpr (recompressing<Codec>) {
      return part_bytes() * static_cast<std::uint64_t>(world_.size);
    } else if constexpr (recoding<Codec>) {
      return tiles() * sizeof(typename Codec::payload_op::element);
    } else if constexpr (Codec::selects) {
      return static_cast<std::uint64_t>(capacity_) * detail::selection_unit<Codec>() *
             sizeof(std::uint32_t);
    } else if constexpr (Codec::casts) {
      return compressed_ * sizeof(typename Codec::quantizer_type::element);
    } else {
      return chunks_ * (Codec::chunk_size / 8 * Codec::reducer_type::lane_bits);
    }
  }

  //! Under per_hop: elements of the payload.
  [[nodiscard]] constexpr std::uint64_t tiles() const noexcept requires(recoding<Codec>)
  {
    using op = typename Codec::payload_op;
    if constexpr (Codec::selects) {
      std::uint64_t const each = op::element::room - op::shape::size.lost;
      return capacity_ == 0 ? 0 : (capacity_ + op::shape::between + each - 1) / each;
    } else {
      return (chunks_ + op::element::chunks - 1) / op::element::chunks;
    }
  }

  //! Under two_shot: what one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept requires(recompressing<Codec>)
  {
    auto const ranks    = static_cast<std::uint64_t>(world_.size);
    std::uint64_t words = 0;
    if constexpr (Codec::selects) {
      // Of parts dealt widest first none exceeds the mean by more than the widest chunk.
      if (capacity_ > 0) { words = (capacity_ + widest_words() * (ranks - 1) + ranks - 1) / ranks; }
    } else {
      constexpr std::uint64_t chunk_words =
        detail::coded_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1;
      words = owned_chunks() * chunk_words;
    }
    return detail::round_up(words * sizeof(std::uint32_t), alignment);
  }

  //! Under two_shot with fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept requires(recompressing<Codec>)
  {
    auto const ranks = static_cast<std::uint64_t>(world_.size);
    return (chunks_ + ranks - 1) / ranks;
  }

  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return bypassed_ * sizeof(float);
  }

  //! All rounds together.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return agreed_bytes() + payload_bytes() + bypass_bytes();
  }

  //! Of chunkers that select: whether the budget pays for anything. If not, nothing travels and all decodes to zeros.
  [[nodiscard]] constexpr bool travels() const noexcept { return !Codec::selects || capacity_ > 0; }

  //! Input of the all-reduce in bits, all rounds, per coordinate of the gradient.
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    return coordinates() == 0
             ? 0.0
             : 8.0 * static_cast<double>(wire_bytes()) / static_cast<double>(coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds: nothing in it survives an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return agreed_offset() + agreed_room();
  }

  //! Bytes that live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return residual_offset() + (Codec::feeds_back ? coordinates() * sizeof(float) : 0);
  }
  //! @}

  //! @name Offsets
  //! Where things lie in workspace and state, in bytes.
  //! @{
  [[nodiscard]] constexpr std::size_t rotated_offset() const noexcept
  {
    return detail::has_steps<Codec> ? chunks_ * sizeof(chunk_step) : 0;  // the steps come first
  }
  //! Of chunkers that select: header, histograms and counters, then four bytes a chunk.
  [[nodiscard]] constexpr std::size_t selection_offset() const noexcept
  {
    return rotated_offset() +
           (Codec::rotates_all ? chunks_ * Codec::chunk_size * sizeof(float) : 0);
  }
  [[nodiscard]] constexpr std::size_t places_offset() const noexcept
  {
    return selection_offset() + (Codec::selects ? sizeof(detail::selection_scratch) : 0);
  }
  [[nodiscard]] constexpr std::size_t payload_offset() const noexcept
  {
    if constexpr (Codec::casts && !Codec::selects) { return bypass_bytes(); }
    return places_offset() + (Codec::selects ? detail::round_up(chunks_ * 4, 16) : 0);
  }
  [[nodiscard]] constexpr std::size_t bypass_offset() const noexcept
  {
    if constexpr (recompressing<Codec>) { return received_offset() + payload_bytes(); }
    if constexpr (recoding<Codec>) { return gathered_offset() + payload_bytes(); }
    return Codec::casts && !Codec::selects ? 0 : payload_offset() + payload_bytes();
  }
  //! Under two_shot: the parts for this rank to add, and those that all ranks decode. Feedback needs what was sent until
  //! the end, otherwise the last take its place.
  [[nodiscard]] constexpr std::size_t received_offset() const noexcept
    requires(recompressing<Codec>)
  {
    return payload_offset() + (Codec::feeds_back ? 2 : 1) * payload_bytes();
  }
  //! Under per_hop: what the all-reduce gets.
  [[nodiscard]] constexpr std::size_t gathered_offset() const noexcept
    requires(detail::has_parts<Codec>)
  {
    return payload_offset() + (Codec::feeds_back ? payload_bytes() : 0);
  }
  [[nodiscard]] constexpr std::size_t agreed_offset() const noexcept
  {
    return Codec::casts && !Codec::selects ? payload_offset() + payload_bytes()
                                           : bypass_offset() + bypass_bytes();
  }

  [[nodiscard]] constexpr std::size_t records_offset() const noexcept
  {
    return sizeof(state_header);
  }
  [[nodiscard]] constexpr std::size_t table_offset() const noexcept
  {
    return records_offset() + tensors_ * sizeof(tensor_record);
  }
  [[nodiscard]] constexpr std::size_t residual_offset() const noexcept
  {
    if constexpr (recompressing<Codec>) {
      if (Codec::owner_feeds_back) {
        return owner_residual_offset() + owned_chunks() * Codec::chunk_size * sizeof(float);
      }
    }
    return owner_residual_offset();
  }
  //! Under two_shot with feedback and fixed chunks: what the owner keeps, whole chunks.
  [[nodiscard]] constexpr std::size_t owner_residual_offset() const noexcept
  {
    return table_offset() + chunks_ * sizeof(chunk_entry);
  }
  //! @}

  //! @brief The records of the layout's tensors in order, one at a time, as `initialize` writes them.
  //!
  //! Empty tensors have none. Under `full_hadamard` a tensor is cut into pieces of descending powers of two of chunks,
  //! each rotated as a whole with its own record, so that only the last chunk is padded (as OptiReduce's THC does it).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    std::uint64_t first_chunk = 0;
    std::uint64_t bypass      = 0;
    auto const visit_tensor   = [&](tensor const& t, bool around) {
      std::uint64_t offset = t.offset;
      std::uint64_t size   = t.size();
      while (size > 0) {
        std::uint64_t chunks = (size + Codec::chunk_size - 1) / Codec::chunk_size;
        std::uint64_t here   = size;
        if (Codec::rotates_all && !around) {
          chunks = std::bit_floor(chunks);
          here   = detail::minimum(size, chunks * Codec::chunk_size);
        }
        tensor_record record{};
        record.offset      = offset;
        record.size        = here;
        record.first_chunk = first_chunk;
        record.chunks      = around ? 0 : chunks;
        record.bypass      = bypass;
        record.ratio       = static_cast<float>(world_.size);
        record.weight      = t.weight;
        visit(record);
        first_chunk += record.chunks;
        bypass += around ? here : 0;
        offset += here;
        size -= here;
      }
    };
    if (layout_.tensors.empty()) { visit_tensor({.rows = layout_.coordinates}, false); }
    for (tensor const& t : layout_.tensors) { visit_tensor(t, layout_.bypasses(t)); }
  }

  //! @brief The rule by which chunks are chosen, the same on every rank.
  [[nodiscard]] constexpr detail::selection_rule selection_rule() const noexcept
    requires(Codec::selects)
  {
    detail::selection_rule rule{};
    rule.exponent   = 65536;
    rule.weighted   = weighted() ? 1u : 0u;
    rule.capacity   = capacity_;
    rule.unit_words = detail::selection_unit<Codec>();
    if constexpr (Codec::several_bits) {
      rule.exponent = static_cast<std::uint32_t>(codec_.chunker.weighting * 65536.0f);
      detail::rule_steps<Codec>(rule, world_.size);
    } else {
      rule.steps     = 1;
      rule.level[0]  = 1;
      rule.cost[0]   = 1;
      rule.offset[0] = 0;
      rule.words[1]  = rule.unit_words;
    }
    return rule;
  }

 private:
  //! Whether tensors have weights other than 1.
  [[nodiscard]] constexpr bool weighted() const noexcept
  {
    for (tensor const& t : layout_.tensors) {
      if (t.weight != 1.0f) { return true; }
    }
    return false;
  }

  //! Words of a chunk on the highest level.
  [[nodiscard]] static constexpr std::uint64_t widest_words() noexcept
  {
    return detail::level_words<Codec>(Codec::chunker_type::level_count);
  }

  //! Units that all chunks can use.
  [[nodiscard]] constexpr std::uint64_t most_units() const noexcept
  {
    if constexpr (Codec::several_bits) {
      return chunks_ * (widest_words() / detail::selection_unit<Codec>());
    }
    return chunks_;
  }

  //! What `scalars` agreed scalars take, in whole elements.
  [[nodiscard]] static constexpr std::uint64_t agreed_size(std::uint64_t scalars) noexcept
  {
    if constexpr (!Codec::agrees) { return 0; }
    return detail::round_up(scalars * sizeof(typename Codec::norm_scalar),
                            sizeof(typename Codec::agreed_op::element));
  }

  //! Agreed scalars are measured even where the budget does not let them travel.
  [[nodiscard]] constexpr std::size_t agreed_room() const noexcept
  {
    return Codec::selects ? agreed_size(chunks_) : agreed_bytes();
  }

  //! The units that the bits pay for once the norms are paid, at most what all chunks can use.
  [[nodiscard]] constexpr std::uint32_t affordable_units() const noexcept
  {
    if (!(codec_.chunker.bits >= 0 && codec_.chunker.bits <= 64)) { return 0; }
    double budget =
      static_cast<double>(codec_.chunker.bits) * static_cast<double>(compressed_) / 32 -
      static_cast<double>(agreed_size(chunks_)) / 4;
    if constexpr (recompressing<Codec>) {
      // What parts of equal size may leave free: see `part_bytes`.
      auto const free = widest_words() * static_cast<std::uint64_t>(world_.size - 1) +
                        static_cast<std::uint64_t>(world_.size) * (alignment / 4);
      budget -= static_cast<double>(free);
    }
    if constexpr (recoding<Codec>) {
      using op = typename Codec::payload_op;
      // Whole tiles, and what chunks may leave free of them: see `tile_map`.
      auto const each = static_cast<double>(op::element::room - op::shape::size.lost);
      auto const number =
        static_cast<std::uint64_t>(detail::maximum(budget, 0.0) / op::element::words);
      budget = static_cast<double>(number) * each - op::shape::between;
    }
    double const units = budget / detail::selection_unit<Codec>();
    if (!(units >= 1)) { return 0; }
    return static_cast<std::uint32_t>(
      detail::minimum(most_units(), static_cast<std::uint64_t>(detail::minimum(units, 4e9))));
  }

  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_    = 0;
  std::uint64_t chunks_     = 0;
  std::uint64_t compressed_ = 0;
  std::uint64_t bypassed_   = 0;
  std::uint32_t capacity_   = 0;
  bool covers_              = true;
};

}  // namespace tersum::inline v0
