#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzzers with all codecs in build/fuzz, and runs each, and random exchanges, for some seconds. What is found stays
# in build/fuzz/corpus; an input that breaks a law is kept beside it, and `build/fuzz/bin/tersum.fuzz.NAME FILE` repeats it.
#
#   bash tests/fuzz/run.sh SECONDS [NAME...]     (default: all; EXCHANGES stands for the random exchanges)
#   RUNS=100000 SEED=1 bash tests/fuzz/run.sh SECONDS [NAME...]     (so many inputs of each, if the seconds suffice)

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
seconds=${1:?usage: bash tests/fuzz/run.sh SECONDS [NAME...]}
shift
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(npy layers options plan state payload exchange EXCHANGES)
cmake --preset cpu-clang -B build/fuzz -DTERSUM_FUZZ_CODECS="${TERSUM_FUZZ_CODECS:-all}" \
  -DTERSUM_TEST_ONLY='^$' >/dev/null || exit 1
failed=0
for name in "${names[@]}"; do
  if [ "$name" = EXCHANGES ]; then
    cmake --build build/fuzz --target tersum.fuzz.exchanges >/dev/null || exit 1
    build/fuzz/bin/tersum.fuzz.exchanges --seconds "$seconds" --seed "$(date +%s)000" || failed=1
    continue
  fi
  cmake --build build/fuzz --target "tersum.fuzz.$name" >/dev/null || exit 1
  log=build/fuzz/$name.log
  build/fuzz/bin/tersum.fuzz."$name" -max_total_time="$seconds" -runs="${RUNS:--1}" -seed="${SEED:-0}" -timeout=300 \
    -max_len=512 -entropic=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/corpus/$name." "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1
  status=$?
  refused=$(sed -n 's/^stat::refused_inputs: *//p' "$log")
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "$name: $inputs inputs${refused:+, of which $refused were refused}, exit status $status"
  [ "$status" -eq 0 ] || { failed=1; tail -n 40 "$log"; }
done
exit "$failed"
