// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk that does not divide into registers of threads.
// expected: tersum: block_chunk<Size> needs a power of two from 128 to 32768

#include <tersum/block/block_chunk.hpp>

int const threads = tersum::block_chunk<1000>::threads;
