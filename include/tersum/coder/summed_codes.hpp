// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes that may be added: integers in steps that all ranks agree on.

#pragma once

#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/quantize/detail/coding.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0 {

//! @brief Each chunk has a step, on which the ranks agree; codes are whole numbers of steps, in lanes that are added.
//!
//! An exchange has one round more for what the ranks agree on: norms or magnitudes. For `in_wire` and `shard`.
//! @tparam Range      `rms_range`, `absmax_range` or `global_range`.
//! @tparam Quantizer  `stochastic_quantizer<q>`, `nearest_quantizer<q>`, `lookup_quantizer<Table>`, or one of your own.
//! @tparam Reducer    `saturating_sum<b>`, `widening_sum<q, b>` or `guard_lanes<b>`.
template <quantization_range Range, quantizer Quantizer, reducer Reducer>
struct summed_codes {
  using range_type     = Range;
  using quantizer_type = Quantizer;
  using reducer_type   = Reducer;
  using lanes          = packed_codes<Reducer::lane_bits>;
  constexpr description describe() const { return {"summed_codes", range, quantizer, reducer}; }

  //! The wire word whose codes are all zero. A chunk that has no step, because it has no energy, sends such words.
  static constexpr std::uint32_t zero_word = detail::zero_word_of<Quantizer, Reducer>;

  static_assert(detail::suits_lanes<Quantizer, Reducer>());
  static_assert(
    !Range::headroom_type::tracked || (Reducer::saturating && Reducer::lane_bits <= 8),
    "tersum: tracked_correlation is for saturating lanes of up to 8 bits; exact sums need only no_headroom");
  static_assert(gradient_element<typename Range::scalar> &&
                  !std::is_same_v<typename Range::scalar, half> &&
                  std::is_same_v<typename Range::op::element, typename Range::scalar>,
                "tersum: a range's scalar is float or bfloat16, and the element of its op");
  // Steps derived from anything else would be too small or too large.
  static_assert(
    !has_measurement<Range> ||
      detail::takes_maxima<Range> != detail::measures<Range, statistic::chunk_square_norm>,
    "tersum: the ranks sum the norms of chunks, and take the maximum of magnitudes and of norms of tensors");

  Range range{};
  Quantizer quantizer{};
  Reducer reducer{};

  //! The same with codes and lanes of `Bits`, and the best clip for them.
  template <int Bits>
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr auto with_bits() const noexcept
  {
    Range fitting = range;
    fitting.clip  = 0;
    return summed_codes<Range,
                        typename Quantizer::template with_bits<Bits>,
                        typename Reducer::template with_bits<Bits>>{.range = fitting};
  }
};

}  // namespace tersum::inline v0
