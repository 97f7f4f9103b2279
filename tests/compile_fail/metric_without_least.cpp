// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A metric that does not say what small scales are raised to: the compiler names the requirement.
// expected: any_group{}, v)

#include <tersum/codec.hpp>

struct half_a_metric {
  static constexpr bool scaled = true;
};

using codec =
  tersum::cast_codec<tersum::half, tersum::fixed_chunks<1024>, tersum::no_feedback, half_a_metric>;

int const size = codec::chunk_size;
