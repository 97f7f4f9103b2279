// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of sorted matrices: the order against one that std::stable_sort makes, the exchange against that of the inner codec
//! on gradients in this order, and what sorting gains on sample gradients.

#include "support/bad_input.hpp"
#include "support/loopback_run.hpp"
#include "support/sample_gradients.hpp"
#include "support/sorted_run.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/metric_scales.hpp>
#include <tersum/exchange/sorted.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/sorted_presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

namespace {

template <class Element>
using all_ranks = std::vector<std::vector<Element>>;

using exact = sorted_codec<cast_codec<float>>;

// Two keys an octave: of [1, 1.5) 161, of [1.5, 2) 162.
int key_of(double peak)
{
  if (peak == 0) { return 0; }
  if (!std::isfinite(peak)) { return 255; }
  int const octave = std::ilogb(peak);
  int const half   = 2 * octave + (std::ldexp(peak, -octave) >= 1.5 ? 1 : 0);
  return std::clamp(half + 161, 1, 255);
}

// For each place of the sorted gradient the coordinate that lies there.
template <class Element>
std::vector<std::uint64_t> expected_places(all_ranks<Element> const& in,
                                           layout const& bucket,
                                           float most_key_bits,
                                           std::uint64_t strip)
{
  std::vector<std::uint64_t> places;
  for (tensor const& t : bucket.tensors) {
    bool const sorted = t.rows > 1 && t.columns > 1 && !bucket.bypasses(t) &&
                        8.0 * static_cast<double>(t.rows + t.columns) <=
                          static_cast<double>(most_key_bits) * static_cast<double>(t.size());
    std::vector<std::uint64_t> rows(t.rows), columns(t.columns);
    std::iota(rows.begin(), rows.end(), 0u);
    std::iota(columns.begin(), columns.end(), 0u);
    if (sorted) {
      std::vector<int> row_keys(t.rows), column_keys(t.columns);
      for (auto const& gradient : in) {
        for (std::uint64_t i = 0; i < t.size(); ++i) {
          int const key = key_of(std::abs(static_cast<double>(to_float(gradient[t.offset + i]))));
          int& row      = row_keys[i / t.columns];
          int& column   = column_keys[i % t.columns];
          row           = std::max(row, key);
          column        = std::max(column, key);
        }
      }
      std::stable_sort(
        rows.begin(), rows.end(), [&](auto a, auto b) { return row_keys[a] > row_keys[b]; });
      std::stable_sort(columns.begin(), columns.end(), [&](auto a, auto b) {
        return column_keys[a] > column_keys[b];
      });
    }
    std::uint64_t const wide = sorted ? strip : std::max<std::uint64_t>(t.columns, 1);
    for (std::uint64_t left = 0; left < t.columns; left += wide) {
      for (std::uint64_t const row : rows) {
        for (std::uint64_t i = left; i < std::min(left + wide, t.columns); ++i) {
          places.push_back(t.offset + row * t.columns + columns[i]);
        }
      }
    }
  }
  return places;
}

// What exchanges of the inner codec make of the gradients in sorted order, brought back.
template <class Codec, class Element>
all_ranks<float> expected_means(Codec const& codec,
                                layout const& bucket,
                                all_ranks<Element> const& in,
                                std::uint64_t seed)
{
  auto const places =
    expected_places(in, bucket, codec.most_key_bits, static_cast<std::uint64_t>(Codec::strip));
  all_ranks<float> moved(in.size(), std::vector<float>(bucket.coordinates));
  for (std::size_t k = 0; k < in.size(); ++k) {
    for (std::size_t i = 0; i < places.size(); ++i) { moved[k][i] = to_float(in[k][places[i]]); }
  }
  auto const plan = codec.plan(bucket, {.size = static_cast<int>(in.size())});
  loopback_run<typename Codec::inner_type> run{
    plan.inner().codec(), bucket, static_cast<int>(in.size()), seed};
  auto const& got      = run.exchange(moved);
  all_ranks<float> out = moved;
  for (std::size_t k = 0; k < in.size(); ++k) {
    for (std::size_t i = 0; i < places.size(); ++i) { out[k][places[i]] = got[k][i]; }
  }
  return out;
}

template <class Codec, class Element>
void check_exchange(Codec const& codec, layout const& bucket, all_ranks<Element> const& in)
{
  loopback_run<Codec, Element> run{codec, bucket, static_cast<int>(in.size()), 7, {.threads = 2}};
  auto const& got = run.exchange(in);
  auto const want = expected_means(codec, bucket, in, 7);
  for (std::size_t k = 0; k < in.size(); ++k) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < want[k].size(); ++i) {
      auto const rounded = detail::finite_from_float<Element>(want[k][i]);
      wrong += std::memcmp(&got[k][i], &rounded, sizeof(Element)) != 0 ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

template <class Element>
all_ranks<Element> uneven(layout const& bucket, int ranks)
{
  all_ranks<Element> out;
  for (int k = 0; k < ranks; ++k) { out.push_back(uneven_values<Element>(bucket, k, 0)); }
  return out;
}

template <class Element>
void check_order()
{
  auto const in                 = uneven<Element>(uneven_matrices, 3);
  constexpr float most_key_bits = 8;
  using codec                   = sorted_codec<cast_codec<float>, 7>;
  loopback_run<codec, Element> run{codec{.most_key_bits = most_key_bits}, uneven_matrices, 3, 1};
  run.exchange(in);
  auto const places = expected_places(in, uneven_matrices, most_key_bits, 7);
  REQUIRE(places.size() == uneven_matrices.coordinates);
  // A step of the parts with gradients whose values are their numbers says what lies where. Halves are too short for them.
  std::vector<float> numbers(uneven_matrices.coordinates);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  auto const plan = run.plan();
  cpu_executor const exec{.threads = 3};
  REQUIRE(sort_matrices(exec, plan, numbers, run.state(), run.workspace()).ok());
  auto const sorted = plan.sorted(run.workspace());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    wrong += static_cast<std::uint64_t>(sorted[i]) != places[i] ? 1 : 0;
  }
  // The first exchange has left its order where the keys are still those of all ranks.
  CHECK(wrong == 0);
  std::vector<float> back(numbers.size(), -1.0f);
  REQUIRE(restore_matrices(exec, plan, back, run.state(), run.workspace()).ok());
  CHECK(back == numbers);
}

std::vector<tensor> shapes_of(std::string const& set)
{
  std::ifstream file("examples/gradients/" + set + "/layers.csv");
  std::string line;
  std::getline(file, line);
  std::vector<tensor> tensors;
  while (std::getline(file, line)) {
    auto next = [&, at = line.find(',')]() mutable {
      std::size_t const begin = at + 1;
      at                      = line.find(',', begin);
      return std::stoull(line.substr(begin, at - begin));
    };
    tensor t{};
    t.rows    = next();
    t.columns = next();
    t.offset  = next();
    tensors.push_back(t);
  }
  return tensors;
}

}  // namespace

