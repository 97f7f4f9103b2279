// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/your_own.md. tests/package/your_own has the same in programs that run.

#include <package/your_own/quantizer.hpp>

// code 1

// code 2
