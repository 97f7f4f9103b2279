// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotation smaller than any chunk.
// expected: tersum: partial_hadamard<Size> needs a power of two from 128 to 32768

#include <tersum/rotate/partial_hadamard.hpp>

int const size = tersum::partial_hadamard<64>::rotation_size;
