#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs all tests on a Debian 12 machine, and installs what is missing: with the default compiler, with clang
# under the sanitizers, with clang optimized, and with nvcc, which goes into build/nvcc where there is none. Build folders
# are in build/.
#
#   bash tests/run.sh [preset...]     (default: sanitize cpu cpu-clang cuda)
#
# The last line is "N passed, N failed, N skipped": each test of each preset, and each configuration and build as one; the
# preset cuda is one that was skipped where nvcc could not be installed.
# The exit status is 0 when nothing failed.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source cmake/install_missing.sh
source cmake/install_nvcc.sh

passed=0 failed=0 skipped=0
presets=("$@")
[ ${#presets[@]} -gt 0 ] || presets=(sanitize cpu cpu-clang cuda)

install_missing g++:g++ cmake:cmake ninja:ninja-build python3:python3 \
  /usr/include/doctest/doctest.h:doctest-dev /usr/include/benchmark/benchmark.h:libbenchmark-dev || exit 1
if [[ " ${presets[*]} " =~ " cpu-clang "|" sanitize " ]]; then
  install_missing clang++:clang /usr/lib/llvm-14/lib/libomp.so:libomp-dev \
    /usr/lib/llvm-14/lib/clang/14.0.6/include/sanitizer:libclang-rt-14-dev || exit 1
fi

# What tests under sanitizers do not need: it is installed while they are built.
install_more() {
  install_missing mpirun:openmpi-bin mpicxx:libopenmpi-dev /usr/include/gloo/allreduce.h:libgloo-dev ip:iproute2 ||
    echo "tests of transports that are missing will be skipped"
  install_missing qemu-aarch64:qemu-user aarch64-linux-gnu-g++:g++-aarch64-linux-gnu ||
    echo "equal bits on another architecture will not be checked"
  install_missing doxygen:doxygen || echo "the API reference will not be checked"
  find_matplotlib || echo "tests of pictures will be skipped, as there is no matplotlib"
  if ! python3 -c 'import torch' 2>/dev/null; then
    install_missing /usr/lib/python3/dist-packages/torch:python3-torch || echo "tests of PyTorch will be skipped"
  fi
}

# The same sources are compiled for several presets, some with the same flags.
install_missing ccache:ccache || true
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros # as it asks for with precompiled headers
  export CCACHE_DEPEND=1                           # what is not there yet is not preprocessed first
fi

mkdir -p build
installing=
if [[ " ${presets[*]} " =~ " cpu "|" cuda " ]]; then
  install_more >build/install.log 2>&1 &
  installing=$!
fi

# Tests run beside others: threads that wait must not take a processor from them.
export OMP_WAIT_POLICY=passive

# Runs a command as one check.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    return 1
  fi
}

jobs=$(nproc)
# The same tests, compiled in less time than one by one.
less=(-DTERSUM_TEST_TOGETHER=ON -DTERSUM_BENCH_LEVEL=-Og)
# Programs and the shared library with one or two codecs of each kind: tests/nightly.sh has all of them.
less+=(-DTERSUM_EXAMPLES_FEW=ON)
# It also digests all presets in bfloat16, reads every header alone, and holds the kernels of two more architectures to their budgets.
less+=(-DTERSUM_TEST_FEW_ELEMENTS=ON -DTERSUM_TEST_HEADERS_ALONE=OFF -DTERSUM_TEST_BUDGETS=sm_90)
# Without a device nobody asks for its machine code, except where budgets do, and of presets that are alike one is simulated.
of_cuda=()
if ! nvidia-smi -L >/dev/null 2>&1; then
  less+=(-DCMAKE_CUDA_ARCHITECTURES=90-virtual -DTERSUM_CUDA_TESTS_BY_CLANG=ON)
  of_cuda=('-DTERSUM_TEST_SKIP=\.cuda_more_')
fi
# Errors of whole codecs against theory: digests hold the bytes that they follow from.
less_of_cpu='^codec\.(selection_errors|theory|two_shot_theory)\.cpu$'
# Without optimization clang takes a third of the time of g++. Where both are asked for, it compiles what computes little: tests of whole
# codecs, most emulated kernels, transports and benchmarks.
of_cpu=() of_clang=()
if [[ " ${presets[*]} " =~ " cpu " && " ${presets[*]} " =~ " cpu-clang " ]]; then
  less_of_cpu+='|\.emulated$|^(codec|server)\.'
  less_of_cpu+='|^exchange\.states_of_presets\.|^single_process\.|^interop\.transports$'
  of_cpu=(-DTERSUM_BUILD_BENCH=OFF)
  of_clang=(-DTERSUM_BUILD_BENCH=ON -DTERSUM_TRANSPORTS=ON -DTERSUM_BENCH_LEVEL=-O0 -DTERSUM_FUZZ_LEVEL=-O0)
fi

# start_tests PRESET: runs its tests while the next preset is built, as tests of transports wait more than they compute.
start_tests() {
  tested=$1
  ctest --preset "$tested" --parallel $((jobs + 2)) >"build/$tested.ctest.log" 2>&1 &
  testing=$!
}

# finish_tests: waits for the tests that run, prints what they said, and counts them.
finish_tests() {
  [ -n "${testing:-}" ] || return 0
  local log=build/$tested.ctest.log status=0 p s n
  wait "$testing" || status=$?
  testing=
  echo "== tests of $tested"
  cat "$log"
  # What could not be built counts as failed too: CTest reports it as "Not Run".
  read -r p s n < <(awk '/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
      ++n
      if (/\*\*\*Skipped/) ++s
      else if (/ Passed +[0-9.]+ sec/) ++p
    }
    END { print p + 0, s + 0, n + 0 }' "$log")
  passed=$((passed + p)) skipped=$((skipped + s)) failed=$((failed + n - p - s))
  if [ "$status" -ne 0 ] && [ "$n" -eq $((p + s)) ]; then
    failed=$((failed + 1))
    echo "FAILED: ctest $tested ended with status $status"
  fi
}

for preset in "${presets[@]}"; do
  echo "== $preset"
  if [ "$preset" = cuda ] && ! find_nvcc build/nvcc; then
    echo "skipped: there is no nvcc, so nothing is compiled for CUDA"
    skipped=$((skipped + 1))
    continue
  fi
  if [ "$preset" != sanitize ] && [ -n "$installing" ]; then
    wait "$installing"
    installing=
    cat build/install.log
  fi
  of_preset=()
  [ "$preset" != cpu ] || of_preset=("-DTERSUM_TEST_SKIP=$less_of_cpu" "${of_cpu[@]}")
  [ "$preset" != cpu-clang ] || of_preset=("${of_clang[@]}")
  [ "$preset" != cuda ] || of_preset=("${of_cuda[@]}")
  check "configure $preset" cmake --preset "$preset" "${less[@]}" "${of_preset[@]}" >"build/$preset.log" 2>&1 || { cat "build/$preset.log"; continue; }
  check "build $preset" cmake --build --preset "$preset" --parallel "$jobs" -- -k 0
  finish_tests
  start_tests "$preset"
done
finish_tests

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
