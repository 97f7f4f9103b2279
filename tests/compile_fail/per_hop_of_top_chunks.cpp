// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Hops that would add chunks which the ranks have chosen.
// expected: tersum: two_shot_codec and per_hop_codec take fixed_chunks or allocated_chunks

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

auto const codec = tersum::
  per_hop_codec<tersum::top_chunks<1024>, tersum::partial_hadamard<1024>, tersum::lloyd_max<4>>{};
