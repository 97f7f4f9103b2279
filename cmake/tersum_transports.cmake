# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# The libraries whose adapters are in include/tersum/interop. Each is optional: TERSUM_HAVE_MPI, TERSUM_HAVE_GLOO
# and TERSUM_HAVE_NCCL say which are here, the targets tersum.mpi, tersum.gloo and tersum.nccl use them.

option(TERSUM_TRANSPORTS "Look for MPI, Gloo and NCCL" ON)
set(TERSUM_HAVE_MPI OFF)
set(TERSUM_HAVE_GLOO OFF)
set(TERSUM_HAVE_NCCL OFF)
find_package(Threads REQUIRED)
if(NOT TERSUM_TRANSPORTS)
  return()
endif()

set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI COMPONENTS CXX QUIET)
if(MPI_CXX_FOUND AND MPIEXEC_EXECUTABLE)
  set(TERSUM_HAVE_MPI ON)
  set(TERSUM_MPIEXEC_FLAGS --allow-run-as-root --oversubscribe CACHE STRING "Arguments of mpirun in tests")
  add_library(tersum.mpi INTERFACE)
  target_link_libraries(tersum.mpi INTERFACE MPI::MPI_CXX)
endif()

find_package(Gloo CONFIG QUIET)
if(TARGET gloo)
  set(TERSUM_HAVE_GLOO ON)
  add_library(tersum.gloo INTERFACE)
  target_link_libraries(tersum.gloo INTERFACE gloo Threads::Threads)
endif()

if(TERSUM_HAVE_CUDA)
  set(cuda_root "${CMAKE_CUDA_COMPILER}/../..")
  find_path(TERSUM_NCCL_INCLUDE nccl.h HINTS "${cuda_root}/include" DOC "Folder of nccl.h")
  find_library(TERSUM_NCCL_LIBRARY nccl HINTS "${cuda_root}/lib64" "${cuda_root}/lib" DOC "The NCCL library")
  mark_as_advanced(TERSUM_NCCL_INCLUDE TERSUM_NCCL_LIBRARY)
  if(TERSUM_NCCL_INCLUDE AND TERSUM_NCCL_LIBRARY)
    set(TERSUM_HAVE_NCCL ON)
    add_library(tersum.nccl INTERFACE)
    target_include_directories(tersum.nccl SYSTEM INTERFACE "${TERSUM_NCCL_INCLUDE}")
    target_link_libraries(tersum.nccl INTERFACE "${TERSUM_NCCL_LIBRARY}")
    # Beside the toolkit, CMake takes its folder for one that programs look in anyway.
    cmake_path(GET TERSUM_NCCL_LIBRARY PARENT_PATH nccl_folder)
    target_link_options(tersum.nccl INTERFACE "LINKER:-rpath,${nccl_folder}")
  endif()
endif()

# tersum_add_mpi_test(<name> <program> <ranks> [argument...]): the program under mpirun, as so many ranks of this machine.
function(tersum_add_mpi_test name program ranks)
  add_test(NAME ${name} COMMAND "${MPIEXEC_EXECUTABLE}" ${TERSUM_MPIEXEC_FLAGS} -n ${ranks} "$<TARGET_FILE:${program}>" ${ARGN}
           WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS cpu TIMEOUT 600 PROCESSORS 2)
endfunction()

# tersum_add_nccl_test(<name> <program> <ranks>): the program as so many ranks of this machine; without a GPU skipped.
function(tersum_add_nccl_test name program ranks)
  add_test(NAME ${name} COMMAND bash "${PROJECT_SOURCE_DIR}/tests/interop/nccl_ranks.sh" ${ranks}
                                "$<TARGET_FILE:${program}>")
  set_tests_properties(${name} PROPERTIES LABELS cuda SKIP_RETURN_CODE 77 TIMEOUT 600 RUN_SERIAL ON)
endfunction()

# tersum_add_missing_test(<name> <what>): a test that is skipped and says what is missing.
function(tersum_add_missing_test name what)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no ${what} on this machine")
  set_tests_properties(${name} PROPERTIES LABELS cpu SKIP_REGULAR_EXPRESSION "^skipped:")
endfunction()
