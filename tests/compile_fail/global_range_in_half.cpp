// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Squared norms in a type that they overflow.
// expected: tersum: squared norms underflow and overflow in half: use float or bfloat16

#include <tersum/range/global_range.hpp>
#include <tersum/range/headroom.hpp>
#include <tersum/types.hpp>

tersum::global_range<tersum::no_headroom, tersum::half> const range;
