# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# For projects that fetch tersum or add its folder, and have codecs, policies or kernels of their own. docs/your_own.md shows
# each. Nothing is built or looked for unless it is used.
#
#   tersum::bench        measures codecs: bench/tersum_bench.hpp. Link benchmark::benchmark_main beside it.
#   tersum::conformance  the laws of the roles: tests/tersum_conformance.hpp. Link doctest::doctest beside it.
#   tersum_kernels       a target that writes tersum_kernels.hpp into the build folder: what kernels include, as one file.
#   tersum_add_simulated_test(<name> <program> [<argument>...])
#                        the objects of a program with CUDA, linked with an interpreter of PTX in place of the CUDA runtime,
#                        and the test of CTest that runs it on a machine without a GPU.

add_library(tersum.bench INTERFACE)
add_library(tersum::bench ALIAS tersum.bench)
target_sources(tersum.bench INTERFACE "${PROJECT_SOURCE_DIR}/bench/support/own_codecs.cpp")
target_include_directories(tersum.bench INTERFACE "${PROJECT_SOURCE_DIR}/bench")
target_link_libraries(tersum.bench INTERFACE tersum::tersum)

add_library(tersum.conformance INTERFACE)
add_library(tersum::conformance ALIAS tersum.conformance)
target_sources(tersum.conformance INTERFACE "${PROJECT_SOURCE_DIR}/tests/support/emulator/block.cpp")
target_include_directories(tersum.conformance INTERFACE "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(tersum.conformance INTERFACE tersum::tersum)

set(tersum_kernels_file "${PROJECT_BINARY_DIR}/one_file/tersum_kernels.hpp" CACHE INTERNAL "")
add_custom_target(
  tersum_kernels
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/one_file"
  COMMAND python3 "${PROJECT_SOURCE_DIR}/cmake/write_kernels.py" "${tersum_kernels_file}"
  BYPRODUCTS "${tersum_kernels_file}"
  COMMENT "Writing tersum_kernels.hpp"
  VERBATIM)

set(tersum_simulator_folder "${PROJECT_SOURCE_DIR}/tests/support/simulator" CACHE INTERNAL "")

# tersum_add_simulator(): the library tersum.simulator, once.
function(tersum_add_simulator)
  if(TARGET tersum.simulator)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${tersum_simulator_folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "\\.test\\.cpp$")
  add_library(tersum.simulator STATIC EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(tersum.simulator PRIVATE tersum::tersum)
  target_include_directories(tersum.simulator SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_options(tersum.simulator PRIVATE "$<$<CONFIG:Release>:-O2>")
endfunction()

function(tersum_add_simulated_test name program)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "tersum_add_simulated_test: the language CUDA is not enabled")
  endif()
  tersum_add_simulator()
  target_compile_options(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--no-compress>") # of the PTX, to be read
  add_executable(${name} $<TARGET_OBJECTS:${program}>)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CUDA CUDA_RUNTIME_LIBRARY None)
  # What the program links, and the simulator last: its functions are those of the CUDA runtime.
  get_target_property(libraries ${program} LINK_LIBRARIES)
  if(libraries)
    target_link_libraries(${name} PRIVATE ${libraries})
  endif()
  target_link_libraries(${name} PRIVATE tersum.simulator)
  add_test(NAME ${name} COMMAND ${name} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS simulated)
endfunction()
