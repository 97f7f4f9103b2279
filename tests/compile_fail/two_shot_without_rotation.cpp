// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codebook of normal values for values that are not.
// expected: tersum: two_shot_codec rotates whole chunks for a codebook: use

#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/two_shot_codec.hpp>

auto const codec =
  tersum::two_shot_codec<tersum::fixed_chunks<1024>, tersum::no_rotation, tersum::lloyd_max<4>>{};
