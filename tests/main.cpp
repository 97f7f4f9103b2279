// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The main function of every test program without CUDA.

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/run_cases.hpp"

int main(int count, char** arguments) { return tersum::tests::run_cases(count, arguments); }
