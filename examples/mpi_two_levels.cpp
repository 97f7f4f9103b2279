// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients of ranks on hosts, with 4 bits a coordinate between hosts and halves within:
//! mpirun -n 4 tersum.example.mpi_two_levels [ranks per host]
//!
//! Without an argument it takes the hosts that there are. Ranks of a host must be consecutive, as mpirun numbers them.

#include <tersum/interop/mpi.hpp>
#include <tersum/tersum.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

namespace {

tersum::status train(tersum::mpi_transport const& within,
                     tersum::mpi_transport const& between,
                     tersum::world const& ranks)
{
  constexpr std::size_t size   = 1'000'000;
  constexpr std::uint64_t seed = 42;
  // [plan]
  // Any preset of all_reduce_mean can go between hosts.
  tersum::two_level_codec const codec{tersum::presets::two_shot_4};
  auto const plan = codec.plan({.coordinates = size}, ranks, within.size());
  if (auto const s = agree_on(within, between, plan, seed); !s.ok()) { return s; }
  // [plan]

  auto const bytes = [](std::vector<tersum::word4>& words) {
    return std::as_writable_bytes(std::span{words});
  };
  std::vector<tersum::word4> state(plan.state_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> workspace(plan.workspace_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> scratch(scratch_bytes(plan) / sizeof(tersum::word4) + 1);
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, bytes(state), seed); !s.ok()) { return s; }

  std::mt19937 random(static_cast<unsigned>(ranks.rank) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(size);
  for (float& value : gradient) { value = 1.0f + normal(random); }
  std::vector<float> mean = gradient;
  // [reduce_over]
  auto const outcome = all_reduce_mean(exec,
                                       plan,
                                       mean,
                                       bytes(state),
                                       bytes(workspace),
                                       reduce_over(within, between, exec, bytes(scratch)));
  // [reduce_over]
  if (!outcome.ok()) { return outcome; }

  // The same in float, to compare.
  MPI_Allreduce(
    MPI_IN_PLACE, gradient.data(), static_cast<int>(size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double error = 0, square = 0;
  for (std::size_t i = 0; i < size; ++i) {
    double const exact = static_cast<double>(gradient[i]) / ranks.size;
    error += (exact - static_cast<double>(mean[i])) * (exact - static_cast<double>(mean[i]));
    square += exact * exact;
  }
  if (ranks.rank == 0) {
    std::printf(
      "%d hosts of %d ranks: error %.5f; a rank gives %.2f bits a coordinate to the exchange between hosts\n",
      between.size(),
      within.size(),
      error / square,
      plan.bits_per_coordinate());
  }
  // Two encodings of 4 bits lose .0095 each, of means that have at most 1.5 times the energy of the mean.
  return error < 0.04 * square ? outcome
                               : tersum::status{tersum::error_code::transport_failed,
                                                "the mean is not that of the ranks"};
}

}  // namespace

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  tersum::world ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm host{}, peers{};
  // [communicators]
  // One communicator for the ranks of this host, one for those of the same number on all hosts.
  if (argc > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, ranks.rank / std::atoi(argv[1]), ranks.rank, &host);
  } else {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks.rank, MPI_INFO_NULL, &host);
  }
  int number = 0;
  MPI_Comm_rank(host, &number);
  MPI_Comm_split(MPI_COMM_WORLD, number, ranks.rank, &peers);
  // [communicators]
  tersum::status outcome;
  {
    tersum::mpi_transport const within{host}, between{peers};  // end before MPI does
    outcome = train(within, between, ranks);
    if (!outcome.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", ranks.rank, outcome.message.data());
    }
  }
  MPI_Comm_free(&host);
  MPI_Comm_free(&peers);
  MPI_Finalize();
  return outcome.ok() ? 0 : 1;
}
