// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The least that a consumer can do: include the library and call it.

#include <tersum/tersum.hpp>

int main() { return tersum::to_float(tersum::to_half(1.5f)) == 1.5f ? 0 : 1; }
