// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An older standard: nvcc's default.
// option: -std=c++17
// expected: tersum: compile as C++20: -std=c++20, which nvcc needs as well

#include <tersum/types.hpp>
