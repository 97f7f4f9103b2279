// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The golden digests of one preset of each kind, for a compiler and flags of one's choice: other_compilers.sh builds it
//! with several. It compares with the lines of tests/golden/*.txt, given as arguments.

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/golden_exchange.hpp"

#include <tersum/presets.hpp>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

using namespace tersum;

namespace {

std::map<std::string, std::string> golden;
int compared = 0, differ = 0;

void compare(std::string const& name, tests::digested_codec<cpu_executor> const& codec)
{
  tests::golden_gradient const gradient;
  std::istringstream held{golden[name]};
  std::string bytes, sent, means, want;
  held >> bytes >> sent >> means >> want;
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    cpu_executor const exec{.instructions = static_cast<instruction_set>(set)};
    auto const worlds =
      tests::digest_worlds(gradient, [&](std::string const&, layout const& of, int ranks) {
        return tests::digest_exchanges(codec, of, ranks, exec, std::byte{0x3c}).exchanges;
      });
    std::string const got = worlds.digest();
    ++compared;
    if (want == got) { continue; }
    ++differ;
    std::printf("%s, instruction set %d: %s, want %s\n%s",
                name.c_str(),
                set,
                got.c_str(),
                want.c_str(),
                worlds.all.c_str());
  }
}

template <class Element, class Codec>
tests::digested<Codec, Element> digested_as(Codec const& codec)
{
  return tests::digested<Codec, Element>{codec};
}

}  // namespace

int main(int argc, char** argv)
{
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  for (int i = 1; i < argc; ++i) { golden.merge(tests::golden_lines(argv[i])); }
  compare("rotated_sat4_ef float", digested_as<float>(presets::rotated_sat4_ef));
  compare(
    "widths with feedback bfloat16",
    digested_as<bfloat16>(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}}));
  compare("topkc_b2_ef float", digested_as<float>(presets::topkc_b2_ef));
  compare("powersgd_r4 float", digested_as<float>(presets::powersgd_r4));
  std::printf("%d digests compared, %d differ\n", compared, differ);
  return differ == 0 && compared > 0 ? 0 : 1;
}
