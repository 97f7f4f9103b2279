// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: widening_sum<q, b> is for a quantizer of q bits

#include <tersum/tersum.hpp>

tersum::codec<tersum::fixed_chunks<1024>,
              tersum::no_rotation,
              tersum::absmax_range<tersum::no_headroom>,
              tersum::stochastic_quantizer<6>,
              tersum::widening_sum<4, 8>> const codes_of_six_bits;
