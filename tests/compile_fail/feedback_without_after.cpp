// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A feedback that does not say what is kept: the compiler names the requirement.
// expected: any_group{}, v, v, v)

#include <tersum/codec.hpp>

struct half_a_feedback {
  static constexpr bool enabled = true;
  template <class Arithmetic>
  float before(Arithmetic const&, float gradient, float) const
  {
    return gradient;
  }
};

using codec = tersum::cast_codec<tersum::half, tersum::fixed_chunks<1024>, half_a_feedback>;

int const size = codec::chunk_size;
