// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The golden digests of one preset of each kind, for a compiler and flags of one's choice: other_compilers.sh builds it
//! with several. It compares with the lines of tests/golden/presets_*.txt, given as arguments.

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/golden_digest.hpp"

#include <tersum/presets.hpp>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>

using namespace tersum;

namespace {

std::map<std::string, std::string> golden;
int compared = 0, differ = 0;

void compare(std::string const& name, tersum::tests::digested_codec const& codec)
{
  std::uint64_t const rows = 129, behind = 1516 + 80 * rows;
  tensor const tensors[] = {{.rows = 70, .columns = 20},
                            {.rows = 101, .offset = 1400},
                            {.rows = 3, .columns = 5, .offset = 1501},
                            {.rows = rows, .columns = 80, .offset = 1516},
                            {.rows = 1, .columns = 509, .offset = behind}};
  layout const bucket{.coordinates = behind + 509, .tensors = tensors, .bypass_below = 16};
  std::string const line = name + " 5 tensors";
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    cpu_executor const exec{.instructions = static_cast<instruction_set>(set)};
    std::string const got = tests::digest_exchanges(codec, bucket, 5, exec, std::byte{0x3c});
    ++compared;
    if (golden.count(line) != 0 && golden[line] == got) { continue; }
    ++differ;
    std::printf("%s, instruction set %d: %s, want %s\n",
                line.c_str(),
                set,
                got.c_str(),
                golden[line].c_str());
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
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    for (std::string line; std::getline(file, line);) {
      auto const colon              = line.rfind(": ");
      golden[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  compare("rotated_sat4_ef float", digested_as<float>(presets::rotated_sat4_ef));
  compare(
    "widths with feedback bfloat16",
    digested_as<bfloat16>(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}}));
  compare("topkc_b2_ef float", digested_as<float>(presets::topkc_b2_ef));
  compare("powersgd_r4 float", digested_as<float>(presets::powersgd_r4));
  std::printf("%d digests compared, %d differ\n", compared, differ);
  return differ == 0 && compared > 0 ? 0 : 1;
}
