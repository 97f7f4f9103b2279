// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Per-hop codecs whose chunks have several widths or blocks with scales: tiles, hops and means against formulas in
//! double.

#include "support/bad_input.hpp"
#include "support/coded_chunk.hpp"
#include "support/loopback_run.hpp"
#include "support/mismatches.hpp"
#include "support/same_bytes.hpp"
#include "support/staged_run.hpp"

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/baseline/per_hop_codec.hpp>
#include <tersum/baseline/presets.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace tersum;

namespace {

constexpr std::uint64_t seed = 31;
constexpr double epsilon     = 0x1p-24;

using dynamiq   = std::remove_cvref_t<decltype(presets::dynamiq_hop_4)>;
using one_width = per_hop_codec<fixed_chunks<512>, no_rotation, group_absmax<4, 32>>;
using gradients = std::vector<std::vector<float>>;
using tests::code_at;

// Normal values whose energy differs from chunk to chunk by up to a million times.
gradients draw(int world, std::size_t d)
{
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  std::vector<float> size(d / 256 + 1);
  for (float& s : size) { s = std::exp2(static_cast<float>(random() % 21) / 2); }
  gradients out(static_cast<std::size_t>(world), std::vector<float>(d));
  for (auto& gradient : out) {
    for (std::size_t i = 0; i < d; ++i) { gradient[i] = normal(random) * size[i / 256]; }
  }
  return out;
}

// Of the four blocks that begin at one place of the quarters the scales are neighbours.
template <class Quantizer>
std::size_t block_of(std::size_t p)
{
  return p / 32 * 8 / Quantizer::block * 4 + p % 32 / 8;
}

// The words of one chunk and its scale, and what they say in double.
struct chunk_words {
  std::uint32_t const* codes;
  float scale;
};

template <class Quantizer, int Size>
std::vector<double> estimate(chunk_words const& chunk)
{
  constexpr std::size_t bits = Quantizer::bits;
  using scale                = typename Quantizer::scale;
  std::vector<double> out;
  for (std::size_t p = 0; p < Size; ++p) {
    std::uint32_t const code = code_at(chunk.codes, bits, p);
    auto const scale_code =
      code_at(chunk.codes + Size / 32 * bits, scale::bits, block_of<Quantizer>(p));
    double const level = static_cast<double>(Quantizer::level[code & (Quantizer::magnitudes - 1u)]);
    out.push_back((code >> (bits - 1) != 0 ? -1 : 1) * level *
                  static_cast<double>(scale::decode(scale_code)) *
                  static_cast<double>(chunk.scale));
  }
  return out;
}

// Whether a chunk is the encoding of values that the library knows up to a few roundings, dithered by `key`.
template <class Quantizer, class Dither, int Size>
void check_encoding(tests::mismatches& wrong,
                    chunk_words const& chunk,
                    std::vector<double> const& v,
                    dither_key const& key,
                    std::uint64_t number)
{
  constexpr std::size_t bits = Quantizer::bits;
  using scale                = typename Quantizer::scale;
  constexpr double roundings =
    4 * epsilon;  // two estimates of two roundings each, in their sum at most four of either
  constexpr auto half = static_cast<std::uint32_t>(Quantizer::magnitudes);
  double whole        = 0;
  std::vector<double> most(Size / Quantizer::block);
  for (std::size_t p = 0; p < Size; ++p) {
    double& block = most[block_of<Quantizer>(p)];
    block         = std::max(block, std::abs(v[p]));
    whole         = std::max(whole, std::abs(v[p]));
  }
  auto const scale_of_chunk = static_cast<double>(chunk.scale);
  // Operands of a sum may be as large as its chunks' scales, which the levels' sums reach within one rounding each.
  double const room = 2 * roundings * scale_of_chunk;
  wrong.expect(std::abs(scale_of_chunk - whole) <= room, true, scale_of_chunk, whole);
  for (std::size_t block = 0; block < most.size(); ++block) {
    std::uint32_t const code = code_at(chunk.codes + Size / 32 * bits, scale::bits, block);
    double const ratio       = most[block] / scale_of_chunk;
    auto const of = [](std::uint32_t c) { return static_cast<double>(scale::decode(c)); };
    // Rounded up to the next that there is; codes of powers of two descend.
    bool const descends = scale::decode(0) > scale::decode(1);
    wrong.expect(
      of(code) >= ratio - 4 * roundings || code == (descends ? 0u : 255u), true, ratio, code);
    bool const last = descends ? code == 23 : code == 0;
    wrong.expect(
      last || of(descends ? code + 1 : code - 1) <= ratio + 4 * roundings, true, ratio, code);
    for (std::size_t p = 0; p < Size; ++p) {
      if (block_of<Quantizer>(p) != block) { continue; }
      double const s          = of(code) * scale_of_chunk;
      std::uint32_t const got = code_at(chunk.codes, bits, p);
      if (s == 0) {
        wrong.expect(got & (half - 1), 0u, p);
        continue;
      }
      double const x = std::min(std::abs(v[p]) / s, 1.0);
      // Fixed point of 20 bits for values and for levels, and what the values are off by.
      double const off = 2 * 0x1p-20 + room / s + 4 * epsilon;
      std::uint32_t l  = 0;
      while (l + 2 < half && x >= static_cast<double>(Quantizer::level[l + 1])) { ++l; }
      auto const from   = static_cast<double>(Quantizer::level[l]);
      double const wide = static_cast<double>(Quantizer::level[l + 1]) - from;
      double share      = .5;
      if constexpr (Dither::rounds > 0) {
        share = (2.0 * dither_byte<Dither>(number * Size + p, key) + 1) / 512;
      }
      // Up where the fraction of the distance exceeds the share; either where that is a matter of rounding. Near a
      // level the neighbour below is reached from its other side, with the same outcome.
      double const fraction     = (x - from) / wide;
      std::uint32_t const want  = l + (fraction > share ? 1u : 0u);
      bool const close          = std::abs(fraction - share) * wide <= 2 * off;
      std::uint32_t const level = got & (half - 1);
      wrong.expect(
        level == want || (close && (level == l || level == l + 1)), true, x, l, level, p);
      wrong.expect((got >= half) == (v[p] < 0) || std::abs(v[p]) <= room, true, v[p], p);
    }
  }
}

// body(quantizer, chunk's place) for every chunk of a tile, the widest first.
template <class Op, class Body, int Level = Op::levels>
void for_each_chunk(typename Op::element const& tile, Body const& body, int index = 0, int word = 0)
{
  using quantizer  = typename Op::template quantizer_at<Level>;
  int const words  = static_cast<int>(detail::code_words<quantizer>(Op::chunk_size));
  auto const count = static_cast<int>(tile.about.count(Level));
  for (int i = 0; i < count; ++i, ++index, word += words) { body(quantizer{}, index, word); }
  if constexpr (Level > 1) { for_each_chunk<Op, Body, Level - 1>(tile, body, index, word); }
}

template <class Op>
chunk_words chunk_at(typename Op::element const& tile, int index, int word)
{
  auto const last = static_cast<std::size_t>(Op::element::room - 1 - index);
  return {tile.word + word, std::bit_cast<float>(tile.word[last])};
}

// Checks that `sum` is the hop of a and b, chunk by chunk.
template <class Op>
void check_hop(tests::mismatches& wrong,
               typename Op::element const& a,
               typename Op::element const& b,
               typename Op::element const& sum)
{
  for (int w = 0; w < tile_head::words; ++w) {
    wrong.expect(sum.about.word[w], a.about.word[w], w);
  }
  for_each_chunk<Op>(sum, [&]<class Quantizer>(Quantizer, int index, int word) {
    auto const ours = chunk_at<Op>(a, index, word), others = chunk_at<Op>(b, index, word);
    auto v           = estimate<Quantizer, Op::chunk_size>(ours);
    auto const other = estimate<Quantizer, Op::chunk_size>(others);
    for (std::size_t p = 0; p < v.size(); ++p) { v[p] += other[p]; }
    dither_key const key{.seed = sum.about.word[0] | std::uint64_t{sum.about.word[1]} << 32,
                         .step = std::bit_cast<std::uint32_t>(ours.scale) +
                                 std::bit_cast<std::uint32_t>(others.scale),
                         .rank = 0};
    std::uint64_t const number =
      std::uint64_t{sum.about.word[2]} * Op::element::chunks + static_cast<unsigned>(index);
    check_encoding<Quantizer, typename Op::dither, Op::chunk_size>(
      wrong, chunk_at<Op>(sum, index, word), v, key, number);
  });
}

// What all ranks send, what a ring makes of it, and the means.
template <class Codec>
void check_exchange(Codec const& codec, std::size_t d, int world)
{
  CAPTURE(world);
  using op         = typename Codec::payload_op;
  using tiles      = std::vector<typename op::element>;
  auto const in    = draw(world, d);
  auto const ranks = static_cast<std::size_t>(world);
  tests::staged_run<Codec> run{codec, layout{d}, world, seed};
  run.measure(in);
  if constexpr (agrees<Codec>) { run.agree(reduction_order::ring); }
  run.encode();
  auto const payload = [&](int rank) {
    auto const wire = payload_wire(run.plan(), run.workspace(rank));
    return tiles(wire.data, wire.data + wire.count);
  };
  std::vector<tiles> sent;
  for (int rank = 0; rank < world; ++rank) { sent.push_back(payload(rank)); }
  tests::mismatches wrong;
  std::array<unsigned, op::levels + 1> seen{};
  std::size_t chunks = 0;
  for (std::size_t i = 0; i < sent[0].size(); ++i) {
    auto const& head = sent[0][i].about;
    CHECK(head.key() == run.header(0).sign_key);
    CHECK(head.number() == i);
    for (int level = 1; level <= op::levels; ++level) {
      seen[static_cast<std::size_t>(level)] += head.count(level);
      chunks += head.count(level);
    }
    for (auto const& other : sent) { CHECK(std::memcmp(&other[i].about, &head, sizeof head) == 0); }
    // Zeros between codes and scales.
    int codes = 0, scales = 0;
    for_each_chunk<op>(sent[0][i], [&]<class Quantizer>(Quantizer, int index, int word) {
      codes  = word + static_cast<int>(detail::code_words<Quantizer>(op::chunk_size));
      scales = index + 1;
    });
    for (int w = codes; w < op::element::room - scales; ++w) {
      wrong.expect(sent[1][i].word[w], 0u, w);
    }
  }
  if constexpr (agrees<Codec>) {
    // All widths that pay. Of blocks 2 bits do not: 4 bits lose so much less that they are worth more a bit.
    auto const rule = run.plan().selection_rule();
    CHECK(rule.steps >= 2);
    for (unsigned step = 0; step < rule.steps; ++step) { CHECK(seen[rule.level[step]] > 0); }
    CHECK(chunks <= run.plan().chunks());
  } else {
    CHECK(chunks == run.plan().chunks());
  }
  // Block k of the array begins with rank k.
  run.reduce(reduction_order::ring);
  rank_blocks const cut{
    .count = sent[0].size(), .element_bytes = sizeof(sent[0][0]), .ranks = world};
  tiles sums(sent[0].size());
  for (std::size_t k = 0; k < ranks; ++k) {
    for (std::size_t i = cut.begin(static_cast<int>(k)); i < cut.begin(static_cast<int>(k) + 1);
         ++i) {
      sums[i] = sent[k][i];
      for (std::size_t hop = 1; hop < ranks; ++hop) {
        auto const& next = sent[(k + hop) % ranks][i];
        auto const sum   = op{}(sums[i], next);
        check_hop<op>(wrong, sums[i], next, sum);
        CHECK(tests::same_bytes(std::vector{op{}(next, sums[i])}, std::vector{sum}));
        sums[i] = sum;
      }
    }
  }
  for (int rank = 0; rank < world; ++rank) { CHECK(tests::same_bytes(payload(rank), sums)); }
  CHECK(wrong.report() == "");
  run.decode();
  for (int rank = 1; rank < world; ++rank) {
    CHECK(std::memcmp(run.values(rank).data(), run.values(0).data(), d * sizeof(float)) == 0);
  }
  // The mean is what the sums say over n, or zero.
  std::vector<double> want(run.plan().chunks() * op::chunk_size);
  detail::tile_map<op> map{static_cast<std::uint32_t>(sums.size()), {}};
  for (std::size_t level = 1; level < seen.size(); ++level) { map.count[level] = seen[level]; }
  std::array<std::uint32_t, op::levels + 1> slot{};
  auto const* const places =
    reinterpret_cast<std::uint32_t const*>(run.workspace(0).data() + run.plan().places_offset());
  for (std::size_t chunk = 0; chunk < run.plan().chunks(); ++chunk) {
    std::uint32_t const level = selects<Codec> ? places[chunk] % 8 : 1u;
    if (level == 0) { continue; }
    auto const place = map.of_slot(level, slot[level]++);
    for_each_chunk<op>(sums[place.part], [&]<class Quantizer>(Quantizer, int index, int word) {
      if (index != static_cast<int>(place.index)) { return; }
      auto const v =
        estimate<Quantizer, op::chunk_size>(chunk_at<op>(sums[place.part], index, word));
      for (std::size_t p = 0; p < v.size(); ++p) {
        std::size_t const coordinate = p % 32 / 8 * (op::chunk_size / 4) + p / 32 * 8 + p % 8;
        want[chunk * op::chunk_size + coordinate] = v[p] / world;
      }
    });
  }
  for (std::size_t i = 0; i < d; ++i) {
    double const got = static_cast<double>(run.values(0)[i]);
    wrong.expect(std::abs(got - want[i]) <= 5 * epsilon * std::abs(want[i]), true, got, want[i], i);
  }
  CHECK(wrong.report() == "");
}

}  // namespace

