// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A parameter server and its workers over MPI: mpirun -n 4 tersum.example.mpi_parameter_server

#include "parameter_server.hpp"

#include <tersum_server/interop/mpi_messages.hpp>

#include <mpi.h>

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  bool good = false;
  {
    tersum::mpi_messages over{MPI_COMM_WORLD};
    good = over.rank() == 0 ? serve(over) : work(over, 40);
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
