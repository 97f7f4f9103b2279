// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codecs in a metric do what they do without one to values that the caller has divided.

#include "support/codecs.hpp"
#include "support/loopback_run.hpp"

#include <tersum/exchange/wires.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

using namespace tersum;

namespace {

constexpr std::uint64_t seed = 17;

template <metric Metric, feedback Feedback = no_feedback>
using shot = tests::rotated_codes<256, lloyd_max<2>, two_shot, Feedback, Metric>;
template <metric Metric, feedback Feedback = no_feedback>
using widths = codec<allocated_chunks<512, 1, 2, 4, 8>,
                     partial_hadamard<512>,
                     scaled_codes<lloyd_max<8>>,
                     gather,
                     Feedback,
                     Metric>;
template <metric Metric, feedback Feedback = no_feedback>
using in_lanes = tests::rotated_sums<1024,
                                     rms_range<tracked_correlation>,
                                     stochastic_quantizer<4>,
                                     saturating_sum<4>,
                                     Feedback,
                                     Metric>;

template <metric Metric, feedback Feedback = no_feedback>
using halves = codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, Feedback, Metric>;

template <metric Metric>
using casts_of_16 =
  codec<top_chunks<128>, no_rotation, cast<bfloat16>, in_wire, no_feedback, Metric>;

// Tensors of which one bypasses and none ends with a chunk.
tensor const tensors[] = {{.name = "matrix", .rows = 3001},
                          {.name = "bias", .rows = 70, .offset = 3001},
                          {.name = "rows", .rows = 1500, .offset = 3071}};
layout const bucket{
  .coordinates = 4571, .tensors = tensors, .bypass_below = 100, .bypass_vectors = false};

// Sizes of coordinates lie eight powers of two apart.
std::vector<float> make_sizes(std::size_t count)
{
  std::mt19937 random(5);
  std::vector<float> sizes(count);
  for (float& size : sizes) { size = std::ldexp(1.0f, -static_cast<int>(random() % 8)); }
  return sizes;
}

std::vector<std::vector<float>> make_gradients(int world, std::size_t count, unsigned step)
{
  auto const sizes = make_sizes(count);
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < world; ++rank) {
    std::mt19937 random(100 * step + static_cast<unsigned>(rank));
    std::normal_distribution<float> normal;
    auto& gradient = all.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i) { gradient[i] = 0.001f * sizes[i] * normal(random); }
  }
  return all;
}

// What a scale is raised to, said again: a chunk's largest times the floor, or 1 where all are zeros.
std::vector<float> raise_scales(std::vector<float> const& kept, std::size_t size, float floor)
{
  std::vector<float> raised = kept;
  for (std::size_t tensor = 0, first = 0; tensor < 3; first += tensors[tensor++].size()) {
    std::size_t const end = first + tensors[tensor].size();
    for (std::size_t begin = first; begin < end; begin += size) {
      std::size_t const last = std::min(begin + size, end);
      float const largest    = *std::max_element(&kept[begin], &kept[last - 1] + 1);
      for (std::size_t i = begin; i < last; ++i) {
        raised[i] = largest == 0 ? 1.0f : std::max(kept[i], largest * floor);
      }
    }
  }
  return raised;
}

template <class Plain, class Scaled>
void compare_to_divided(Plain const& plain, Scaled const& scaled)
{
  constexpr int world = 3;
  std::mt19937 random(7);
  std::vector<float> scales(bucket.coordinates);
  for (float& scale : scales) {
    scale = std::ldexp(1.0f + 0x1p-32f * static_cast<float>(random()), -20);
  }
  for (std::size_t i = 0; i < scales.size(); i += 3) { scales[i] = 0; }
  std::fill_n(scales.begin() + Plain::chunk_size, Plain::chunk_size, 0.0f);
  auto raised = raise_scales(scales, Plain::chunk_size, scaled.metric.floor);
  std::fill_n(raised.begin() + 3001, 70, 1.0f);  // bypasses
  tests::loopback_run<Plain> divided{plain, bucket, world, seed};
  tests::loopback_run<Scaled> run{scaled, bucket, world, seed};
  for (int rank = 0; rank < world; ++rank) {
    std::copy(scales.begin(), scales.end(), metric_scales(run.plan(), run.state(rank)).begin());
  }
  for (unsigned step = 0; step < 3; ++step) {
    auto const in = make_gradients(world, bucket.coordinates, step);
    auto values   = in;
    for (auto& of_rank : values) {
      for (std::size_t i = 0; i < of_rank.size(); ++i) { of_rank[i] = of_rank[i] / raised[i]; }
    }
    auto const& means = divided.exchange(values);
    auto const& out   = run.exchange(in);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < raised.size(); ++i) {
      wrong += out[0][i] != means[0][i] * raised[i] ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(out[1] == out[0]);
    CHECK(out[2] == out[0]);
  }
}

