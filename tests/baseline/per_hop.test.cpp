// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a per-hop codec puts on the wire, what a hop makes of it, and what comes out, against formulas in double.

#include "support/bad_input.hpp"
#include "support/chunk_rotation.hpp"
#include "support/coded_chunk.hpp"
#include "support/loopback_run.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"
#include "support/same_bytes.hpp"
#include "support/staged_run.hpp"

#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace tersum;

namespace {

constexpr std::uint64_t seed = 31;
constexpr double epsilon     = 0x1p-24;

template <int Bits, int Size = 256, class Feedback = no_feedback>
using hop = per_hop_codec<fixed_chunks<Size>, partial_hadamard<Size>, lloyd_max<Bits>, Feedback>;

using tests::coded_chunk;
using tests::estimate;
using tests::gradients;

template <class Op>
coded_chunk read_chunk(typename Op::element const& block, int chunk)
{
  return tests::read_chunk<Op>(block.word, std::size(block.word), static_cast<std::size_t>(chunk));
}

// Whether a chunk is the encoding of values that the library knows up to `error`. Its sums of positive terms have 32
// roundings in a row and five in a tree, and what is made of them three more: 40.
template <class Op>
void check_encoding(tests::mismatches& wrong,
                    coded_chunk const& chunk,
                    std::vector<double> const& v,
                    std::vector<double> const& error)
{
  using quantizer     = typename Op::quantizer_type;
  constexpr auto half = static_cast<std::uint32_t>(quantizer::magnitudes);
  double energy = 0, product = 0, energy_error = 0, product_error = 0;
  for (std::size_t p = 0; p < v.size(); ++p) {
    double const level = static_cast<double>(quantizer::levels()[chunk.codes[p] & (half - 1)]);
    energy += v[p] * v[p];
    product += std::abs(v[p]) * level;
    energy_error += 2 * std::abs(v[p]) * error[p];
    product_error += level * error[p];
  }
  double const off  = energy_error / energy + 40 * epsilon;
  double const root = std::sqrt(energy / Op::chunk_size);
  for (std::size_t p = 0; p < v.size(); ++p) {
    double const value       = std::abs(v[p]) / root;
    double const room        = error[p] / root + value * off;
    std::uint32_t const cell = chunk.codes[p] & (half - 1);
    double const begin  = cell == 0 ? 0 : static_cast<double>(quantizer::boundaries()[cell - 1]);
    double const end    = static_cast<double>(quantizer::boundaries()[cell]);
    bool const negative = chunk.codes[p] >= half;
    wrong.expect(value >= begin - room && value <= end + room, true, value, begin, end, p);
    wrong.expect(negative == (v[p] < 0) || value <= room, true, value, p);
  }
  double const allowed = off + product_error / product + 40 * epsilon;
  wrong.expect(std::abs(chunk.scale * product / energy - 1) <= allowed, true, chunk.scale);
}

// Blocks of random codes, with scales that differ by up to a hundred times.
template <class Op>
std::vector<typename Op::element> draw_blocks(unsigned which, std::size_t count)
{
  std::mt19937 random(which);
  std::vector<typename Op::element> out(count);
  for (auto& block : out) {
    for (std::uint32_t& word : block.word) { word = static_cast<std::uint32_t>(random()); }
    for (int chunk = 0; chunk < block.chunks; ++chunk) {
      block.word[block.scale_of(chunk)] =
        std::bit_cast<std::uint32_t>(std::exp2(static_cast<float>(random()) * 0x1p-30f));
    }
  }
  return out;
}

template <class Op>
void check_hop()
{
  auto const a = draw_blocks<Op>(1, 3), b = draw_blocks<Op>(2, 3);
  tests::mismatches wrong;
  std::vector<typename Op::element> sums;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sums.push_back(Op{}(a[i], b[i]));
    for (int chunk = 0; chunk < a[i].chunks; ++chunk) {
      auto v           = estimate<Op>(read_chunk<Op>(a[i], chunk));
      auto const other = estimate<Op>(read_chunk<Op>(b[i], chunk));
      std::vector<double> error;
      for (std::size_t p = 0; p < v.size(); ++p) {
        error.push_back(2 * epsilon * (std::abs(v[p]) + std::abs(other[p])));
        v[p] += other[p];
      }
      check_encoding<Op>(wrong, read_chunk<Op>(sums[i], chunk), v, error);
    }
  }
  CHECK(wrong.report() == "");

  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    CAPTURE(static_cast<int>(set));
    cpu_executor const exec{.threads = 2, .instructions = set};
    if (!exec.check().ok()) { continue; }
    auto to = a;  // in the place of either operand
    REQUIRE(exec.reduce(Op{}, to.data(), to.data(), b.data(), to.size()) == status{});
    CHECK(tests::same_bytes(to, sums));
    to = a;
    REQUIRE(exec.reduce(Op{}, to.data(), b.data(), to.data(), to.size()) == status{});
    CHECK(tests::same_bytes(to, sums));
  }
}

}  // namespace