TEST_CASE("[sorted] rows and columns are in the order of the ranks' largest magnitudes")
{
  SUBCASE("float") { check_order<float>(); }
  SUBCASE("half") { check_order<half>(); }
  SUBCASE("bfloat16") { check_order<bfloat16>(); }
}

TEST_CASE("[sorted] keys are half octaves")
{
  for (float const value : {0.0f,
                            0x1p-149f,
                            0x1p-80f,
                            0x1.7fffffp-80f,
                            0x1.8p-80f,
                            0x1p-79f,
                            1.0f,
                            1.4999999f,
                            1.5f,
                            3.0f,
                            0x1.8p46f,
                            0x1p47f,
                            0x1p100f,
                            3e38f}) {
    CAPTURE(value);
    CHECK(line_key<float>(magnitude_bits(-value)) == key_of(static_cast<double>(value)));
  }
  CHECK(line_key<float>(magnitude_bits(std::numeric_limits<float>::quiet_NaN())) == 255);
  for (unsigned bits = 0; bits < 0x8000; ++bits) {
    half const value{static_cast<std::uint16_t>(bits)};
    if (bits > 0x7c00) { continue; }  // NaN
    CHECK(line_key<half>(magnitude_bits(value)) == key_of(static_cast<double>(to_float(value))));
  }
}

