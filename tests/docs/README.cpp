// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in README.md, which runs: primitives, an exchange, a quantizer.

#include "docs/page.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using tersum::status;

// What one of two ranks does; the other one's codes are there already.
std::vector<float> mean_of_two(std::vector<float> const& gradient,
                               std::uint32_t rank,
                               std::vector<std::uint32_t>& mine,
                               std::vector<std::uint32_t> const& other)
{
  using rotator                = tersum::partial_hadamard<1024>;
  std::size_t const n          = gradient.size();
  std::uint64_t constexpr seed = 7, step = 0;
  auto const width = tersum::make_chunk_step<rotator, tersum::stochastic_quantizer<4>>(.3f, 64, 2);
  std::vector<float> const scales(chunk_count(tersum::fixed_chunks<1024>{}, n), width.encode);
  std::vector<float> const steps(scales.size(), tersum::step_of_rotated<rotator>(width));
  std::vector<float> rotated(rotated_size(rotator{}, n)), mean(n);
  mine.resize(packed_words(tersum::fixed_chunks<1024>{}, tersum::saturating_sum<8>{}, n));
  std::vector<std::uint32_t> sum(mine.size());
  auto const exchange = [&](auto const&) { return other.empty() ? mine : other; };
  status status;
  // code 1

  pages::check(status.ok(), "primitives");
  return mean;
}

// Collectives of the only rank; examples/07_your_own_collective.cpp has those of several.
constexpr int ranks = 1, rank = 0;

template <class T, class Op>
void my_all_reduce(T*, std::size_t, Op)
{
}
void my_all_to_all(void const* sent, void* received, std::size_t bytes)
{
  std::memcpy(received, sent, bytes);
}
void my_all_gather(void*, std::size_t) {}

void exchange_of_one(std::vector<float>& gradient)
{
  tersum::cpu_executor const exec{.threads = 1};
  std::uint64_t const seed = 7;
  status status;
  // code 2

  pages::check(status.ok(), "an exchange");
}

// code 3

int main()
{
  std::vector<float> const first = pages::waves(5000, .37f), second = pages::waves(5000, .41f);
  std::vector<float> exact(first.size());
  for (std::size_t i = 0; i < exact.size(); ++i) { exact[i] = (first[i] + second[i]) / 2; }
  std::vector<std::uint32_t> sent_by_second, sent_by_first;
  mean_of_two(second, 1, sent_by_second, {});
  auto const mean = mean_of_two(first, 0, sent_by_first, sent_by_second);
  pages::check(pages::error_of(mean, exact) < .05, "the mean of two ranks");

  std::vector<float> gradient = first;
  exchange_of_one(gradient);
  pages::check(pages::error_of(gradient, first) < .03, "the mean of one rank");

  static_assert(tersum::quantizer<dead_zone>);
  pages::one_rank mine{my_codec{}.plan({.coordinates = first.size()}, {})};
  pages::check(pages::error_of(mine.mean_of(first), first) < .2, "a quantizer of its own");
  return pages::faults;
}
