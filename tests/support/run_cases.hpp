// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the main functions of test programs have in common: filters that no test case passes are an error.

#pragma once

#include <doctest/doctest.h>

#include <iostream>

namespace {

unsigned passing_filters = 0;

struct count_cases : doctest::IReporter {
  explicit count_cases(doctest::ContextOptions const&) {}

  void test_run_end(doctest::TestRunStats const& all) override
  {
    passing_filters = all.numTestCasesPassingFilters;
  }

  void report_query(doctest::QueryData const&) override { passing_filters = 1; }
  void test_run_start() override {}
  void test_case_start(doctest::TestCaseData const&) override {}
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override {}
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const&) override {}
  void log_message(doctest::MessageData const&) override {}
  void test_case_skipped(doctest::TestCaseData const&) override {}
};

REGISTER_LISTENER("count_cases", 1, count_cases);

}  // namespace

namespace tersum::tests {

//! @brief Runs the test cases that the arguments ask for; returns the exit status of the program.
inline int run_cases(int count, char** arguments)
{
  doctest::Context context(count, arguments);
  int const failed = context.run();
  if (context.shouldExit()) { return failed; }
  if (passing_filters == 0) {
    std::cerr << "no test case passes the filters\n";
    return 1;
  }
  return failed;
}

}  // namespace tersum::tests
