// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sizes of low-rank exchanges: the published bits per coordinate of BERT-large and VGG19, and the memory of the caller.

#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

using namespace tersum;

namespace {

// A file of examples/shapes: name,rows,columns,offset.
std::vector<tensor> read_shapes(char const* path)
{
  std::ifstream in{path};
  std::string line;
  REQUIRE(std::getline(in, line));
  REQUIRE(line == "name,rows,columns,offset");
  std::vector<tensor> out;
  while (std::getline(in, line)) {
    std::uint64_t numbers[3] = {};
    for (int field = 2; field >= 0; --field) {
      auto const comma = line.rfind(',');
      REQUIRE(comma != std::string::npos);
      numbers[field] = std::stoull(line.substr(comma + 1));
      line.resize(comma);
    }
    out.push_back({.rows = numbers[0], .columns = numbers[1], .offset = numbers[2]});
  }
  return out;
}

struct row {
  std::uint64_t
    elements;        // computed from the shapes by the rule of the method, outside of this library
  double published;  // Han et al. (HotNets'24), table 7
};

template <class Codec>
void check_row(Codec const& codec, std::vector<tensor> const& tensors, row const& want)
{
  std::uint64_t const d = tensors.back().offset + tensors.back().size();
  auto const plan       = codec.plan(layout{d, tensors}, {});
  REQUIRE(plan.check().ok());
  CAPTURE(Codec::rank);
  CHECK(plan.agreed_scalars() + plan.payload_bytes() / 4 + plan.bypassed() == want.elements);
  CHECK(plan.wire_bytes() == 4 * want.elements);
  CHECK(plan.bits_per_coordinate() ==
        doctest::Approx(32.0 * static_cast<double>(want.elements) / static_cast<double>(d)));
  CHECK(std::fabs(plan.bits_per_coordinate() / want.published - 1) < 0.006);
}

}  // namespace

TEST_CASE(
  "[lowrank] the bits per coordinate are those that were published for BERT-large and VGG19")
{
  auto const bert = read_shapes("examples/shapes/bert_large.csv");
  REQUIRE(bert.back().offset + bert.back().size() == 335174458);
  check_row(presets::powersgd_r1, bert, {834676, 0.0797});
  check_row(presets::powersgd_r4, bert, {2267170, 0.217});
  check_row(presets::powersgd_r16, bert, {7997146, 0.764});
  check_row(presets::powersgd_r64, bert, {30917050, 2.95});

  auto const vgg = read_shapes("examples/shapes/vgg19.csv");
  REQUIRE(vgg.back().offset + vgg.back().size() == 140389640);
  check_row(presets::powersgd_r1, vgg, {106027, 0.0242});
  check_row(presets::powersgd_r4, vgg, {382420, 0.0872});
  check_row(presets::powersgd_r16, vgg, {1488264, 0.339});
  check_row(presets::powersgd_r64, vgg, {5996296, 1.36});
}

TEST_CASE("[lowrank] alternating exchanges are of one length, near half of a paired one")
{
  auto const bert       = read_shapes("examples/shapes/bert_large.csv");
  std::uint64_t const d = bert.back().offset + bert.back().size();
  auto const paired     = presets::powersgd_r4.plan(layout{d, bert}, {});
  auto const one        = presets::acp_r4.plan(layout{d, bert}, {});
  CHECK(one.agreed_bytes() == 0);
  CHECK(one.bypassed() == paired.bypassed());
  std::uint64_t const both = paired.agreed_bytes() + paired.payload_bytes();
  CHECK(one.payload_bytes() >= both / 2);
  // Giving the longer factor to the shorter turn leaves the turns apart by one matrix at most.
  CHECK(one.payload_bytes() <= both / 2 + 4 * 4 * 30522);
}

