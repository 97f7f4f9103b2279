// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What examples/compare_codecs shows to its user: command line, table, JSON.

#include "../../examples/compare_codecs/options.cpp"
#include "../../examples/compare_codecs/report.cpp"
#include "../../examples/compare_codecs/text.cpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace cc = compare_codecs;

bool contains(std::string_view text, std::string_view part)
{
  return text.find(part) != std::string_view::npos;
}

auto parse(std::initializer_list<char const*> arguments)
{
  return cc::parse_options(std::vector<char const*>{arguments});
}

constexpr cc::codec_entry codecs[] = {
  {"fp16", ""}, {"thc_sat2", ""}, {"thc_sat4", ""}, {"thc_sat8", ""}, {"rotated_sat4", ""}};

cc::result make_result(std::string set, std::string codec, double bits, double nmse)
{
  return {.set         = std::move(set),
          .codec       = std::move(codec),
          .ranks       = 4,
          .coordinates = 1000,
          .measured    = {.bits_per_coordinate    = bits,
                          .nmse                   = nmse,
                          .nmse_first_step        = 0.25,
                          .nmse_of_mean           = 0.125,
                          .update_error           = 0.5,
                          .update_error_of_mean   = std::numeric_limits<double>::quiet_NaN(),
                          .zeros_fraction         = 0.3125,
                          .zeros_fraction_of_mean = 0.0625,
                          .zeros_by_tensor    = {{"a\"b", 1, 0.25}, {"c", 0.75, 0.5}, {"d", 0, 0.5}},
                          .saturated_fraction = std::numeric_limits<double>::quiet_NaN(),
                          .ranks_identical    = true,
                          .encode_ns          = 300,
                          .reduce_ns          = std::numeric_limits<double>::infinity(),
                          .decode_ns          = 100,
                          .memcpy_ns          = 200}};
}

}  // namespace

TEST_CASE("[compare_codecs] options have defaults and two spellings")
{
  auto const plain = parse({"--gradients", "d"});
  REQUIRE(plain.error == "");
  CHECK(plain.value.gradients == "d");
  CHECK(plain.value.codecs.empty());
  CHECK_FALSE(plain.value.ranks.has_value());
  CHECK(plain.value.steps == 10);
  CHECK(plain.value.threads == 1);
  CHECK(plain.value.repeat == 3);
  CHECK_FALSE(plain.value.cuda);
  CHECK_FALSE(plain.value.json.has_value());

  auto const full = parse({"--gradients=a=b",
                           "--codecs",
                           "x,y",
                           "--ranks=2",
                           "--steps",
                           "1",
                           "--threads=3",
                           "--device",
                           "cuda",
                           "--repeat",
                           "9",
                           "--json=--j",
                           "--steps=7"});
  REQUIRE(full.error == "");
  CHECK(full.value.gradients == "a=b");
  CHECK(full.value.codecs == std::vector<std::string>{"x", "y"});
  CHECK(full.value.ranks == 2);
  CHECK(full.value.steps == 7);
  CHECK(full.value.threads == 3);
  CHECK(full.value.cuda);
  CHECK(full.value.repeat == 9);
  CHECK(full.value.json == "--j");

  CHECK(parse({"--gradients", "d", "--codecs", "x,all"}).value.codecs ==
        std::vector<std::string>{"x", "all"});
  CHECK(parse({"--list"}).value.list);
  CHECK(parse({"--help", "--nonsense"}).value.help);
}

TEST_CASE("[compare_codecs] a mistake on the command line is named")
{
  for (auto const* const number : {"0",
                                   "-1",
                                   "+1",
                                   " 1",
                                   "1 ",
                                   "1.0",
                                   "1e1",
                                   "0x1",
                                   "",
                                   "x",
                                   "1k",
                                   "1000001",
                                   "4294967297",
                                   "18446744073709551617"}) {
    CAPTURE(number);
    for (auto const* const name : {"--ranks", "--steps", "--threads", "--repeat"}) {
      CHECK(parse({"--gradients", "d", name, number}).error.starts_with(name));
    }
  }
  CHECK(parse({}).error == "--gradients DIR is missing");
  CHECK(parse({"--gradients"}).error == "--gradients needs a value");
  CHECK(parse({"--gradients="}).error == "--gradients needs a value");
  CHECK(parse({"--gradients", "d", "--json", "--steps", "2"}).error == "--json needs a value");
  CHECK(contains(parse({"--gradients", "d", "--device", "gpu"}).error, "'gpu'"));
  CHECK(contains(parse({"--gradients", "d", "--codecs", "a,,b"}).error, "empty name"));
  CHECK(contains(parse({"--gradients", "d", "--codecs", "a,"}).error, "empty name"));
  CHECK(parse({"--list=all"}).error == "--list takes no value");
  CHECK(parse({"--grad", "d"}).error == "there is no option '--grad'");
  CHECK(parse({"-h"}).error == "there is no option '-h'");
  CHECK(parse({"d"}).error == "unexpected argument 'd'");
}

TEST_CASE("[compare_codecs] an unknown codec is answered with similar names")
{
  auto const choose = [](std::vector<std::string> const& wanted) {
    return cc::choose_codecs(wanted, codecs);
  };
  CHECK(choose({}).value.size() == std::size(codecs));
  CHECK(choose({"fp16", "all"}).value.size() == std::size(codecs));
  CHECK(choose({"all", "nonsense"}).error == "there is no codec 'nonsense'; --list names them all");
  CHECK(choose({"thc_sat4", "fp16", "thc_sat4"}).value ==
        std::vector<std::string_view>{"thc_sat4", "fp16"});
  CHECK(choose({"fp16", "thc_sat44"}).error ==
        "there is no codec 'thc_sat44'; similar: thc_sat4, thc_sat2, thc_sat8; --list names them "
        "all");
  CHECK(choose({"brotli"}).error == "there is no codec 'brotli'; --list names them all");
}

