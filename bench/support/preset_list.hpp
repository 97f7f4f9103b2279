// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the benchmarks run: codecs, sizes, and the names in their results.

#pragma once

#include <tersum/presets.hpp>
#include <tersum/types.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tersum_bench {

inline constexpr std::uint64_t bucket = 6553600;                 //!< 25 MB of floats.
inline constexpr std::uint64_t large  = std::uint64_t{1} << 24;  //!< 64 MB of floats.

template <class Element>
inline constexpr std::string_view element_name = "float";
template <>
inline constexpr std::string_view element_name<tersum::half> = "half";
template <>
inline constexpr std::string_view element_name<tersum::bfloat16> = "bfloat16";

//! @brief Calls visit(name, codec) for the presets that have something of their own to measure.
template <class Visitor>
void for_each_preset(Visitor const& visit)
{
  namespace presets = tersum::presets;
  visit("fp16", presets::fp16);
  visit("bf16", presets::bf16);
  visit("thc_wide4", presets::thc_wide4);
  visit("thc_sat4", presets::thc_sat4);
  visit("rotated_sat2", presets::rotated_sat2);
  visit("rotated_sat4", presets::rotated_sat4);
  visit("rotated_sat8", presets::rotated_sat8);
  visit("rotated_sat4_ef", presets::rotated_sat4_ef);
  visit("topkc_b2", presets::topkc_b2);
  visit("topkc_sat4", presets::topkc_sat4);
  visit("allocated_sat_4", presets::allocated_sat_4);
}

//! @brief Calls visit(name, codec) for codecs that differ in their rotator only.
template <class Visitor>
void for_each_rotator(Visitor const& visit)
{
  using namespace tersum;
  using grid = stochastic_quantizer<4, independent>;
  using sum  = widening_sum<4, 8>;
  visit("none", codec<fixed_chunks<1024>, no_rotation, global_range<literal>, grid, sum>{});
  visit("partial",
        codec<fixed_chunks<1024>, partial_hadamard<1024>, global_range<literal>, grid, sum>{});
  visit("full", codec<fixed_chunks<1024>, full_hadamard, global_range<literal>, grid, sum>{});
}

//! @brief `<operation>/<preset>/<type>/<executor>/n:<n>/threads:<t>`
[[nodiscard]] inline std::string result_name(std::string_view operation,
                                             std::string_view preset,
                                             std::string_view element,
                                             std::string_view executor,
                                             std::uint64_t n,
                                             int threads)
{
  std::string name{operation};
  name.append("/").append(preset).append("/").append(element).append("/").append(executor);
  name.append("/n:").append(std::to_string(n));
  return name.append("/threads:").append(std::to_string(threads));
}

}  // namespace tersum_bench
