// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark over MPI, started by run.sh with mpirun.

#include <tersum/interop/mpi.hpp>

#include <network/exchange.hpp>

int main(int argc, char** argv)
{
  using namespace tersum;
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  if (threads != MPI_THREAD_MULTIPLE || argc < 1 + network::options::least) {
    std::fprintf(stderr, "usage: COORDINATES STEPS MBIT PIECES [CODEC], with an MPI for threads\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  {
    std::vector<std::unique_ptr<network::any_transport const>> over;
    for (std::size_t lane = 0; lane < network::lanes; ++lane) {
      over.push_back(std::make_unique<network::forgotten<mpi_transport> const>(MPI_COMM_WORLD));
    }
    network::bench b({argc - 1, argv + 1}, std::move(over));
    run_presets(b);
  }
  MPI_Finalize();
}
