// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A user's orthogonalizer goes with every wire, schedule and feedback of factors, those of users too.

#include "../../examples/your_own/classical_gram_schmidt.hpp"
#include "../../examples/your_own/decaying_feedback.hpp"
#include "conformance/all_pairs.hpp"

using namespace tersum;
using namespace tersum::tests;

namespace {

//! @brief Three exchanges of a matrix of rank 2: the kernel bodies give the CPU's bytes, all ranks end alike, and the factors hold all
//! of the mean but what the wire rounds.
template <class Codec>
void exchange_factors()
{
  CAPTURE(pairs::name_of<Codec>());
  constexpr std::size_t rows = 40, columns = 37, matrix = rows * columns;
  constexpr std::size_t wire = sizeof(typename Codec::quantizer_type::element);
  // Of float what two products of at most 66 roundings lose in bases of a condition of 100.
  constexpr double unit  = wire == 4 ? 3300 * 0x1p-24
                           : std::is_same_v<typename Codec::quantizer_type::element, half> ? 0x1p-11
                                                                                           : 0x1p-8;
  tensor const tensors[] = {{.rows = rows, .columns = columns}, {.rows = 7, .offset = matrix}};
  layout const gradient{matrix + 7, tensors};
  REQUIRE(Codec{}.plan(gradient, world{}).chunks() == 1);
  for (int const world : {1, 2, 5}) {
    CAPTURE(world);
    std::byte const filling{0x3c};
    auto const bytes = digest_exchanges<cpu_executor>(
      digested<Codec, float>{Codec{}}, gradient, world, {.threads = 1}, filling);
    REQUIRE(bytes.exchanges != "refused");
    auto const same = digest_exchanges<emulated_executor>(
      digested<Codec, float, emulated_executor>{Codec{}}, gradient, world, {}, filling);
    CHECK(same.exchanges == bytes.exchanges);
    CHECK(same.states == bytes.states);

    exchange_case<Codec, float> const c{.gradient = gradient, .world = world, .seed = 7};
    exchange_run<host_buffer, Codec, float> ranks{cpu_executor{}, c};
    for (int step = 0; step < 3; ++step) {
      CAPTURE(step);
      // sin(a + b) has rank 2, and the same columns in every step.
      std::vector<float> mean(gradient.coordinates);
      for (std::size_t i = 0; i < mean.size(); ++i) {
        auto const row = static_cast<float>(i / columns), column = static_cast<float>(i % columns);
        mean[i] = std::sin(.3f * row + .7f * column + static_cast<float>(step));
      }
      auto const given = [&](int rank) {
        auto mine = mean;
        for (float& v : mine) { v *= pairs::weight_of(rank, world); }
        return mine;
      };
      auto const got = joined<Codec>(ranks.exchange(cpu_executor{}, c.given_by(given)));
      double lost = 0, all = 0;
      for (std::size_t i = 0; i < mean.size(); ++i) {
        lost += std::pow(static_cast<double>(got[i]) - static_cast<double>(mean[i]), 2);
        all += std::pow(static_cast<double>(mean[i]), 2);
      }
      // In turns the first exchange has half of an iteration.
      CHECK((lost <= std::pow(2 * (world + 2) * unit, 2) * all || (step == 0 && !agrees<Codec>)));
    }
  }
}

TEST_CASE("[conformance] orthogonalizers of users go with wires, schedules and feedback of factors")
{
  using user          = low_rank<3, classical_gram_schmidt>;
  constexpr auto both = low_rank_schedule::paired, in_turns = low_rank_schedule::alternating;
  exchange_factors<low_rank_codec<user, cast<half>, both, no_feedback>>();
  exchange_factors<low_rank_codec<user, cast<bfloat16>, in_turns, no_feedback>>();
  exchange_factors<low_rank_codec<user, cast<float>, both, error_feedback>>();
  exchange_factors<low_rank_codec<user, cast<float>, both, decayed_feedback>>();
  exchange_factors<low_rank_codec<user, cast<float>, both, averaged_feedback>>();
  exchange_factors<low_rank_codec<user, cast<float>, both, decaying_feedback>>();
}

}  // namespace
