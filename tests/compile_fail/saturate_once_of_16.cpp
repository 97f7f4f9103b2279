// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Lanes for which there are no wider fields.
// expected: tersum: saturate_once<Bits> has lanes of 2, 4 or 8 bits

#include <tersum/reduce/saturate_once.hpp>

tersum::saturate_once<16> const sum;
