// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A communicator of MPI for the library's own use.

#pragma once

#include <tersum/status.hpp>

#include <mpi.h>

namespace tersum::inline v0::detail {

//! @brief A duplicate of a communicator, whose errors are returned; whoever has it frees it.
struct mpi_duplicate {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank      = 0;
  int size      = 1;

  //! Collective over the communicator.
  [[nodiscard]] status make(MPI_Comm communicator) noexcept
  {
    // Asked first, because with MPI that is not running the calls below would end the program, or hang.
    int begun = 0, ended = 0, between_groups = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun == 0 || ended != 0) {
      return {error_code::invalid_argument,
              "MPI is not running: MPI_Init was not called, or MPI_Finalize was"};
    }
    if (communicator == MPI_COMM_NULL) {
      return {error_code::invalid_argument, "communicator is MPI_COMM_NULL, or was freed"};
    }
    MPI_Comm_test_inter(communicator, &between_groups);
    if (between_groups != 0) {
      return {error_code::invalid_argument,
              "communicator is between two groups: only ranks of one group are exchanged with"};
    }
    int error = MPI_Comm_dup(communicator, &comm);
    if (error == MPI_SUCCESS) { error = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); }
    if (error == MPI_SUCCESS) { error = MPI_Comm_rank(comm, &rank); }
    if (error == MPI_SUCCESS) { error = MPI_Comm_size(comm, &size); }
    return of(error);
  }

  //! What MPI returned.
  [[nodiscard]] static status of(int error) noexcept
  {
    return error == MPI_SUCCESS
             ? status{}
             : status{error_code::transport_failed, "MPI returned an error", error};
  }
};

}  // namespace tersum::inline v0::detail