TEST_CASE("[metric] what is decoded in a metric is a multiple of what is decoded of divided values")
{
  compare_to_divided(shot<plain_metric>{}, shot<given_diagonal>{});
  compare_to_divided(widths<plain_metric>{.chunker = {.bits = 3}},
                     widths<given_diagonal>{.chunker = {.bits = 3}});
  compare_to_divided(in_lanes<plain_metric>{}, in_lanes<given_diagonal>{});
  // Halves could not hold some of these quotients.
  compare_to_divided(casts_of_16<plain_metric>{.chunker = {.bits = 5}},
                     casts_of_16<given_diagonal>{.chunker = {.bits = 5}});
}

template <class Plain, class Given, class Kept>
void compare_without_scales(Plain const& codec, Given const& in_given, Kept const& in_kept)
{
  auto const in = make_gradients(2, bucket.coordinates, 0);
  tests::loopback_run<Plain> plain{codec, bucket, 2, seed};
  tests::loopback_run<Given> given{in_given, bucket, 2, seed};
  tests::loopback_run<Kept> kept{in_kept, bucket, 2, seed};
  auto const& means = plain.exchange(in);
  CHECK(given.exchange(in) == means);
  CHECK(kept.exchange(in) == means);
  CHECK(plain.plan().wire_bytes() == kept.plan().wire_bytes());
  // With feedback, if there is any, of what was lost.
  CHECK(given.exchange(in) == plain.exchange(in));
}

TEST_CASE("[metric] without scales a codec in a metric has the bytes of one without")
{
  compare_without_scales(shot<plain_metric>{}, shot<given_diagonal>{}, shot<kept_diagonal>{});
  compare_without_scales(halves<plain_metric, error_feedback>{},
                         halves<given_diagonal, error_feedback>{},
                         halves<kept_diagonal, error_feedback>{});
}

// What travels says itself how large it is; what does not, by the norm that the ranks have agreed on: that of the mean if their
// gradients are independent. After that both are means of squares, where what did not travel counts as zeros.
TEST_CASE("[metric] a cast's first scales are of the mean, or of the norms of chunks that stay")
{
  using codec_type =
    codec<top_chunks<256, float>, no_rotation, cast<float>, in_wire, no_feedback, kept_diagonal>;
  constexpr int world     = 3;
  constexpr std::size_t d = 8 * 256 - 56;
  tests::loopback_run<codec_type> run{{.chunker = {.bits = 10}}, layout{d}, world, seed};
  std::vector<double> squares(d);
  bool has_travelled[8] = {}, has_stayed[8] = {};
  for (unsigned step = 0; step < 6; ++step) {
    auto const in   = make_gradients(world, d, step);
    auto const& out = run.exchange(in);
    CHECK(out[0] == out[1]);
    CHECK(out[0] == out[2]);
    for (std::size_t begin = 0; begin < d; begin += 256) {
      std::size_t const last = std::min<std::size_t>(begin + 256, d);
      double energy = 0, norms = 0;
      for (std::size_t i = begin; i < last; ++i) {
        energy += std::pow(out[0][i], 2.0);
        for (auto const& gradient : in) { norms += std::pow(gradient[i], 2.0); }
      }
      (energy > 0 ? has_travelled : has_stayed)[begin / 256] = true;
      double const first = energy > 0 ? energy : norms / (world * world);
      for (std::size_t i = begin; i < last; ++i) {
        squares[i] = step == 0
                       ? first / static_cast<double>(last - begin)
                       : squares[i] + (std::pow(out[0][i], 2.0) - squares[i]) / (step + 8.0);
      }
    }
    double worst = 0;
    for (int rank = 0; rank < world; ++rank) {
      auto const scales = metric_scales(run.plan(), run.state(rank));
      for (std::size_t i = 0; i < d; ++i) {
        worst =
          std::max(worst, std::abs(static_cast<double>(scales[i]) / std::sqrt(squares[i]) - 1));
      }
    }
    // As above; an agreed norm has been rounded eleven times besides, of which a root shows half.
    CHECK(worst < (step + 2) * 8 * 0x1p-23);
  }
  // Two and a half chunks of eight travel in a step.
  CHECK(std::count(std::begin(has_travelled), std::end(has_travelled), true) > 3);
  CHECK(std::count(std::begin(has_stayed), std::end(has_stayed), true) > 3);
}

