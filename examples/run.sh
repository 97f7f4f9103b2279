#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds compare_codecs in Release on a Debian 12 machine, installs what is missing, runs it on the sample
# gradients and draws the results. Further arguments go to the program, as in
#
#   bash examples/run.sh --steps 20 --repeat 5
#   bash examples/run.sh --device cuda           (needs nvcc and a device)
#   FEW=ON bash examples/run.sh                  (one or two codecs of each kind: less to compile)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/install_missing.sh
install_missing g++:g++ cmake:cmake make:make

cuda=OFF
[[ " $* " =~ " --device cuda "|" --device=cuda " ]] && cuda=ON

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache CCACHE_DEPEND=1
fi

build=build/examples
mkdir -p "$build"
{
  cmake -S . -B "$build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release -DTERSUM_CUDA=$cuda -DTERSUM_BUILD_TESTS=OFF \
    -DTERSUM_BUILD_BENCH=OFF -DTERSUM_BUILD_EXAMPLES=ON -DTERSUM_EXAMPLES_FEW="${FEW:-OFF}" &&
    cmake --build "$build" --target compare_codecs --parallel "$(nproc)"
} >"$build/build.log" 2>&1 || {
  cat "$build/build.log" >&2
  exit 1
}

rm -f "$build"/compare.{json,csv,svg}
# First those that README.md names first.
[ $# -gt 0 ] || "$build/bin/compare_codecs" --gradients examples/gradients/lm \
  --codecs fp16,two_shot_4,metric_3,metric_2,gathered_2,two_shot_1_ef,topkc_b2_ef,rotated_sat4,sharded_4
"$build/bin/compare_codecs" --gradients examples/gradients/lm --codecs all --json "$build/compare.json" "$@"
# There is none after --help, or where the caller named another file.
[ -e "$build/compare.json" ] || exit 0
echo "written: $build/compare.json"
if find_matplotlib; then
  python3 examples/compare_codecs/table.py "$build/compare.json" >"$build/compare.csv"
  # Of other codecs than presets and baselines there is nothing to draw.
  "$drawing_python" examples/compare_codecs/plot.py "$build/compare.csv" "$build/compare.svg" || exit 0
  echo "written: $build/compare.csv, $build/compare.svg"
else
  echo "not drawn, as there is no matplotlib (Debian's python3-matplotlib)"
fi
