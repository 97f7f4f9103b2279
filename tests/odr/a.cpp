// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The library in a second file of the C++ compiler.

#include "answers.hpp"

odr::answers odr::from_a() { return TERSUM_ODR_ANSWERS; }
