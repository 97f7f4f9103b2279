// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Energies in units of their tensor's: which widths chunks get then.

#include "support/loopback_run.hpp"

#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/presets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tersum;
using run_type  = tests::loopback_run<std::remove_cvref_t<decltype(presets::allocated_2)>>;
using gradients = run_type::gradients;

constexpr auto by_tensor(float bits = 2, float weighting = 1)
{
  auto codec              = presets::allocated_2;
  codec.chunker.bits      = bits;
  codec.chunker.weighting = weighting;
  codec.chunker.by_tensor = true;
  return codec;
}

// Matrices of so many rows of 256 columns, one behind the other, in chunks of 512.
std::vector<tensor> matrices(std::initializer_list<std::uint64_t> rows)
{
  std::vector<tensor> out;
  std::uint64_t at = 0;
  for (std::uint64_t const r : rows) {
    out.push_back({.rows = r, .columns = 256, .offset = at});
    at += r * 256;
  }
  return out;
}

std::uint64_t size_of(std::vector<tensor> const& tensors)
{
  return tensors.back().offset + tensors.back().size();
}

// Normal coordinates whose size differs from chunk to chunk, and by `scale` from tensor to tensor.
gradients spread(std::vector<tensor> const& tensors, std::vector<float> const& scale, int world)
{
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  gradients out(static_cast<std::size_t>(world), std::vector<float>(size_of(tensors)));
  for (auto& gradient : out) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      for (std::uint64_t i = 0; i < tensors[t].size(); ++i) {
        float const size                = std::ldexp(1.0f, -static_cast<int>(i / 512 * 7 % 11));
        gradient[tensors[t].offset + i] = scale[t] * size * normal(random);
      }
    }
  }
  return out;
}

std::vector<std::uint32_t> levels(run_type const& run, int rank = 0)
{
  auto const& plan = run.plan(rank);
  std::vector<std::uint32_t> places(plan.chunks());
  std::memcpy(places.data(),
              run.workspace(rank).data() + plan.places_offset(),
              places.size() * sizeof(std::uint32_t));
  for (auto& place : places) { place &= 7u; }
  return places;
}

// What is written in docs/wire_format.md, with plain loops: the energies e by which chunks compete.
std::vector<std::uint32_t> energies(run_type const& run, std::vector<tensor> const& tensors)
{
  auto const& plan = run.plan();
  std::vector<bfloat16> norms(plan.chunks());
  std::memcpy(
    norms.data(), run.workspace().data() + plan.agreed_offset(), norms.size() * sizeof(bfloat16));
  auto const bits = [](float value) {
    std::uint32_t out;
    std::memcpy(&out, &value, sizeof(out));
    return std::isfinite(value) ? out : 0x7f800000u;
  };
  std::vector<std::uint32_t> out;
  std::size_t chunk = 0;
  for (tensor const& t : tensors) {
    std::size_t const end = chunk + (t.size() + 511) / 512;
    std::uint64_t sum = 0, count = 0;
    for (std::size_t c = chunk; c < end; ++c) {
      float const norm = to_float(norms[c]);
      if (norm > 0 && std::isfinite(norm)) {
        sum += bits(norm) / 256;
        ++count;
      }
    }
    auto const mean =
      count == 0 ? std::int64_t{0x3f800000} : static_cast<std::int64_t>(sum / count * 256);
    for (; chunk < end; ++chunk) {
      std::int64_t e = bits(to_float(norms[chunk]) * t.weight);
      if (e != 0 && e != 0x7f800000) {
        e = std::clamp<std::int64_t>(e - mean + 0x3f800000, 1, 0x7f7fffff);
      }
      out.push_back(static_cast<std::uint32_t>(e));
    }
  }
  return out;
}

TEST_CASE("[selection] a mean energy is the geometric mean, of what is neither zero nor infinite")
{
  std::mt19937 random(5);
  std::normal_distribution<float> octave{0.0f, 9.0f};
  for (int const count : {1, 2, 3, 1000}) {
    double want = 0;
    detail::energy_mean mean;
    for (int i = 0; i < count; ++i) {
      float const energy = std::exp2(octave(random));
      want += std::log2(static_cast<double>(energy)) / count;
      mean.add(detail::energy_bits(energy, 4));
      mean.add(0);
      mean.add(detail::energy_bits(std::numeric_limits<float>::infinity(), 4));
    }
    float const got = detail::bits_float(mean.bits());
    // The bits of a float are its logarithm up to .0861 below; those of the mean are one once more, rounded down by 2^-15.
    CHECK(std::abs(std::log2(static_cast<double>(got)) - want) <= .0861 + 0x1p-15);
  }
  CHECK(detail::energy_mean{}.bits() == detail::float_bits(1.0f));
}

TEST_CASE("[selection] energies relative to a mean keep their order and distances")
{
  auto const bits = [](float value) { return detail::energy_bits(value, 4); };
  CHECK(detail::relative_energy(bits(12.0f), bits(4.0f)) == bits(3.0f));
  CHECK(detail::relative_energy(bits(4.0f), bits(64.0f)) == bits(0.0625f));
  CHECK(detail::relative_energy(0, bits(64.0f)) == 0);
  float const infinity = std::numeric_limits<float>::infinity();
  CHECK(detail::relative_energy(bits(infinity), bits(64.0f)) == bits(infinity));
  // What is too far from the mean stays above zero, and below infinity.
  CHECK(detail::relative_energy(1, 0x7f7fff00u) == 1);
  CHECK(detail::relative_energy(0x7f7fffffu, 0) == 0x7f7fffffu);
}

