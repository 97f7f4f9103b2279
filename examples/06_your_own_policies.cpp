// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies of one's own in every role, each in a codec between policies of the library: what a mean of four ranks then
//! loses. They are in the folder your_own, a file each, and run on CUDA as they are.

#include "your_own/classical_gram_schmidt.hpp"
#include "your_own/cosine_transform.hpp"
#include "your_own/decaying_feedback.hpp"
#include "your_own/even_codebook.hpp"
#include "your_own/every_kth_chunk.hpp"
#include "your_own/largest_mean.hpp"
#include "your_own/mean_magnitude.hpp"
#include "your_own/sign_quantizer.hpp"
#include "your_own/signed_permutation.hpp"

#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

constexpr std::size_t ranks = 4;
constexpr std::size_t rows  = 128;
constexpr std::size_t size  = rows * 256;

// All ranks see the same signal, a matrix of rank 2, each with noise of its own; a few coordinates are large.
std::vector<std::vector<float>> make_gradients()
{
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  std::vector<float> factors(4 * (rows + 256));
  for (float& v : factors) { v = normal(random); }
  std::vector<std::vector<float>> gradients(ranks, std::vector<float>(size));
  for (std::size_t i = 0; i < size; ++i) {
    float const* const left  = factors.data() + 2 * (i / 256);
    float const* const right = factors.data() + 2 * rows + 2 * (i % 256);
    float const large        = random() % 256 == 0 ? 10 : 0;
    for (auto& g : gradients) {
      g[i] = left[0] * right[0] + left[1] * right[1] + large + 0.3f * normal(random);
    }
  }
  return gradients;
}

template <class Codec>
void run(char const* name, Codec const& codec)
{
  auto const gradients = make_gradients();
  auto values          = gradients;
  std::vector<tersum::tensor> const matrix{{.rows = rows, .columns = 256}};
  tersum::cpu_executor const exec{.threads = 1};
  std::vector<std::vector<tersum::word4>> memory;
  std::vector<tersum::loopback_rank<Codec, float>> all;
  tersum::status outcome{};
  for (std::size_t rank = 0; rank < ranks && outcome.ok(); ++rank) {
    auto const plan = codec.plan({.coordinates = size, .tensors = matrix},
                                 {.size = ranks, .rank = static_cast<int>(rank)});
    auto const room = [&](std::size_t bytes) {
      return std::as_writable_bytes(std::span{memory.emplace_back(bytes / 16 + 1)});
    };
    auto const state = room(plan.state_bytes());
    all.push_back({plan, values[rank], state, room(plan.workspace_bytes())});
    outcome = initialize(exec, plan, state, 7);
  }
  for (int step = 0; step < 3 && outcome.ok(); ++step) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::copy(gradients[rank].begin(), gradients[rank].end(), values[rank].begin());
    }
    outcome =
      loopback_all_reduce_mean(exec, std::span<tersum::loopback_rank<Codec, float> const>{all});
  }
  double error = 0, square = 0;
  for (std::size_t i = 0; i < size; ++i) {
    double mean = 0;
    for (auto const& g : gradients) { mean += static_cast<double>(g[i]) / ranks; }
    error += std::pow(static_cast<double>(values[0][i]) - mean, 2);
    square += mean * mean;
  }
  double const bits = outcome.ok() ? all[0].plan.bits_per_coordinate() : 0;
  std::printf("%-24s %6.3f bits, error of the third step %.4f%s\n",
              name,
              bits,
              error / square,
              outcome.ok() ? "" : outcome.message.data());
}

template <class Rotator, class Range, class Feedback = tersum::no_feedback>
using in_lanes = tersum::codec<
  tersum::fixed_chunks<128>,
  Rotator,
  tersum::summed_codes<Range, tersum::stochastic_quantizer<4>, tersum::saturating_sum<4>>,
  tersum::in_wire,
  Feedback>;

int main()
{
  using namespace tersum;
  using hadamard = partial_hadamard<128>;
  using range    = rms_range<tracked_correlation>;
  run("the library's", in_lanes<hadamard, range>{});
  run("signed_permutation", in_lanes<signed_permutation, range>{});
  run("cosine_transform", in_lanes<cosine_transform<128>, range>{});
  run("mean_magnitude", in_lanes<hadamard, mean_magnitude>{});
  run("sign_quantizer",
      codec<fixed_chunks<128>,
            hadamard,
            summed_codes<rms_range<no_headroom>, sign_quantizer, widening_sum<2, 8>>,
            in_wire,
            error_feedback>{.coder = {.range = {.clip = .8f}}});
  run("decaying_feedback", in_lanes<hadamard, range, decaying_feedback>{});
  run("every_kth_chunk", codec<every_kth_chunk<128, 4>, no_rotation, cast<half>, in_wire>{});
  run("even_codebook",
      codec<fixed_chunks<512>, partial_hadamard<512>, scaled_codes<even_codebook>, two_shot>{});
  run("largest_mean",
      codec<fixed_chunks<512>,
            partial_hadamard<512>,
            scaled_codes<lloyd_max<4>>,
            two_shot,
            no_feedback,
            largest_mean>{});
  run("classical_gram_schmidt", low_rank_codec<low_rank<2, classical_gram_schmidt>>{});
}
