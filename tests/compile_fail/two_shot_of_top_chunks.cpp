// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots of chunks that travel or not.
// expected: tersum: two_shot_codec takes fixed_chunks or allocated_chunks

#include <tersum/chunk/top_chunks.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

auto const codec = tersum::
  two_shot_codec<tersum::top_chunks<256>, tersum::partial_hadamard<256>, tersum::lloyd_max<4>>{};
