// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients of ranks on hosts by three calls: a sum within each host, an exchange of 4 bits a coordinate among the first
//! ranks of the hosts, and a broadcast within: mpirun -n 4 tersum.example.mpi_two_levels [ranks per host]
//!
//! Without an argument it takes the hosts that there are. All hosts must have as many ranks.

#include <tersum/interop/mpi.hpp>
#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

std::span<std::byte> bytes(std::vector<tersum::word4>& words)
{
  return std::as_writable_bytes(std::span{words});
}

// The mean of the hosts, which all of them end with. `mean` holds that of this host.
tersum::status exchange_among(MPI_Comm hosts, std::vector<float>& mean)
{
  constexpr std::uint64_t seed = 42;
  tersum::mpi_transport const mpi{hosts};
  auto const plan = tersum::presets::two_shot_4.plan({.coordinates = mean.size()},
                                                     {.size = mpi.size(), .rank = mpi.rank()});
  if (auto const s = agree_on(mpi, plan, seed); !s.ok()) { return s; }
  std::vector<tersum::word4> state(plan.state_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> workspace(plan.workspace_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> scratch(scratch_bytes(plan) / sizeof(tersum::word4) + 1);
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, bytes(state), seed); !s.ok()) { return s; }
  return all_reduce_mean(
    exec, plan, mean, bytes(state), bytes(workspace), reduce_over(mpi, exec, bytes(scratch)));
}

// The same by ranks of one process, from the gradients of all hosts: what must come out, bit for bit.
std::vector<float> expected_mean(std::vector<std::vector<float>> means)
{
  int const hosts      = static_cast<int>(means.size());
  auto const& two_shot = tersum::presets::two_shot_4;
  using codec          = std::remove_cvref_t<decltype(two_shot)>;
  std::vector<std::vector<tersum::word4>> states, workspaces;
  std::vector<tersum::loopback_rank<codec, float>> ranks;
  tersum::cpu_executor const exec{.threads = 1};
  for (int host = 0; host < hosts; ++host) {
    auto const h = static_cast<std::size_t>(host);
    auto const plan =
      two_shot.plan({.coordinates = means[h].size()}, {.size = hosts, .rank = host});
    states.emplace_back(plan.state_bytes() / sizeof(tersum::word4) + 1);
    workspaces.emplace_back(plan.workspace_bytes() / sizeof(tersum::word4) + 1);
    if (!initialize(exec, plan, bytes(states[h]), 42).ok()) { return {}; }
    ranks.push_back({plan, means[h], bytes(states[h]), bytes(workspaces[h])});
  }
  std::span<tersum::loopback_rank<codec, float> const> const all{ranks};
  return loopback_all_reduce_mean(exec, all).ok() ? means[0] : std::vector<float>{};
}

// Whole numbers, whose sums within a host are exact in any order.
std::vector<float> gradient_of(int rank)
{
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<float> gradient(100'000);
  for (float& value : gradient) {
    value = static_cast<float>(static_cast<int>(random() % 2001) - 900);
  }
  return gradient;
}

}  // namespace

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  tersum::world ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm host{}, firsts{};
  if (argc > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, ranks.rank / std::atoi(argv[1]), ranks.rank, &host);
  } else {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks.rank, MPI_INFO_NULL, &host);
  }
  int number = 0, per_host = 1;
  MPI_Comm_rank(host, &number);
  MPI_Comm_size(host, &per_host);
  MPI_Comm_split(MPI_COMM_WORLD, number == 0 ? 0 : MPI_UNDEFINED, ranks.rank, &firsts);

  // [three calls]
  std::vector<float> const gradient = gradient_of(ranks.rank);
  std::vector<float> mean(gradient.size());
  int const size = static_cast<int>(mean.size());
  MPI_Reduce(gradient.data(), mean.data(), size, MPI_FLOAT, MPI_SUM, 0, host);
  tersum::status outcome;
  if (number == 0) {
    for (float& value : mean) { value /= static_cast<float>(per_host); }
    outcome = exchange_among(firsts, mean);
  }
  MPI_Bcast(mean.data(), size, MPI_FLOAT, 0, host);
  // [three calls]

  std::vector<std::vector<float>> hosts(static_cast<std::size_t>(ranks.size / per_host),
                                        std::vector<float>(mean.size()));
  for (int rank = 0; rank < ranks.size; ++rank) {
    std::vector<float>& of_host = hosts[static_cast<std::size_t>(rank / per_host)];
    auto const values           = gradient_of(rank);
    for (std::size_t i = 0; i < values.size(); ++i) { of_host[i] += values[i]; }
  }
  for (auto& of_host : hosts) {
    for (float& value : of_host) { value /= static_cast<float>(per_host); }
  }
  bool const exact = outcome.ok() && expected_mean(hosts) == mean;
  if (!exact) {
    std::fprintf(
      stderr, "rank %d: %s\n", ranks.rank, outcome.ok() ? "another mean" : outcome.message.data());
  } else if (ranks.rank == 0) {
    std::printf("%zu hosts of %d ranks: all ranks have the mean of the hosts' means\n",
                hosts.size(),
                per_host);
  }
  MPI_Comm_free(&host);
  if (firsts != MPI_COMM_NULL) { MPI_Comm_free(&firsts); }
  MPI_Finalize();
  return exact ? 0 : 1;
}