TEST_CASE("[lowrank] a matrix bypasses where its factors would not save enough")
{
  std::vector<tensor> const tensors{{"shrinks", 20, 20, 0},
                                    {"vector", 400, 1, 400},
                                    {"thin", 2, 1024, 800},
                                    {"none", 0, 50, 2848},
                                    {"tall", 500, 12, 2848}};
  layout const shape{8848, tensors};
  auto const plan = presets::powersgd_r4.plan(shape, {});  // 2 * 4 * 40 < 400, 2 * 4 * 512 < 6000
  REQUIRE(plan.check().ok());
  CHECK(plan.chunks() == 2);
  CHECK(plan.tensors() == 4);
  CHECK(plan.compressed() == 6400);
  CHECK(plan.bypassed() == 2448);
  CHECK(plan.agreed_scalars() == 4 * (20 + 500));
  CHECK(plan.payload_bytes() == 4 * 4 * (20 + 12));
  auto const wider = low_rank_codec<low_rank<5>>{}.plan(shape, {});  // 2 * 5 * 40 is not below 400
  CHECK(wider.chunks() == 1);
  CHECK(low_rank_codec<low_rank<5>>{.low_rank = {.least_saving = 0}}.plan(shape, {}).chunks() == 3);
  layout excluded       = shape;
  excluded.bypass_below = 401;
  CHECK(presets::powersgd_r4.plan(excluded, {}).chunks() == 1);
}

TEST_CASE_TEMPLATE(
  "[lowrank] memory is what the documentation says",
  Codec,
  low_rank_codec<low_rank<4>>,
  low_rank_codec<low_rank<4>, cast<half>>,
  low_rank_codec<low_rank<4>, cast<float>, low_rank_schedule::alternating>,
  low_rank_codec<low_rank<4>, cast<bfloat16>, low_rank_schedule::alternating, no_feedback>)
{
  std::vector<tensor> const tensors{{"a", 100, 61, 0}, {"b", 33, 1, 6100}, {"c", 65, 201, 6133}};
  auto const plan = Codec{}.plan(layout{19198, tensors}, {});
  REQUIRE(plan.check().ok());
  std::uint64_t const p = 4 * (100 + 65), q = 4 * (61 + 201);
  std::uint64_t const alternating =
    4 * (100 + 201);  // the longer of each matrix lies in the same turn, or
  std::uint64_t const balanced = 4 * (100 + 65);  // they balance: rows of a with rows of c
  bool const paired            = Codec::schedule == low_rank_schedule::paired;
  constexpr std::size_t width  = sizeof(typename Codec::quantizer_type::element);
  std::uint64_t const longest  = plan.factor_elements(1);
  CHECK(longest == (paired ? q : std::min(alternating, std::max(balanced, p + q - balanced))));
  CHECK(plan.payload_bytes() == longest * width);
  CHECK(plan.agreed_bytes() == (paired ? p * width : 0));
  CHECK(plan.bypass_bytes() == 33 * 4);

  // Rounds and flags, each padded to 16 bytes, and float32 factors that are not already there.
  std::size_t const wires  = plan.agreed_bytes() + plan.payload_bytes();
  std::size_t const floats = 4 * ((paired ? p : longest) + longest);
  std::size_t const held   = wires + (width == 2 ? floats : paired ? 0 : 4 * longest);
  CHECK(plan.factor_ends().first_partial[0] + plan.factor_ends().first_partial[1] == 0);
  CHECK(plan.workspace_bytes() >= held + 33 * 4 + 2 * 4);
  CHECK(plan.workspace_bytes() <= held + 33 * 4 + 2 * 4 + 5 * 15);
  std::size_t const state =
    64 + 3 * 64 + 2 * 112 + 4 * longest + (feeds_back<Codec> ? 4 * 19198 : 0);
  CHECK(plan.state_bytes() >= state);
  CHECK(plan.state_bytes() <= state + 15);
  for (std::size_t const offset : {plan.offset("agreed"),
                                   plan.offset("payload"),
                                   plan.offset("even_factor"),
                                   plan.offset("odd_factor"),
                                   plan.offset("bypass"),
                                   plan.offset("warm"),
                                   plan.offset("residual")}) {
    CHECK(offset % 16 == 0);
  }
}

TEST_CASE("[lowrank] slices of products are those of the documentation")
{
  struct row {
    std::uint64_t length, terms, slices, each;
  };
  for (row const& want : {row{511, 511, 1, 512},
                          row{512, 512, 16, 32},
                          row{513, 513, 17, 32},
                          row{1024, 1024, 16, 64},
                          row{2560, 2560, 5, 512},
                          row{1024, 32768, 16, 2048},
                          row{32768, 1024, 1, 1024},
                          row{64, 100000, 196, 512},
                          row{100000, 64, 1, 512},
                          row{1, 1 << 20, 256, 4096}}) {
    CAPTURE(want.length);
    CAPTURE(want.terms);
    auto const got = detail::product_slices::of(want.length, want.terms);
    CHECK(got.count() == want.slices);
    CHECK(got.each() == want.each);
  }
}