TEST_CASE("[sorted] the exchange is that of the inner codec on sorted gradients")
{
  SUBCASE("floats, summed")
  {
    check_exchange(exact{}, uneven_matrices, uneven<float>(uneven_matrices, 3));
  }
  SUBCASE("an allocation, which pays for the keys")
  {
    sorted_codec<std::remove_const_t<decltype(presets::allocated_2)>> const codec{
      presets::allocated_2};
    check_exchange(codec, uneven_matrices, uneven<float>(uneven_matrices, 3));
    auto const plan  = codec.plan(uneven_matrices, {.size = 3});
    auto const plain = presets::allocated_2.plan(uneven_matrices, {.size = 3});
    CHECK(plan.lines_bytes() > 0);
    CHECK(plan.wire_bytes() <= plain.wire_bytes() + 16);
    CHECK(plan.wire_bytes() + 100 > plain.wire_bytes());
  }
  SUBCASE("codes of unlike lengths, which pay for the keys")
  {
    check_exchange(presets::sorted_entropy_2, uneven_matrices, uneven<float>(uneven_matrices, 3));
    auto const plan  = presets::sorted_entropy_2.plan(uneven_matrices, {.size = 3});
    auto const plain = presets::entropy_two_shot_2.plan(uneven_matrices, {.size = 3});
    CHECK(plan.lines_bytes() > 0);
    CHECK(plan.wire_bytes() <= plain.wire_bytes() + 48);
    CHECK(plan.wire_bytes() + 100 > plain.wire_bytes());
  }
  SUBCASE("halves, and vectors that are compressed")
  {
    sorted_codec<std::remove_const_t<decltype(presets::rotated_sat4)>> const codec{
      presets::rotated_sat4};
    layout bucket         = uneven_matrices;
    bucket.bypass_vectors = false;
    check_exchange(codec, bucket, uneven<half>(bucket, 2));
  }
  SUBCASE("nothing, a vector, one rank")
  {
    check_exchange(exact{}, layout{}, all_ranks<float>{{}, {}});
    std::vector<tensor> const one{{.rows = 1, .columns = 1000}};
    layout const vector{.coordinates = 1000, .tensors = one};
    check_exchange(exact{}, vector, uneven<float>(vector, 2));
    check_exchange(exact{}, uneven_matrices, uneven<float>(uneven_matrices, 1));
  }
}

// What a scale is raised to, said again: the largest of its tensor times the floor, or 1 where all are zeros.
std::vector<float> raise_scales(std::vector<float> const& kept, layout const& bucket, float floor)
{
  std::vector<float> raised(kept.size(), 1.0f);
  for (tensor const& t : bucket.tensors) {
    float largest = 0;
    for (std::size_t i = 0; i < t.size(); ++i) { largest = std::max(largest, kept[t.offset + i]); }
    for (std::size_t i = 0; i < t.size() && largest > 0 && !bucket.bypasses(t); ++i) {
      raised[t.offset + i] = std::max(kept[t.offset + i], floor * largest);
    }
  }
  return raised;
}

// In units of scales that the caller gives an exchange is that of quotients, whose means are multiplied.
template <class Inner>
void compare_to_quotients(Inner const& inner)
{
  sorted_codec<Inner> const plain{.inner = inner};
  sorted_codec<Inner, 64, given_diagonal> const scaled{.inner = inner};
  std::vector<float> scales(uneven_matrices.coordinates);
  std::uint32_t random = 11;
  for (float& scale : scales) {
    random = random * 1664525u + 1013904223u;
    scale  = std::ldexp(1.0f + 0x1p-32f * static_cast<float>(random),
                       -static_cast<int>(random >> 12) % 14);
  }
  for (std::size_t i = 0; i < scales.size(); i += 3) { scales[i] = 0; }
  std::fill_n(scales.begin() + 29773, 130 * 64, 0.0f);
  auto const raised = raise_scales(scales, uneven_matrices, scaled.metric.floor);
  loopback_run<sorted_codec<Inner>> divided{plain, uneven_matrices, 3, 7};
  loopback_run<sorted_codec<Inner, 64, given_diagonal>> run{
    scaled, uneven_matrices, 3, 7, {.threads = 2}};
  for (int rank = 0; rank < 3; ++rank) {
    auto const kept = metric_scales(run.plan(), run.state(rank));
    CHECK(std::all_of(kept.begin(), kept.end(), [](float scale) { return scale == 0; }));
    std::copy(scales.begin(), scales.end(), kept.begin());
  }
  auto const in  = uneven<float>(uneven_matrices, 3);
  auto quotients = in;
  for (auto& gradient : quotients) {
    for (std::size_t i = 0; i < gradient.size(); ++i) { gradient[i] = gradient[i] / raised[i]; }
  }
  auto const& means = divided.exchange(quotients);
  auto const& got   = run.exchange(in);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < raised.size(); ++i) {
    wrong += got[0][i] != means[0][i] * raised[i] ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(got[1] == got[0]);
  CHECK(got[2] == got[0]);
  CHECK(run.plan().wire_bytes() == divided.plan().wire_bytes());
}

