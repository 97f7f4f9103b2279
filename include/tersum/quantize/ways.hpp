// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of one width up to the owners of parts and of another down from them.

#pragma once

#include <tersum/concepts.hpp>

#include <type_traits>

namespace tersum::inline v0 {

//! @brief Two codebooks for `two_shot_codec`: ranks encode what they send to the owners of parts in `Up`, and owners encode the mean in
//! `Down`. Under `allocated_chunks` the mean of each chunk that travels has as many bits more as `Down` has more than `Up`.
//!
//! If the errors of the ranks have nothing in common the mean loses D(Up) rho + D(Down) (1 + D(Up) rho) of its energy. D is
//! the error of a codebook, `distortion()`, and rho the mean energy of the ranks' gradients over n times that of their mean:
//! 1 where gradients are independent, 1 / n where they are equal, above 1 where they oppose each other. The nearer rho is to
//! 1 / n, the more of the bits belong on the way down. At rho = 1/16, 1 bit up and 3 down lose .073, 2 and 2 lose .143 at the
//! same traffic; at rho = 1 they lose .63 and .28. All ranks rotate by the same signs, so that ranks that resemble each other make
//! similar errors, which adds to that: docs/concepts.md says how much. THC (Li et al., NSDI'24) sends indices of 4
//! bits up and sums of 8 bits down.
//! @tparam Up    Such as `lloyd_max<1>`.
//! @tparam Down  Such as `lloyd_max<3>`. Its width is another, under `allocated_chunks` a greater one.
template <codebook Up, codebook Down>
struct ways {
  static_assert(
    Up::bits != Down::bits,
    "tersum: ways<Up, Down> is for codes of unlike widths: give one quantizer for both ways");
  using up   = Up;
  using down = Down;
};

//! @brief Owners of parts encode the mean in other codes than those that they were sent.
template <class Codec>
concept ways_differ = requires
{
  requires !std::is_same_v<typename Codec::mean_quantizer_type, typename Codec::quantizer_type>;
};

namespace detail {

//! The quantizers of both ways, which are one unless `ways` says otherwise.
template <class Quantizer>
struct ways_of {
  using up   = Quantizer;
  using down = Quantizer;
};

template <class Up, class Down>
struct ways_of<ways<Up, Down>> : ways<Up, Down> {
};

template <class Quantizer>
inline constexpr bool are_ways = false;
template <class Up, class Down>
inline constexpr bool are_ways<ways<Up, Down>> = true;

}  // namespace detail

}  // namespace tersum::inline v0
