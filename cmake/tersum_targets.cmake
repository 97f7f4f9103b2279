# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# The kinds of targets that this project builds for itself. Nothing here reaches a consumer.

include(FetchContent)

# Packages of the system first; a developer without them gets a download.
set(packages)
if(TERSUM_BUILD_TESTS)
  set(DOCTEST_NO_INSTALL ON)
  FetchContent_Declare(
    doctest
    GIT_REPOSITORY https://github.com/doctest/doctest.git
    GIT_TAG v2.4.11
    GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  list(APPEND packages doctest)
endif()
if(TERSUM_BUILD_BENCH)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  FetchContent_Declare(
    benchmark
    GIT_REPOSITORY https://github.com/google/benchmark.git
    GIT_TAG v1.8.3
    GIT_SHALLOW ON
    FIND_PACKAGE_ARGS)
  list(APPEND packages benchmark)
endif()
if(packages)
  FetchContent_MakeAvailable(${packages})
endif()

find_package(OpenMP COMPONENTS CXX)

# Of all targets from here on, but not of a library that was downloaded above.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()

# What every target of ours is compiled with. The host code that nvcc generates stands neither -Wpedantic nor
# -Wconversion; the same headers get both from the C++ compiler.
add_library(tersum.flags INTERFACE)
target_link_libraries(tersum.flags INTERFACE tersum::baselines)
target_compile_options(
  tersum.flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion>"
                         "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
if(TERSUM_HAVE_CUDA AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 has no C++20 for nvcc
  target_compile_options(tersum.flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>")
endif()

# OpenMP for all files of a program or for none: the same inline function must not have two bodies.
add_library(tersum.openmp INTERFACE)
if(OpenMP_CXX_FOUND)
  target_link_libraries(tersum.openmp INTERFACE OpenMP::OpenMP_CXX)
  target_compile_options(tersum.openmp INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${OpenMP_CXX_FLAGS}>")
endif()

option(TERSUM_CUDA_TESTS_BY_CLANG "Let clang compile the host's part of CUDA tests: less time" OFF)
find_program(TERSUM_CLANGXX NAMES clang++ clang++-14)
# Has clang, where TERSUM_CUDA_TESTS_BY_CLANG asks for it, compile the host's part of what nvcc compiles. Without optimization it takes
# half of the time of g++. The objects have no OpenMP, whose runtime is another one; so this comes after tersum.openmp.
add_library(tersum.host INTERFACE)
if(TERSUM_CUDA_TESTS_BY_CLANG AND TERSUM_CLANGXX)
  # nvcc writes designators in GNU's old form, and its headers hold functions that nobody calls.
  target_compile_options(
    tersum.host INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-ccbin=${TERSUM_CLANGXX}>"
                          "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-openmp,-Wno-gnu-designator,-Wno-unused-function>")
endif()

# Builds all that only nvcc can build; and of that, the programs alone.
add_custom_target(tersum.cuda)
add_custom_target(tersum.cuda.programs)
add_dependencies(tersum.cuda tersum.cuda.programs)

# tersum_add_program(<target> <source>...): a program of ours, in bin/.
function(tersum_add_program target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE tersum.flags tersum.openmp)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if("${ARGN}" MATCHES "\\.cu(;|$)")
    add_dependencies(tersum.cuda.programs ${target})
  endif()
endfunction()

# tersum_reuse_headers(<target> <level>): has a test that is compiled at this level of optimization take the library's headers,
# which each reads for three seconds, precompiled.
function(tersum_reuse_headers target level)
  set(precompiled tersum.test.headers${level})
  if(NOT TARGET ${precompiled})
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/headers/${precompiled}.cpp" CONTENT "")
    add_library(${precompiled} OBJECT "${PROJECT_BINARY_DIR}/headers/${precompiled}.cpp")
    target_link_libraries(${precompiled} PRIVATE tersum.flags tersum.openmp doctest::doctest)
    target_include_directories(${precompiled} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(${precompiled} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:${level}>")
    target_precompile_headers(${precompiled} PRIVATE <tersum/tersum.hpp> <tersum_baselines/presets.hpp> <doctest/doctest.h>
                              <algorithm> <cmath> <random> <string> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

# tersum_compile_test(<target> <cpu|emulated> <level>): links and compiles a program of tests at this level of optimization.
function(tersum_compile_test target level)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE doctest::doctest tersum.test.main)
  target_compile_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:${level}>")
  tersum_reuse_headers(${target} ${level})
  if(TERSUM_TEST_FEW_CODECS)
    target_compile_definitions(${target} PRIVATE TERSUM_FEW_CODECS)
  endif()
  if(TERSUM_TEST_FEW_ELEMENTS)
    target_compile_definitions(${target} PRIVATE TERSUM_FEW_ELEMENTS)
  endif()
endfunction()

# tersum_run_test(<name> <backend> <target> <argument>...): a test in the root of the project. Exit status 77 means skipped.
function(tersum_run_test name backend target)
  add_test(NAME ${name} COMMAND ${target} ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS ${backend} SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

# tersum_level_of_test(<variable> <area>.<name>.<backend>): -Og takes half of the compile time of -O1 on templates like ours, and a
# sixth of that of -O3; -O0 takes two thirds again of whole pipelines on emulated threads.
function(tersum_level_of_test variable full_name)
  if(full_name MATCHES "${TERSUM_TEST_OPTIMIZED}")
    set(${variable} -Og PARENT_SCOPE)
  else()
    set(${variable} -O0 PARENT_SCOPE)
  endif()
endfunction()

# tersum_compile_cuda_test(<target>): links and compiles a program of CUDA tests.
function(tersum_compile_cuda_test target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE doctest::doctest tersum.test.main.cuda)
  # With clang, nvcc 13.0 takes functions with `auto` parameters that hold lambdas for functions of the host alone.
  if(NOT target MATCHES "\\.strangers\\.")
    target_link_libraries(${target} PRIVATE tersum.host)
  endif()
  if(TERSUM_SIMULATE)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--no-compress>") # of the PTX, for its interpreter to read
  endif()
  if(TERSUM_TEST_FEW_CODECS)
    target_compile_definitions(${target} PRIVATE TERSUM_FEW_CODECS)
  endif()
endfunction()

# tersum_add_test(<area> <name> <cpu|emulated|cuda> <source>): tersum.test.<area>.<name>.<backend>, program and test.
function(tersum_add_test area name backend source)
  set(target tersum.test.${area}.${name}.${backend})
  tersum_add_program(${target} "${source}")
  if(backend STREQUAL "cuda")
    tersum_compile_cuda_test(${target})
  else()
    tersum_level_of_test(level ${area}.${name}.${backend})
    tersum_compile_test(${target} ${level})
  endif()
  tersum_run_test(${target} ${backend} ${target})
endfunction()

# tersum_can_be_together(<variable> <source>): whether a source defines nothing outside of namespaces of its own, so that others can be
# compiled in the same file.
function(tersum_can_be_together variable source)
  file(READ "${source}" text)
  if("\n${text}" MATCHES "\n#define|\nnamespace tersum|\ntemplate <>|#include \"[^\"]*\\.cpp\"")
    set(${variable} OFF PARENT_SCOPE)
  else()
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# tersum_add_tests_together(<group> <cpu|emulated|cuda> <level> <source>...): the tests of tersum_add_test, from one file that includes
# all sources, each in a namespace of its own. Codecs that several of them test are instantiated once, and headers are read once. Each
# test runs the program with the cases of its source. With CUDA there is no level; the property TERSUM_TESTS of the target
# lists its tests, as <area>.<name>, and TERSUM_CASES the arguments with which each is run.
function(tersum_add_tests_together group backend level)
  set(extension cpp)
  if(backend STREQUAL "cuda")
    set(extension cu)
    set(level "")
  endif()
  set(target tersum.tests.${group}${level}.${backend})
  set(includes)
  set(bodies)
  set(tests)
  set(cases)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME area)
    cmake_path(GET source FILENAME file)
    # What they include is read outside of the namespaces, and found to be read already inside.
    file(STRINGS "${source}" lines REGEX "^ *# *include ")
    foreach(line IN LISTS lines)
      if(line MATCHES "\"(.+)\"")
        if(EXISTS "${folder}/${CMAKE_MATCH_1}")
          set(line "#include \"${folder}/${CMAKE_MATCH_1}\"")
        endif()
      endif()
      list(APPEND includes "${line}")
    endforeach()
    string(MAKE_C_IDENTIFIER "${area}_${file}" namespace)
    string(APPEND bodies "namespace of_${namespace} {\n#include \"${source}\"\n}\n")
    string(REGEX REPLACE "(\\.emulated|\\.cuda)?\\.test\\.(cpp|cu)$" "" name "${file}")
    list(APPEND tests ${area}.${name})
    list(APPEND cases "--source-file=*/${area}/${file}")
    tersum_run_test(tersum.test.${area}.${name}.${backend} ${backend} ${target} "--source-file=*/${area}/${file}")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(together "${PROJECT_BINARY_DIR}/together/${target}.${extension}")
  file(CONFIGURE OUTPUT "${together}" CONTENT "${includes}\n${bodies}" @ONLY)
  tersum_add_program(${target} "${together}")
  if(backend STREQUAL "cuda")
    tersum_compile_cuda_test(${target})
    set_target_properties(${target} PROPERTIES TERSUM_TESTS "${tests}" TERSUM_CASES "${cases}")
  else()
    tersum_compile_test(${target} ${level})
  endif()
endfunction()

# tersum_simulate(<name of the test> <target> <argument>...): tersum_link_simulated, and the test that runs that program.
function(tersum_simulate name target)
  tersum_link_simulated(${name} ${target})
  tersum_run_simulated(${name} ${name} ${ARGN})
endfunction()

# tersum_link_simulated(<name> <target>): the objects of a program with CUDA, linked with the simulator in place of the runtime.
function(tersum_link_simulated name target)
  add_executable(${name} $<TARGET_OBJECTS:${target}>)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CUDA CUDA_RUNTIME_LIBRARY None
                                           RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE tersum.openmp tersum.simulator)
  add_dependencies(tersum.cuda.programs ${name})
endfunction()

# tersum_run_simulated(<name of the test> <program> <argument>...): blocks of launches of at most 16 run together, so that races between
# them are found.
function(tersum_run_simulated name program)
  add_test(NAME ${name} COMMAND ${program} ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS simulated TIMEOUT 600 ENVIRONMENT
                                          "TERSUM_SMALL=1;TERSUM_SIMULATED_TOGETHER=16")
endfunction()

# tersum_add_bench(<source>): tersum.bench.<name> of <name>.bench.cpp, tersum.bench.<name>.cuda of <name>.bench.cu.
function(tersum_add_bench source)
  cmake_path(GET source FILENAME name)
  string(REGEX REPLACE "\\.bench\\.cpp$" "" name ${name})
  string(REGEX REPLACE "\\.bench\\.cu$" ".cuda" name ${name})
  tersum_add_program(tersum.bench.${name} "${source}")
  target_include_directories(tersum.bench.${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(tersum.bench.${name} PRIVATE benchmark::benchmark_main)
endfunction()

# tersum_check_headers(<target> <header>...): each header is C++ alone, included twice. Headers are named relative to include/.
function(tersum_check_headers target)
  set(stamps)
  foreach(header IN LISTS ARGN)
    set(source "${PROJECT_BINARY_DIR}/headers/${header}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${header}>\n#include <${header}>\n")
    add_custom_command(
      OUTPUT "${source}.stamp"
      COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Werror -I
              "${PROJECT_SOURCE_DIR}/include" -MD -MT "${source}.stamp" -MF "${source}.d" "${source}"
      COMMAND "${CMAKE_COMMAND}" -E touch "${source}.stamp"
      DEPENDS "${source}"
      DEPFILE "${source}.d"
      COMMENT "Reading ${header} alone"
      VERBATIM)
    list(APPEND stamps "${source}.stamp")
  endforeach()
  add_custom_target(${target} ALL DEPENDS ${stamps})
endfunction()

# tersum_add_header_tests(<target> <extension> <header>...): compiles each header alone, included twice, as a file
# with the extension. Headers are named relative to include/.
function(tersum_add_header_tests target extension)
  set(sources)
  foreach(header IN LISTS ARGN)
    set(source "${PROJECT_BINARY_DIR}/headers/${header}.${extension}")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND sources "${source}")
  endforeach()
  if(sources)
    add_library(${target} OBJECT ${sources})
    target_link_libraries(${target} PRIVATE tersum.flags)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wsign-conversion>")
    if(extension STREQUAL "cu")
      set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 90-real)
      add_dependencies(tersum.cuda ${target})
    endif()
  endif()
endfunction()

# tersum_precompile_for_mistakes(): what the files of tests/compile_fail include is read once, for those that ask for no option of their own.
function(tersum_precompile_for_mistakes)
  set(header "${PROJECT_BINARY_DIR}/compile_fail/all.hpp")
  file(CONFIGURE OUTPUT "${header}" CONTENT "#include <tersum/tersum.hpp>\n#include <tersum_baselines/tersum_baselines.hpp>\n")
  add_custom_command(
    OUTPUT "${header}.gch"
    COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" -x c++-header -MD -MT "${header}.gch" -MF
            "${header}.d" -o "${header}.gch" "${header}"
    DEPENDS "${header}"
    DEPFILE "${header}.d"
    COMMENT "Precompiling headers for tests/compile_fail"
    VERBATIM)
  add_custom_target(tersum.compile_fail.headers ALL DEPENDS "${header}.gch")
endfunction()

# tersum_add_compile_failure(<source>): the test tersum.compile_fail.<name> passes when the source does not compile, a .cu
# file with nvcc, and the compiler's output holds the text of each of its lines "// expected: <text>".
function(tersum_add_compile_failure source)
  cmake_path(GET source STEM name)
  set(compiler "${CMAKE_CXX_COMPILER}")
  set(labels compile_fail)
  if(source MATCHES "\\.cu$")
    set(compiler "${CMAKE_CUDA_COMPILER}")
    list(APPEND labels cuda)
  endif()
  add_test(NAME tersum.compile_fail.${name}
           COMMAND "${CMAKE_COMMAND}" "-DCOMPILER=${compiler}" "-DSOURCE=${source}"
                   "-DINCLUDES=${PROJECT_SOURCE_DIR}/include" "-DPRECOMPILED=${PROJECT_BINARY_DIR}/compile_fail/all.hpp" -P
                   "${PROJECT_SOURCE_DIR}/cmake/tersum_expect_failure.cmake")
  set_tests_properties(tersum.compile_fail.${name} PROPERTIES LABELS "${labels}")
endfunction()

# tersum_add_page_test(<name> <page>): the test tersum.docs.<name> passes when the code in the page compiles and, where
# what surrounds it has a main, runs.
function(tersum_add_page_test name page)
  list(TRANSFORM MPI_CXX_INCLUDE_DIRS PREPEND -isystem OUTPUT_VARIABLE mpi)
  set(compiler "$<IF:$<BOOL:${TERSUM_CLANGXX}>,${TERSUM_CLANGXX},${CMAKE_CXX_COMPILER}>") # half of the time of g++
  add_test(NAME tersum.docs.${name}
           COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/docs/check_code.py" --page "${page}" --around
                   "${PROJECT_SOURCE_DIR}/tests/docs/${name}.cpp" -- "${compiler}" -std=c++20 -Wall -Wextra
                   -Werror -Wno-unused -Wunused-result "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests" "-I${PROJECT_SOURCE_DIR}/bench" -DOMPI_SKIP_MPICXX ${mpi}
                   ${MPI_CXX_LIBRARIES})
  set_tests_properties(tersum.docs.${name} PROPERTIES LABELS docs)
endfunction()

# tersum_add_codegen_test(<architecture> <source>...): compiles the sources to cubins, and adds the test
# tersum.codegen.<architecture> that holds them to tests/codegen/budgets*.json.
function(tersum_add_codegen_test architecture)
  file(GLOB budgets CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/codegen/budgets*.json")
  if(NOT TERSUM_CODEGEN_NCCL)
    list(REMOVE_ITEM budgets "${PROJECT_SOURCE_DIR}/tests/codegen/budgets_nccl.json")
  endif()
  set(cubins)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(cubin "${PROJECT_BINARY_DIR}/codegen/${architecture}/${name}.cubin")
    cmake_path(GET cubin PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    set(nccl)
    if(name STREQUAL nccl_kernels)
      set(nccl -isystem "${TERSUM_NCCL_INCLUDE}")
    endif()
    add_custom_command(
      OUTPUT "${cubin}"
      COMMAND "${CMAKE_CUDA_COMPILER}" -std=c++20 -O3 -DNDEBUG -arch=${architecture} -cubin -I
              "${PROJECT_SOURCE_DIR}/include" -I "${PROJECT_SOURCE_DIR}/tests" ${nccl} -MD -MT "${cubin}" -MF "${cubin}.d" -o
              "${cubin}" "${source}"
      DEPENDS "${source}"
      DEPFILE "${cubin}.d"
      COMMENT "Compiling ${name}.cu for ${architecture}"
      VERBATIM)
    list(APPEND cubins "${cubin}")
  endforeach()
  if(cubins)
    add_custom_target(tersum.codegen.${architecture} ALL DEPENDS ${cubins})
    add_dependencies(tersum.cuda tersum.codegen.${architecture})
    add_test(NAME tersum.codegen.${architecture}
             COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/codegen/check.py" --budgets ${budgets} --kernels
                     "${PROJECT_SOURCE_DIR}/include/tersum/execute/detail/cuda_kernels.cuh"
                     "${PROJECT_SOURCE_DIR}/include/tersum/exchange/detail/exchange_kernels.hpp"
                     "${PROJECT_SOURCE_DIR}/include/tersum/lowrank/detail/low_rank_launches.hpp" --arch ${architecture} ${cubins})
    set_tests_properties(tersum.codegen.${architecture} PROPERTIES LABELS "codegen;cuda")
  endif()
endfunction()

# tersum_add_package_test(<name> <source folder> [<cache entry>...]): configures, builds and runs a consumer project,
# whose program must be called `consumer`, with the install tree of the fixture tersum.package.install at hand.
function(tersum_add_package_test name folder)
  set(build "${PROJECT_BINARY_DIR}/package/${name}")
  add_test(NAME tersum.package.${name}
           COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${folder}" "${build}" --build-generator
                   "${CMAKE_GENERATOR}" --build-makeprogram "${CMAKE_MAKE_PROGRAM}" --build-options
                   "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" ${ARGN} --test-command "${build}/consumer")
  set_tests_properties(tersum.package.${name} PROPERTIES LABELS package FIXTURES_REQUIRED tersum.package)
endfunction()

# tersum_add_project_test(<name> <source folder> [<cache entry>...]): configures and builds a project with tests of its own,
# and runs them.
function(tersum_add_project_test name folder)
  set(build "${PROJECT_BINARY_DIR}/package/${name}")
  add_test(NAME tersum.package.${name}
           COMMAND "${CMAKE_CTEST_COMMAND}" --build-and-test "${folder}" "${build}" --build-generator
                   "${CMAKE_GENERATOR}" --build-makeprogram "${CMAKE_MAKE_PROGRAM}" --build-options
                   "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" ${ARGN} --test-command "${CMAKE_CTEST_COMMAND}"
                   --output-on-failure)
  set_tests_properties(tersum.package.${name} PROPERTIES LABELS package TIMEOUT 900)
endfunction()