// A quarter of the chunks travels. In units of the gradient those of the largest sizes do, in each step.
TEST_CASE("[metric] chunks of small coordinates travel as often as others")
{
  constexpr std::size_t size = 128, chunks = 32, d = chunks * size;
  std::vector<tensor> rows;
  for (std::size_t i = 0; i < chunks; i += 8) {
    rows.push_back({.rows = 8, .columns = size, .offset = i * size});
  }
  // So many chunks in a row are of one size.
  auto const rarest = [&](auto const& codec, std::size_t alike) {
    tests::loopback_run<std::remove_cvref_t<decltype(codec)>> run{codec, {d, rows}, 2, seed};
    std::vector<int> times(chunks);
    for (unsigned step = 0; step < 40; ++step) {
      auto in = make_gradients(2, d, step);
      for (auto& gradient : in) {
        for (std::size_t i = 0; i < d; ++i) {
          // Halves would round those of the last chunks to zeros.
          gradient[i] = std::ldexp(gradient[i], -static_cast<int>(i / size / alike * alike));
        }
      }
      auto const& out = run.exchange(in);
      for (std::size_t i = 0; i < d; i += size) {
        bool const travelled =
          std::any_of(&out[0][i], &out[0][i] + size, [](float v) { return v != 0; });
        times[i / size] += travelled ? 1 : 0;
      }
    }
    return *std::min_element(times.begin(), times.end());
  };
  CHECK(rarest(halves<kept_diagonal>{.chunker = {.bits = 4.2f}}, 1) >= 5);
  CHECK(rarest(halves<plain_metric>{.chunker = {.bits = 4.2f}}, 8) == 0);
}

// Both ranks send what a half holds, but not its sum, which only what decodes sees.
TEST_CASE("[metric] a sum beyond halves changes no scale, in whatever chunk")
{
  constexpr std::size_t d = 40 * 128;
  tests::loopback_run<halves<kept_diagonal>> run{
    {.chunker = {.bits = 16.2f}}, layout{d}, 2, seed, {.threads = 2}};
  run.exchange(make_gradients(2, d, 0));
  auto const scales = metric_scales(run.plan(), run.state(1));
  std::vector<float> const before(scales.begin(), scales.end());
  auto in = make_gradients(2, d, 1);
  for (auto& gradient : in) { gradient[d - 1] = 60000 * before[d - 1]; }
  auto const& out = run.exchange(in);
  CHECK(std::isinf(out[1][d - 1]));
  CHECK(run.header(1).last_was_non_finite());
  CHECK(std::equal(scales.begin(), scales.end(), before.begin()));
}

// What `kept_diagonal` says of itself, in double, from the means as they were decoded.
template <class Codec>
void check_kept_scales(Codec codec)
{
  constexpr int world = 2;
  codec.metric        = {.prior = 4, .horizon = 6};
  tests::loopback_run<Codec> run{codec, bucket, world, seed};
  std::vector<double> squares(bucket.coordinates);
  for (unsigned step = 0; step < 10; ++step) {
    auto const& out = run.exchange(make_gradients(world, bucket.coordinates, step));
    CHECK(out[0] == out[1]);
    for (std::size_t first = 0, t = 0; t < 3; first += tensors[t++].size()) {
      std::size_t const end = first + tensors[t].size();
      for (std::size_t begin = first; begin < end; begin += 256) {
        std::size_t const last = std::min<std::size_t>(begin + 256, end);
        double energy          = 0;
        for (std::size_t i = begin; i < last; ++i) { energy += std::pow(out[0][i], 2.0); }
        for (std::size_t i = begin; i < last; ++i) {
          double const n = std::min(step + 4.0, 6.0);
          squares[i]     = step == 0 ? energy / static_cast<double>(last - begin)
                                     : squares[i] + (std::pow(out[0][i], 2.0) - squares[i]) / n;
        }
      }
    }
    auto const scales = metric_scales(run.plan(), run.state(0));
    auto const others = metric_scales(run.plan(), run.state(1));
    CHECK(std::equal(scales.begin(), scales.end(), others.begin()));
    double worst = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      bool const bypasses = i >= 3001 && i < 3071;
      if (bypasses) {
        CHECK(scales[i] == 0);
      } else {
        worst =
          std::max(worst, std::abs(static_cast<double>(scales[i]) / std::sqrt(squares[i]) - 1));
      }
    }
    // A step rounds seven times, by half a unit of 2^-23 each; where value^2 is near 1 - n, what the first two lose counts n fold,
    // which does not happen to a mean square.
    CHECK(worst < (step + 1) * 8 * 0x1p-23);
  }
}

