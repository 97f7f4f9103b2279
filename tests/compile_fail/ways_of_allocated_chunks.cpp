// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks that have widths of their own, and others in the mean.
// expected: tersum: ways<Up, Down> takes fixed_chunks

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

constexpr tersum::two_shot_codec<tersum::allocated_chunks<512, 1, 2, 4>,
                                 tersum::partial_hadamard<512>,
                                 tersum::ways<tersum::lloyd_max<2>, tersum::lloyd_max<1>>>
  codec{};