TEST_CASE("[sorted] in a metric the exchange is that of quotients")
{
  compare_to_quotients(cast_codec<float>{});
  compare_to_quotients(presets::allocated_2);
}

// The smaller one of the agreed largest magnitudes of row and column, in half octaves, and a quarter of it; of what is not sorted
// the largest of the mean.
TEST_CASE("[sorted] kept scales start from keys, and follow what was decoded")
{
  using codec_type = sorted_codec<cast_codec<float>, 64, kept_diagonal>;
  std::vector<tensor> const tensors{{.rows = 40, .columns = 70},
                                    {.rows = 50, .offset = 2800},                  // bypasses
                                    {.rows = 300, .columns = 2, .offset = 2850}};  // is not sorted
  layout const bucket{.coordinates = 3450, .tensors = tensors};
  loopback_run<codec_type> run{
    {.metric = {.floor = 0x1p-20f, .prior = 4, .horizon = 6}}, bucket, 2, 7};
  std::vector<double> squares(bucket.coordinates);
  for (int step = 0; step < 9; ++step) {
    all_ranks<float> in;
    for (int rank = 0; rank < 2; ++rank) { in.push_back(uneven_values<float>(bucket, rank, step)); }
    auto const scales = metric_scales(run.plan(), run.state(1));
    if (step == 5) {
      // What is not finite changes nothing.
      std::vector<float> const before(scales.begin(), scales.end());
      auto poisoned  = in;
      poisoned[0][3] = std::numeric_limits<float>::quiet_NaN();
      run.exchange(poisoned);
      CHECK(std::equal(scales.begin(), scales.end(), before.begin()));
    }
    auto const& out = run.exchange(in);
    CHECK(out[0] == out[1]);
    for (tensor const& t : tensors) {
      if (bucket.bypasses(t)) { continue; }
      std::vector<double> rows(t.rows), columns(t.columns);
      double most = 0;
      for (std::size_t i = 0; i < t.size(); ++i) {
        double const peak      = std::max(std::abs(static_cast<double>(in[0][t.offset + i])),
                                     std::abs(static_cast<double>(in[1][t.offset + i])));
        rows[i / t.columns]    = std::max(rows[i / t.columns], peak);
        columns[i % t.columns] = std::max(columns[i % t.columns], peak);
        most = std::max(most, std::abs(static_cast<double>(out[0][t.offset + i])));
      }
      auto const half_octave = [](double peak) {
        if (peak == 0) { return 0.0; }
        double const octave = std::exp2(std::ilogb(peak));
        return peak >= 1.5 * octave ? 1.5 * octave : octave;
      };
      for (std::size_t i = 0; i < t.size(); ++i) {
        double& square    = squares[t.offset + i];
        double const mean = static_cast<double>(out[0][t.offset + i]);
        if (step == 0) {
          double const smaller = std::min(rows[i / t.columns], columns[i % t.columns]);
          square               = std::pow((t.columns == 2 ? most : half_octave(smaller)) / 4, 2.0);
        } else {
          // From two steps on n is the horizon, so that one more, which was flagged, changes nothing.
          double const n = std::min(step + 4.0, 6.0);
          square += (mean * mean - square) / n;
        }
      }
    }
    if (step == 0) {
      // Scales below the floor would be raised before they follow: keep them above, so that the formula is all.
      for (int rank = 0; rank < 2; ++rank) {
        auto const kept = metric_scales(run.plan(), run.state(rank));
        for (std::size_t i = 0; i < kept.size(); ++i) {
          bool const bypasses = i >= 2800 && i < 2850;
          double const root   = std::sqrt(squares[i]);
          CHECK((bypasses ? kept[i] == 0 : static_cast<double>(kept[i]) == root));
          kept[i] = static_cast<float>(root) + 1.0f;
        }
      }
      for (double& square : squares) {
        square = std::pow(static_cast<double>(static_cast<float>(std::sqrt(square)) + 1.0f), 2.0);
      }
      continue;
    }
    double worst = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (i >= 2800 && i < 2850) { continue; }
      worst = std::max(worst, std::abs(static_cast<double>(scales[i]) / std::sqrt(squares[i]) - 1));
    }
    // A step rounds seven times, by half a unit of 2^-23 each.
    CHECK(worst < (step + 1) * 8 * 0x1p-23);
  }
  auto const one = metric_scales(run.plan(), run.state(0));
  auto const two = metric_scales(run.plan(), run.state(1));
  CHECK(std::equal(one.begin(), one.end(), two.begin()));
  CHECK(check_state(run.plan(), run.state()).ok());
}

