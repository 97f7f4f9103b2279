// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a sharded codec puts on the wire and makes of it, against its formulas in double; and what is true of all exchanges of shards, of
//! those whose codes are summed and of values, too.

#include "support/bad_input.hpp"
#include "support/chunk_rotation.hpp"
#include "support/codecs.hpp"
#include "support/coded_chunk.hpp"
#include "support/exchange_fixture.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace tersum;
using tests::boundaries;
using tests::mentions;

namespace {

constexpr double epsilon = 0x1p-24;

template <int Bits, int Size = 256, class Feedback = no_feedback>
using shards =
  codec<fixed_chunks<Size>, partial_hadamard<Size>, scaled_codes<lloyd_max<Bits>>, shard, Feedback>;

template <class Codec, class Element = float, class ShardElement = Element>
using run_of = tests::exchange_run<tests::host_buffer, Codec, Element, ShardElement>;

// The mean of what the ranks' codes say, in double, and that each of them is the nearest code and the scale of EDEN's formula.
template <class Codec>
void check_against_formulas(Codec const& codec,
                            std::size_t d,
                            int world,
                            boundaries const& cuts = {})
{
  CAPTURE(d);
  CAPTURE(world);
  using quantizer            = typename Codec::quantizer_type;
  constexpr std::size_t size = Codec::chunk_size;
  auto const in              = tests::normal_gradients(world, d, 17);
  auto const ranks           = static_cast<std::size_t>(world);
  run_of<Codec> run{cpu_executor{},
                    {.codec = codec, .gradient = {d}, .world = world, .cuts = cuts}};
  auto const out = run.exchange(cpu_executor{}, in);
  tests::mismatches wrong;
  std::size_t reached = 0;
  for (std::size_t me = 0; me < ranks; ++me) {
    auto const& plan        = run[me].plan;
    std::size_t const begin = plan.shard_begin(static_cast<int>(me));
    std::size_t const end   = begin + plan.shard_size();
    CHECK(begin == (cuts.empty() ? d * me / ranks : cuts[me]));
    CHECK(out[me].size() == end - begin);
    if (begin == end) {
      CHECK(plan.part_words(static_cast<int>(me)) == 0);
      continue;
    }
    std::size_t const first = begin / size, chunks = (end + size - 1) / size - first;
    std::size_t const words = (chunks + 3) / 4 * 4 + chunks * size / 32 * quantizer::bits;
    CHECK(plan.part_words(static_cast<int>(me)) == words);
    auto const* const received = shards_wire(plan, run[me].workspace).received;
    for (std::size_t index = 0; index < chunks; ++index) {
      std::size_t const chunk = first + index;
      tests::chunk_rotation<size> const turn{chunk, sign_key(0, tests::exchange_seed)};
      std::vector<double> mean(size);
      double scales = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        std::vector<double> x(size);
        for (std::size_t j = 0; j < size && chunk * size + j < d; ++j) {
          x[j] = static_cast<double>(in[r][chunk * size + j]);
        }
        auto const v    = turn.forward(x.data());
        auto const sent = tests::read_of_shard<Codec>(received + r * words, chunks, index);
        tests::check_encoding<Codec>(wrong, sent, v);
        auto const part = tests::estimate<Codec>(sent);
        for (std::size_t p = 0; p < size; ++p) { mean[p] += part[p] / world; }
        scales += sent.scale / world;
      }
      auto const back = turn.backward(mean);
      for (std::size_t at = std::max(begin, chunk * size); at < std::min(end, (chunk + 1) * size);
           ++at) {
        double const want = back[at - chunk * size] / static_cast<double>(size);
        double const got  = static_cast<double>(out[me][at - begin]);
        // Levels are below five root mean squares; a rounding for each rank, ten of the way back.
        double const room = (40 + world) * 16 * epsilon * scales / 16;
        wrong.expect(std::abs(got - want) <= room, true, got, want, at);
        ++reached;
      }
    }
  }
  CHECK(reached == d);
  if (d > 0) { CHECK(wrong.report() == ""); }
}

}  // namespace

TEST_CASE("[sharded] codes, scales and shards of the mean are those of the formulas")
{
  check_against_formulas(shards<1>{}, 1000, 3);
  check_against_formulas(shards<4>{}, 2500, 4);
  check_against_formulas(shards<8>{}, 1000, 5);
  check_against_formulas(shards<2, 1024>{}, 4096, 4);
  for (std::size_t const d : {0u, 255u, 256u, 257u, 1009u}) {
    check_against_formulas(shards<3>{}, d, 2);
  }
  // A boundary in a chunk, several in one chunk, empty shards, all of it for one rank.
  check_against_formulas(shards<3>{}, 1000, 4, {0, 10, 300, 301, 1000});
  check_against_formulas(shards<3>{}, 1000, 6, {0, 0, 512, 512, 600, 601, 1000});
  check_against_formulas(shards<3>{}, 1000, 3, {0, 0, 1000, 1000});
}

