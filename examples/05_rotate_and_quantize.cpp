// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Three ranks make an exchange of primitives on arrays, without a codec, a plan or a state: they measure, rotate and quantize, add the
//! payloads, dequantize and rotate back.

#include <tersum/tersum.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

int main()
{
  using rotation               = tersum::partial_hadamard<1024>;
  using codes                  = tersum::stochastic_quantizer<4>;
  constexpr auto chunks_of     = tersum::fixed_chunks<1024>{};
  constexpr auto lanes         = tersum::saturating_sum<8>{};
  constexpr int ranks          = 3;
  constexpr std::size_t size   = 100'000;
  constexpr std::size_t chunks = tersum::chunk_count(chunks_of, size);
  constexpr std::size_t words  = tersum::packed_words(chunks_of, lanes, size);
  constexpr std::uint64_t seed = 1, training_step = 0;
  tersum::cpu_executor const exec{.threads = 2};
  tersum::status s;
  auto const run = [&s](auto const& call) {
    if (s.ok()) { s = call(); }
  };

  std::vector<std::vector<float>> gradients(ranks, std::vector<float>(size));
  std::mt19937 random{1};
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < size; ++i) {
    float const signal = normal(random);
    for (auto& gradient : gradients) { gradient[i] = signal + 0.3f * normal(random); }
  }

  // What the ranks would agree on: the sum of the squared norms of each chunk, in the order of the ranks.
  //! [agree]
  std::vector<float> norms(ranks * chunks), agreed(chunks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::span<float> const own = std::span{norms}.subspan(rank * chunks, chunks);
    run([&] { return chunk_norms(exec, chunks_of, gradients[rank], own); });
  }
  run([&] { return reduce(exec, tersum::native_sum<float>{}, agreed, norms, ranks); });
  //! [agree]

  // The step: three root mean squares of a rank's coordinates go to the end of the grid.
  std::vector<float> scales(chunks), steps(chunks);
  for (std::size_t c = 0; c < chunks; ++c) {
    float const step = 3 * std::sqrt(agreed[c] / (ranks * 1024.0f)) / codes::max_level;
    auto const both  = tersum::make_chunk_step<rotation, codes>(step, std::sqrt(agreed[c]), ranks);
    scales[c]        = both.encode;
    steps[c]         = tersum::step_of_rotated<rotation>(both);
  }

  //! [encode]
  std::uint64_t const signs = tersum::sign_key(training_step, seed);
  std::vector<float> rotated(rotated_size(rotation{}, size));
  std::vector<std::uint32_t> payloads(ranks * words), sum(words);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    tersum::dither_key const draws{
      .seed = seed, .step = training_step, .rank = static_cast<std::uint32_t>(rank)};
    std::span<std::uint32_t> const payload = std::span{payloads}.subspan(rank * words, words);
    run([&] { return rotate(exec, rotation{}, gradients[rank], rotated, signs); });
    run([&] { return quantize(exec, chunks_of, codes{}, lanes, rotated, scales, draws, payload); });
  }
  //! [encode]

  // An all-reduce of uint32 with saturating_add<8> does the same among processes.
  //! [decode]
  run([&] { return reduce(exec, tersum::saturating_add<8>{}, sum, payloads, ranks); });

  std::vector<float> mean(size);
  run([&] { return dequantize(exec, chunks_of, codes{}, lanes, sum, ranks, steps, rotated); });
  run([&] { return rotate_back(exec, rotation{}, rotated, mean, signs); });
  //! [decode]
  if (!s.ok()) {
    std::fprintf(stderr, "%s\n", s.message.data());
    return 1;
  }

  double error = 0, energy = 0;
  for (std::size_t i = 0; i < size; ++i) {
    double truth = 0;
    for (auto const& gradient : gradients) { truth += static_cast<double>(gradient[i]) / ranks; }
    error += (truth - static_cast<double>(mean[i])) * (truth - static_cast<double>(mean[i]));
    energy += truth * truth;
  }
  std::printf("%zu coordinates, %.2f bits each, NMSE %.4f\n",
              size,
              32.0 * static_cast<double>(words) / size,
              error / energy);
  return error / energy < 0.03 ? 0 : 1;
}
