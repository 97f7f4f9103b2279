// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All codecs by name, and the one of a name on one device.

#pragma once

#include "../presets/for_each_preset.hpp"
#include "codecs.hpp"
#include "run_exchange.hpp"

#include <tersum_baselines/presets.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace compare_codecs {

//! @brief The same coordinates of all ranks in a random order: neighbours have nothing to do with each other.
inline std::vector<std::vector<float>> permute(std::vector<std::vector<float>> const& gradients)
{
  std::vector<std::size_t> order(gradients[0].size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937{20241118});
  auto permuted = gradients;
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    for (std::size_t i = 0; i < order.size(); ++i) { permuted[k][i] = gradients[k][order[i]]; }
  }
  return permuted;
}

//! @name Codecs by name
//! `visit` is called with the name, a summary and the codec. In groups, which are compiled apart: those of
//! for_each_preset.hpp, TopKC on permuted gradients, and older codecs.
//! @{
template <class Visitor>
void for_each_summed_codec(Visitor visit)
{
  examples::for_each_summed_preset(visit);
}

template <class Visitor>
void for_each_choosing_codec(Visitor visit)
{
  examples::for_each_choosing_preset(visit);
#if !defined(TERSUM_EXAMPLES_FEW)
  namespace p = tersum::presets;
  visit("topkc_b05_permuted", "topkc_b05 of permuted gradients: without locality", p::topkc_b05);
  visit("topkc_b2_permuted", "topkc_b2 of permuted gradients", p::topkc_b2);
  visit("topkc_b8_permuted", "topkc_b8 of permuted gradients", p::topkc_b8);
#endif
}

template <class Visitor>
void for_each_low_rank_codec(Visitor visit)
{
  examples::for_each_low_rank_preset(visit);
}

template <class Visitor>
void for_each_two_shot_codec(Visitor visit)
{
  examples::for_each_two_shot_preset(visit);
  examples::for_each_sharded_preset(visit);
  examples::for_each_summed_shards_preset(visit);
  examples::for_each_values_preset(visit);
}

//! Baselines alone; with TERSUM_EXAMPLES_FEW one of them.
template <class Visitor>
void for_each_older_codec(Visitor visit)
{
  namespace p = tersum::presets;
  visit("onebit_ef", "1-bit SGD: the means of the signs of 128, with feedback", p::onebit_ef);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("mxfp4", "two shots of FP4 in blocks of 32 with scales of E8M0", p::mxfp4);
  visit("mxfp8", "the same, FP8 (E4M3)", p::mxfp8);
  visit("nvfp4", "two shots of FP4 in blocks of 16 with scales of E4M3", p::nvfp4);
  visit("qsgd_4", "two shots of QSGD by the largest of 128, 4 bits", p::qsgd_4);
  visit("natural_4", "the same with powers of two: natural dithering", p::natural_4);
  visit("terngrad", "TernGrad: ternary codes in lanes of 4 bits", p::terngrad);
  visit("sign_majority", "majority vote of signs, counted in lanes of 4 bits", p::sign_majority);
  visit("randomk_b2", "one of 8 coordinates, drawn by the seed, unbiased", p::randomk_b2);
  visit("randomk_b2_ef", "one of 8 coordinates, with feedback", p::randomk_b2_ef);
#endif
}

//! All of them.
template <class Visitor>
void for_each_codec(Visitor visit)
{
  for_each_summed_codec(visit);
  for_each_choosing_codec(visit);
  for_each_low_rank_codec(visit);
  for_each_two_shot_codec(visit);
  for_each_older_codec(visit);
}
//! @}

//! What `run_named` says of a name that is not in its group.
inline constexpr std::string_view no_such_codec = "there is no such codec";

//! The codecs of one group on the CPU: arguments as those of `run_codec`.
using run_group = decltype(run_codec);
run_group run_summed, run_choosing, run_low_rank, run_two_shot, run_older, run_served;

//! @brief Runs the codec of that name on a device.
//! @param for_each  One of the above: which codecs are looked at.
template <class Device, class ForEach>
run_outcome run_named(Device const& device,
                      ForEach const& for_each,
                      std::string_view name,
                      std::vector<std::vector<float>> const& gradients,
                      std::vector<layer> const& layers,
                      run_settings const& settings)
{
  run_outcome outcome{{}, std::string{no_such_codec}};
  for_each([&](std::string_view candidate, std::string_view, auto const& codec) {
    if (candidate != name) { return; }
    // Errors do not depend on the order of the coordinates, so nothing has to be put back. There are no tensors any more.
    outcome = name.ends_with("_permuted")
                ? run_exchange(device, codec, permute(gradients), {}, settings)
                : run_exchange(device, codec, gradients, layers, settings);
  });
  return outcome;
}

}  // namespace compare_codecs