TEST_CASE("[sharded] shards in a metric are multiples of those of divided values")
{
  constexpr std::size_t d = 1000, size = 256;
  using in_units = tests::rotated_codes<size, lloyd_max<3>, shard, no_feedback, given_diagonal>;
  boundaries const cuts{0, 10, 300, 301, d};
  auto const in = tests::normal_gradients(4, d, 17);
  run_of<in_units> run{cpu_executor{}, {.gradient = {d}, .world = 4, .cuts = cuts}};
  run_of<shards<3>> divided{cpu_executor{}, {.gradient = {d}, .world = 4, .cuts = cuts}};
  run.write_scales();
  auto const kept = metric_scales(run[0].plan, run[0].state);
  std::vector<float> raised(d);
  for (std::size_t i = 0; i < d; ++i) {
    auto const first = kept.begin() + static_cast<std::ptrdiff_t>(i / size * size);
    auto const end = kept.begin() + static_cast<std::ptrdiff_t>(std::min(d, (i / size + 1) * size));
    raised[i]      = std::max(kept[i], 0x1p-8f * *std::max_element(first, end));
  }
  auto values = in;
  for (auto& of_rank : values) {
    for (std::size_t i = 0; i < d; ++i) { of_rank[i] = of_rank[i] / raised[i]; }
  }
  auto const out   = run.exchange(cpu_executor{}, in);
  auto const means = divided.exchange(cpu_executor{}, values);
  std::size_t same = 0;
  for (std::size_t me = 0; me < out.size(); ++me) {
    for (std::size_t i = 0; i < out[me].size(); ++i) {
      same += out[me][i] == means[me][i] * raised[cuts[me] + i] ? 1 : 0;
    }
  }
  CHECK(same == d);
}

TEST_CASE("[sharded] the shard may lie in the gradient, and the parts of a call give its bytes")
{
  using codec   = shards<4>;
  auto const in = tests::normal_gradients(1, 3000, 17);
  run_of<codec> run{cpu_executor{}, {.gradient = {3000}, .world = 1}};
  auto const want = run.exchange(cpu_executor{}, in)[0];
  auto const plan = codec{}.plan(layout{3000}, {});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s    = std::as_writable_bytes(std::span{state});
  auto const w    = std::as_writable_bytes(std::span{workspace});
  auto const move = [](auto const& round) {
    if constexpr (requires { round.sent; }) {
      std::memcpy(round.received, round.sent + round.begin(0), round.bytes(0));
    }
  };
  REQUIRE(initialize(cpu_executor{}, plan, s, tests::exchange_seed) == status{});
  std::vector<float> values = in[0];
  REQUIRE(reduce_scatter_mean(cpu_executor{}, plan, values, values, s, w, move) == status{});
  CHECK(values == want);
  REQUIRE(initialize(cpu_executor{}, plan, s, tests::exchange_seed) == status{});
  values = in[0];
  std::vector<float> shard(3000);
  REQUIRE(measure(cpu_executor{}, plan, values, s, w) == status{});
  REQUIRE(encode(cpu_executor{}, plan, values, s, w) == status{});
  move(shards_wire(plan, w));
  REQUIRE(decode_shard(cpu_executor{}, plan, shard, s, w) == status{});
  CHECK(shard == want);
  CHECK(values == in[0]);
}

