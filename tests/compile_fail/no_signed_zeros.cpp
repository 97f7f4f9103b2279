// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: tersum: ranks must agree to the last bit: compile without -fno-signed-zeros

#define __NO_SIGNED_ZEROS__ 1  // as g++ does for the option

#include <tersum/config.hpp>