TEST_CASE(
  "[per_hop] a hop decodes, adds and encodes as the formulas say, to the same bits everywhere")
{
  check_hop<requantizing_sum<lloyd_max<1>, 256>>();
  check_hop<requantizing_sum<lloyd_max<3>, 256>>();
  check_hop<requantizing_sum<lloyd_max<4>, 1024>>();
  check_hop<requantizing_sum<lloyd_max<8>, 256>>();
}

TEST_CASE("[per_hop] a hop passes on what is zero, and what is not finite")
{
  using op  = requantizing_sum<lloyd_max<4>, 1024>;
  auto some = draw_blocks<op>(1, 1);
  // Codes of normal values in chunk 0: eight a word.
  auto const normal = tests::normal_gradients(1, 1024, 17)[0];
  for (std::size_t p = 0; p < 1024; ++p) {
    std::uint32_t& word = some[0].word[p / 8];
    word = (p % 8 == 0 ? 0u : word) | lloyd_max<4>{}.encode(normal[p]) << (p % 8 * 4);
  }
  op::element other{};
  other.word[other.scale_of(1)] = 0x7fffffffu;
  other.word[other.scale_of(2)] =
    std::bit_cast<std::uint32_t>(-std::numeric_limits<float>::infinity());
  auto const check = [&](op::element const& sum) {
    // Chunk 0 is zero on one side: its levels are encoded as themselves, with their scale but for roundings.
    auto const got = read_chunk<op>(sum, 0), want = read_chunk<op>(some[0], 0);
    CHECK(got.codes == want.codes);
    CHECK(std::abs(got.scale / want.scale - 1) <= 100 * epsilon);
    for (int const chunk : {1, 2}) {
      CHECK(std::isnan(read_chunk<op>(sum, chunk).scale));
      CHECK(read_chunk<op>(sum, chunk).codes == std::vector<std::uint32_t>(1024));
    }
  };
  check(op{}(some[0], other));
  check(op{}(other, some[0]));
  auto sum = some;
  REQUIRE(cpu_executor{}.reduce(op{}, sum.data(), sum.data(), &other, 1) == status{});
  check(sum[0]);
  op::element const nothing{};
  CHECK(tests::same_bytes(std::vector{op{}(nothing, nothing)}, std::vector{nothing}));
}