namespace {

template <class Feedback = no_feedback>
using summed = codec<fixed_chunks<256>,
                     partial_hadamard<256>,
                     summed_codes<rms_range<>, nearest_quantizer<8>, saturating_sum<8>>,
                     shard,
                     Feedback>;
template <class Feedback = no_feedback>
using published = tests::rotated_codes<256, lloyd_max<8>, publish, Feedback>;

std::vector<float> slice_of(std::vector<float> const& in, std::uint64_t begin, std::uint64_t end)
{
  return {in.begin() + static_cast<std::ptrdiff_t>(begin),
          in.begin() + static_cast<std::ptrdiff_t>(end)};
}
tests::gradients slice_of(tests::gradients const& in, std::uint64_t begin, std::uint64_t end)
{
  tests::gradients out;
  for (auto const& of_rank : in) { out.push_back(slice_of(of_rank, begin, end)); }
  return out;
}

tensor const& tensor_at(layout const& bucket, std::uint64_t at)
{
  return *std::find_if(bucket.tensors.begin(), bucket.tensors.end(), [&](tensor const& t) {
    return at >= t.offset && at < t.offset + t.size();
  });
}

// As docs/transports.md cuts them: a slice has one owner, and the pieces that it has of the tensors. Codes that depend on nothing but
// their chunk have the bits of the whole shards where a slice ends with a tensor, or after whole chunks.
template <class Coder, class Form>
void check_slices()
{
  using codec         = codec<fixed_chunks<256>, no_rotation, Coder, Form>;
  layout const bucket = tests::odd_bucket().gradient();
  boundaries const cuts{0, 1025, 1025, bucket.coordinates};
  tests::exchange_case<codec, float> const c{.gradient = bucket, .world = 3, .cuts = cuts};
  auto const in = given_in_step(c, 0);
  run_of<codec> whole{cpu_executor{}, c};
  auto const want       = tests::joined<codec>(whole.exchange(cpu_executor{}, in));
  std::size_t exchanges = 0;
  std::vector<float> all;
  for (std::size_t owner = 0; owner < 3; ++owner) {
    std::uint64_t end = 0;
    for (std::uint64_t begin = cuts[owner]; begin < cuts[owner + 1]; begin = end) {
      tensor const& first = tensor_at(bucket, begin);
      end                 = std::min({begin + 256, first.offset + first.size(), cuts[owner + 1]});
      boundaries ends(4, end - begin);
      std::fill_n(ends.begin(), owner + 1, 0u);
      run_of<codec> run{cpu_executor{},
                        {.gradient = bucket.part(begin, end), .world = 3, .cuts = ends}};
      auto const out = tests::joined<codec>(run.exchange(cpu_executor{}, slice_of(in, begin, end)));
      REQUIRE(out.size() == end - begin);
      all.insert(all.end(), out.begin(), out.end());
      ++exchanges;
    }
  }
  CHECK(exchanges > 8);
  CHECK(all == want);
}

// The second exchange is of a bucket of which something is held.
template <class Codec, class Given, class Small>
void check_bypass()
{
  layout const bucket = tests::odd_bucket().gradient();
  boundaries const cuts{0, 1025, 1050, bucket.coordinates};
  tests::exchange_case<Codec, Given, float> const c{.gradient = bucket, .world = 3, .cuts = cuts};
  run_of<Codec, Given, float> floats{cpu_executor{}, c};
  run_of<Codec, Given, Small> rounded{cpu_executor{},
                                      {.gradient = bucket, .world = 3, .cuts = cuts}};
  for (int step = 0; step < 2; ++step) {
    auto const in     = given_in_step(c, step);
    auto const want   = tests::joined<Codec>(floats.exchange(cpu_executor{}, in));
    auto const got    = tests::joined<Codec>(rounded.exchange(cpu_executor{}, in));
    std::size_t exact = 0;
    REQUIRE(want.size() == bucket.coordinates);
    for (std::size_t at = 0; at < want.size(); ++at) {
      if (!codes_differences<Codec>) { REQUIRE(got[at] == from_float<Small>(want[at])); }
      if (!bucket.bypasses(tensor_at(bucket, at))) { continue; }
      if constexpr (publishing<Codec>) {
        REQUIRE(want[at] == to_float(in[at]));
      } else {
        float const sum = to_float(in[0][at]) + to_float(in[1][at]) + to_float(in[2][at]);
        REQUIRE(want[at] == sum * (1.0f / 3.0f));
      }
      ++exact;
    }
    CHECK(exact > 20);
  }
}

// Whether every rank is told, or the one that gets the chunk.
template <class Codec>
void check_not_finite(bool all_are_told)
{
  auto in = tests::normal_gradients(2, 1024, 23);
  run_of<Codec> run{cpu_executor{}, {.gradient = {1024}, .world = 2}};
  static_cast<void>(run.exchange(cpu_executor{}, in));
  auto const residual = residuals_of(run[1].plan, run[1].state);
  std::vector<float> const before(residual.begin(), residual.end());
  in[1][300]     = std::numeric_limits<float>::infinity();
  auto const out = run.exchange(cpu_executor{}, in);
  for (std::size_t i = 0; i < 512; ++i) { REQUIRE(std::isnan(out[0][i]) == (i >= 256)); }
  for (float const value : out[1]) { REQUIRE(std::isfinite(value)); }
  CHECK(header_of(run[0].plan, run[0].state)->last_was_non_finite());
  CHECK(header_of(run[1].plan, run[1].state)->last_was_non_finite() == all_are_told);
  for (std::size_t i = 0; i < 1024; ++i) {
    REQUIRE(std::isfinite(residual[i]));
    if (all_are_told || i / 256 == 1) { REQUIRE(residual[i] == before[i]); }
  }
}

// Forty chunks of 512 + 4 bytes, ten for each rank; its ten scales lie in twelve words.
template <class Codec>
auto check_four_bits(Codec const& codec)
{
  auto const plan = codec.plan(layout{40960}, {.size = 4, .rank = 1});
  CHECK(plan.payload_bytes() == 4 * (10 * 512 + 48));
  CHECK(plan.wire_bytes() == plan.payload_bytes());
  CHECK(plan.owned_chunks() == 10);
  CHECK(plan.shard_size() == 10240);
  // Each of a thousand ranks gets a chunk that it shares with the one before or after it, or that its boundary leaves short.
  auto const crowd = codec.plan(layout{1025000}, {.size = 1000, .rank = 0});
  CHECK(crowd.payload_bytes() == 1000 * (2 * 512 + 16));
  return plan;
}

// Whatever the boundaries, parts lie one after the other, at multiples of 16 bytes, and so does what bypasses.
template <class Codec>
void check_parts(Codec const& codec)
{
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    layout const bucket = round % 2 == 0 ? layout{9973} : tests::odd_bucket().gradient();
    boundaries cuts{0, bucket.coordinates};
    for (int k = 0; k < 12; ++k) { cuts.push_back(random() % (bucket.coordinates + 1)); }
    if (round % 3 == 0) { cuts[5] = cuts[6] = cuts[7]; }
    std::sort(cuts.begin(), cuts.end());
    auto const p = codec.plan(bucket, {.size = 13, .rank = 7}, cuts);
    CHECK(p.check() == status{});
    for (int rank = 0; rank < 13; ++rank) {
      REQUIRE(p.part_word(rank) % 4 == 0);
      REQUIRE(p.part_word(rank) + p.part_words(rank) <= p.part_word(rank + 1));
      if constexpr (publishing<Codec>) {
        REQUIRE(p.bypass_begin(rank) <= p.bypass_begin(rank + 1));
      }
    }
    if constexpr (publishing<Codec>) {
      CHECK(p.bypass_begin(13) == p.bypassed());
      CHECK(p.workspace_bytes() >= 4 * p.part_word(13));
    } else {
      REQUIRE(p.offset("received") >= 4 * p.part_word(13));
    }
  }
}

