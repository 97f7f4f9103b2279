# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# Turns CUDA on for tests, benchmarks and examples. Sets TERSUM_HAVE_CUDA.

set(TERSUM_HAVE_CUDA OFF)

if(NOT TERSUM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "tersum: TERSUM_CUDA must be AUTO, ON or OFF, not '${TERSUM_CUDA}'")
endif()

if(NOT TERSUM_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(
      TERSUM_NVCC nvcc
      HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME
      PATHS /usr/local/cuda
      PATH_SUFFIXES bin
      DOC "The CUDA compiler")
    mark_as_advanced(TERSUM_NVCC)
    if(TERSUM_NVCC)
      set(CMAKE_CUDA_COMPILER "${TERSUM_NVCC}")
    endif()
  endif()

  if(CMAKE_CUDA_COMPILER)
    # Machine code for sm_90 and PTX for later devices. Set before the language is enabled, as the default of
    # older CMake is an architecture that newer nvcc no longer knows. CUDAARCHS is what CMake asks the environment for.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    enable_language(CUDA)
    set(TERSUM_HAVE_CUDA ON)
  elseif(TERSUM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "tersum: TERSUM_CUDA is ON, but nvcc was not found on PATH or in /usr/local/cuda/bin")
  endif()
endif()

message(STATUS "tersum: CUDA in tests, benchmarks and examples: ${TERSUM_HAVE_CUDA}")