TEST_CASE("[metric] the library keeps the root of the mean square of what it decoded")
{
  check_kept_scales(shot<kept_diagonal>{});
}

// The errors of coordinates are of the size of the chunk without a metric, and of their own size in it.
TEST_CASE("[metric] errors are in units of each coordinate")
{
  constexpr int world     = 2;
  constexpr std::size_t d = 2048;
  constexpr unsigned last = 320;
  auto const sizes        = make_sizes(d);
  auto const error_of     = [&](auto const& codec) {
    tests::loopback_run<std::remove_cvref_t<decltype(codec)>> run{codec, layout{d}, world, seed};
    double lost = 0, all = 0;
    for (unsigned step = 0; step < last; ++step) {
      auto const in   = make_gradients(world, d, step);
      auto const& out = run.exchange(in);
      if (step < last - 20) { continue; }
      for (std::size_t i = 0; i < d; ++i) {
        double const size  = static_cast<double>(sizes[i]);
        double const mean  = (static_cast<double>(in[0][i]) + static_cast<double>(in[1][i])) / 2;
        double const error = static_cast<double>(out[0][i]) - mean;
        lost += error * error / size / size;
        all += mean * mean / size / size;
      }
    }
    return lost / all;
  };
  // Codes of 2 bits lose D / (1 - D) = .13 of the energy of what they encode, D = .1175, because they are unbiased. The first
  // encoding is of single gradients, whose energy is twice that of the mean; it is averaged over two ranks. The second is of
  // mean and error: .13 + .13 * 1.13. Without a metric an error is of the root mean square of all sizes, 2^0 to 2^-7: the mean
  // of 4^-k is 1/6 and of 4^k 2731, so that it counts 455 times as much. Scales of 2^-7 need 4^-7 of the first one's square; with
  // .28 of a scale's square in what is decoded they come near by .72 / 20 a step: exp(-300 * .036) = 2e-5 < 4^-7. They
  // are known from about 40 means, which leaves a fifth of each square unsure.
  double const lost = 0.13 + 0.13 * 1.13;
  shot<kept_diagonal> const in_units{.metric = {.horizon = 20}};
  CHECK(error_of(in_units) < 2 * lost);
  shot<kept_diagonal_in<bfloat16>> const in_16_bits{.metric = {.horizon = 20}};
  CHECK(error_of(in_16_bits) < 2 * lost);
  CHECK(error_of(shot<plain_metric>{}) > 0.7 * 455 * lost);
}

TEST_CASE("[metric] a scale in bfloat16 is the float, over all draws")
{
  for (float const scale :
       {1.0f, 0x1.010002p-20f, 0x1.fffffep3f, 0x1.5a5a5ap-40f, 0x1.fdfffep127f}) {
    double sum = 0;
    for (std::uint32_t draw = 0; draw < 1u << 16; ++draw) {
      sum += static_cast<double>(detail::kept_scale<bfloat16>(scale, 3.0f, draw));
    }
    CHECK(sum == 65536.0 * static_cast<double>(scale));
  }
  for (float const scale : {0x1.ffp127f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(detail::kept_scale<bfloat16>(scale, 3.0f, 0xffffu) == 3.0f);
  }
}

// The mean square falls by e in 500 steps, a scale by a thousandth in one. Half of the distance of two bfloat16s is 2^-9 of them at
// least: rounding to the nearest one would change nothing, until 1 - q / s^2 is .39, and leave log s .25 too high.
//
// With w = (1 - 1/n) e^(1/500) = .992 the ratio of the squares of both scales, less 1, is in each step w of what it was, and
// 2 d + d^2 more, d being what rounding does to the scale: its mean is zero, its variance at most 2^-16. So the ratio's variance is
// 4 2^-16 / (1 - w^2) = .0038 at most and its mean 2^-16 / (1 - w) = .0019; log s has half of these deviations: .031, .001.
// Draws of several chunks are independent.
TEST_CASE("[metric] scales in bfloat16 follow a mean square that changes by less than they show")
{
  constexpr int size = 256, chunks = 8;
  constexpr float n = 100;
  double mean = 0, largest = 0;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    std::vector<float> first(size), floats(size), v(size), to(size);
    std::vector<bfloat16> rounded(size);
    for (std::size_t i = 0; i < size; ++i) {
      first[i] = floats[i] = std::ldexp(1.0f + static_cast<float>(i % 128) / 128, -20);
      rounded[i]           = from_float<bfloat16>(first[i]);
    }
    for (std::uint64_t step = 0; step < 800; ++step) {
      float const root         = std::exp(-static_cast<float>(step) / 1000);
      std::uint32_t const draw = detail::first_draw(chunk, sign_key(step, seed));
      auto const follow        = [&](auto& scales) {
        using scale = typename std::remove_cvref_t<decltype(scales)>::value_type;
        for (std::size_t i = 0; i < size; ++i) { v[i] = root * first[i] / to_float(scales[i]); }
        detail::store_whole(best_instruction_set(),
                            v.data(),
                            detail::multiplied<float, scale, true>{
                              to.data(), scales.data(), 0x1p-100f, n, 1 / n, draw},
                            size);
      };
      follow(floats);
      follow(rounded);
    }
    for (std::size_t i = 0; i < size; ++i) {
      double const error = std::log(static_cast<double>(to_float(rounded[i]) / floats[i]));
      mean += error / (size * chunks);
      largest = std::max(largest, std::abs(error));
    }
  }
  CHECK(std::abs(mean) < 0.001 + 5 * 0.031 / std::sqrt(chunks));
  CHECK(largest < 0.001 + 6 * 0.031);
  CHECK(largest > 0);
}

