// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans count and check of a chunker: which chunks its budget pays for, by which rule, and the memory of the choice.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/coder/detail/coder_counts.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace tersum::inline v0::detail {

//! Whether a chunker's bits per coordinate can be a budget: a number from 0 to 64, not NaN.
[[nodiscard]] constexpr status check_budget(float bits) noexcept
{
  if (!(bits >= 0 && bits <= 64)) {
    return {error_code::invalid_argument, "the chunker's bits must be between 0 and 64"};
  }
  return {};
}

//! Codecs whose kernels take the chunks of the gradient by their widths, so that the threads of a warp do the same.
template <class Codec>
inline constexpr bool orders_chunks = several_bits<Codec> && (scattering<Codec> || copying<Codec>);

//! @brief What a chunk of a chunker with one width costs: a unit, if it travels.
//! @tparam Widths  `coder_counts`, or `summed_widths` of a reducer.
template <class Chunker, class Widths>
struct level_costs {
  [[nodiscard]] static constexpr std::uint32_t widest_words() noexcept
  {
    return Widths::template unit_words<Chunker>;
  }
  [[nodiscard]] static constexpr status check(Chunker const&) noexcept { return {}; }
  static constexpr void add_steps(selection_rule& rule, Chunker const&, int, float) noexcept
  {
    rule.exponent = 65536;
    rule.steps    = 1;
    rule.level[0] = 1;
    rule.cost[0]  = 1;
    rule.words[1] = rule.unit_words;
  }
};

//! @brief The levels of a chunker with several widths: what a chunk on each costs and loses.
template <class Chunker, class Widths>
requires(Chunker::several_bits) struct level_costs<Chunker, Widths> {
  //! Words of a chunk, its scales included.
  [[nodiscard]] static constexpr std::uint32_t words(int level) noexcept
  {
    constexpr int size = Chunker::chunk_size;
    return level == 0 ? 0 : Widths::words(size, Chunker::widths[level - 1]) + Widths::words_apart;
  }
  [[nodiscard]] static constexpr std::uint32_t widest_words() noexcept
  {
    return words(Chunker::level_count);
  }
  [[nodiscard]] static constexpr status check(Chunker const& given) noexcept
  {
    if (given.weighting >= 0 && given.weighting <= 1) { return {}; }
    return {error_code::invalid_argument, "the chunker's weighting must be between 0 and 1"};
  }
  [[nodiscard]] static constexpr float distortion(int level, int world) noexcept
  {
    return [&]<int... L>(std::integer_sequence<int, L...>)
    {
      float const of[] = {Widths::template distortion<Chunker::widths[L]>(world)...};
      return of[level - 1];
    }
    (std::make_integer_sequence<int, Chunker::level_count>{});
  }

  //! @brief The steps from width to width, and the exponent of energies. Widths that are not on the convex hull of the distortions
  //! are left out, since they never pay.
  //! @param encodings  How often a chunk is encoded.
  static constexpr void add_steps(selection_rule& rule,
                                  Chunker const& given,
                                  int world,
                                  float encodings) noexcept
  {
    rule.exponent   = static_cast<std::uint32_t>(given.weighting * 65536.0f);
    rule.step_bits  = 7;
    int level       = 0;
    float lost      = 1.0f;  // without bits
    auto const left = [&](int at) { return encodings * distortion(at, world); };
    while (level < Chunker::level_count) {
      int best    = 0;
      float worth = 0;
      for (int next = level + 1; next <= Chunker::level_count; ++next) {
        float const less  = lost - left(next);
        auto const more   = static_cast<float>(words(next) - words(level));
        float const a_bit = less / (more * (32.0f / Chunker::chunk_size));
        if (a_bit > worth) {
          worth = a_bit;
          best  = next;
        }
      }
      if (best == 0) { break; }
      rule.level[rule.steps] = static_cast<std::uint32_t>(best);
      rule.cost[rule.steps]  = (words(best) - words(level)) / Widths::template unit_words<Chunker>;
      // The low bits number the step, the first one highest.
      rule.offset[rule.steps] =
        ((key_bias + float_bits(worth) - float_bits(1.0f)) | 7u) - rule.steps;
      lost = left(best);
      ++rule.steps;
      level = best;
    }
    for (int l = 1; l <= Chunker::level_count; ++l) {
      rule.words[l] = words(l) - Widths::words_apart;
    }
  }
};