TEST_CASE("[sorted] without tensors the gradient is one vector, which stays as it is")
{
  auto const codec = presets::two_shot_4;
  loopback_run<sorted_codec<std::remove_const_t<decltype(presets::two_shot_4)>>> sorted{
    {codec}, {3000}, 2, 3};
  loopback_run<std::remove_const_t<decltype(presets::two_shot_4)>> plain{codec, {3000}, 2, 3};
  all_ranks<float> in(2, std::vector<float>(3000));
  for (std::size_t i = 0; i < 3000; ++i) {
    in[0][i] = std::sin(static_cast<float>(i));
    in[1][i] = std::cos(static_cast<float>(7 * i));
  }
  CHECK(sorted.exchange(in) == plain.exchange(in));
  CHECK(sorted.plan().wire_bytes() == plain.plan().wire_bytes());
}

TEST_CASE("[sorted] zeros and uneven rows no longer cost bits")
{
  auto const error_of = [](auto const& codec, layout const& bucket, all_ranks<float> const& in) {
    loopback_run<std::remove_cvref_t<decltype(codec)>> run{
      codec, bucket, static_cast<int>(in.size()), 5};
    auto const& out = run.exchange(in);
    for (auto const& other : out) { CHECK(other == out[0]); }
    return nmse(in, out[0]);
  };
  struct sample {
    std::string folder, set;
    int ranks;
    double gain;  // of 2 bits, at least; measured: 40, 13000, 1.65
  };
  for (sample const& of : {sample{"cnn", "step150", 2, 30},
                           sample{"recommender", "step200", 2, 10000},
                           sample{"lm", "step20", 4, 1.5}}) {
    CAPTURE(of.folder);
    auto const tensors = shapes_of(of.folder);
    layout const bucket{.coordinates = tensors.back().offset + tensors.back().size(),
                        .tensors     = tensors};
    all_ranks<float> in;
    for (int k = 0; k < of.ranks; ++k) { in.push_back(sample_gradient(of.set, k, of.folder)); }
    REQUIRE(in[0].size() == bucket.coordinates);
    double const sorted = error_of(presets::sorted_2, bucket, in);
    double const plain  = error_of(presets::allocated_2, bucket, in);
    MESSAGE(of.folder << ": " << sorted << " where allocated_2 loses " << plain);
    CHECK(sorted > 0);
    CHECK(sorted * of.gain < plain);
    double const unlike = error_of(presets::sorted_entropy_2, bucket, in);
    MESSAGE("codes of unlike lengths lose " << unlike);
    CHECK(unlike < sorted);
  }
}

