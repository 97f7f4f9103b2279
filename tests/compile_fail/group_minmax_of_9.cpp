// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Affine codes of more than a byte, and groups that no threads have.
// expected: tersum: group_minmax<Bits, Block> needs 1 <= Bits <= 8
// expected: tersum: group_minmax<Bits, Block> has blocks of 16, 32, 64 or 128
// expected: tersum: group_two_means<Block> has blocks of 16, 32, 64 or 128

#include <tersum/baseline/group_affine.hpp>

int const bits  = tersum::group_minmax<9, 24>::bits;
int const block = tersum::group_two_means<256>::block;