//! @brief Every chunk travels: there is no choice, and nothing that it needs.
template <class Codec>
struct chunk_choice {
  struct args {
    [[nodiscard]] TERSUM_INLINE bool pays() const { return true; }
    [[nodiscard]] TERSUM_INLINE payload_place find(std::uint64_t chunk) const
    {
      return {1, chunk * static_cast<std::uint64_t>(Codec::chunk_size / Codec::lanes::lanes)};
    }
    [[nodiscard]] TERSUM_INLINE auto find_in(auto const& map, std::uint64_t chunk) const
    {
      return map.of_chunk(static_cast<std::uint32_t>(chunk));
    }
    TERSUM_INLINE void count_levels(auto& map, std::uint64_t chunks, std::uint32_t words) const
    {
      map.count[1] = static_cast<std::uint32_t>(chunks);
      map.words[1] = words;
    }
  };

  constexpr explicit chunk_choice(auto const&) noexcept {}
  [[nodiscard]] constexpr bool travels() const noexcept { return true; }
  //! Bytes of what travels, where all chunks have so many.
  [[nodiscard]] static constexpr std::uint64_t bytes_of(std::uint64_t all) noexcept { return all; }
  //! The most words of a chunk whose codes are so many where there is one width.
  [[nodiscard]] static constexpr std::uint64_t chunk_words(std::uint64_t codes) noexcept
  {
    return codes;
  }
  [[nodiscard]] constexpr status check(auto const&) const noexcept { return {}; }
  [[nodiscard]] constexpr args take(section_list&, auto const&) const noexcept { return {}; }
};

//! @name The codec of a level
//! Calls body(codec), with the codec of the level that a chunk is on. The level is 1 or above.
//! @{
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, class Body>
requires(!several_bits<Codec>) TERSUM_INLINE
  void at_level(Codec const& codec, std::uint32_t, Body const& body)
{
  body(Codec(codec));
}
TERSUM_EXEC_CHECK_DISABLE
template <int Level = 1, several_bits Codec, class Body>
TERSUM_INLINE void at_level(Codec const& codec, std::uint32_t level, Body const& body)
{
  if constexpr (Level < level_count<Codec>) {
    if (level > Level) { return at_level<Level + 1>(codec, level, body); }
  }
  body(codec.template at_level<Level>());
}
//! @}