TEST_CASE("[sorted] ranks that are threads, over a transport")
{
  auto const in = uneven<float>(uneven_matrices, 3);
  auto const codec =
    sorted_codec<std::remove_const_t<decltype(presets::allocated_2)>>{presets::allocated_2};
  auto const want = expected_means(codec, uneven_matrices, in, 7);
  loopback_group group{3};
  auto gradients = in;
  std::vector<status> outcomes(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto const r = static_cast<std::size_t>(rank);
      loopback_transport const over{group, rank};
      cpu_executor const exec{};
      auto const plan = codec.plan(uneven_matrices, {.size = 3, .rank = rank});
      std::vector<word4> state(plan.state_bytes() / 16 + 1),
        workspace(plan.workspace_bytes() / 16 + 1), scratch(scratch_bytes(plan) / 16 + 1);
      auto const kept = std::as_writable_bytes(std::span{state});
      outcomes[r]     = agree_on(over, plan, 7);
      if (outcomes[r].ok()) { outcomes[r] = initialize(exec, plan, kept, 7); }
      if (outcomes[r].ok()) {
        outcomes[r] =
          all_reduce_mean(exec,
                          plan,
                          gradients[r],
                          kept,
                          std::as_writable_bytes(std::span{workspace}),
                          reduce_over(over, exec, std::as_writable_bytes(std::span{scratch})));
      }
      if (outcomes[r].ok()) { outcomes[r] = check_state(plan, kept); }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  for (std::size_t r = 0; r < 3; ++r) {
    CAPTURE(outcomes[r].message);
    REQUIRE(outcomes[r].ok());
    CHECK(gradients[r] == want[r]);
  }
}

TEST_CASE("[sorted] plans differ by what is sorted, and how")
{
  std::uint64_t const one = fingerprint(exact{}.plan(uneven_matrices, {.size = 2}));
  CHECK(one == fingerprint(exact{}.plan(uneven_matrices, {.size = 2, .rank = 1})));
  CHECK(one != fingerprint(exact{.most_key_bits = 8}.plan(uneven_matrices, {.size = 2})));
  CHECK(one != fingerprint(cast_codec<float>{}.plan(uneven_matrices, {.size = 2})));
  using in_units = sorted_codec<cast_codec<float>, 64, kept_diagonal>;
  CHECK(one != fingerprint(in_units{}.plan(uneven_matrices, {.size = 2})));
  CHECK(one !=
        fingerprint(sorted_codec<cast_codec<float>, 32>{}.plan(uneven_matrices, {.size = 2})));
}

TEST_CASE("[sorted] wrong arguments, a damaged state, and what cannot be")
{
  auto const of = [](layout const& bucket, float most = .5f) {
    return exact{.most_key_bits = most}.plan(bucket, {.size = 2}).check();
  };
  CHECK(of(uneven_matrices).ok());
  CHECK(mentions(of(uneven_matrices.part(0, 5000)), "whole matrices"));
  CHECK(mentions(of(uneven_matrices, -1), "most_key_bits"));
  CHECK(mentions(of(uneven_matrices, std::numeric_limits<float>::quiet_NaN()), "most_key_bits"));
  layout gaps      = uneven_matrices;
  gaps.coordinates = 1;
  CHECK(mentions(of(gaps), "layout.tensors"));
  loopback_run<exact> run{exact{}, uneven_matrices, 1, 3};
  CHECK(check_state(run.plan(), run.state()).ok());
  std::vector<float> short_one(uneven_matrices.coordinates - 1),
    whole(uneven_matrices.coordinates, 1);
  auto const outcome = [&](std::vector<float>& gradient, std::span<std::byte> workspace) {
    return all_reduce_mean(
      cpu_executor{}, run.plan(), gradient, run.state(), workspace, [](auto const&) {});
  };
  CHECK(mentions(outcome(short_one, run.workspace()), "gradient.size()"));
  CHECK(mentions(outcome(whole, run.workspace().first(100)), "workspace"));
  CHECK(outcome(whole, run.workspace()).ok());
  // What fails on the way leaves the gradient as it was.
  for (int failing : {0, 1}) {
    whole.assign(whole.size(), 2);
    int round = 0;
    CHECK(all_reduce_mean(cpu_executor{},
                          run.plan(),
                          whole,
                          run.state(),
                          run.workspace(),
                          [&](auto const& wire) {
                            wire.data[0] = {};
                            return round++ == failing ? 1 : 0;
                          })
            .code == error_code::transport_failed);
    CHECK(round == failing + 1);
    CHECK(std::all_of(whole.begin(), whole.end(), [](float v) { return v == 2; }));
  }
  std::byte& damaged =
    run.state()[run.plan().line_table_offset() + 64 + offsetof(line_record, columns)];
  damaged ^= std::byte{1};
  CHECK(mentions(check_state(run.plan(), run.state()), "table"));
  damaged ^= std::byte{1};
  CHECK(check_state(run.plan(), run.state()).ok());
}

TEST_CASE("[sorted] all ranks learn of a value that is not finite, and the next step is sound")
{
  auto const codec =
    sorted_codec<std::remove_const_t<decltype(presets::allocated_2)>>{presets::allocated_2};
  loopback_run<std::remove_const_t<decltype(codec)>> run{codec, uneven_matrices, 2, 3};
  auto in    = uneven<float>(uneven_matrices, 2);
  in[1][500] = std::numeric_limits<float>::infinity();
  run.exchange(in);
  for (int rank : {0, 1}) { CHECK(run.header(rank).last_was_non_finite()); }
  in[1][500]      = 0;
  auto const& out = run.exchange(in);
  for (int rank : {0, 1}) { CHECK_FALSE(run.header(rank).last_was_non_finite()); }
  CHECK(out[0] == out[1]);
  CHECK(std::none_of(out[0].begin(), out[0].end(), [](float v) { return std::isnan(v); }));
}
