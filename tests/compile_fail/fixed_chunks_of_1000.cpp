// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk whose size is no power of two.
// expected: tersum: fixed_chunks<Size> needs a power of two from 128 to 32768

#include <tersum/chunk/fixed_chunks.hpp>

int const size = tersum::fixed_chunks<1000>::chunk_size;
