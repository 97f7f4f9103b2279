// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A rotation on tensor cores smaller than any chunk.
// expected: tersum: tensor_core_hadamard<Size> needs a power of two from 128 to 32768

#include <tersum/rotate/tensor_core_hadamard.hpp>

int const size = tersum::tensor_core_hadamard<64>::rotation_size;
