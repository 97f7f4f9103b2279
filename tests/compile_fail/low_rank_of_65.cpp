// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Factors have at most 64 columns.

#include <tersum/lowrank/low_rank.hpp>

// expected: tersum: low_rank<Rank> needs 1 <= Rank <= 64
tersum::low_rank<65> const wide{};