namespace {

// The payload of all ranks, what a ring makes of it, and the means.
template <class Codec>
void check_exchange(Codec const& codec, std::size_t chunks, int world)
{
  CAPTURE(world);
  using op                   = typename Codec::payload_op;
  using blocks               = std::vector<typename op::element>;
  constexpr std::size_t size = Codec::chunk_size;
  std::size_t const d        = chunks * size;
  auto const in              = tests::normal_gradients(world, d, 17);
  auto const ranks           = static_cast<std::size_t>(world);
  tests::staged_run<Codec> run{codec, layout{d}, world, seed};
  run.measure(in);
  run.encode();
  std::uint64_t const key = run.header(0).sign_key;
  auto const payload      = [&](int rank) {
    auto const wire = payload_wire(run.plan(), run.workspace(rank));
    return blocks(wire.data, wire.data + wire.count);
  };
  tests::mismatches wrong;
  std::vector<blocks> sent;
  for (int rank = 0; rank < world; ++rank) {
    sent.push_back(payload(rank));
    for (std::size_t chunk = 0; chunk < sent[0].size() * 4; ++chunk) {
      auto const got = read_chunk<op>(sent.back()[chunk / 4], static_cast<int>(chunk % 4));
      if (chunk >= chunks) {
        wrong.expect(got.scale == 0 && got.codes == std::vector<std::uint32_t>(size), true, chunk);
        continue;
      }
      auto const v = tests::chunk_rotation<Codec::chunk_size>{chunk, key}.forward(
        in[static_cast<std::size_t>(rank)].data() + chunk * size);
      // Every butterfly rounds sums that are at most sqrt(Size) root mean squares.
      double energy = 0;
      for (double const value : v) { energy += value * value; }
      double const error = std::log2(size) * std::sqrt(energy) * epsilon;
      check_encoding<op>(wrong, got, v, std::vector<double>(size, error));
    }
  }
  // Block k of the array begins with rank k.
  run.reduce(reduction_order::ring);
  rank_blocks const cut{
    .count = sent[0].size(), .element_bytes = sizeof(sent[0][0]), .ranks = world};
  blocks sums(sent[0].size());
  for (std::size_t k = 0; k < ranks; ++k) {
    for (std::size_t i = cut.begin(static_cast<int>(k)); i < cut.begin(static_cast<int>(k) + 1);
         ++i) {
      sums[i] = sent[k][i];
      for (std::size_t hop = 1; hop < ranks; ++hop) {
        sums[i] = op{}(sums[i], sent[(k + hop) % ranks][i]);
      }
    }
  }
  for (int rank = 0; rank < world; ++rank) { CHECK(tests::same_bytes(payload(rank), sums)); }
  // Rotated again, the mean is scale * level / n, times Size / Size.
  run.decode();
  for (int rank = 0; rank < world; ++rank) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      auto const sum  = read_chunk<op>(sums[chunk / 4], static_cast<int>(chunk % 4));
      auto const want = estimate<op>(sum);
      auto const got  = tests::chunk_rotation<Codec::chunk_size>{chunk, key}.forward(
        run.values(rank).data() + chunk * size);
      double energy = 0;
      for (double const value : want) { energy += value * value; }
      // Roundings as above, and five of scale and values, spread over the chunk by the rotation.
      double const room =
        (std::log2(size) + 5) * std::sqrt(static_cast<double>(size) * energy) * epsilon / world;
      for (std::size_t p = 0; p < size; ++p) {
        wrong.expect(std::abs(got[p] - want[p] / world) <= room, true, got[p], want[p], chunk, p);
      }
    }
  }
  CHECK(wrong.report() == "");
}

}  // namespace

TEST_CASE("[per_hop] payloads, ring and means are those of the formulas")
{
  check_exchange(hop<1>{}, 6, 3);
  check_exchange(hop<3>{}, 13, 4);
  check_exchange(presets::per_hop_4, 5, 2);
  check_exchange(hop<8>{}, 4, 1);
}

TEST_CASE(
  "[per_hop] the payload is blocks of four chunks, and memory is the wire's, twice with feedback")
{
  auto const bytes = [](std::uint64_t d, auto const& codec) {
    auto const plan = codec.plan(layout{d}, {.size = 5, .rank = 2});
    CHECK(plan.check() == status{});
    std::uint64_t const copies = feeds_back<typename decltype(plan)::codec_type> ? 2 : 1;
    CHECK(plan.workspace_bytes() == copies * plan.payload_bytes());
    CHECK(plan.wire_bytes() == plan.payload_bytes());
    return plan.payload_bytes();
  };
  // 4 chunks of 1024 4-bit codes and 4 scales.
  CHECK(bytes(0, presets::per_hop_4) == 0);
  CHECK(bytes(1, presets::per_hop_4) == 4 * (512 + 4));
  CHECK(bytes(4096, presets::per_hop_4) == 4 * (512 + 4));
  CHECK(bytes(4097, presets::per_hop_4_ef) == 2 * 4 * (512 + 4));
  CHECK(bytes(40960, hop<3>{}) == 40 * 4 * (96 + 4));
  CHECK(presets::per_hop_4.plan(layout{1 << 20}, {}).bits_per_coordinate() == 4.03125);
  std::vector<tensor> const tensors{{.rows = 9}, {.rows = 64, .columns = 16, .offset = 9}};
  auto const plan = presets::per_hop_4.plan(
    {.coordinates = 1033, .tensors = tensors, .bypass_vectors = true}, {.size = 2});
  CHECK(plan.wire_bytes() == 4 * (512 + 4) + 9 * 4);
}

