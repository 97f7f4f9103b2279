// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in README.md, which runs: the program prints what the page says, and the exchange of the second block
//! has its mean.

#include "docs/page.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

// The main of the page becomes a function that this one calls.
#define main()                                                                                     \
  programs = 1;                                                                                    \
  void complete_program()
// code 1

#undef main

namespace tersum {

// In the place of the CUDA executor, which needs nvcc.
struct cuda_executor : cpu_executor {
  explicit cuda_executor(int) {}
};

}  // namespace tersum

// The all-reduce of one rank.
template <class Element, class Op>
int my_all_reduce(Element*, std::size_t, Op, int)
{
  return 0;
}

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4)>;

tersum::status exchange(tersum::plan<codec> const& plan,
                        std::span<float> gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace,
                        int stream)
{
  tersum::status status;
  // code 2
  return status;
}

// What a program prints.
template <class Program>
std::vector<char> printed_by(Program const& program)
{
  std::FILE* const file = std::tmpfile();
  int const console     = dup(STDOUT_FILENO);
  std::fflush(stdout);
  dup2(fileno(file), STDOUT_FILENO);
  program();
  std::fflush(stdout);
  dup2(console, STDOUT_FILENO);
  std::rewind(file);
  std::vector<char> text(4096);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

int main()
{
  auto const text = printed_by([] { complete_program(); });
  std::string_view const printed{text.data(), text.size()};
  std::size_t lines = 0;
  for (std::size_t at = 0;
       (at = printed.find("4.05 bits per coordinate, error 0.0096 \n", at)) != printed.npos;
       ++at) {
    ++lines;
  }
  pages::check(lines == ranks, "each rank prints what the page says");

  pages::one_rank mine{tersum::presets::rotated_sat4.plan({.coordinates = 5000}, {})};
  std::vector<float> const before = pages::waves(5000, .37f);
  std::vector<float> gradient     = before;
  pages::check(exchange(mine.plan, gradient, mine.state, mine.workspace, 0).ok(), "exchange");
  pages::check(pages::error_of(gradient, before) < .05, "the mean of one rank");
  return pages::faults;
}
