// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Agreed magnitudes in a type that rounds them down.
// expected: tersum: the agreed scalars travel as float or bfloat16

#include <tersum/range/absmax_range.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/types.hpp>

tersum::absmax_range<tersum::no_headroom, tersum::half> const range;