TEST_CASE("[per_hop] a tail is a chunk padded with zeros")
{
  auto const in = tests::normal_gradients(3, 1500, 17);
  auto padded   = in;
  for (auto& gradient : padded) { gradient.resize(2048); }
  using codec = std::remove_cvref_t<decltype(presets::per_hop_4)>;
  tests::loopback_run<codec> cut{{}, layout{1500}, 3, seed}, whole{{}, layout{2048}, 3, seed};
  auto const& want = whole.exchange(padded)[0];
  for (auto const& out : cut.exchange(in)) {
    CHECK(std::memcmp(out.data(), want.data(), 1500 * sizeof(float)) == 0);
  }
}

TEST_CASE("[per_hop] gradients of zeros, of one coordinate and of none")
{
  using codec = std::remove_cvref_t<decltype(presets::per_hop_4_ef)>;
  tests::loopback_run<codec> run{{}, layout{1300}, 3, seed};
  gradients const zeros(3, std::vector<float>(1300));
  for (auto const& out : run.exchange(zeros)) {
    for (float const value : out) { REQUIRE(std::bit_cast<std::uint32_t>(value) == 0); }
  }
  CHECK_FALSE(run.header().last_was_non_finite());
  tests::loopback_run<codec> nothing{{}, layout{0}, 3, seed};
  CHECK(nothing.exchange(gradients(3))[0].empty());
  // A lone coordinate rotates to equal magnitudes, which any codebook with one scale holds.
  tests::loopback_run<hop<8>> one{{}, layout{1}, 2, seed};
  CHECK(one.exchange({{3.0f}, {1.0f}})[0][0] == doctest::Approx(2).epsilon(1e-5));
}

TEST_CASE(
  "[per_hop] what is not finite shows on every rank, in its chunk, and feedback forgets the step")
{
  for (std::size_t const bad : {0u, 2047u, 4999u}) {
    CAPTURE(bad);
    using codec = std::remove_cvref_t<decltype(presets::per_hop_4_ef)>;
    tests::loopback_run<codec> run{{}, layout{5000}, 3, seed};
    auto in = tests::normal_gradients(3, 5000, 17);
    run.exchange(in);
    std::vector<float> const kept(run.residual(1).begin(), run.residual(1).end());
    in[1][bad]     = bad % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                  : -std::numeric_limits<float>::infinity();
    auto const out = run.exchange(in);
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(run.header(rank).last_was_non_finite());
      for (std::size_t i = 0; i < 5000; ++i) {
        REQUIRE(std::isnan(out[static_cast<std::size_t>(rank)][i]) == (i / 1024 == bad / 1024));
      }
    }
    for (std::size_t i = 0; i < kept.size(); ++i) { REQUIRE(run.residual(1)[i] == kept[i]); }
    in[1][bad] = 0;
    for (float const value : run.exchange(in)[2]) { REQUIRE(std::isfinite(value)); }
    CHECK_FALSE(run.header(2).last_was_non_finite());
  }
}

TEST_CASE("[per_hop] feedback keeps what a rank's own codes lost")
{
  // One rank, whose estimate is the result: sum of the estimates over T steps = T gradient - residual.
  using codec             = std::remove_cvref_t<decltype(presets::per_hop_4_ef)>;
  constexpr std::size_t d = 1500;
  constexpr int steps     = 32;
  auto const in           = tests::normal_gradients(3, d, 17);
  tests::loopback_run<codec> alone{{}, layout{d}, 1, seed}, three{{}, layout{d}, 3, seed};
  std::vector<double> sum(d);
  for (int t = 1; t <= steps; ++t) {
    auto const& out = alone.exchange({in[0]})[0];
    for (std::size_t i = 0; i < d; ++i) {
      sum[i] += static_cast<double>(out[i]);
      double const rest =
        t * static_cast<double>(in[0][i]) - static_cast<double>(alone.residual()[i]);
      // Every step rounds some five times values below 64.
      REQUIRE(std::abs(sum[i] - rest) <= t * 5 * 64 * epsilon);
    }
    // Other ranks, and hops, are without effect.
    three.exchange(in);
    REQUIRE(std::memcmp(three.residual(0).data(), alone.residual().data(), d * sizeof(float)) == 0);
  }
}

TEST_CASE("[per_hop] wrong arguments are named, and sizes beyond 2^31 are arithmetic like others")
{
  tests::check_wrong_arguments(presets::per_hop_4_ef, layout{3000});
  tests::check_large_plan(presets::per_hop_4_ef);
  tests::check_non_finite(presets::per_hop_4_ef);
}
