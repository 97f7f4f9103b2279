// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The macro is defined as g++ does for the option.
// expected: tersum: ranks must agree to the last bit: compile without -fno-signed-zeros
// option: -D__NO_SIGNED_ZEROS__=1

#include <tersum/config.hpp>
