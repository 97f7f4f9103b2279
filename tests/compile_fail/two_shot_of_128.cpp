// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Two shots of chunks that are too small.
// expected: tersum: two_shot_codec needs chunks of at least 256

#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/two_shot_codec.hpp>

auto const codec = tersum::
  two_shot_codec<tersum::fixed_chunks<128>, tersum::partial_hadamard<128>, tersum::lloyd_max<4>>{};