TEST_CASE("[selection] by tensor, chunks are chosen by the energies of docs/wire_format.md")
{
  // Chunk sizes of the tensors: one, a part, one and a part, a prime number, many. One does not travel.
  auto tensors       = matrices({2, 1, 3, 74, 2000, 60, 8});
  tensors[1].rows    = 256;  // a vector, which bypasses
  tensors[1].columns = 1;
  std::vector<float> const scale{1e3f, 1.0f, 1e-6f, 1.0f, 3e-3f, 0.0f, 30.0f};
  tensors[3].weight              = 16;
  std::vector<tensor> travelling = tensors;
  travelling.erase(travelling.begin() + 1);
  for (float const weighting : {1.0f, 0.25f}) {
    for (bool const finite : {true, false}) {
      CAPTURE(weighting);
      CAPTURE(finite);
      auto const codec = by_tensor(2, weighting);
      run_type run{codec, layout{size_of(tensors), tensors}, 2, 9, {.threads = 2}};
      auto in = spread(tensors, scale, 2);
      if (!finite) { in[1][tensors[4].offset + 777] = std::numeric_limits<float>::quiet_NaN(); }
      run.exchange(in);
      auto const want_from = energies(run, travelling);
      REQUIRE(want_from.size() == run.plan().chunks());
      std::vector<std::uint32_t> places(want_from.size()), histogram(detail::digit_count);
      detail::selection_header header;
      auto const rule = run.plan().selection_rule();
      detail::chunk_selection{1, rule, places.size(), histogram.data(), places.data()}.run(
        [&](std::uint64_t chunk) { return want_from[chunk]; }, header);
      for (auto& place : places) { place &= 7u; }
      CHECK(levels(run) == places);
      CHECK(levels(run, 1) == places);
      CHECK(std::count(places.begin(), places.end(), 0u) > 0);
    }
  }
}

TEST_CASE("[selection] by tensor, a tensor's size does not count, only its weight does")
{
  auto const tensors = matrices({64, 500, 300});
  layout const bucket{size_of(tensors), tensors};
  auto const choose = [&](auto const& codec, layout const& given, std::vector<float> const& scale) {
    run_type run{codec, given, 2, 9};
    run.exchange(spread(tensors, scale, 2));
    return levels(run);
  };
  // Powers of two move bits of norms by whole octaves.
  auto const alike = choose(by_tensor(), bucket, {1, 1, 1});
  CHECK(choose(by_tensor(), bucket, {1024, 1, 0x1p-20f}) == alike);
  // Without it the tensor of large gradients takes all bits.
  auto const large = choose(presets::allocated_2, bucket, {1, 0x1p20f, 1});
  auto const sent  = [&](std::vector<std::uint32_t> const& of, std::size_t begin, std::size_t end) {
    return std::count_if(of.begin() + static_cast<std::ptrdiff_t>(begin),
                         of.begin() + static_cast<std::ptrdiff_t>(end),
                         [](std::uint32_t level) { return level > 0; });
  };
  CHECK(sent(large, 0, 32) + sent(large, 282, 432) == 0);
  CHECK(choose(by_tensor(), bucket, {1, 0x1p20f, 1}) == alike);
  CHECK(sent(alike, 0, 32) > 0);
  CHECK(sent(alike, 282, 432) > 0);
  auto heavy      = tensors;
  heavy[2].weight = 0x1p12f;
  auto const more = choose(by_tensor(), layout{size_of(heavy), heavy}, {1, 1, 1});
  CHECK(sent(more, 282, 432) > sent(alike, 282, 432));
  CHECK(sent(more, 32, 282) < sent(alike, 32, 282));
}

TEST_CASE("[selection] by tensor, a gradient that is one vector is chosen from as without it")
{
  for (std::size_t const d : {0u, 1u, 511u, 512u, 513u, 100003u}) {
    CAPTURE(d);
    std::vector<tensor> const one{{.rows = d, .offset = 0}};
    run_type with{by_tensor(), layout{.coordinates = d}, 2, 9};
    run_type without{presets::allocated_2, layout{.coordinates = d}, 2, 9};
    CHECK(with.plan().workspace_bytes() == without.plan().workspace_bytes());
    auto const in = d == 0 ? gradients(2) : spread(one, {1}, 2);
    CHECK(with.exchange(in) == without.exchange(in));
  }
}

TEST_CASE("[selection] by tensor, the workspace has four bytes more for each tensor, in whole 16")
{
  auto const tensors = matrices({64, 500, 300});
  layout const bucket{size_of(tensors), tensors};
  world const two{.size = 2, .rank = 0};
  std::size_t const without = presets::allocated_2.plan(bucket, two).workspace_bytes();
  std::size_t const with    = by_tensor().plan(bucket, two).workspace_bytes();
  CHECK(with == without + 16);  // three, in whole 16 bytes
  CHECK(fingerprint(by_tensor().plan(bucket, two), 1) !=
        fingerprint(presets::allocated_2.plan(bucket, two), 1));
}

}  // namespace
