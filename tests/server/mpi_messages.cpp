// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over MPI, and a parameter server that they serve.

#include <tersum_server/interop/mpi_messages.hpp>

#include <mpi.h>

#include <cstdio>
#include <server/messages.hpp>

int main(int argc, char** argv)
{
  using tersum::mpi_messages;
  bool good = mpi_messages{MPI_COMM_WORLD}.check().message ==
              "MPI is not running: MPI_Init was not called, or MPI_Finalize was";
  MPI_Init(&argc, &argv);
  good = good && mpi_messages{MPI_COMM_NULL}.check().message ==
                   "communicator is MPI_COMM_NULL, or was freed";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    mpi_messages over{MPI_COMM_WORLD};
    good = tersum::tests::check_messages(over) == 0 && good;
  }
  if (!good) { std::printf("rank %d: messages over MPI are wrong\n", rank); }
  MPI_Finalize();
  return good ? 0 : 1;
}