// `whole` is what the call names the values of all shards.
template <class Codec>
void check_arguments(Codec const& codec, std::string const& whole)
{
  layout const d{3000};
  world const two{.size = 2, .rank = 0};
  auto const refuses = [&](boundaries const& cuts) {
    return mentions(codec.plan(d, two, cuts).check(), "boundaries");
  };
  CHECK(refuses({0, 3000}));
  CHECK(refuses({0, 1, 2, 3000}));
  CHECK(refuses({1, 10, 3000}));
  CHECK(refuses({0, 10, 2999}));
  CHECK(refuses({0, 3001, 3000}));
  CHECK_FALSE(refuses({0, 3000, 3000}));
  CHECK(mentions(codec.plan(d, {.size = 2, .rank = 2}).check(), "world.rank"));
  CHECK(mentions(codec.plan(d, {.size = 0, .rank = 0}).check(), "world.size"));

  boundaries const cuts{0, 1000, 3000};
  auto const plan = codec.plan(d, two, cuts);
  std::vector<float> values(3000, 1.0f), shard(1001, 5.0f);
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  REQUIRE(initialize(cpu_executor{}, plan, s, 1) == status{});
  auto const state_before = state;
  auto const never        = [](auto const&) { FAIL("no round was due"); };
  auto const said         = [&](auto const& p,
                        std::span<float> all,
                        std::span<float> own,
                        std::span<std::byte> st,
                        std::span<std::byte> wk) {
    if constexpr (publishing<Codec>) {
      return all_gather_values(cpu_executor{}, p, own, all, st, wk, never);
    } else {
      return reduce_scatter_mean(cpu_executor{}, p, all, own, st, wk, never);
    }
  };
  std::span<float> const all{values}, own{shard.data(), 1000};
  CHECK(mentions(said(plan, all.first(2999), own, s, w), whole + ".size()"));
  CHECK(mentions(said(plan, all, std::span{shard}, s, w), "shard.size()"));
  CHECK(mentions(said(plan, all, {static_cast<float*>(nullptr), 1000}, s, w), "shard is a null"));
  auto* const odd = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(shard.data()) + 2);
  CHECK(mentions(said(plan, all, {odd, 1000}, s, w), "shard is not aligned"));
  CHECK(mentions(said(plan, all, own, s.first(16), w), "state"));
  CHECK(mentions(said(plan, all, own, s, w.first(16)), "workspace"));
  auto* const inside = reinterpret_cast<float*>(w.data());
  CHECK(mentions(said(plan, all, {inside, 1000}, s, w), "shard overlaps"));
  // Values may lie where their owner's shard does, but for differences, which are made beside what is held.
  if constexpr (publishing<Codec>) {
    CHECK(mentions(said(plan, all, all.subspan(5, 1000), s, w), "shard overlaps values"));
  }
  if constexpr (codes_differences<Codec>) {
    CHECK(mentions(said(plan, all, all.first(1000), s, w), "shard overlaps values"));
  }
  // A state of other boundaries is another state.
  boundaries const others{0, 1001, 3000};
  auto const other = codec.plan(d, two, others);
  std::vector<word4> more(other.workspace_bytes() / 16 + 1);
  CHECK(mentions(said(other, all, std::span{shard}, s, std::as_writable_bytes(std::span{more})),
                 "state"));
  CHECK(state == state_before);
  CHECK(std::all_of(shard.begin(), shard.end(), [](float v) { return v == 5.0f; }));
  CHECK(std::all_of(values.begin(), values.end(), [](float v) { return v == 1.0f; }));
}

}  // namespace

