// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients by a sum within each host, an exchange of 4 bits a coordinate among the first ranks of the hosts, and a
//! broadcast within each: mpirun -n 4 tersum.example.mpi_two_levels [ranks per host], the same number on all hosts.

#include "../support/aligned_bytes.hpp"
#include "../support/loopback_ranks.hpp"

#include <tersum/interop/mpi.hpp>
#include <tersum/tersum.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

// The mean of the hosts, which all of them end with. `mean` holds that of this host.
tersum::status exchange_among(MPI_Comm hosts, std::vector<float>& mean)
{
  constexpr std::uint64_t seed = 42;
  tersum::mpi_transport const mpi{hosts};
  auto const plan = tersum::presets::two_shot_4.plan({.coordinates = mean.size()},
                                                     {.size = mpi.size(), .rank = mpi.rank()});
  if (auto const s = agree_on(mpi, plan, seed); !s.ok()) { return s; }
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  support::aligned_bytes scratch{scratch_bytes(plan)};
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, state, seed); !s.ok()) { return s; }
  return all_reduce_mean(exec, plan, mean, state, workspace, reduce_over(mpi, exec, scratch));
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
  // The same exchange by ranks of one process: what must come out, bit for bit.
  support::loopback_ranks expected{
    tersum::presets::two_shot_4, {.coordinates = mean.size()}, ranks.size / per_host};
  bool const exact = outcome.ok() && expected.average(hosts).ok() && hosts[0] == mean;
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
