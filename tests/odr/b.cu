// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The library in a file of the CUDA compiler.

#include "answers.hpp"

#include <tersum/tersum.cuh>

odr::answers odr::from_b() { return TERSUM_ODR_ANSWERS; }
