// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A coder: a scale for each chunk, and three bits for each coordinate.

#pragma once

#include "even_codebook.hpp"

#include <tersum/tersum.hpp>

struct even_codes {
  using quantizer_type = even_codebook;
  constexpr tersum::description describe() const { return {"even_codes"}; }
};
static_assert(tersum::coder<even_codes>);
