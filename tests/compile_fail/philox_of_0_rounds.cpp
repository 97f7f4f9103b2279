// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A generator that returns its counter.
// expected: tersum: philox4x32<Rounds> needs 1 <= Rounds <= 16

#include <tersum/random/philox.hpp>

tersum::philox_block const block = tersum::philox4x32<0>({{1, 2, 3, 4}}, 5);
