// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of `sorted_codec` are made of: counts of rows and columns, and the plan of the codec for the sorted gradient.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/entropy_codec.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/detail/line_units.hpp>
#include <tersum/sort/line_record.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace tersum::inline v0::detail {

//! @brief The state of the codec for the sorted gradient comes first, so that its header is that of the exchange; then a
//! `line_record` for each tensor.
template <class Codec>
class sorted_counts : public plan_counts<Codec> {
  using inner_type = typename Codec::inner_type;

 public:
  constexpr sorted_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks), totals_(count_lines(codec, gradient)),
      inner_(within_budget(codec, gradient, ranks, totals_.lines).plan(gradient, ranks))
  {
    this->tensors_     = inner_.tensors();
    this->chunks_      = inner_.chunks();
    this->compressed_  = inner_.compressed();
    this->bypassed_    = inner_.bypassed();
    this->fingerprint_ = mix(mix(inner_.state_fingerprint(), Codec::strip), totals_.lines);
    for_each_line_record([this](line_record const& r) {
      this->fingerprint_ = mix(mix(this->fingerprint_, r.rows), r.columns);
    });
    if constexpr (in_metric<Codec>) {
      this->fingerprint_ = mix(this->fingerprint_, sizeof(metric_scale<Codec>));
    }
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = inner_.check(); !s.ok()) { return s; }
    if (!(this->codec_.most_key_bits >= 0)) {
      return {error_code::invalid_argument, "sorted_codec.most_key_bits must be 0 or above"};
    }
    if (this->layout_.whole != 0) {
      return {error_code::invalid_argument,
              "layout: sorted_codec takes whole matrices, and a part of a bucket may cut them"};
    }
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    if (totals_.lines > most || totals_.tiles > most || totals_.blocks > most) {
      return {error_code::invalid_argument,
              "layout: sorted_codec takes no 2^31 rows and columns, and no gradient of 2^43 "
              "coordinates"};
    }
    return {};
  }

  //! The exchange of the sorted gradient: floats, with tensors where they were.
  [[nodiscard]] constexpr plan<inner_type> const& inner() const noexcept { return inner_; }

  //! @name Rounds
  //! @{
  //! Bytes of the round of rows and columns: their number.
  [[nodiscard]] constexpr std::uint64_t lines_bytes() const noexcept { return totals_.lines; }
  //! What `Inner` agrees on.
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return inner_.agreed_scalars();
  }
  //! Of both.
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return lines_bytes() + inner_.agreed_bytes();
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return inner_.payload_bytes();
  }
  //! Of two shots.
  [[nodiscard]] constexpr std::uint64_t mean_bytes() const noexcept requires scattering<inner_type>
  {
    return inner_.mean_bytes();
  }
  [[nodiscard]] constexpr bool travels() const noexcept { return inner_.travels(); }
  [[nodiscard]] constexpr bool all_bypass() const noexcept { return inner_.all_bypass(); }
  //! @}

  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    return section_list{
      holds<float>(section::sorted, this->coordinates(), 16),
      holds<std::uint32_t>(section::lines, totals_.lines, 16),
      holds<std::uint32_t>(section::line_counts, totals_.groups * key_values, 16),
      holds<std::uint8_t>(section::line_keys, totals_.lines, 16),
      holds<std::uint32_t>(section::largest_scales, in_metric<Codec> ? totals_.tensors : 0, 16),
      holds<std::byte>(section::inner, inner_.workspace_bytes(), 16)};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return section_list{holds<std::byte>(section::header, inner_.state_bytes(), 16),
                        holds<line_record>(section::table, totals_.tensors, 16),
                        section_of_scales()};
  }
  //! Elements of the state's section of scales: one for each coordinate, rounded up so that what follows is aligned.
  [[nodiscard]] constexpr std::uint64_t scales() const noexcept
  {
    if constexpr (in_metric<Codec>) {
      return round_up(this->coordinates(), 16 / sizeof(metric_scale<Codec>));
    }
    return 0;
  }

  //! @name Memory of the parts
  //! @{
  [[nodiscard]] constexpr std::span<std::byte> inner_state(
    std::span<std::byte> state) const noexcept
  {
    return state.first(inner_.state_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> inner_workspace(
    std::span<std::byte> workspace) const noexcept
  {
    return workspace.subspan(work(section::inner));
  }
  //! The sorted gradient.
  [[nodiscard]] std::span<float> sorted(std::span<std::byte> workspace) const noexcept
  {
    return {reinterpret_cast<float*>(workspace.data()),
            static_cast<std::size_t>(this->coordinates())};
  }
  [[nodiscard]] constexpr std::size_t line_table_offset() const noexcept
  {
    return state_sections().offset(section::table);
  }
  [[nodiscard]] constexpr std::size_t line_keys_offset() const noexcept
  {
    return work(section::line_keys);
  }
  //! @}

  //! @brief What kernels are given.
  template <class Element>
  [[nodiscard]] auto line_arguments(Element* gradient,
                                    std::span<std::byte> state,
                                    std::span<std::byte> workspace) const noexcept
  {
    line_args<Element> const args{
      .totals   = totals_,
      .records  = reinterpret_cast<line_record const*>(state.data() + line_table_offset()),
      .gradient = gradient,
      .lines    = reinterpret_cast<std::uint32_t*>(workspace.data() + work(section::lines)),
      .keys     = reinterpret_cast<std::uint8_t*>(workspace.data() + line_keys_offset()),
      .counts   = reinterpret_cast<std::uint32_t*>(workspace.data() + work(section::line_counts)),
      .sorted   = sorted(workspace).data()};
    if constexpr (in_metric<Codec>) {
      using units        = in_units<Element, typename Codec::metric_type>;
      auto* const scales = state.data() + state_sections().offset(section::scales);
      return line_args<units>{
        args,
        this->codec_.metric,
        reinterpret_cast<metric_scale<Codec>*>(scales),
        reinterpret_cast<std::uint32_t*>(workspace.data() + work(section::largest_scales)),
        reinterpret_cast<state_header const*>(state.data())};
    } else {
      return args;
    }
  }

  //! Calls visit(line_record const&) for the tensors in order, but for empty ones. Without tensors the gradient is one vector.
  template <class Visit>
  constexpr void for_each_line_record(Visit&& visit) const
  {
    visit_records(this->codec_, this->layout_, visit);
  }

 private:
  [[nodiscard]] constexpr section_entry section_of_scales() const noexcept
  {
    if constexpr (in_metric<Codec>) {
      return holds<metric_scale<Codec>>(section::scales, scales(), 16);
    } else {
      return holds<float>(section::scales, 0);
    }
  }
  [[nodiscard]] constexpr std::size_t work(section name) const noexcept
  {
    return workspace_sections().offset(name);
  }

  //! Whether a tensor is sorted: a matrix whose keys are worth their bits.
  [[nodiscard]] static constexpr bool is_sorted(Codec const& codec,
                                                layout const& gradient,
                                                tensor const& t) noexcept
  {
    return t.rows > 1 && t.columns > 1 && !gradient.bypasses(t) &&
           8.0f * static_cast<float>(t.rows + t.columns) <=
             codec.most_key_bits * static_cast<float>(t.size());
  }

  template <class Visit>
  static constexpr void visit_records(Codec const& codec, layout const& gradient, Visit&& visit)
  {
    if (!check_layout(gradient).ok()) { return; }
    line_record next{};
    auto const add = [&](std::uint64_t offset, std::uint64_t rows, std::uint64_t columns) {
      if (columns == 0) { return; }
      next.offset  = offset;
      next.rows    = rows;
      next.columns = columns;
      visit(static_cast<line_record const&>(next));
      next.first_line += next.lines();
      next.first_tile += next.tiles();
      next.first_group += next.groups(true) + next.groups(false);
      next.first_block += next.blocks();
    };
    if (gradient.tensors.empty()) { add(0, 1, gradient.coordinates); }
    for (tensor const& t : gradient.tensors) {
      next.sorted                = is_sorted(codec, gradient, t) ? 1 : 0;
      std::uint64_t const copied = in_metric<Codec> && gradient.bypasses(t) ? 0 : 1;
      add(t.offset, next.sorted != 0 ? t.rows : copied, next.sorted != 0 ? t.columns : t.size());
    }
  }

  [[nodiscard]] static constexpr line_totals count_lines(Codec const& codec, layout const& gradient)
  {
    line_totals totals{};
    visit_records(codec, gradient, [&](line_record const& r) {
      ++totals.tensors;
      totals.lines += r.lines();
      totals.tiles += r.tiles();
      totals.groups += r.groups(true) + r.groups(false);
      totals.blocks += r.blocks();
    });
    return totals;
  }

  //! @brief The codec of the sorted gradient: keys are paid from its budget, if it has one; by codes of unlike lengths up to half of it.
  [[nodiscard]] static constexpr inner_type within_budget(Codec const& codec,
                                                          layout const& gradient,
                                                          world const& ranks,
                                                          std::uint64_t lines)
  {
    inner_type inner = codec.inner;
    if constexpr (selects<inner_type> || entropy_coding<inner_type>) {
      if (lines != 0) {
        auto const compressed = inner.plan(gradient, ranks).compressed();
        float const keys      = 8.0f * static_cast<float>(lines) / static_cast<float>(compressed);
        if constexpr (selects<inner_type>) {
          inner.chunker.bits = maximum(inner.chunker.bits - keys, 0.0f);
        } else {
          inner.bits = maximum(inner.bits - keys, inner.bits / 2);
        }
      }
    }
    return inner;
  }

  line_totals totals_;
  plan<inner_type> inner_;
};

}  // namespace tersum::inline v0::detail