template <class Codec>
void check_not_finite(Codec const& codec)
{
  tests::loopback_run<Codec> run{codec, bucket, 2, seed};
  run.exchange(make_gradients(2, bucket.coordinates, 0));
  auto const scales = metric_scales(run.plan(), run.state(1));
  std::vector<float> const before(scales.begin(), scales.end());
  auto in         = make_gradients(2, bucket.coordinates, 1);
  in[0][10]       = std::numeric_limits<float>::quiet_NaN();
  auto const& out = run.exchange(in);
  CHECK(std::isnan(out[1][10]));
  CHECK(std::isfinite(out[1][2000]));
  CHECK(std::equal(scales.begin(), scales.end(), before.begin()));
}

TEST_CASE("[metric] what is not finite changes no scale")
{
  check_not_finite(shot<kept_diagonal>{});
}

// A coordinate that had been zero for long has a scale of the floor, so it gets at most 1 / floor of what it had without.
TEST_CASE("[metric] zeros do no harm")
{
  constexpr std::size_t d = 256;
  tests::loopback_run<shot<given_diagonal>> run{{}, layout{d}, 2, seed};
  for (int rank = 0; rank < 2; ++rank) {
    auto const scales = metric_scales(run.plan(), run.state(rank));
    std::fill(scales.begin(), scales.end(), 0.5f);
    scales[3] = 0;
  }
  std::vector<std::vector<float>> in(2, std::vector<float>(d, 0.25f));
  for (auto& gradient : in) { gradient[3] = 0x1p-9f; }
  auto const& out = run.exchange(in);
  double lost     = 0;
  for (std::size_t i = 0; i < d; ++i) {
    if (i == 3) { continue; }
    lost += std::pow(static_cast<double>(out[0][i]) - 0.25, 2.0);
  }
  // In the metric all values are .5 and that of the zero is 1. Two shots of 2 bits lose less than half.
  CHECK(lost < 0.5 * (d * 0.0625));
}

TEST_CASE("[metric] residuals are in units of the gradient")
{
  // With the gradient of zeros from the second step on, what was lost comes back: the sum of all means is the first mean.
  auto const drains = [](auto const& codec) {
    tests::loopback_run<std::remove_cvref_t<decltype(codec)>> run{codec, bucket, 2, seed};
    auto const in = make_gradients(2, bucket.coordinates, 0);
    std::vector<std::vector<float>> const zeros(2, std::vector<float>(bucket.coordinates));
    std::vector<float> sum(bucket.coordinates);
    for (unsigned step = 0; step < 40; ++step) {
      auto const& out = run.exchange(step == 0 ? in : zeros);
      for (std::size_t i = 0; i < sum.size(); ++i) { sum[i] += out[0][i]; }
    }
    return tests::nmse(in, sum);
  };
  CHECK(drains(shot<kept_diagonal, error_feedback>{}) < 1e-3);
  CHECK(drains(widths<kept_diagonal, error_feedback>{.chunker = {.bits = 6}}) < 1e-3);
  CHECK(drains(in_lanes<kept_diagonal, error_feedback>{}) < 1e-3);
  CHECK(drains(halves<kept_diagonal, error_feedback>{.chunker = {.bits = 4}}) < 1e-3);
}

}  // namespace
