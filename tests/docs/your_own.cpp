// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/your_own.md, which runs: the quantizer keeps the laws, and its codec is measured beside another.
// link: -lbenchmark

#include "docs/page.hpp"

#include <cstdlib>
#include <package/your_own/quantizer.hpp>
#include <string>
#include <string_view>
#include <vector>

// code 1

// doctest with a main of this file, and what the targets tersum::conformance and tersum::bench compile.
#undef DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

int const small = ::setenv("TERSUM_SMALL", "1", 1);

#include <support/emulator/block.cpp>
#include <support/own_codecs.cpp>

// code 2

struct names : benchmark::BenchmarkReporter {
  std::string all;

  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const& runs) override
  {
    for (Run const& run : runs) {
      pages::check(!run.error_occurred && run.iterations > 0, "a benchmark");
      all += run.benchmark_name() + "\n";
    }
  }
};

int main(int count, char** arguments)
{
  pages::check(doctest::Context{count, arguments}.run() == 0, "the laws");
  names measured;
  benchmark::RunSpecifiedBenchmarks(&measured, "/(fp16|mine)/");
  for (std::string_view const name :
       {"encode/mine/float/", "encode/mine/half/", "decode/mine/float/", "exchange/fp16/float/"}) {
    pages::check(measured.all.find(name) != std::string::npos, name.data());
  }
  return pages::faults;
}
