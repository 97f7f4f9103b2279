// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients over MPI at 4 bits a coordinate: mpirun -n 4 tersum.example.mpi_all_reduce [coordinates]

#include "../support/aligned_bytes.hpp"
#include "../support/error_of.hpp"

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

tersum::status train(tersum::mpi_transport const& mpi, std::size_t size)
{
  // [plan]
  // Every rank makes the same plan, but for its rank.
  auto const& codec = tersum::presets::rotated_sat4;
  auto const plan   = codec.plan({.coordinates = size}, {.size = mpi.size(), .rank = mpi.rank()});
  constexpr std::uint64_t seed = 42;
  if (auto const s = agree_on(mpi, plan, seed); !s.ok()) { return s; }
  // [plan]

  // [initialize]
  // All memory is the caller's, aligned to 16 bytes.
  support::aligned_bytes state{plan.state_bytes()}, workspace{plan.workspace_bytes()};
  support::aligned_bytes scratch{scratch_bytes(plan)};
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, state, seed); !s.ok()) { return s; }
  // [initialize]

  std::mt19937 random(static_cast<unsigned>(mpi.rank()) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(size), mean(size);
  for (int step = 0; step < 3; ++step) {
    for (float& value : gradient) { value = 1.0f + normal(random); }

    // [reduce_over]
    // What a training loop adds: MPI sums the codes in the wire, by a saturating operation.
    mean               = gradient;
    double const begin = MPI_Wtime();
    auto const outcome =
      all_reduce_mean(exec, plan, mean, state, workspace, reduce_over(mpi, exec, scratch));
    // [reduce_over]
    double const compressed = MPI_Wtime() - begin;
    if (!outcome.ok()) { return outcome; }

    // The same in float, to compare.
    MPI_Allreduce(
      MPI_IN_PLACE, gradient.data(), static_cast<int>(size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double const plain = MPI_Wtime() - begin - compressed;
    for (float& value : gradient) { value /= static_cast<float>(mpi.size()); }
    if (mpi.rank() == 0) {
      std::printf("step %d: error %.5f, %.2f ms; MPI_Allreduce of float %.2f ms\n",
                  step,
                  support::error_of(mean, gradient),
                  1e3 * compressed,
                  1e3 * plain);
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  tersum::status outcome;
  // [transport]
  {
    tersum::mpi_transport const mpi{MPI_COMM_WORLD};  // ends before MPI does
    outcome = train(mpi, argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000);
    if (!outcome.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), outcome.message.data());
    }
  }
  MPI_Finalize();
  // [transport]
  return outcome.ok() ? 0 : 1;
}