TEST_CASE("[per_hop_tiles] tiles, ring and means are those of the formulas")
{
  check_exchange(dynamiq{.chunker = {.bits = 5}}, 40'000, 3);
  check_exchange(dynamiq{.chunker = {.bits = 4}}, 18'011, 4);
  using odd = per_hop_codec<allocated_chunks<256, 3, 6, 8>, no_rotation, group_absmax<8, 16>>;
  check_exchange(odd{.chunker = {.bits = 4.5f}}, 40'000, 2);
  check_exchange(one_width{}, 9'000, 3);
  using nearest = per_hop_codec<fixed_chunks<256>,
                                no_rotation,
                                group_absmax<3, 16, linear_levels, byte_scale, no_dither>>;
  check_exchange(nearest{}, 3'000, 2);
}

TEST_CASE(
  "[per_hop_tiles] a hop has the same bits on every instruction set, in the place of either operand")
{
  auto const check = [&](auto const& codec, std::size_t d) {
    using codec_type = std::remove_cvref_t<decltype(codec)>;
    using op         = typename codec_type::payload_op;
    tests::staged_run<codec_type> run{codec, layout{d}, 2, seed};
    run.measure(draw(2, d));
    run.agree(reduction_order::ring);
    run.encode();
    std::vector<typename op::element> a, b, sums;
    for (int rank = 0; rank < 2; ++rank) {
      auto const wire = payload_wire(run.plan(), run.workspace(rank));
      (rank == 0 ? a : b).assign(wire.data, wire.data + wire.count);
    }
    REQUIRE(a.size() >= 2);
    for (std::size_t i = 0; i < a.size(); ++i) { sums.push_back(op{}(a[i], b[i])); }
    for (auto const set :
         {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
      CAPTURE(static_cast<int>(set));
      cpu_executor const exec{.threads = 2, .instructions = set};
      if (!exec.check().ok()) { continue; }
      auto to = a;
      REQUIRE(exec.reduce(op{}, to.data(), to.data(), b.data(), to.size()) == status{});
      CHECK(tests::same_bytes(to, sums));
      to = a;
      REQUIRE(exec.reduce(op{}, to.data(), b.data(), to.data(), to.size()) == status{});
      CHECK(tests::same_bytes(to, sums));
      std::memset(to.data(), 0xa5, to.size() * sizeof to[0]);
      REQUIRE(exec.reduce(op{}, to.data(), b.data(), a.data(), to.size()) == status{});
      CHECK(tests::same_bytes(to, sums));
    }
  };
  check(presets::dynamiq_hop_4, 40'000);
  // A codebook in several widths has no scales but the chunks'.
  using rotated =
    per_hop_codec<allocated_chunks<512, 1, 2, 3, 4, 5, 6, 8>, partial_hadamard<512>, lloyd_max<8>>;
  check(rotated{.chunker = {.bits = 3}}, 100'000);
}

TEST_CASE("[per_hop_tiles] no head leads a hop out of its tile")
{
  using op            = dynamiq::payload_op;
  std::size_t const d = 18'000;
  tests::staged_run<dynamiq> run{presets::dynamiq_hop_4, layout{d}, 2, seed};
  run.measure(draw(2, d));
  run.agree(reduction_order::ring);
  run.encode();
  auto const first  = payload_wire(run.plan(), run.workspace(0));
  auto const second = payload_wire(run.plan(), run.workspace(1));
  // Between two others, which nothing may change. The sanitizers see what is read beyond them.
  std::vector<op::element> const around(3, first.data[0]);
  for (int const bit : {0, 5, 31}) {
    for (int word = 0; word < tile_head::words; ++word) {
      for (bool const all : {false, true}) {
        CAPTURE(word);
        CAPTURE(bit);
        CAPTURE(all);
        op::element hostile = first.data[first.count - 1];
        hostile.about.word[word] ^= all ? ~0u : 1u << bit;
        for (auto const set :
             {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
          cpu_executor const exec{.threads = 1, .instructions = set};
          if (!exec.check().ok()) { continue; }
          auto a = around, b = around;
          a[1] = hostile;
          b[1] = second.data[second.count - 1];
          std::vector<op::element> const hop{op{}(a[1], b[1])};
          REQUIRE(exec.reduce(op{}, &a[1], &a[1], &b[1], 1) == status{});
          CHECK(tests::same_bytes(std::vector{a[1]}, hop));
          CHECK(tests::same_bytes(std::vector{a[0], a[2]}, std::vector{around[0], around[2]}));
          a[1] = hostile;
          REQUIRE(exec.reduce(op{}, &b[1], &b[1], &a[1], 1) == status{});
          CHECK(tests::same_bytes(std::vector{b[0], b[2]}, std::vector{around[0], around[2]}));
        }
      }
    }
  }
}

TEST_CASE("[per_hop_tiles] plan, memory and what a budget does not pay for")
{
  // 391008 coordinates at 4 bits are 48876 words, less 764 of norms: 22 tiles of 2156 words.
  auto const plan = presets::dynamiq_hop_4.plan(layout{391'008}, {.size = 4, .rank = 1});
  CHECK(plan.check() == status{});
  CHECK(plan.chunks() == 1528);
  CHECK(plan.agreed_bytes() == 2 * 1528);
  CHECK(plan.tiles() == 22);
  CHECK(plan.payload_bytes() == 22 * 2156 * 4);
  // Of 2148 words 9 may be left by chunks of one width, and 20 and 36 once where widths change.
  CHECK(plan.selection_rule().capacity == 22 * 2139 - 56);
  // 66 chunks of 512 in tiles of 16.
  auto const fixed = one_width{}.plan(layout{66 * 512}, {.size = 2});
  CHECK(fixed.payload_bytes() == 5 * 4 * (8 + 16 * 69));
  CHECK(fixed.wire_bytes() == fixed.payload_bytes());
  CHECK(fixed.workspace_bytes() == fixed.payload_bytes());
  using kept = per_hop_codec<fixed_chunks<512>, no_rotation, group_absmax<4, 32>, error_feedback>;
  CHECK(kept{}.plan(layout{66 * 512}, {}).workspace_bytes() == 2 * fixed.payload_bytes());

  // Less than a tile: nothing travels for who asks for that, the mean is zeros.
  layout const unpaid{.coordinates = 17'000, .bypass_unpaid = false};
  tests::loopback_run<dynamiq> little{presets::dynamiq_hop_4, unpaid, 2, seed};
  CHECK(little.plan().wire_bytes() == 0);
  for (float const value : little.exchange(draw(2, 17'000))[1]) { REQUIRE(value == 0.0f); }
  // A budget beyond 8 bits a coordinate: all chunks have 8.
  tests::loopback_run<dynamiq> much{dynamiq{.chunker = {.bits = 64}}, layout{5'000}, 1, seed};
  CHECK(much.plan().tiles() == 1);
  auto const in = draw(1, 5'000);
  CHECK(tests::nmse(in, much.exchange(in)[0]) < 1e-4);
}

TEST_CASE("[per_hop_tiles] zeros, a tail, and what is not finite")
{
  auto const check = [&]<class Codec>(Codec const& codec, std::size_t d) {
    constexpr std::size_t size = Codec::chunk_size;
    tests::loopback_run<Codec> run{codec, layout{d}, 3, seed};
    for (auto const& out : run.exchange(gradients(3, std::vector<float>(d)))) {
      for (float const value : out) { REQUIRE(std::bit_cast<std::uint32_t>(value) == 0); }
    }
    CHECK_FALSE(run.header().last_was_non_finite());
    // One rank's zeros count as any other value, and a chunk of zeros on all ranks is zeros.
    auto in = draw(3, d);
    std::fill(in[1].begin(), in[1].end(), 0.0f);
    for (auto& gradient : in) { std::fill_n(gradient.begin() + size, size, 0.0f); }
    auto const clean = run.exchange(in);
    for (std::size_t i = 0; i < d; ++i) {
      REQUIRE((i / size != 1 || clean[2][i] == 0));
      REQUIRE(std::isfinite(clean[2][i]));
    }
    for (std::size_t const bad : {std::size_t{0}, d - 1}) {
      auto with      = in;
      with[1][bad]   = bad == 0 ? std::numeric_limits<float>::quiet_NaN()
                                : -std::numeric_limits<float>::infinity();
      auto const out = run.exchange(with);
      for (int rank = 0; rank < 3; ++rank) {
        CHECK(run.header(rank).last_was_non_finite());
        auto const& values = out[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < d; ++i) {
          REQUIRE(std::isnan(values[i]) == (i / size == bad / size));
        }
      }
    }
    static_cast<void>(run.exchange(in));
    CHECK_FALSE(run.header(2).last_was_non_finite());
  };
  check(dynamiq{.chunker = {.bits = 6}}, 20'001);
  check(one_width{}, 9'001);
}

TEST_CASE("[per_hop_tiles] dithered hops are unbiased in every coordinate")
{
  // With one width all chunks travel. An error lies within the distance of two levels, at most 1/7 of a block's scale, so
  // that it deviates by half of that at most. A block's scale is at most its chunk's, the largest magnitude: M of a rank's
  // values, k M of a partial sum of k ranks. There are four encodings of ranks, and of sums of two, three and four.
  constexpr int steps = 400, world = 4;
  constexpr std::size_t d = 512;
  auto const in           = draw(world, d);
  tests::loopback_run<one_width> run{one_width{}, layout{d}, world, seed};
  std::vector<double> sum(d), truth(d);
  double most = 0;
  for (auto const& gradient : in) {
    for (std::size_t i = 0; i < d; ++i) {
      truth[i] += static_cast<double>(gradient[i]) / world;
      most = std::max(most, std::abs(static_cast<double>(gradient[i])));
    }
  }
  for (int t = 0; t < steps; ++t) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) { sum[i] += static_cast<double>(out[i]) / steps; }
  }
  double const sigma = most / 14 * std::sqrt(4.0 + 4 + 9 + 16) / world / std::sqrt(steps);
  double squares     = 0;
  for (std::size_t i = 0; i < d; ++i) {
    REQUIRE(std::abs(sum[i] - truth[i]) <= 5 * sigma);
    squares += (sum[i] - truth[i]) * (sum[i] - truth[i]) / d;
  }
  CHECK(std::sqrt(squares) <= sigma);
}

TEST_CASE(
  "[per_hop_tiles] feedback keeps what a rank's own codes lost, and chunks that do not travel")
{
  using codec             = per_hop_codec<allocated_chunks<256, 2, 4, 8>,
                              no_rotation,
                              dynamiq::quantizer_type,
                              error_feedback>;
  constexpr std::size_t d = 20'000;
  auto const in           = draw(1, d);
  tests::loopback_run<codec> run{codec{.chunker = {.bits = 4}}, layout{d}, 1, seed};
  std::vector<double> sum(d);
  double most = 0;
  for (float const value : in[0]) { most = std::max(most, std::abs(static_cast<double>(value))); }
  for (int t = 1; t <= 8; ++t) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) {
      sum[i] += static_cast<double>(out[i]);
      double const rest =
        t * static_cast<double>(in[0][i]) - static_cast<double>(run.residual()[i]);
      // Every step rounds some five times what is at most t of the largest value.
      REQUIRE(std::abs(sum[i] - rest) <= t * 5 * t * most * epsilon);
    }
  }
}

TEST_CASE(
  "[per_hop_tiles] wrong arguments are named, and sizes beyond 2^31 are arithmetic like others")
{
  tests::check_wrong_arguments(presets::dynamiq_hop_4, layout{20'000});
  tests::check_large_plan(presets::dynamiq_hop_4);
}
