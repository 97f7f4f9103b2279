// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A build without NDEBUG ends a program whose quantizer returns codes beyond its max_level. Each run is a process of its own.

#undef NDEBUG  // as this file checks what it switches on

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/device/quantize.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace tersum;

// Two codes, which the test chooses.
struct two_codes {
  using dither                       = no_dither;
  static constexpr int bits          = 4;
  static constexpr int max_level     = 7;
  static constexpr int fraction_bits = 0;
  static constexpr bool unbiased     = false;
  constexpr description describe() const { return {"two_codes", below, above}; }

  std::int32_t below = -max_level;
  std::int32_t above = max_level;

  [[nodiscard]] std::int32_t encode(float value, float, std::uint32_t) const noexcept
  {
    return value < 0.0f ? below : above;
  }
};

using chunks  = fixed_chunks<256>;
using reducer = saturating_sum<4>;
using mine =
  codec<chunks, no_rotation, summed_codes<absmax_range<no_headroom>, two_codes, reducer>, in_wire>;

std::vector<float> gradient()
{
  std::vector<float> values(300, 1.0f);  // a whole chunk, and one that is padded
  for (std::size_t i = 0; i < values.size(); i += 3) { values[i] = -1.0f; }
  return values;
}

status exchange_of(two_codes codes, cpu_executor const& exec)
{
  std::vector<float> values = gradient();
  auto const plan =
    mine{.coder = {.quantizer = codes}}.plan({.coordinates = values.size()}, {.size = 1});
  std::vector<word4> state(plan.state_bytes() / sizeof(word4) + 1);
  std::vector<word4> workspace(plan.workspace_bytes() / sizeof(word4) + 1);
  auto const state_bytes = std::as_writable_bytes(std::span{state});
  status const s         = initialize(exec, plan, state_bytes, 1);
  if (!s.ok()) { return s; }
  return all_reduce_mean(
    exec, plan, values, state_bytes, std::as_writable_bytes(std::span{workspace}), [](auto) {});
}

status array_of(two_codes codes, cpu_executor const& exec)
{
  std::vector<float> const values = gradient();
  std::vector<float> const scales(2, 7.0f);
  alignas(16) std::uint32_t words[packed_words(chunks{}, reducer{}, 300)];
  return quantize(exec, chunks{}, codes, reducer{}, values, scales, dither_key{}, words);
}

// How a process ended, and what it wrote to stderr.
struct ending {
  int status = 0;
  std::string said;
};

template <class Call>
ending in_a_process(Call const& call)
{
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // doctest's handler would report a failure
    ::rlimit const no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], STDERR_FILENO);
    ::_exit(call().ok() ? 0 : 1);
  }
  ::close(ends[1]);
  ending result;
  char some[256];
  for (::ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;) {
    result.said.append(some, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &result.status, 0) == child);
  return result;
}

template <class Call>
void check_range(Call const& call)
{
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    CAPTURE(set);
    cpu_executor const exec{.threads = 1, .instructions = static_cast<instruction_set>(set)};
    for (two_codes const codes : {two_codes{-7, 7}, two_codes{0, 1}}) {
      ending const lawful = in_a_process([&] { return call(codes, exec); });
      CHECK(WIFEXITED(lawful.status));
      CHECK(WEXITSTATUS(lawful.status) == 0);
      CHECK(lawful.said == "");
    }
    for (two_codes const codes : {two_codes{-7, 8}, two_codes{-8, 7}, two_codes{-7, 100}}) {
      CAPTURE(codes.below);
      CAPTURE(codes.above);
      ending const beyond = in_a_process([&] { return call(codes, exec); });
      CHECK(WIFSIGNALED(beyond.status));
      CHECK(WTERMSIG(beyond.status) == SIGABRT);
      CHECK(beyond.said.find("encode of a quantizer returned a code beyond its max_level") !=
            std::string::npos);
      CHECK(beyond.said.find("two_codes") != std::string::npos);
    }
  }
}

TEST_CASE("[conformance] a debug build ends an exchange with a code beyond max_level")
{
  check_range(exchange_of);
}

TEST_CASE("[conformance] a debug build ends the quantization of an array with such a code")
{
  check_range(array_of);
}

}  // namespace
