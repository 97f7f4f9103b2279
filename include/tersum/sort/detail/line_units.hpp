// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The coordinates of a gradient whose matrices are sorted, in the units of a metric: the same on the CPU and in kernels.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/sort/detail/line_args.hpp>
#include <tersum/sort/line_record.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! What stands in the place of the gradient's element where work on rows and columns is in the units of a metric.
template <class Element, class Metric>
struct in_units {
};

//! The element of a gradient, and whether it is in the units of a metric.
template <class T>
struct line_units {
  using element                = T;
  static constexpr bool scaled = false;
  static constexpr bool keeps  = false;
};

template <class Element, class Metric>
struct line_units<in_units<Element, Metric>> {
  using element                = Element;
  using scale                  = typename scale_of<Metric>::type;
  static constexpr bool scaled = true;
  static constexpr bool keeps  = has_update<Metric>;
};

//! @brief Arrays in the executor's memory, with the scales of all coordinates.
template <class Element, class Metric>
struct line_args<in_units<Element, Metric>> : line_args<Element> {
  using scale = typename scale_of<Metric>::type;

  Metric metric;
  scale* scales;
  std::uint32_t*
    largest;  //!< A word for each record: the bits of the largest magnitude of its scales.
  state_header const* header;  //!< Of the inner exchange.
};

//! @brief How the coordinates of a tensor count.
struct tensor_units {
  bool unknown;  //!< Nothing is known of it: scales count as 1.
  float least;   //!< What scales are raised to.
};

//! @brief The arguments of a tensor in the units of a metric. A tensor that bypasses has 0 rows, and none.
template <class Arithmetic, class Args>
[[nodiscard]] TERSUM_INLINE tensor_units units_of(Arithmetic const& math,
                                                  Args const& args,
                                                  line_record const& record)
{
  float const largest = bits_float(args.largest[&record - args.records]);
  return {is_unknown_scale(largest), least_scale(math, args.metric, largest)};
}

//! @brief The scales of a coordinate of a sorted matrix after its first mean: a quarter of the smaller one of the agreed largest
//! magnitudes of its row and its column, which is about the root mean square of numbers that are normal. It is known whether
//! anything travelled or not.
[[nodiscard]] TERSUM_INLINE float first_scale_of_keys(std::uint8_t row, std::uint8_t column)
{
  std::uint32_t const key         = row < column ? row : column;
  constexpr std::uint32_t lowest  = 2 * (127 - 80) - 1;  // `line_key` of 2^-80 is 1
  std::uint32_t const half_octave = key + lowest;
  return key == 0 ? 0.0f : 0.25f * bits_float(half_octave << 22);
}

//! @brief The scale of the next step, where the exchange was finite.
//! @param at     The coordinate in the gradient.
//! @param value  What was decoded, in the units of the metric.
//! @param kept   As it lies in the state.
//! @param first  What it is where nothing was known.
template <class Arithmetic, class Args>
[[nodiscard]] TERSUM_INLINE auto next_scale(Arithmetic const& math,
                                            Args const& args,
                                            tensor_units const& units,
                                            std::uint64_t at,
                                            float value,
                                            float kept,
                                            float first)
{
  using scale        = typename Args::scale;
  float const before = static_cast<float>(args.header->step - 1);  // the inner exchange has ended
  float const next   = units.unknown
                         ? first
                         : args.metric.update(math, value, raised_scale(kept, units.least), before);
  std::uint32_t draw = 0;
  if constexpr (!std::is_same_v<scale, float>) {
    constexpr std::uint64_t stretch = 1024;
    draw                            = first_draw(at / stretch, args.header->sign_key) +
           static_cast<std::uint32_t>(at % stretch) * draw_stride;
  }
  return from_float<scale>(kept_scale<scale>(next, kept, draw));
}

}  // namespace tersum::inline v0::detail
