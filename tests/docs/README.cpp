// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in README.md, which runs: two ranks get the mean by primitives, three by an exchange over collectives
//! among threads, and one by a quantizer of its own.

#include "docs/page.hpp"

#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
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

// The collectives of three ranks that are threads.
constexpr int ranks = 3;
std::barrier<> everyone{ranks};
void const* shown[ranks];
thread_local int rank = 0;

template <class T, class Op>
void my_all_reduce(T* data, std::size_t count, Op op)
{
  std::vector<T> sum(data, data + count);
  shown[rank] = data;
  everyone.arrive_and_wait();
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = static_cast<T const*>(shown[0])[i];
    for (int r = 1; r < ranks; ++r) { sum[i] = op(sum[i], static_cast<T const*>(shown[r])[i]); }
  }
  everyone.arrive_and_wait();
  std::memcpy(data, sum.data(), count * sizeof(T));
}

std::byte const* part_of(int of, int part, std::size_t bytes)
{
  return static_cast<std::byte const*>(shown[of]) + static_cast<std::size_t>(part) * bytes;
}

void my_all_to_all(void const* sent, void* received, std::size_t bytes)
{
  shown[rank] = sent;
  everyone.arrive_and_wait();
  for (int r = 0; r < ranks; ++r) {
    std::memcpy(static_cast<std::byte*>(received) + static_cast<std::size_t>(r) * bytes,
                part_of(r, rank, bytes),
                bytes);
  }
  everyone.arrive_and_wait();
}

void my_all_gather(void* data, std::size_t bytes)
{
  shown[rank] = data;
  everyone.arrive_and_wait();
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) { continue; }
    std::memcpy(static_cast<std::byte*>(data) + static_cast<std::size_t>(r) * bytes,
                part_of(r, r, bytes),
                bytes);
  }
  everyone.arrive_and_wait();
}

void exchange_of_three(std::vector<float>& gradient)
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

  std::vector<std::jthread> threads;
  std::vector<std::vector<float>> gradients(ranks, first);
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&gradients, r] {
      rank = r;
      exchange_of_three(gradients[static_cast<std::size_t>(r)]);
    });
  }
  threads.clear();
  pages::check(pages::error_of(gradients[0], first) < .03, "the mean of three ranks");
  pages::check(gradients[0] == gradients[1] && gradients[0] == gradients[2], "equal bits");

  static_assert(tersum::quantizer<dead_zone>);
  pages::one_rank mine{my_codec{}.plan({.coordinates = first.size()}, {})};
  pages::check(pages::error_of(mine.mean_of(first), first) < .2, "a quantizer of its own");
  return pages::faults;
}