//! @brief The chunker chooses the chunks that travel under a budget of bits.
template <class Codec>
requires(selects<Codec>) class chunk_choice<Codec> {
  using chunker = typename Codec::chunker_type;

 public:
  struct args : std::conditional_t<orders_chunks<Codec>, ordered_selection_args, selection_args> {
    //! Where a chunk lies in the payload.
    [[nodiscard]] TERSUM_INLINE payload_place find(std::uint64_t chunk) const
    {
      std::uint32_t const place = this->places[chunk];
      std::uint32_t const level = place & ((1u << place_shift) - 1);
      std::uint64_t const slot  = place >> place_shift;
      // What does not travel has no place: with one width all others have that of level 1.
      std::uint32_t const at = several_bits<Codec> ? level : 1u;
      return {level, this->scratch->header.base[at] + slot * this->rule.words[at]};
    }
    //! Where a chunk lies among the parts of a map.
    [[nodiscard]] TERSUM_INLINE auto find_in(auto const& map, std::uint64_t chunk) const
    {
      chunk_place const place = chunk_place::of(this->places[chunk]);
      return map.of_slot(place.level, place.number);
    }
    //! Tells a map how many chunks each level has, and how many words each of them.
    TERSUM_INLINE void count_levels(auto& map, std::uint64_t, std::uint32_t) const
    {
      TERSUM_UNROLL
      for (int level = 1; level <= max_levels; ++level) {
        map.count[level] = this->scratch->header.count[level];
        map.words[level] = this->rule.words[level];
      }
    }
  };

  //! Finds the units that the bits pay for once the norms are paid, at most what all chunks can use.
  template <class Counts>
  constexpr explicit chunk_choice(Counts const& counts) noexcept
  {
    int const ranks  = counts.ranks().size;
    rule_.unit_words = unit_words();
    costs::add_steps(rule_, counts.codec().chunker, ranks, Codec::form_type::encodings(ranks));
    counts.for_each_record([this](tensor_record const& record) {
      if (record.weight != 1) { rule_.weighted = 1; }
    });
    float const bits = counts.codec().chunker.bits;
    if (!check_budget(bits).ok()) { return; }
    double const paid = static_cast<double>(bits) * static_cast<double>(counts.compressed()) / 32 -
                        static_cast<double>(counts.agreed_size(counts.chunks())) / 4;
    double const usable = Codec::counts_type::usable_words(paid, counts.ranks());
    double const units  = usable / unit_words();
    if (units >= 1) {
      rule_.capacity = static_cast<std::uint32_t>(
        minimum(most_units(counts.chunks()), static_cast<std::uint64_t>(minimum(units, 4e9))));
    }
  }

  [[nodiscard]] constexpr bool travels() const noexcept { return rule_.capacity > 0; }
  //! Bytes of the chunks that the budget pays for, whatever all of them have.
  [[nodiscard]] constexpr std::uint64_t bytes_of(std::uint64_t) const noexcept
  {
    return std::uint64_t{rule_.capacity} * unit_words() * sizeof(std::uint32_t);
  }
  //! Words of a chunk on the highest level.
  [[nodiscard]] static constexpr std::uint64_t chunk_words(std::uint64_t) noexcept
  {
    return costs::widest_words();
  }

  template <class Counts>
  [[nodiscard]] constexpr status check(Counts const& counts) const noexcept
  {
    auto const refuse = [](std::string_view sentence) {
      return status{error_code::invalid_argument, sentence};
    };
    if (counts.chunks() >= std::uint64_t{1} << 29) {
      return refuse(
        "layout.coordinates has more than 2^29 chunks: exchange it in parts, or use larger chunks");
    }
    auto const& given = counts.codec().chunker;
    if (status const s = check_budget(given.bits); !s.ok()) { return s; }
    for (tensor const& t : counts.gradient().tensors) {
      if (!(t.weight >= 0 && t.weight <= std::numeric_limits<float>::max())) {
        return refuse("the weight of a tensor must be finite and not negative");
      }
    }
    if (status const s = costs::check(given); !s.ok()) { return s; }
    if (most_units(counts.chunks()) > std::numeric_limits<std::uint32_t>::max()) {
      return refuse("layout.coordinates has more than 2^34 coordinates: exchange it in parts");
    }
    return {};
  }

  //! @brief The rule by which chunks are chosen; the same on every rank.
  [[nodiscard]] constexpr selection_rule const& rule() const noexcept { return rule_; }

  template <class Counts>
  [[nodiscard]] constexpr args take(section_list& work, Counts const& counts) const noexcept
  {
    std::uint64_t const places = round_up(counts.chunks(), 4);
    args out{};
    out.rule    = rule_;
    out.scratch = work.take<selection_scratch>("selection", 1);
    out.places  = work.take<std::uint32_t>("places", places);
    if constexpr (orders_chunks<Codec>) { out.order = work.take<std::uint32_t>("order", places); }
    return out;
  }

 private:
  using widths = coder_counts<typename Codec::coder_type>;
  using costs  = level_costs<chunker, widths>;

  [[nodiscard]] static constexpr std::uint32_t unit_words() noexcept
  {
    return widths::template unit_words<chunker>;
  }
  //! Units that all chunks can use.
  [[nodiscard]] static constexpr std::uint64_t most_units(std::uint64_t chunks) noexcept
  {
    return chunks * (costs::widest_words() / unit_words());
  }

  selection_rule rule_{};
};

}  // namespace tersum::inline v0::detail
