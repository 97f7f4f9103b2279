// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of all codecs of chunks count alike: records, agreed scalars, and what a budget of bits pays for.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/detail/width_costs.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What codecs derive their `counts_type` from if they cut the gradient into chunks. They add payload_bytes() and
//! workspace_sections(), and declare again what differs.
template <class Codec>
class chunk_counts : public plan_counts<Codec> {
 public:
  constexpr chunk_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks)
  {
    for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->chunks_ += record.chunks;
      (record.chunks == 0 ? this->bypassed_ : this->compressed_) += record.size;
      this->fingerprint_ = add_record(this->fingerprint_, record);
      weighted_          = weighted_ || record.weight != 1;
    });
    if constexpr (selects<Codec>) { allot(); }
    this->fingerprint_ = mix(this->fingerprint_, Codec::chunk_size);
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = check_world(this->world_); !s.ok()) { return s; }
    if (status const s = check_layout(this->layout_); !s.ok()) { return s; }
    if (this->chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {
        error_code::invalid_argument,
        "layout.coordinates has more than 2^31 chunks: exchange it in parts, or use larger chunks"};
    }
    if constexpr (selects<Codec>) {
      if (this->chunks_ >= std::uint64_t{1} << 29) {
        return {
          error_code::invalid_argument,
          "layout.coordinates has more than 2^29 chunks: exchange it in parts, or use larger chunks"};
      }
      if (status const s = check_budget(this->codec_.chunker.bits); !s.ok()) { return s; }
      for (tensor const& t : this->layout_.tensors) {
        if (!(t.weight >= 0 && t.weight <= std::numeric_limits<float>::max())) {
          return {error_code::invalid_argument,
                  "the weight of a tensor must be finite and not negative"};
        }
      }
      if (std::is_same_v<typename Codec::norm_scalar, norm_log> && weighted_) {
        return {error_code::unsupported,
                "tensors have weights, which norm_log cannot take: use bfloat16 or float"};
      }
      if constexpr (several_bits<Codec>) {
        if (!(this->codec_.chunker.weighting >= 0 && this->codec_.chunker.weighting <= 1)) {
          return {error_code::invalid_argument, "the chunker's weighting must be between 0 and 1"};
        }
      }
      if (most_units() > std::numeric_limits<std::uint32_t>::max()) {
        return {error_code::invalid_argument,
                "layout.coordinates has more than 2^34 coordinates: exchange it in parts"};
      }
    }
    if constexpr (std::is_same_v<typename Codec::norm_scalar, norm_log>) {
      if (this->world_.size > norm_log::max_world) {
        return {error_code::world_too_large,
                "world.size is above 64, too large for norm_log: use bfloat16 or float"};
      }
    }
    return {};
  }

  [[nodiscard]] constexpr bool travels() const noexcept { return !selects<Codec> || capacity_ > 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return travels() && this->chunks() > 0 ? self().measured_scalars() : 0;
  }
  //! Rounded up to whole elements of their reduction.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agreed_size(agreed_scalars());
  }

  //! @brief Under a rotator of whole tensors a tensor is cut into pieces whose numbers of chunks are descending powers of two. Each
  //! is rotated as a whole and has its own record; only the last chunk is padded (as OptiReduce's THC does it).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    float const ratio         = self().first_ratio();
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
        tensor_record const record{
            .offset      = offset,
            .size        = here,
            .first_chunk = first_chunk,
            .chunks      = around ? 0 : chunks,
            .bypass      = bypass,
            .ratio       = ratio,
            .weight = t.weight + 0.0f,  // energies are ordered by their bits; those of -0 are large
            .saturated = 0,
            .arrived   = 0,
            .padding   = 0};
        visit(record);
        first_chunk += record.chunks;
        bypass += around ? here : 0;
        offset += here;
        size -= here;
      }
    };
    if (this->layout_.tensors.empty()) {
      visit_tensor({{}, this->layout_.coordinates},
                   this->layout_.bucket() < this->layout_.bypass_below);
    }
    std::uint64_t const first = this->layout_.first;
    std::uint64_t const last  = first + this->layout_.coordinates;
    for (tensor const& t : this->layout_.tensors) {
      std::uint64_t const begin = maximum(t.offset, first);
      std::uint64_t const end   = minimum(t.offset + t.size(), last);
      if (begin >= end) { continue; }
      tensor piece  = t;
      piece.rows    = end - begin;
      piece.columns = 1;
      piece.offset  = begin - first;
      visit_tensor(piece, this->layout_.bypasses(t));
    }
  }

  //! @brief The rule by which chunks are chosen; the same on every rank.
  [[nodiscard]] constexpr detail::selection_rule selection_rule() const noexcept
    requires(selects<Codec>)
  {
    detail::selection_rule rule{};
    rule.weighted   = weighted_ ? 1 : 0;
    rule.capacity   = capacity_;
    rule.unit_words = selection_unit<Codec>();
    if constexpr (several_bits<Codec>) {
      rule_steps<Codec>(rule, this->codec_.chunker, this->world_.size);
    } else {
      rule.exponent = 65536;
      rule.steps    = 1;
      rule.level[0] = 1;
      rule.cost[0]  = 1;
      rule.words[1] = rule.unit_words;
    }
    return rule;
  }

  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return section_list{holds<state_header>(section::header, 1),
                        holds<tensor_record>(section::records, this->tensors()),
                        holds<chunk_entry>(section::table, this->chunks()),
                        section_of_scales(),
                        holds<float>(section::gain, gains_of<Codec>),
                        holds<residual_element<Codec>>(section::residual, residuals())};
  }

  //! The scalars that are measured, whether the budget lets them travel or not.
  [[nodiscard]] constexpr std::uint64_t measured_scalars() const noexcept
  {
    return agrees<Codec> ? this->chunks() : 0;
  }
  //! What `tensor_record::ratio` is before the first exchange.
  [[nodiscard]] constexpr float first_ratio() const noexcept
  {
    return static_cast<float>(this->world_.size);
  }
  //! Words of a payload that chunks can use, if they cannot fill it to the last one.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    return words;
  }

  //! Elements of the state's section of scales: one for each coordinate, rounded up so that what follows is aligned.
  [[nodiscard]] constexpr std::uint64_t scales() const noexcept
  {
    return section_of_scales().bytes / scale_bytes();
  }

 protected:
  [[nodiscard]] static constexpr std::uint64_t scale_bytes() noexcept
  {
    if constexpr (in_metric<Codec>) { return sizeof(metric_scale<Codec>); }
    return sizeof(float);
  }
  [[nodiscard]] constexpr section_entry section_of_scales() const noexcept
  {
    if constexpr (in_metric<Codec>) {
      return holds<metric_scale<Codec>>(section::scales,
                                        round_up(this->coordinates(), 16 / scale_bytes()));
    }
    return holds<float>(section::scales, 0);
  }
  // Lengths of sections
  [[nodiscard]] constexpr std::uint64_t residuals() const noexcept
  {
    return feeds_back<Codec> ? this->coordinates() : 0;
  }
  [[nodiscard]] constexpr std::uint64_t places() const noexcept
  {
    if constexpr (!selects<Codec>) { return 0; }
    return round_up(this->chunks(), 4);
  }
  [[nodiscard]] constexpr std::uint64_t ordered() const noexcept
  {
    return orders_chunks<Codec> ? round_up(this->chunks(), 4) : 0;
  }
  [[nodiscard]] constexpr std::uint64_t agreed_room() const noexcept
  {
    return agreed_size(self().measured_scalars());
  }
  //! Words of the chunks that the budget pays for.
  [[nodiscard]] constexpr std::uint64_t capacity_words() const noexcept
  {
    return std::uint64_t{capacity_} * selection_unit<Codec>();
  }
  //! Words of a chunk on the highest level.
  [[nodiscard]] static constexpr std::uint64_t widest_words() noexcept
  {
    return level_words<Codec>(Codec::chunker_type::level_count);
  }

 private:
  [[nodiscard]] constexpr auto const& self() const noexcept
  {
    return static_cast<typename Codec::counts_type const&>(*this);
  }
  //! Units that all chunks can use.
  [[nodiscard]] constexpr std::uint64_t most_units() const noexcept
  {
    constexpr auto each = [] {
      if constexpr (several_bits<Codec>) { return widest_words() / selection_unit<Codec>(); }
      return std::uint64_t{1};
    }();
    return this->chunks_ * each;
  }
  //! What `scalars` agreed scalars take, in whole elements.
  [[nodiscard]] static constexpr std::uint64_t agreed_size(std::uint64_t scalars) noexcept
  {
    if constexpr (!agrees<Codec>) { return 0; }
    return round_up(scalars * sizeof(typename Codec::norm_scalar),
                    sizeof(typename Codec::agreed_op::element));
  }
  //! Finds the units that the bits pay for once the norms are paid, at most what all chunks can use.
  constexpr void allot() noexcept
  {
    float const bits = this->codec_.chunker.bits;
    if (!check_budget(bits).ok()) { return; }
    double const words = static_cast<double>(bits) * static_cast<double>(this->compressed_) / 32 -
                         static_cast<double>(agreed_size(this->chunks_)) / 4;
    capacity_ = paid_units(Codec::counts_type::usable_words(words, this->world_));
  }
  [[nodiscard]] constexpr std::uint32_t paid_units(double words) const noexcept
  {
    double const units = words / selection_unit<Codec>();
    if (!(units >= 1)) { return 0; }
    return static_cast<std::uint32_t>(
      minimum(most_units(), static_cast<std::uint64_t>(minimum(units, 4e9))));
  }

  std::uint32_t capacity_ = 0;
  bool weighted_          = false;  // tensors have weights other than 1
};

}  // namespace tersum::inline v0::detail
