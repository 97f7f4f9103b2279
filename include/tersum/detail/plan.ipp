// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of plan.hpp: the records of a layout, whether an exchange can be made, and what a budget of bits pays for.

#include <tersum/chunk/detail/width_costs.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>

#include <bit>
#include <limits>
#include <type_traits>

namespace tersum::inline v0 {

template <class Codec>
constexpr plan<Codec>::plan(Codec const& codec, layout const& gradient, world const& ranks)
  : codec_(codec), layout_(gradient), world_(ranks)
{
  std::uint64_t end = 0;
  for (tensor const& t : layout_.tensors) {
    // Sizes that wrap cover nothing.
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    bool const fits              = t.columns == 0 || t.rows <= (most - end) / t.columns;
    covers_                      = covers_ && fits && t.offset == end;
    end                          = t.offset + t.size();
  }
  covers_ = covers_ && (layout_.tensors.empty() || end == layout_.coordinates);
  for_each_record([this](tensor_record const& record) {
    ++tensors_;
    chunks_ += record.chunks;
    (record.chunks == 0 ? bypassed_ : compressed_) += record.size;
    fingerprint_ = detail::add_record(fingerprint_, record);
  });
  fingerprint_ = detail::mix(fingerprint_, Codec::chunk_size);
  fingerprint_ = detail::mix(fingerprint_, Codec::feeds_back ? 1 : 0);
  if constexpr (scattering<Codec>) {
    if (Codec::owner_feeds_back) {
      fingerprint_ = detail::mix(fingerprint_, static_cast<std::uint64_t>(world_.size));
      fingerprint_ = detail::mix(fingerprint_, static_cast<std::uint64_t>(world_.rank));
    }
  }
  if constexpr (Codec::selects) { capacity_ = affordable_units(); }
}

template <class Codec>
constexpr status plan<Codec>::check() const noexcept
{
  if (status const s = detail::check_world(world_); !s.ok()) { return s; }
  if (!covers_) {
    return {error_code::invalid_argument,
            "layout.tensors must cover layout.coordinates without gaps, in ascending order"};
  }
  if (chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
    return {
      error_code::invalid_argument,
      "layout.coordinates has more than 2^31 chunks: exchange it in parts, or use larger chunks"};
  }
  if constexpr (Codec::selects) {
    if (chunks_ >= std::uint64_t{1} << 29) {
      return {
        error_code::invalid_argument,
        "layout.coordinates has more than 2^29 chunks: exchange it in parts, or use larger chunks"};
    }
    if (status const s = detail::check_budget(codec_.chunker.bits); !s.ok()) { return s; }
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
      return {error_code::invalid_argument,
              "layout.coordinates has more than 2^34 coordinates: exchange it in parts"};
    }
  }
  if constexpr (detail::has_steps<Codec>) {
    using reducer = typename Codec::reducer_type;
    // What suits is known in root mean squares, not in largest magnitudes.
    constexpr bool by_norm = detail::norms_travel<Codec> || Codec::per_tensor;
    constexpr bool suits   = by_norm && requires { reducer::best_clip(1); };
    float const clip       = codec_.range.clip;
    constexpr float limit  = std::numeric_limits<float>::max();
    if (!(clip <= limit && (clip > 0 || (suits && clip == 0)))) {
      return {
        error_code::invalid_argument,
        "the range's clip must be above 0, or 0 for what suits the world: under saturating_sum, for "
        "rms_range and global_range"};
    }
    auto const& headroom = codec_.range.headroom;
    if constexpr (requires { headroom.check(); }) {
      if (status const s = headroom.check(); !s.ok()) { return s; }
    }
    // Where all lanes saturate, the sum looks as wide as its range: the next range must be wider. Of several widths the
    // wider ones see to that.
    if constexpr (suits && Codec::tracks && !Codec::several_bits && requires { headroom.margin; }) {
      if (clip == 0 && reducer::best_clip(world_.size) * headroom.margin <= 1) {
        return {
          error_code::invalid_argument,
          "the range's clip of 0 stands for one that could not grow with so many ranks in such lanes: set a "
          "clip whose product with the head-room's margin is above 1"};
      }
    }
    if (world_.size > reducer::max_world(Codec::quantizer_type::max_level)) {
      return {
        error_code::world_too_large,
        "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum"};
    }
  }
  return {};
}

template <class Codec>
template <class Visitor>
constexpr void plan<Codec>::for_each_record(Visitor visit) const
{
  std::uint64_t first_chunk = 0;
  std::uint64_t bypass      = 0;
  auto const visit_tensor   = [&](tensor const& t, bool around) {
    std::uint64_t offset = t.offset;
    std::uint64_t size   = t.size();
    while (size > 0) {
      std::uint64_t chunks = size / Codec::chunk_size + (size % Codec::chunk_size != 0 ? 1 : 0);
      std::uint64_t here   = size;
      if (Codec::rotates_all && !around) {
        chunks = std::bit_floor(chunks);
        here   = chunks > size / Codec::chunk_size ? size : chunks * Codec::chunk_size;
      }
      tensor_record record{};
      record.offset      = offset;
      record.size        = here;
      record.first_chunk = first_chunk;
      record.chunks      = around ? 0 : chunks;
      record.bypass      = bypass;
      record.ratio       = static_cast<float>(world_.size);
      record.weight =
        t.weight + 0.0f;  // energies are ordered by their bits, and those of -0 are large
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

template <class Codec>
constexpr detail::selection_rule plan<Codec>::selection_rule() const noexcept
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

template <class Codec>
constexpr bool plan<Codec>::weighted() const noexcept
{
  for (tensor const& t : layout_.tensors) {
    if (t.weight != 1.0f) { return true; }
  }
  return false;
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::widest_words() noexcept
{
  return detail::level_words<Codec>(Codec::chunker_type::level_count);
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::most_units() const noexcept
{
  if constexpr (Codec::several_bits) {
    return chunks_ * (widest_words() / detail::selection_unit<Codec>());
  }
  return chunks_;
}

template <class Codec>
constexpr std::uint32_t plan<Codec>::affordable_units() const noexcept
{
  if (!detail::check_budget(codec_.chunker.bits).ok()) { return 0; }
  double budget = static_cast<double>(codec_.chunker.bits) * static_cast<double>(compressed_) / 32 -
                  static_cast<double>(agreed_size(chunks_)) / 4;
  if constexpr (scattering<Codec>) {
    // What parts of equal size may leave free: see `part_bytes`.
    auto const free = widest_words() * static_cast<std::uint64_t>(world_.size - 1) +
                      static_cast<std::uint64_t>(world_.size) * (alignment / 4);
    budget -= static_cast<double>(free);
  }
  if constexpr (requantizing<Codec>) {
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

}  // namespace tersum::inline v0
