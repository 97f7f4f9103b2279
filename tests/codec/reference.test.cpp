// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every stage of an exchange agrees with formulas in double: agreed scalars, steps, codes, sums, means, head-room.

#include "support/codecs.hpp"
#include "support/mismatches.hpp"
#include "support/reference_codec.hpp"
#include "support/staged_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum_baselines/presets.hpp>

#include <cmath>
#include <cstdlib>
#include <random>

using namespace tersum;

namespace {

constexpr double epsilon    = 0x1p-24;  // the rounding of one float operation
constexpr std::uint64_t key = 0x5eed5eed5eed5eedu;

// Chunks of unlike size, one zero; ranks share half of their signal.
std::vector<std::vector<float>> make_gradients(int world, std::size_t coordinates, unsigned seed)
{
  std::mt19937 shared(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> out(static_cast<std::size_t>(world),
                                      std::vector<float>(coordinates));
  for (std::size_t i = 0; i < coordinates; ++i) {
    float const size   = i < 4096 ? .01f : i < 5120 ? 0.0f : 3.0f;
    float const common = normal(shared);
    for (auto& gradient : out) { gradient[i] = size * (common + normal(shared)); }
  }
  return out;
}

template <class Scalar>
constexpr bool is_short = std::is_same_v<Scalar, bfloat16>;

// How far the library's reduced scalar may lie from the exact one, relative to it.
template <class Codec>
double scalar_tolerance(int world, std::size_t rotation)
{
  using range = typename Codec::range_type;
  // Fused multiply-adds chain C / 256 squares, a tree of 8 levels adds the chains (all positive: relative errors do not
  // grow), the reduction adds n numbers; a magnitude has one rounding a level, of the norm, which is at most sqrt(N)
  // times itself, a division and a root. Under full_hadamard a norm is that of rotated values, one more division.
  double const levels = std::log2(static_cast<double>(rotation));
  double const chain  = Codec::chunk_size / 256.0 + 8 + world + 2;
  double float_error  = chain * epsilon;
  if (range::measurement == statistic::chunk_magnitude || Codec::rotates_all) {
    float_error += (levels + 2) * std::sqrt(static_cast<double>(rotation)) * epsilon;
  }
  // bfloat16 keeps 8 bits: half a unit of the last for each rank and for each sum, a whole one when rounded upwards.
  return float_error + (is_short<typename range::scalar> ? 0x1p-7 * world : 0.0);
}

// Runs `steps` exchanges and holds each stage against the model, which starts from the library's previous stage.
template <class Codec>
void check_against_model(Codec const& codec,
                         std::size_t coordinates,
                         int world,
                         reduction_order order = reduction_order::ring)
{
  using model_type = tests::reference_codec<Codec>;
  CAPTURE(coordinates);
  CAPTURE(world);
  model_type const model{codec, coordinates, world, key};
  tests::staged_run<Codec> run{codec, layout{coordinates}, world, key};
  if (run.plan().all_bypass()) { return; }
  double expected_undecided = 0, undecided = 0;
  for (std::uint64_t step = 0; step < 3; ++step) {
    CAPTURE(step);
    auto const in = make_gradients(world, coordinates, static_cast<unsigned>(10 + step));
    std::vector<std::vector<double>> rotated;
    for (int k = 0; k < world; ++k) {
      auto const& gradient = in[static_cast<std::size_t>(k)];
      std::vector<double> x(coordinates);
      for (std::size_t i = 0; i < coordinates; ++i) {
        float value = gradient[i];
        if constexpr (feeds_back<Codec>) { value = value + run.residual(k)[i]; }
        x[i] = static_cast<double>(value);
      }
      rotated.push_back(model.rotate(x, step));
    }

    run.measure(in);
    run.agree(order);
    auto const agreed = run.agreed(0);
    auto const exact  = model.agree(rotated);
    REQUIRE(agreed.size() == exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      std::size_t const rotation =
        Codec::rotates_all ? model.pieces()[0].size : static_cast<std::size_t>(Codec::chunk_size);
      REQUIRE(std::abs(agreed[i] - exact[i]) <=
              scalar_tolerance<Codec>(world, rotation) * exact[i]);
    }

    auto const steps = model.derive_steps(agreed, static_cast<double>(run.record(0).ratio));
    run.encode();
    std::vector<std::vector<int>> codes;
    tests::mismatches wrong_codes;
    for (int k = 0; k < world; ++k) {
      auto const& x = rotated[static_cast<std::size_t>(k)];
      codes.push_back(run.codes(k, 1));
      REQUIRE(codes.back().size() == model.chunks() * model_type::chunk);
      for (std::size_t p = 0; p < codes.back().size(); ++p) {
        std::size_t const c = p / model_type::chunk;
        double const y      = model.scaled(x, steps, p);
        // Each of the log2 N levels of butterflies rounds its results once: an error of 2^-24 times the norm, which the
        // later levels carry on without change but for their sqrt(2), as they do the norm itself. So the error of one
        // coordinate is at most log2 N 2^-24 |x|. The scale comes from ten roundings.
        auto const& piece = model.piece_of(c);
        double square     = 0;
        for (std::size_t i = piece.begin; i < piece.begin + piece.size; ++i) {
          square += x[i] * x[i];
        }
        double const levels = Codec::rotates_chunks || Codec::rotates_all
                                ? std::log2(static_cast<double>(piece.size))
                                : 0.0;
        double const moved =
          steps[c] == 0 ? 0 : levels * epsilon * std::sqrt(square) / steps[c] * model_type::unit;
        double const error = 1.01 * moved + 10 * epsilon * std::abs(y);
        int const low      = model.code(y - error, p, k, step);
        int const high     = model.code(y + error, p, k, step);
        int const got      = codes.back()[p];
        wrong_codes.expect(got, std::clamp(got, low, high), k, p);
        // A code is undecided when a boundary between codes lies within the error: 2 error / unit of all fractions.
        undecided += low == high ? 0 : 1;
        expected_undecided += 2 * error / model_type::unit;
      }
    }
    CHECK(wrong_codes.report() == "");

    run.reduce(order);
    auto const sum = model.reduce(codes, order);
    for (int k = 0; k < world; ++k) { REQUIRE(run.codes(k, world) == sum); }

    // Sums of codes are integers below 2^24 through all butterflies, unless lanes have 16 bits or the tensor is one
    // rotation; the scale has ten roundings, the product one.
    run.decode();
    auto const mean = model.decode(sum, steps, step, world);
    tests::mismatches wrong_means;
    for (std::size_t c = 0; c < model.chunks(); ++c) {
      double square     = 0;
      auto const& piece = model.piece_of(c);
      for (std::size_t i = piece.begin; i < piece.begin + piece.size; ++i) {
        square += mean[i] * mean[i];
      }
      bool const exact_sums = Codec::reducer_type::lane_bits <= 8 && !Codec::rotates_all;
      // The model's own sums round as well, in double.
      double const levels  = std::log2(static_cast<double>(piece.size));
      double const carried = (exact_sums ? 0x1p-20 : levels * 1.01) * epsilon * std::sqrt(square);
      for (std::size_t i = c * model_type::chunk;
           i < std::min(coordinates, (c + 1) * model_type::chunk);
           ++i) {
        double const got   = static_cast<double>(run.values(0)[i]);
        double const error = carried + 12 * epsilon * std::abs(mean[i]);
        wrong_means.expect(std::abs(got - mean[i]) <= error, true, got, mean[i], i);
      }
    }
    CHECK(wrong_means.report() == "");
    for (int k = 1; k < world; ++k) { REQUIRE(run.values(k) == run.values(0)); }

    if constexpr (saturates<Codec>) {
      int const end = (1 << (Codec::reducer_type::lane_bits - 1)) - 1;
      auto const at_limit =
        std::count_if(sum.begin(), sum.end(), [&](int q) { return std::abs(q) == end; });
      CHECK(run.record(0).saturated == static_cast<std::uint64_t>(at_limit));
    }
    if constexpr (tracks<Codec>) {
      // Squares of ten roundings under a root, which rounds once more.
      double const ratio = model.ratio(sum, steps, agreed);
      CHECK(std::abs(static_cast<double>(run.record(0).ratio) - ratio) <= 12 * epsilon * ratio);
    }
  }
  // Five deviations of a count, and of one that is never below one.
  CAPTURE(expected_undecided);
  CHECK(undecided <= expected_undecided + 5 * std::sqrt(expected_undecided + 1));
}

}  // namespace

TEST_CASE("[codec] the literal saturating recipe does what its formulas say")
{
  for (int const world : {1, 2, 5}) { check_against_model(presets::thc_sat4, 6500, world); }
  check_against_model(presets::thc_sat4, 6500, 3, reduction_order::direct);
}

TEST_CASE("[codec] tracked saturating codecs do what their formulas say")
{
  check_against_model(presets::rotated_sat2, 5500, 3);
  for (std::size_t const d : {std::size_t{1}, std::size_t{1024}, std::size_t{6500}}) {
    check_against_model(presets::rotated_sat4, d, 4);
  }
  check_against_model(presets::rotated_sat4, 6500, 1);
}

TEST_CASE("[codec] a tracked range of largest magnitudes in bfloat16 does what its formulas say")
{
  using magnitudes = tests::rotated_sums<256,
                                         absmax_range<tracked_correlation, bfloat16>,
                                         stochastic_quantizer<8, independent>,
                                         saturating_sum<8>>;
  check_against_model(magnitudes{}, 6500, 3);
}

TEST_CASE("[codec] rounding to nearest with feedback does what its formulas say")
{
  check_against_model(
    presets::tracked_saturating<nearest_quantizer<8>, error_feedback>{
      .coder = {.range = {.clip = 3.6f}}},
    6500,
    2);
}

TEST_CASE("[codec] full rotation with one range, and none, do what their formulas say")
{
  check_against_model(presets::thc_wide4, 6500, 3);
  check_against_model(presets::thc_wide4_unrotated, 6500, 4);
}

TEST_CASE("[codec] guard lanes of small chunks do what their formulas say")
{
  using guarded = tests::rotated_sums<128,
                                      rms_range<no_headroom, bfloat16>,
                                      stochastic_quantizer<4, stratified>,
                                      guard_lanes<8, std::uint64_t>>;
  check_against_model(guarded{}, 6500, 5);
}

TEST_CASE("[codec] 8-bit codes in 16-bit lanes of large chunks do what their formulas say")
{
  using wide = tests::rotated_sums<4096,
                                   rms_range<fixed_headroom>,
                                   stochastic_quantizer<8, stratified>,
                                   widening_sum<8, 16>>;
  check_against_model(wide{.coder = {.range = {.clip = 3.0f}}}, 6500, 2);
}