TEST_CASE("[shards] slices of the shards, each an exchange of its own, make up the shards")
{
  using blocks = scaled_codes<group_absmax<4, 32, linear_levels, bfloat16_scale, no_dither>>;
  check_slices<blocks, shard>();
  check_slices<blocks, publish>();
  check_slices<summed_codes<absmax_range<no_headroom>, nearest_quantizer<4>, widening_sum<4, 8>>,
               shard>();
}

TEST_CASE(
  "[shards] what bypasses is exact in float, and results in other elements are rounded once")
{
  check_bypass<shards<8>, bfloat16, half>();
  check_bypass<summed<>, float, half>();
  check_bypass<published<>, float, bfloat16>();
  check_bypass<published<difference_feedback>, float, float>();
}

TEST_CASE("[shards] a value that is not finite stays in its chunk, and residuals stay finite")
{
  check_not_finite<shards<4, 256, error_feedback>>(false);
  check_not_finite<summed<error_feedback>>(true);
}

TEST_CASE("[shards] the plan says what travels and what memory it takes")
{
  auto const plan = check_four_bits(presets::sharded_4);
  // What is sent, with a slot of 132 words and 4 more for each rank, and four parts received.
  CHECK(plan.workspace_bytes() <= 2 * plan.payload_bytes() + 4 * 4 * 140);
  // A bucket that belongs to one rank: the others get nothing.
  boundaries const of_one{0, 0, 40960, 40960, 40960};
  auto const whole = presets::sharded_4.plan(layout{40960}, {.size = 4, .rank = 3}, of_one);
  CHECK(whole.payload_bytes() == 40 * 516);
  CHECK(whole.owned_chunks() == 0);

  auto const values = check_four_bits(presets::values_4);
  CHECK(values.workspace_bytes() == values.payload_bytes());
  for (int rank = 0; rank <= 4; ++rank) {
    CHECK(values.part_word(rank) == static_cast<std::uint64_t>(rank) * values.part_words(0));
  }
  auto const differences = check_four_bits(presets::values<4, difference_feedback>{});
  CHECK(differences.workspace_bytes() == values.payload_bytes() + 4 * 10240);
  CHECK(differences.state_bytes() == values.state_bytes());
  auto const kept = check_four_bits(presets::values<4, error_feedback>{});
  CHECK(kept.state_bytes() == values.state_bytes() + 4 * 10240);

  check_parts(shards<1>{});
  check_parts(published<>{});
}

TEST_CASE("[shards] a wrong argument is named, and no memory is written")
{
  check_arguments(presets::sharded<2, error_feedback>{}, "gradient");
  check_arguments(presets::values<4, error_feedback>{}, "values");
  check_arguments(presets::values<4, difference_feedback>{}, "values");
}