TEST_CASE("[compare_codecs] text becomes a valid JSON string")
{
  CHECK(cc::json_string("") == R"("")");
  CHECK(cc::json_string("a\"\\/\n\x01\x7f") == R"("a\"\\/\u000a\u0001\u007f")");
  CHECK(cc::json_string("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  // Not UTF-8: a lone continuation, overlong forms, a surrogate, beyond the last code point, cuts.
  for (std::string_view const bad : {"\x80", "\xc0", "\xc1", "\xff", "\xc3"}) {
    CHECK(cc::to_utf8(bad) == "\xef\xbf\xbd");
  }
  for (std::string_view const bad :
       {"\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    std::string replaced;
    for (std::size_t i = 0; i < bad.size(); ++i) { replaced += "\xef\xbf\xbd"; }
    CHECK(cc::to_utf8(bad) == replaced);
  }
}

TEST_CASE("[compare_codecs] JSON has the keys and null for what is not finite")
{
  std::ostringstream out;
  std::vector<cc::result> const results{make_result("s\"1", "fp16", 16, 1.0 / 3)};
  cc::write_json(out, "0.1.0", "cpu", results);
  CHECK(out.str() ==
        R"({"version":"0.1.0","device":"cpu","results":[
{"set":"s\"1","codec":"fp16","ranks":4,"coordinates":1000,"bits_per_coordinate":16,"bits_pulled":null,)"
        R"("nmse":0.333333333,"nmse_first_step":0.25,"nmse_of_mean":0.125,)"
        R"("update_error":0.5,"update_error_of_mean":null,)"
        R"("zeros_fraction":0.3125,"zeros_fraction_of_mean":0.0625,)"
        R"("zeros_by_tensor":[{"tensor":"a\"b","zeros_fraction":1,"zeros_fraction_of_mean":0.25},)"
        R"({"tensor":"c","zeros_fraction":0.75,"zeros_fraction_of_mean":0.5},)"
        R"({"tensor":"d","zeros_fraction":0,"zeros_fraction_of_mean":0.5}],)"
        R"("saturated_fraction":null,"ranks_identical":true,"encode_ns":300,)"
        R"("reduce_ns":null,"decode_ns":100,"memcpy_ns":200}
]}
)");
}

TEST_CASE("[compare_codecs] JSON has an empty array of tensors where none are known")
{
  CHECK(cc::json_tensors({}) == "[]");
}

TEST_CASE("[compare_codecs] the second table has updates, zeros and the tensor with most of them")
{
  std::ostringstream out;
  std::vector<cc::result> results{make_result("a", "fp16", 16, 0),
                                  make_result("a", "rotated_sat4", 4.03, 0.0481),
                                  make_result("a", "allocated_2", 2, 0.01)};
  results[0].measured.update_error    = 0;
  results[0].measured.zeros_by_tensor = {};
  results[1].measured.zeros_by_tensor = {{"a", 0, 0}, {"b", 1, 0}};
  results[2].measured.zeros_by_tensor = {
    {"a", 1, 0.5},
    {"0123456789.transformer.layers.1.attention\x1b.weight", 0.5, 0.875},
    {"c", 1, 0.75}};
  cc::print_table(out, results, {.ranks = 4, .steps = 10, .threads = 2});
  auto const text = out.str();
  CHECK(
    text.substr(text.find("\n\n") + 2) ==
    "a: error of Adam's update, and coordinates that became zeros, of step 10 and of the mean of "
    "all steps\n"
    "codec           bits    update  of mean  zeros %  of mean  worst %  worst tensor\n"
    "fp16          16.000         0        -    31.25     6.25        -  -\n"
    "rotated_sat4   4.030  0.500000        -    31.25     6.25        -  -\n"
    "allocated_2    2.000  0.500000        -    31.25     6.25    87.50  "
    "...ransformer.layers.1.attention?.weight\n");
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) { CHECK(line.size() <= 120); }
}

TEST_CASE("[compare_codecs] the lines of a table are equally long and in the order of the results")
{
  std::ostringstream out;
  std::vector<cc::result> results{make_result("a", "fp16", 16, 0),
                                  make_result("a", "rotated_sat4", 4.03, 0.0481)};
  results[1].measured.ranks_identical = false;
  cc::print_table(out, results, {.ranks = 4, .steps = 10, .threads = 2});
  std::istringstream lines{out.str()};
  std::string heading, names, first, second;
  std::getline(lines, heading);
  std::getline(lines, names);
  std::getline(lines, first);
  std::getline(lines, second);
  CHECK(heading.starts_with("a: 4 ranks, 1000 coordinates, nmse of step 10"));
  CHECK(contains(heading, "2 threads"));
  CHECK(first.size() == names.size());
  CHECK(second.size() == names.size());
  CHECK(first.starts_with("fp16 "));
  CHECK(contains(first, " 1.50 "));  // encode: 300 ns against 200 ns
  CHECK(contains(first, " yes "));
  CHECK(contains(second, " no "));
  CHECK(contains(second, " 0.048100 "));
}
