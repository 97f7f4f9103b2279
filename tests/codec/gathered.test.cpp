// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a gathered codec puts on the wire and makes of it, against its formulas in double.

#include "support/bad_input.hpp"
#include "support/chunk_rotation.hpp"
#include "support/coded_chunk.hpp"
#include "support/loopback_run.hpp"
#include "support/mismatches.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/presets.hpp>

#include <bit>
#include <cmath>

using namespace tersum;

namespace {

constexpr std::uint64_t seed = 31;
constexpr double epsilon     = 0x1p-24;

template <int Bits, class Feedback = no_feedback>
using gathers =
  codec<fixed_chunks<256>, partial_hadamard<256>, scaled_codes<lloyd_max<Bits>>, gather, Feedback>;

template <class Codec>
void check_against_formulas(Codec const& codec, std::size_t d, int world)
{
  CAPTURE(d);
  CAPTURE(world);
  constexpr std::size_t size = Codec::chunk_size;
  auto const in              = tests::normal_gradients(world, d, 17);
  auto const ranks           = static_cast<std::size_t>(world);
  tests::loopback_run<Codec> run{codec, layout{d}, world, seed};
  run.exchange(in);
  std::uint64_t const key = run.header().sign_key;
  auto const& out         = run.exchange(in);
  auto const& plan        = run.plan();
  std::size_t const words = plan.part_bytes() / 4;
  tests::mismatches wrong;
  for (std::size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    tests::chunk_rotation<size> const turn{chunk, key};
    for (std::size_t me = 0; me < ranks; ++me) {
      auto const wire = gathered_wire(plan, run.workspace(static_cast<int>(me)));
      std::vector<double> mean(size);
      double scales = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        std::vector<double> x(size);
        for (std::size_t j = 0; j < size && chunk * size + j < d; ++j) {
          x[j] = static_cast<double>(in[r][chunk * size + j]);
        }
        auto const sent = tests::read_chunk<Codec>(wire.gathered + r * words, words, chunk);
        if (me == 0) { tests::check_encoding<Codec>(wrong, sent, turn.forward(x.data())); }
        auto const part = tests::estimate<Codec>(sent);
        for (std::size_t p = 0; p < size; ++p) { mean[p] += part[p] / world; }
        scales += sent.scale / world;
      }
      auto const back = turn.backward(mean);
      for (std::size_t j = 0; j < size && chunk * size + j < d; ++j) {
        double const want = back[j] / static_cast<double>(size);
        double const got  = static_cast<double>(out[me][chunk * size + j]);
        // Levels are below five root mean squares; a rounding for each rank, ten of the way back.
        double const room = (40 + world) * 16 * epsilon * scales / 16;
        wrong.expect(std::abs(got - want) <= room, true, got, want, j);
      }
    }
  }
  if (d > 0) { CHECK(wrong.report() == ""); }
  for (auto const& other : out) { CHECK(other == out[0]); }
}

}  // namespace

TEST_CASE("[gathered] codes, scales and means are those of the formulas")
{
  check_against_formulas(gathers<1>{}, 1009, 3);
  check_against_formulas(gathers<4>{}, 1000, 4);
  for (std::size_t const d : {0u, 255u, 256u, 257u}) { check_against_formulas(gathers<3>{}, d, 2); }
}

TEST_CASE("[gathered] a value that is not finite stays in its chunk, and zeros stay zeros")
{
  tests::check_non_finite(gathers<4, error_feedback>{});
  tests::gradients const zeros(3, std::vector<float>(1024));
  tests::loopback_run<gathers<1>> nothing{{}, layout{1024}, 3, 5};
  for (float const value : nothing.exchange(zeros)[0]) {
    REQUIRE(std::bit_cast<std::uint32_t>(value) == 0);
  }
}

TEST_CASE("[gathered] a wrong argument is named, and no memory is written")
{
  tests::check_wrong_arguments(presets::gathered<2, error_feedback>{}, layout{3000});
}
