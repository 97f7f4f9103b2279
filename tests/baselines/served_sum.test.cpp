// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges through a server that looks up: all contributions, every subset of them, and no bias.

#include "support/bad_input.hpp"
#include "support/codecs.hpp"
#include "support/normal_gradients.hpp"
#include "support/staged_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/presets.hpp>
#include <tersum_baselines/served_sum.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace tersum;

namespace {

using tests::gradients;

// Up to where ranks send.
template <class Codec>
void send(tests::staged_run<Codec>& run, gradients const& in)
{
  run.measure(in);
  run.agree(reduction_order::ring);
  run.encode();
}

// The hop, a packet a chunk: of chunk c arrive the ranks whose bits of subset_of(c) are set.
template <class Codec, class SubsetOf>
void serve(tests::staged_run<Codec>& run, SubsetOf subset_of)
{
  auto const& plan = run.plan();
  cpu_executor const exec{};
  using sum                   = lookup_sum_of<Codec>;
  constexpr std::size_t words = index_chunk_words<Codec>;
  std::vector<std::vector<word4>> indices;
  for (int rank = 0; rank < run.world(); ++rank) {
    indices.emplace_back(index_bytes(plan) / sizeof(word4));
    REQUIRE(pack_indices(
              exec, plan, run.workspace(rank), std::as_writable_bytes(std::span{indices.back()})) ==
            status{});
  }
  std::vector<word4> sums(plan.payload_bytes() / sizeof(word4));
  std::vector<std::uint16_t> arrived;
  for (std::size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    std::vector<std::uint32_t const*> packet;
    for (int rank = 0; rank < run.world(); ++rank) {
      auto const* const all =
        reinterpret_cast<std::uint32_t const*>(indices[static_cast<std::size_t>(rank)].data());
      packet.push_back((subset_of(chunk) >> rank & 1) != 0 ? all + chunk * words : nullptr);
    }
    auto* const down = reinterpret_cast<std::uint32_t*>(sums.data());
    arrived.push_back(static_cast<std::uint16_t>(
      sum_packet<sum>(packet, words, down + chunk * words * sum::code_words)));
  }
  for (int rank = 0; rank < run.world(); ++rank) {
    REQUIRE(unpack_sums(exec, plan, run.workspace(rank), std::as_bytes(std::span{sums}), arrived) ==
            status{});
  }
}

// What a rank's own codes decode to: its share of the mean, over the world.
template <class Codec>
std::vector<float> own_share(tests::staged_run<Codec>& run, int rank)
{
  std::vector<float> out(run.plan().coordinates());
  auto const copy = [](std::span<std::byte const> from) {
    std::vector<word4> to(from.size() / sizeof(word4) + 1);
    std::copy(from.begin(), from.end(), std::as_writable_bytes(std::span{to}).begin());
    return to;
  };
  auto state     = copy(run.state(rank));
  auto workspace = copy(run.workspace(rank));
  REQUIRE(decode(cpu_executor{},
                 run.plan(),
                 out,
                 std::as_writable_bytes(std::span{state}),
                 std::as_writable_bytes(std::span{workspace})) == status{});
  return out;
}

template <class Codec>
void check_every_subset(Codec const& codec)
{
  constexpr int world           = 4;
  constexpr std::size_t d       = 2500;
  constexpr std::size_t in_all  = 1u << world;
  constexpr std::size_t a_chunk = Codec::chunk_size;
  auto const in                 = tests::normal_gradients(world, d, 5);
  tests::staged_run<Codec> run{codec, layout{d}, world, 9};
  for (std::size_t first = 0; first < in_all; ++first) {
    send(run, in);
    std::vector<std::vector<int>> codes;
    gradients shares;
    std::vector<float> scales;
    for (int rank = 0; rank < world; ++rank) {
      codes.push_back(run.codes(rank, 1));
      shares.push_back(own_share(run, rank));
    }
    // Chunks lose different ranks.
    auto const subset_of = [&](std::size_t chunk) {
      return static_cast<unsigned>((first + 5 * chunk) % in_all);
    };
    serve(run, subset_of);
    auto const received = run.codes(3, world);
    for (std::size_t i = 0; i < received.size(); ++i) {
      int sum = 0;
      for (unsigned rank = 0; rank < world; ++rank) {
        sum += (subset_of(i / a_chunk) >> rank & 1) != 0 ? codes[rank][i] : 0;
      }
      REQUIRE(received[i] == sum);
    }
    run.decode();
    for (std::size_t i = 0; i < d; ++i) {
      double sum = 0, size = 0;
      int arrived = 0;
      for (unsigned rank = 0; rank < world; ++rank) {
        if ((subset_of(i / a_chunk) >> rank & 1) == 0) { continue; }
        sum += static_cast<double>(shares[rank][i]);
        size += std::abs(static_cast<double>(shares[rank][i]));
        ++arrived;
      }
      double const factor = arrived == 0 ? 0 : 1.0 * world / arrived;
      // Sums of codes and their butterflies are exact. A share is rounded once, the mean once, its step twice more: by the number.
      double const bound = 4.001 * 0x1p-24 * size * factor;
      REQUIRE(std::abs(static_cast<double>(run.values(0)[i]) - sum * factor) <= bound);
      REQUIRE(run.values(0)[i] == run.values(3)[i]);
    }
  }
}

}  // namespace

