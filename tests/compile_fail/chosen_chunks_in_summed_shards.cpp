// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Where the codes of a shard lie is known before the gradient.

#include <tersum/chunk/top_chunks.hpp>
#include <tersum/tersum.hpp>

// expected: tersum: summed_shards_codec takes fixed_chunks
tersum::summed_shards_codec<tersum::top_chunks<256>,
                            tersum::partial_hadamard<256>,
                            tersum::rms_range<tersum::no_headroom>,
                            tersum::stochastic_quantizer<4>,
                            tersum::widening_sum<4, 8>> const chosen{};
