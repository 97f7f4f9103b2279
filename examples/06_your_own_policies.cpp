// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies of your own, one in every role, average the gradients of four ranks in codecs whose other policies are the library's.

#include "support/error_of.hpp"
#include "support/loopback_ranks.hpp"
#include "your_own/classical_gram_schmidt.hpp"
#include "your_own/cosine_transform.hpp"
#include "your_own/decaying_feedback.hpp"
#include "your_own/even_codes.hpp"
#include "your_own/every_kth_chunk.hpp"
#include "your_own/largest_mean.hpp"
#include "your_own/mean_in_halves.hpp"
#include "your_own/mean_magnitude.hpp"
#include "your_own/sign_quantizer.hpp"
#include "your_own/signed_permutation.hpp"

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <random>
#include <vector>

constexpr int ranks        = 4;
constexpr std::size_t rows = 128;
constexpr std::size_t size = rows * 256;

// All ranks see the same signal, a matrix of rank 2, each with noise of its own; a few coordinates are large.
std::vector<std::vector<float>> make_gradients()
{
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> gradients(ranks, std::vector<float>(size));
  for (std::size_t i = 0; i < size; ++i) {
    float const signal = 2 * std::sin(static_cast<float>(i / 256 + i % 256));
    float const large  = random() % 256 == 0 ? 10.0f : 0.0f;
    for (auto& g : gradients) { g[i] = signal + large + 0.3f * normal(random); }
  }
  return gradients;
}

template <class Codec>
void run(char const* name, Codec const& codec)
{
  auto const gradients = make_gradients();
  std::vector<tersum::tensor> const matrix{{.rows = rows, .columns = 256}};
  support::loopback_ranks exchange{codec, {.coordinates = size, .tensors = matrix}, ranks};
  std::vector<std::vector<float>> means;
  tersum::status outcome;
  for (int step = 0; step < 3 && outcome.ok(); ++step) {
    means   = gradients;
    outcome = exchange.average(means);
  }
  double const bits  = exchange.bits_per_coordinate();
  double const error = support::error_of(means[0], support::mean_of(gradients));
  std::printf("%-24s %.3f bits, error %.4f %s\n", name, bits, error, outcome.message.data());
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
  run("even_codes", codec<fixed_chunks<512>, partial_hadamard<512>, even_codes, gather>{});
  run("mean_in_halves", codec<fixed_chunks<512>, no_rotation, cast<bfloat16>, mean_in_halves>{});
  run("largest_mean",
      codec<fixed_chunks<512>,
            partial_hadamard<512>,
            scaled_codes<lloyd_max<4>>,
            two_shot,
            no_feedback,
            largest_mean>{});
  run("classical_gram_schmidt", low_rank_codec<low_rank<2, classical_gram_schmidt>>{});
}