TEST_CASE("[served] with all contributions the mean has the bits of an all-reduce")
{
  using codec_type        = std::remove_cvref_t<decltype(presets::thc_lookup4)>;
  constexpr std::size_t d = 4 * 1024 + 5;
  auto in                 = tests::normal_gradients(3, d, 5);
  std::fill_n(in[0].begin() + 1024, 1024, 0.0f);  // all ranks: a chunk without a step
  std::fill_n(in[1].begin() + 1024, 1024, 0.0f);
  std::fill_n(in[2].begin() + 1024, 1024, 0.0f);
  in[1][3000] = std::numeric_limits<float>::quiet_NaN();  // chunk 2
  tests::staged_run<codec_type> served{presets::thc_lookup4, layout{d}, 3, 4};
  tests::staged_run<codec_type> reduced{presets::thc_lookup4, layout{d}, 3, 4};
  send(served, in);
  send(reduced, in);
  CHECK(8 * index_bytes(served.plan()) == 4 * 1024 * served.plan().chunks());
  serve(served, [](std::size_t) { return 7u; });
  reduced.reduce(reduction_order::ring);
  served.decode();
  reduced.decode();
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(served.header(rank).last_was_non_finite());
    for (std::size_t i = 0; i < d; ++i) {
      float const a = served.values(rank)[i], b = reduced.values(rank)[i];
      REQUIRE((std::isnan(a) ? std::isnan(b) && i / 1024 == 2
                             : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)));
      if (i / 1024 == 1) { REQUIRE(a == 0); }
    }
  }
}

// Lanes for any number of ranks.
constexpr tests::
  rotated_sums<1024, rms_range<no_headroom>, lookup_quantizer<thc_table_42>, widening_sum<6, 32>>
    in_lanes_of_32{.coder = {.range = presets::thc_lookup4.coder.range}};

TEST_CASE("[served] lanes of 16 bits serve any number of ranks up to 1560, with indices of 4 bits")
{
  auto const& wide        = presets::thc_lookup4_wide;
  constexpr int world     = 9;
  constexpr std::size_t d = 64 * 1024;
  static_assert(decltype(lookup_sum_of<std::remove_cvref_t<decltype(wide)>>{})::max_world == 1560);
  CHECK(wide.plan(layout{d}, {.size = 1560, .rank = 0}).check() == status{});
  status const refusal = wide.plan(layout{d}, {.size = 1561, .rank = 0}).check();
  CHECK(refusal.code == error_code::world_too_large);
  CHECK(
    refusal.message ==
    "world.size is too large for the reducer's lanes: use wider lanes, fewer code bits or saturating_sum");
  CHECK(in_lanes_of_32.plan(layout{d}, {.size = 1561, .rank = 0}).check() == status{});
  CHECK(in_lanes_of_32.plan(layout{d}, {.size = 65534, .rank = 0}).check() == status{});
  auto const in = tests::normal_gradients(world, d, 5);
  tests::staged_run served{wide, layout{d}, world, 4};
  tests::staged_run reduced{wide, layout{d}, world, 4};
  send(served, in);
  send(reduced, in);
  CHECK(8 * index_bytes(served.plan()) == 4 * d);
  CHECK(8 * served.plan().payload_bytes() == 16 * d);
  serve(served, [](std::size_t) { return 0x1ffu; });
  reduced.reduce(reduction_order::ring);
  served.decode();
  reduced.decode();
  for (std::size_t i = 0; i < d; ++i) {
    REQUIRE(served.values(0)[i] == reduced.values(world - 1)[i]);
  }
}

TEST_CASE("[served] wider lanes decode to the bits of lanes of 8 bits")
{
  constexpr std::size_t d = 2 * 1024 + 5;
  auto const in           = tests::normal_gradients(3, d, 6);
  tests::staged_run narrow{presets::thc_lookup4, layout{d}, 3, 4};
  send(narrow, in);
  narrow.reduce(reduction_order::ring);
  narrow.decode();
  auto const compare = [&](auto const& codec) {
    tests::staged_run wide{codec, layout{d}, 3, 4};
    tests::staged_run served{codec, layout{d}, 3, 4};
    send(wide, in);
    wide.reduce(reduction_order::ring);
    wide.decode();
    send(served, in);
    serve(served, [](std::size_t) { return 7u; });
    served.decode();
    for (std::size_t i = 0; i < d; ++i) {
      REQUIRE(narrow.values(1)[i] == wide.values(1)[i]);
      REQUIRE(narrow.values(1)[i] == served.values(1)[i]);
    }
  };
  compare(presets::thc_lookup4_wide);
  compare(in_lanes_of_32);
}

