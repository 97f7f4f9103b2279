// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in README.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

// code 1

namespace tersum {

// In the place of the CUDA executor, which needs nvcc.
struct cuda_executor : cpu_executor {
  explicit cuda_executor(int) {}
};

}  // namespace tersum

template <class Element, class Op>
int my_all_reduce(Element*, std::size_t, Op, int)
{
  return 0;
}

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4)>;

void exchange(tersum::plan<codec> const& plan,
              std::span<float> gradient,
              std::span<std::byte> state,
              std::span<std::byte> workspace,
              int stream)
{
  tersum::status status;
  // code 2
}
