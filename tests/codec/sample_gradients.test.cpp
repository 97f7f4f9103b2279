// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What codecs must reach on the real gradients of examples/gradients/lm: 4 ranks, the last of 10 steps.

#include "support/loopback_run.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <cstring>
#include <string>

using namespace tersum;

namespace {

struct result {
  double nmse;
  double bits;
};

template <class Codec>
result last_of_ten(Codec const& codec, std::string const& set)
{
  auto const in = tests::sample_gradients(set);
  tests::loopback_run<Codec> run{codec, layout{in[0].size()}, 4, 42};
  result out{0, run.plan().bits_per_coordinate()};
  for (int step = 0; step < 10; ++step) {
    auto const& means = run.exchange(in);
    for (auto const& other : means) {
      REQUIRE(std::memcmp(other.data(), means[0].data(), other.size() * sizeof(float)) == 0);
    }
    out.nmse = tests::nmse(in, means[0]);
  }
  return out;
}

}  // namespace

TEST_CASE("[codec] the published saturating recipe loses what its paper does not say")
{
  for (std::string const set : {"step20", "step300"}) {
    CAPTURE(set);
    auto const sat4 = last_of_ten(presets::thc_sat4, set);
    CHECK(sat4.nmse >= .065);
    CHECK(sat4.nmse <= .085);
  }
}

TEST_CASE("[codec] tracked head-room and stratified dither keep the error of 4 and 8 bits small")
{
  for (std::string const set : {"step20", "step300"}) {
    CAPTURE(set);
    auto const sat4 = last_of_ten(presets::rotated_sat4, set);
    CHECK(sat4.nmse <= .052);
    CHECK(sat4.bits <= 4.1);
    auto const sat8 = last_of_ten(presets::rotated_sat8, set);
    CHECK(sat8.nmse <= .0007);
    CHECK(sat8.bits <= 8.1);
    auto const wide = last_of_ten(presets::thc_wide4, set);
    CHECK(wide.bits <= 8.1);
    CHECK(wide.nmse > 20 * sat8.nmse);
  }
}

TEST_CASE("[codec] half precision, the baseline, is nearly exact")
{
  for (std::string const set : {"step20", "step300"}) {
    CHECK(last_of_ten(presets::fp16, set).nmse < 1e-6);
  }
}