TEST_CASE("[served] lanes of 32 bits hold the largest sum of as many ranks as a plan takes")
{
  constexpr int world     = 65534;
  constexpr std::size_t d = 1024;
  auto const& codec       = in_lanes_of_32;
  auto const plan         = codec.plan(layout{d}, {.size = world, .rank = 7});
  REQUIRE(plan.check() == status{});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), work(plan.workspace_bytes() / 16 + 1);
  std::vector<float> gradient(d);
  auto const bytes = [](auto& memory) { return std::as_writable_bytes(std::span{memory}); };
  std::span const own{reinterpret_cast<std::int32_t*>(bytes(work).data() + plan.offset("payload")),
                      d};
  cpu_executor const exec{};
  REQUIRE(initialize(exec, plan, bytes(state), 4) == status{});
  *reinterpret_cast<chunk_step*>(work.data()) = {1.0f, 1.0f / (21 * world), 0, 0};
  // All ranks send the same codes: one lane is the highest, the others are zeros. By doubling, as a tree of hops would add them.
  using op         = std::remove_cvref_t<decltype(codec)>::payload_op;
  std::int32_t sum = 0;
  for (int bit = 1 << 15; bit > 0; bit /= 2) {
    sum = op{}(op{}(sum, sum), (world & bit) != 0 ? 21 : 0);
  }
  REQUIRE(sum == 21 * world);
  own[5] = sum;
  REQUIRE(decode(exec, plan, std::span{gradient}, bytes(state), bytes(work)) == status{});
  // One coordinate of the wire is a row of the Hadamard transform: 1024 equal magnitudes.
  for (float const value : gradient) { REQUIRE(std::abs(value) == std::abs(gradient[0])); }
  CHECK(std::abs(gradient[0]) == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("[served] with any subset of the contributions, none included, a chunk is their mean")
{
  check_every_subset(presets::thc_lookup4);
  check_every_subset(
    tests::rotated_sums<256,
                        rms_range<no_headroom>,
                        lookup_quantizer<thc_table_30, stratified>,
                        widening_sum<5, 16>>{.coder = {.range = {.clip = 2.1538747f}}});
}

TEST_CASE("[served] bad arguments are named, and nothing is written")
{
  auto const plan = presets::thc_lookup4.plan(layout{1500}, {.size = 2, .rank = 0});
  std::vector<word4> workspace(plan.workspace_bytes() / sizeof(word4) + 1);
  std::vector<word4> indices(index_bytes(plan) / sizeof(word4));
  std::vector<word4> sums(plan.payload_bytes() / sizeof(word4));
  std::vector<std::uint16_t> const arrived(2, 2);
  auto const bytes = [](auto& memory) { return std::as_writable_bytes(std::span{memory}); };
  auto const work  = bytes(workspace);
  cpu_executor const exec{};
  auto const pack = [&](std::span<std::byte const> from, std::span<std::byte> to) {
    return pack_indices(exec, plan, from, to).message;
  };
  auto const unpack = [&](std::span<std::byte const> from, std::span<std::uint16_t const> numbers) {
    return unpack_sums(exec, plan, work, from, numbers).message;
  };
  CHECK(pack(work.first(64), bytes(indices)) == "workspace is smaller than plan.workspace_bytes()");
  CHECK(pack(work, bytes(indices).first(16)) == "indices is smaller than index_bytes(plan)");
  CHECK(pack(work, {static_cast<std::byte*>(nullptr), 1024}) == "indices is a null pointer");
  CHECK(pack(work, {bytes(workspace).data() + 8, 1024}) == "indices is not aligned to 16 bytes");
  CHECK(unpack(bytes(sums).first(16), arrived) == "sums is smaller than plan.payload_bytes()");
  CHECK(unpack(bytes(sums), std::span{arrived}.first(1)) ==
        "arrived.size() differs from plan.chunks()");
  for (word4 const& word : workspace) { REQUIRE(word == word4{}); }
  for (word4 const& word : indices) { REQUIRE(word == word4{}); }
  auto const seven = presets::thc_lookup4.plan(layout{1500}, {.size = 7, .rank = 0});
  CHECK(!pack_indices(exec, seven, work, bytes(indices)).ok());
  auto const nothing = presets::thc_lookup4.plan(layout{0}, {.size = 2, .rank = 0});
  CHECK(pack_indices(exec, nothing, work, {}) == status{});
  CHECK(unpack_sums(exec, nothing, work, {}, {}) == status{});
}

TEST_CASE(
  "[served] codes of a table: wrong arguments are named, and what is not finite stays in its chunk")
{
  tests::check_wrong_arguments(presets::thc_lookup4, layout{3000});
  tests::check_non_finite(presets::thc_lookup4);
}