// Of one matrix, of many that are alike, and of whatever comes: small and large, tall and wide.
TEST_CASE("[lowrank] a product has a block for each multiprocessor, and bounded sums of slices")
{
  std::mt19937_64 random(5);
  auto const below = [&random](std::uint64_t n) { return 1 + random() % n; };
  low_rank_codec<low_rank<4>> const codec{.low_rank = {.least_saving = 0}};
  for (int round = 0; round < 400; ++round) {
    std::vector<tensor> tensors;
    std::uint64_t end = 0;
    auto const add    = [&](std::uint64_t rows, std::uint64_t columns) {
      tensors.push_back({.rows = rows, .columns = columns, .offset = end});
      end += rows * columns;
    };
    std::uint64_t const count     = round % 3 == 0 ? 0 : below(60);
    std::uint64_t const long_side = std::uint64_t{1} << below(20), short_side = below(3000);
    for (std::uint64_t i = 0; i < count; ++i) {
      bool const tall = below(2) == 1, alike = round % 3 == 1;
      std::uint64_t const a = alike ? long_side : below(long_side);
      std::uint64_t const b = alike ? short_side : below(short_side);
      add(tall ? a : b, tall ? b : a);
    }
    add(512 + below(round % 2 == 0 ? 100 : 30000), 512 + below(round % 4 < 2 ? 100 : 30000));
    auto const plan = codec.plan(layout{end, tensors}, {});
    CAPTURE(round);
    auto const& ends = plan.factor_ends();
    for (int turn = 0; turn < 2; ++turn) {
      // 9 blocks of 64 by 17 slices of 32 terms; GPUs of today have up to 192 multiprocessors, of this kind up to 148.
      CHECK(ends.first_product[turn] >= 153);
      CHECK(ends.first_product[turn] <=
            ends.first_block[turn] + detail::slice_placement::most_blocks);
      CHECK(ends.first_partial[turn] <= detail::slice_placement::most_blocks * 64 * 4);
    }
    // The sums are all that comes to the factors.
    std::uint64_t const factors = plan.agreed_bytes() + plan.payload_bytes();
    std::uint64_t const sums =
      4 * std::uint64_t{std::max(ends.first_partial[0], ends.first_partial[1])};
    CHECK(plan.workspace_bytes() <=
          factors + sums + 4 * plan.bypassed() + 4 * plan.chunks() + 5 * 15);
  }
}

TEST_CASE("[lowrank] a plan names what is wrong with the layout or the world")
{
  auto const message = [](layout const& shape, world const& ranks) {
    return presets::powersgd_r4.plan(shape, ranks).check().message;
  };
  std::vector<tensor> const gap{{"a", 30, 40, 0}, {"b", 30, 40, 1201}};
  CHECK(message(layout{2401, gap}, {}).find("layout.tensors") == 0);
  CHECK(message(layout{1200, std::span{gap}.first(1)}, {.size = 0}).find("world.size") == 0);
  CHECK(message(layout{1200, std::span{gap}.first(1)}, {.size = 2, .rank = 2}).find("world.rank") ==
        0);
  CHECK(message(layout{1200, std::span{gap}.first(1)}, {}).empty());
  CHECK(presets::acp_r4.plan(layout{}, {}).check().ok());
  CHECK(presets::acp_r4.plan(layout{}, {}).wire_bytes() == 0);
  CHECK(message(layout{100}, {}).find("layout.tensors is empty") == 0);
}

TEST_CASE("[lowrank] however much a factor must save, the comparison does not wrap")
{
  // 2^16 factors of 2 (2^47 + 2) elements are 2^64 + 2^18, which is more than the matrix has.
  tensor const matrix{"a", std::uint64_t{1} << 47, 2, 0};
  low_rank<4> most{.least_saving = 1u << 16};
  CHECK(most.rank_of(matrix) == 0);
  // A matrix of as many elements as both factors bypasses.
  tensor const square{"b", 16, 16, 0};
  most.least_saving = 2;
  CHECK(most.rank_of(square) == 0);
  most.least_saving = 1;
  CHECK(most.rank_of(square) == 4);
}

// Sizes are pure arithmetic.
static_assert(presets::powersgd_r4.plan(layout{100}, {}).workspace_bytes() == 400);
