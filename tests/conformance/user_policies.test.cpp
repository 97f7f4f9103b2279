// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranges, head-room, draws, quantizers and codebooks that have what their concepts ask for and nothing else: their codecs' exchanges
//! give the mean. Policies of other roles are those of examples/your_own.

#include "../../examples/your_own/decaying_feedback.hpp"
#include "../../examples/your_own/mean_magnitude.hpp"
#include "../../examples/your_own/partitioned_sum.hpp"
#include "support/loopback_run.hpp"

#include <tersum/codec.hpp>
#include <tersum/form/two_shot.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/types.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace tersum;

struct room {
  static constexpr bool tracked = false;
  constexpr description describe() const { return {"room"}; }
  float factor(int, float) const { return 1; }
};

struct extent {
  using scalar                           = float;
  using op                               = native_sum<float>;
  using headroom_type                    = room;
  static constexpr bool measures_rotated = false;
  float clip                             = 3;
  room headroom{};
  constexpr description describe() const { return {"extent", clip}; }
  template <class Group, int Size>
  float measure(Group const& g, float const (&x)[Size], float (&)[Size]) const
  {
    return g.sum(Size, [&](int i) { return g.multiply(x[i], x[i]); });
  }
  float rank_range(float agreed, int world, float coordinates) const
  {
    return std::sqrt(agreed / (static_cast<float>(world) * coordinates));
  }
  float bound(float agreed, int, float) const { return std::sqrt(agreed); }
};

struct draw {
  static constexpr int rounds = 10;
  constexpr description describe() const { return {"draw"}; }
  static constexpr philox_block counter(std::uint64_t block, dither_key const& key)
  {
    return {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(key.step), key.rank, 0}};
  }
  static constexpr std::uint32_t mask(dither_key const&) { return 0; }
};

struct rounding {
  using dither                       = draw;
  static constexpr int bits          = 4;
  static constexpr int max_level     = 7;
  static constexpr int fraction_bits = 8;
  static constexpr bool unbiased     = true;
  constexpr description describe() const { return {"rounding"}; }
  std::int32_t encode(float value, float scale, std::uint32_t random) const
  {
    float const sum = std::nearbyint(value * scale) + static_cast<float>(random);
    return static_cast<std::int32_t>(std::clamp(std::floor(sum / 256.0f), -7.0f, 7.0f));
  }
};

// The signs of normal values, and whether they are large.
struct book {
  static constexpr int bits       = 2;
  static constexpr int magnitudes = 2;
  static constexpr bool unbiased  = true;
  constexpr description describe() const { return {"book"}; }
  static constexpr float numbers[4]{.45f, 1.5f, 1.0f, std::numeric_limits<float>::infinity()};
  static constexpr float const* levels() { return numbers; }
  static constexpr float const* boundaries() { return numbers + 2; }
  static constexpr float distortion() { return .133f; }
};

// Signs and zeros of the size of their block.
struct blocks {
  constexpr description describe() const { return {"blocks"}; }
  struct scale {
    static constexpr int bits = 8;
    static std::uint32_t encode(float ratio)
    {
      return static_cast<std::uint32_t>(std::ceil(ratio * 16));
    }
    static float decode(std::uint32_t code) { return static_cast<float>(code) / 16; }
  };
  using dither                    = no_dither;
  static constexpr int bits       = 2;
  static constexpr int magnitudes = 2;
  static constexpr int block      = 16;
  static constexpr int block_bits = scale::bits;
  static constexpr bool unbiased  = false;
  static constexpr bool uniform   = true;
  static constexpr std::array<float, 2> level{0, 1};
  static constexpr std::array<std::uint32_t, 3> mark{0, 1u << 20, 1u << 21};
  static std::uint32_t round(std::uint32_t magnitude, std::uint32_t, std::uint32_t const*)
  {
    return magnitude > 1u << 19 ? 1 : 0;
  }
  static constexpr float distortion() { return .5f; }
};

// Uniform values that the ranks share in part, in every other 128 coordinates four times as large.
std::vector<std::vector<float>> gradients(std::size_t d)
{
  std::vector<std::vector<float>> out(3, std::vector<float>(d));
  std::mt19937 random{5};
  std::uniform_real_distribution<float> uniform{-1, 1};
  for (std::size_t i = 0; i < d; ++i) {
    float const size   = i / 128 % 2 == 0 ? .5f : 2;
    float const common = uniform(random);
    for (auto& g : out) { g[i] = size * (common + uniform(random)); }
  }
  return out;
}

// The error of the mean of three ranks; all of them have the same.
template <class Codec>
double error_of(Codec const& codec)
{
  auto const in = gradients(3000);
  tests::loopback_run<Codec> run{codec, layout{3000}, 3, 11};
  auto const& out = run.exchange(in);
  CHECK(out[1] == out[0]);
  CHECK(out[2] == out[0]);
  CHECK(fingerprint(run.plan(0)) == fingerprint(run.plan(2)));
  return tests::nmse(in, out[0]);
}

TEST_CASE("[conformance] policies made of what the concepts ask for exchange in lanes")
{
  using lanes = codec<fixed_chunks<256>,
                      partial_hadamard<256>,
                      summed_codes<extent, rounding, partitioned_sum<8>>,
                      in_wire,
                      decaying_feedback>;
  static_assert(feeds_back<lanes> && !saturates<lanes>);
  // Three root mean squares in 7 steps: rounding a value has a variance of a quarter of a step's square at most, (3/7)^2 / 4
  // = .046 of its energy; rotated values beyond the range, 1 in 370, add less than .002. Of uniform values ranks have the
  // energy 1/6 where their mean has (1 + 1/3) / 12 = 1/9, and their errors are independent: .048 (1/6) / 3 / (1/9) = .024.
  double const error = error_of(lanes{});
  CHECK(error < .024);
  CHECK(error > 0);
}

TEST_CASE("[conformance] a choice follows what a range of one's own measures")
{
  // In even chunks one coordinate is 40, so that their norms are the largest, 1600 for 128; in odd ones all are 1, so that their
  // mean magnitudes are, 1 for 40 / 128. 2.25 bits pay for the norms and for 4 of 8 chunks of 4 bits.
  std::vector<float> all(1024);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i / 128 % 2 == 1 ? 1.0f : i % 128 == 77 ? 40.0f : 0.0f;
  }
  using by_magnitude =
    codec<top_chunks<128>,
          no_rotation,
          summed_codes<mean_magnitude, stochastic_quantizer<4>, saturating_sum<4>>,
          in_wire>;
  by_magnitude const chosen{.chunker = {.bits = 2.25f}};
  tests::loopback_run<by_magnitude> run{chosen, layout{1024}, 2, 11};
  auto const& mean = run.exchange({all, all})[0];
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Three mean magnitudes in 7 steps, and as much head-room as both ranks need: a value of one step or two.
    CHECK((mean[i] != 0) == (i / 128 % 2 == 1));
  }
}

TEST_CASE("[conformance] a codebook and blocks of one's own exchange in two shots")
{
  // Of normal values an encoding loses .13: a third of that of ranks with 3/2 of the mean's energy, and that of the mean.
  CHECK(error_of(codec<fixed_chunks<256>,
                       partial_hadamard<256>,
                       scaled_codes<book>,
                       two_shot,
                       decaying_feedback>{}) < .25);
  // Zeros and signs are coarse: no more is asked than that they are better than nothing.
  CHECK(error_of(codec<fixed_chunks<256>, no_rotation, scaled_codes<blocks>, two_shot>{}) < 1);
}

}  // namespace
