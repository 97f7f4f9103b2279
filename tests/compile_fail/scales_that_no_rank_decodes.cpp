// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Scales follow decoded means, which a rank has of its own shard only.

#include <tersum/metric/diagonal.hpp>
#include <tersum/tersum.hpp>

// expected: tersum: a rank of a sharded_codec decodes its own shard only
tersum::sharded_codec<tersum::fixed_chunks<256>,
                      tersum::partial_hadamard<256>,
                      tersum::lloyd_max<4>,
                      tersum::no_feedback,
                      tersum::kept_diagonal> const in_units{};
