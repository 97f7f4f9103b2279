#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# What tests/run.sh leaves out because it takes long: compare_codecs and the shared library with every preset, and their tests; the
# shared library with every preset, and what resembles other presets, on the simulated device; every header alone; golden
# digests of all presets in bfloat16, by clang, and with more flags; the laws of codecs under the sanitizers; budgets of more
# architectures; a newer NCCL; trainings; fuzzers with all codecs.
#
#   bash tests/nightly.sh [SECONDS]     (of each fuzzer; default 60)
#
# The last line is "N passed, N failed".

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source cmake/install_missing.sh
source cmake/install_nvcc.sh
install_missing g++:g++ cmake:cmake ninja:ninja-build clang++:clang /usr/include/doctest/doctest.h:doctest-dev || exit 1

passed=0 failed=0
check() {
  local name=$1
  shift
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

# build_and_test NAME PRESET TESTS TARGETS OPTION...: some tests of a preset, in build/nightly-NAME.
build_and_test() {
  local folder=build/nightly-$1 preset=$2 tests=$3 targets=$4
  shift 4
  # shellcheck disable=SC2086
  cmake --preset "$preset" -B "$folder" "$@" >/dev/null && cmake --build "$folder" --parallel "$(nproc)" --target $targets &&
    (cd "$folder" && ctest --output-on-failure -R "$tests")
}

check "programs with every preset" build_and_test programs cpu \
  '^tersum\.(test\.examples\.(compare_codecs|advise|shared_library|pytorch|time_to_accuracy)|example\.)' \
  'compare_codecs advise tersum_c tersum.test.examples.shared_library.cpu'
check "trainings of the examples" env TERSUM_C_LIBRARY=build/nightly-programs/lib/libtersum_c.so /usr/bin/python3 \
  tests/examples/test_time_to_accuracy.py
check "examples/run.sh with every preset" bash examples/run.sh
check "every header alone" build_and_test headers cpu '^tersum\.test\.static\.includes$' tersum.headers.cxx \
  '-DTERSUM_TEST_ONLY=^none$' -DTERSUM_BUILD_BENCH=OFF -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_TRANSPORTS=OFF
golden='^(baselines\.)?golden|\.low_rank_codec'
check "golden digests in all elements" build_and_test elements cpu '^tersum\.test\.(baselines\.)?golden\..*\.cpu$' all \
  "-DTERSUM_TEST_ONLY=$golden" -DTERSUM_BUILD_BENCH=OFF -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_TRANSPORTS=OFF -DTERSUM_TEST_MISTAKES=OFF
check "golden digests by clang" build_and_test golden cpu-clang '^tersum\.test\.' all \
  "-DTERSUM_TEST_ONLY=$golden" -DTERSUM_TEST_FEW_CODECS=OFF -DTERSUM_FUZZERS=OFF -DTERSUM_TEST_MISTAKES=OFF
check "laws, pieces, and all codecs of random exchanges, under the sanitizers" build_and_test sanitize sanitize '^tersum\.(test|fuzz)\.' all \
  -DTERSUM_FUZZ_CODECS=all \
  '-DTERSUM_TEST_ONLY=^(baselines|chunk|codec|conformance|core|device|execute|feedback|lowrank|model|random|range|reduce|single_process|support)\..*\.cpu$|^lowrank\.kernels' \
  '-DTERSUM_TEST_SKIP=\.(theory|two_shot_theory|reference|selection_errors)\.'
check "whole codecs by g++, errors against theory too" build_and_test codecs cpu '^tersum\.(test\.codec|bench)\.' all \
  '-DTERSUM_TEST_ONLY=^codec\..*\.cpu$' -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_TRANSPORTS=OFF -DTERSUM_TEST_TOGETHER=ON
check "transports with every preset" build_and_test transports cpu '^tersum\.test\.interop\.' all \
  '-DTERSUM_TEST_ONLY=^none$' -DTERSUM_TEST_TRANSPORTS_ALL_CODECS=ON -DTERSUM_BUILD_BENCH=OFF -DTERSUM_BUILD_EXAMPLES=OFF
check "golden digests with more flags" bash tests/golden/other_compilers.sh build/nightly-other_compilers all
if find_nvcc build/nvcc; then
  check "the shared library with every preset on the simulated device" build_and_test cuda cuda \
    '^tersum\.test\.examples\.shared_library\.simulated$' tersum.test.examples.shared_library.simulated \
    -DTERSUM_TEST_C_ALL_PRESETS=ON -DCMAKE_CUDA_ARCHITECTURES=90-virtual
  check "the presets that are like others on the simulated device" build_and_test cuda-more cuda '\.cuda_more_.*\.simulated$' tersum.cuda \
    '-DTERSUM_TEST_ONLY=\.cuda_more_' -DCMAKE_CUDA_ARCHITECTURES=90-virtual
  check "compare_codecs by nvcc" build_and_test cuda-programs cuda '^tersum\.codegen\.sass_report$' compare_codecs \
    '-DTERSUM_TEST_ONLY=^none$' -DCMAKE_CUDA_ARCHITECTURES=90-virtual
  check "every header alone by nvcc" build_and_test cuda-headers cuda '^tersum\.codegen\.sass_report$' \
    'tersum.headers.cuda tersum.headers.nccl' '-DTERSUM_TEST_ONLY=^none$' -DCMAKE_CUDA_ARCHITECTURES=90-virtual
  if find_newer_nccl build/nccl; then
    check "a newer release of NCCL" build_and_test cuda-nccl cuda '^tersum\.test\.nccl_device\.other' tersum.cuda \
      '-DTERSUM_TEST_ONLY=^none$' "-DTERSUM_NCCL_OTHER_INCLUDE=$newer_nccl" -DCMAKE_CUDA_ARCHITECTURES=90-virtual
  fi
  check "budgets of more architectures" build_and_test budgets cuda '^tersum\.codegen\.sm_' \
    'tersum.codegen.sm_80 tersum.codegen.sm_100' '-DTERSUM_TEST_BUDGETS=sm_80;sm_100'
fi
check "fuzzers" bash tests/fuzz/run.sh "${1:-60}"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
