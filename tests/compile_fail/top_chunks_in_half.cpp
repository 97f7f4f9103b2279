// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Norms of chunks in a type that they overflow.
// expected: tersum: squared norms underflow and overflow in half: use float, bfloat16 or norm_log

#include <tersum/chunk/top_chunks.hpp>
#include <tersum/types.hpp>

tersum::top_chunks<64, tersum::half> const chunker;
