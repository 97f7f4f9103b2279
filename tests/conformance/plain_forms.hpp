// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies of the library without what is optional: their plain forms alone.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/rotate/rotation_key.hpp>

namespace tersum::tests {

template <rotator Rotator>
struct plain_rotator {
  static constexpr int rotation_size = Rotator::rotation_size;
  static constexpr int square_gain   = detail::square_gain<Rotator>;

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void forward(Group const& g,
                                  float (&x)[Size],
                                  float (&scratch)[Size],
                                  rotation_key const& key) const
  {
    Rotator{}.forward(g, x, scratch, key);
  }

  template <class Group, int Size>
  TERSUM_HOST_DEVICE void backward(Group const& g,
                                   float (&x)[Size],
                                   float (&scratch)[Size],
                                   rotation_key const& key) const
  {
    Rotator{}.backward(g, x, scratch, key);
  }
};

}  // namespace tersum::tests
