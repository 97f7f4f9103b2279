// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A form: two shots whose owners send the mean of casts and of blocks in halves. The mean of a codebook's codes, which may be of a
//! rotated chunk, they send in the same codes.

#pragma once

#include <tersum/tersum.hpp>

#include <type_traits>

struct mean_in_halves : tersum::two_shot {
  template <class Coder>
  using mean_coder = std::conditional_t<tersum::codebook<typename Coder::quantizer_type>,
                                        Coder,
                                        tersum::cast<tersum::half>>;
  constexpr tersum::description describe() const { return {"mean_in_halves"}; }
};
static_assert(tersum::form<mean_in_halves>);
