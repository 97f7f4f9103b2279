// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Eight blocks a chunk, whose scales would fill half of 16 bytes.
// expected: tersum: two_shot_codec keeps block scales in whole 16 bytes: a

#include <tersum/rotate/no_rotation.hpp>
#include <tersum/two_shot_codec.hpp>
#include <tersum_baselines/group_absmax.hpp>

auto const codec = tersum::
  two_shot_codec<tersum::fixed_chunks<256>, tersum::no_rotation, tersum::group_absmax<4, 32>>{};
