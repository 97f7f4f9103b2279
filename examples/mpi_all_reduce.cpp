// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Averages gradients over MPI at 4 bits a coordinate: mpirun -n 4 tersum.example.mpi_all_reduce [coordinates]

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
  // All memory is the caller's; word4 has the alignment that the library wants.
  auto const bytes = [](std::vector<tersum::word4>& words) {
    return std::as_writable_bytes(std::span{words});
  };
  std::vector<tersum::word4> state(plan.state_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> workspace(plan.workspace_bytes() / sizeof(tersum::word4) + 1);
  std::vector<tersum::word4> scratch(scratch_bytes(plan) / sizeof(tersum::word4) + 1);
  tersum::cpu_executor const exec{.threads = 1};
  if (auto const s = initialize(exec, plan, bytes(state), seed); !s.ok()) { return s; }
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
    auto const outcome = all_reduce_mean(
      exec, plan, mean, bytes(state), bytes(workspace), reduce_over(mpi, exec, bytes(scratch)));
    // [reduce_over]
    double const compressed = MPI_Wtime() - begin;
    if (!outcome.ok()) { return outcome; }

    // The same in float, to compare.
    MPI_Allreduce(
      MPI_IN_PLACE, gradient.data(), static_cast<int>(size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double const plain = MPI_Wtime() - begin - compressed;
    double error = 0, square = 0;
    for (std::size_t i = 0; i < size; ++i) {
      double const exact = static_cast<double>(gradient[i]) / mpi.size();
      error += (exact - static_cast<double>(mean[i])) * (exact - static_cast<double>(mean[i]));
      square += exact * exact;
    }
    if (mpi.rank() == 0) {
      std::printf("step %d: error %.5f, %.2f ms; MPI_Allreduce of float %.2f ms\n",
                  step,
                  error / square,
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
  {
    tersum::mpi_transport const mpi{MPI_COMM_WORLD};  // ends before MPI does
    outcome = train(mpi, argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000);
    if (!outcome.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), outcome.message.data());
    }
  }
  MPI_Finalize();
  return outcome.ok() ? 0 : 1;
}
