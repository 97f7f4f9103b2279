#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# One call on a machine with a GPU: builds what only nvcc can build, runs the CUDA tests, the same under
# compute-sanitizer, and the benchmarks. Needs the CUDA toolkit, cmake, ninja or make, and g++; no network.
# Ends within nine minutes. Without a GPU it builds, says so and exits with 0.
#
#   OUT            folder of text and JSON (default bench/results/<device>)
#   BUILD          build folder (default build/gpu-check)
#   PRESETS        few (default) or all presets in the benchmarks
#   DOCTEST_DIR    doctest, BENCHMARK_DIR Google Benchmark: the project's source tree, or a folder into which it is
#                  installed; needed where the system has none. What cannot be built is skipped, in so many words.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

readonly budget=510
build=${BUILD:-build/gpu-check}
jobs=$(nproc)
failures=0
notes=()

# Seconds for a stage that may take $1: less when the whole is nearly used up.
seconds() {
  local left=$((budget - SECONDS))
  ((left < 1)) && left=1
  echo $(($1 < left ? $1 : left))
}

note() {
  notes+=("$*")
  echo "== $*"
}

fail() {
  failures=$((failures + 1))
  note "FAILED: $*"
}

export PATH="$PATH:/usr/local/cuda/bin"
if ! command -v nvcc >/dev/null; then
  echo "gpu_check.sh: nvcc is not on PATH nor in /usr/local/cuda/bin" >&2
  exit 1
fi
device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 || true)
[[ $device == *[Ff]ailed* || $device == *"No devices"* ]] && device=
slug=$(tr '[:upper:] ' '[:lower:]-' <<<"${device:-no-gpu}" | tr -cd 'a-z0-9-')
if [ -n "${OUT:-}" ]; then
  out=$OUT
elif [ -n "$device" ]; then
  out=bench/results/$slug
else
  out=$build/results
fi
mkdir -p "$out" "$build"
log=$out/log.txt
: >"$log"

# Arguments of cmake for a package: from the folder that a variable names, or the system's. Fails when there is none.
package() {
  local name=$1 folder=$2
  if [ -n "$folder" ] && [ -f "$folder/CMakeLists.txt" ]; then
    arguments+=("-DFETCHCONTENT_SOURCE_DIR_${name^^}=$(realpath "$folder")")
    return
  fi
  [ -z "$folder" ] || prefixes+=("$(realpath "$folder")")
  local probe=$build/probe-$name list
  list=$(IFS=';' && echo "${prefixes[*]:-}")
  mkdir -p "$probe"
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(probe CXX)\nfind_package(%s REQUIRED)\n' "$name" \
    >"$probe/CMakeLists.txt"
  rm -rf "$probe/build"
  cmake -S "$probe" -B "$probe/build" "-DCMAKE_PREFIX_PATH=$list" >>"$log" 2>&1
}

arguments=() prefixes=()
if package doctest "${DOCTEST_DIR:-}"; then
  tests=ON
else
  tests=OFF
  note "skipped: the tests; there is no doctest (set DOCTEST_DIR)"
fi
if package benchmark "${BENCHMARK_DIR:-}"; then
  bench=ON
else
  bench=OFF
  note "skipped: the benchmarks; there is no Google Benchmark (set BENCHMARK_DIR)"
fi
keep_going=(-k 0)
if ! command -v ninja >/dev/null; then
  arguments+=(-G "Unix Makefiles")
  keep_going=(-k)
fi

echo "== configure and build ($jobs jobs)"
list=$(IFS=';' && echo "${prefixes[*]:-}")
if ! timeout "$(seconds 60)" cmake --preset cuda -B "$build" "-DTERSUM_BUILD_TESTS=$tests" \
  "-DTERSUM_BUILD_BENCH=$bench" "-DTERSUM_BENCH_PRESETS=${PRESETS:-few}" -DTERSUM_TEST_HEADERS=OFF -DFETCHCONTENT_FULLY_DISCONNECTED=ON \
  "-DCMAKE_PREFIX_PATH=$list" "${arguments[@]}" >>"$log" 2>&1; then
  tail -n 20 "$log"
  echo "gpu_check.sh: cmake failed; see $log" >&2
  exit 1
fi
begin=$SECONDS
timeout "$(seconds 240)" cmake --build "$build" -j "$jobs" --target tersum.cuda -- "${keep_going[@]}" >>"$log" 2>&1 ||
  fail "the build, in part or in time; see $log"
note "build: $((SECONDS - begin)) s"

if [ -z "$device" ]; then
  note "no GPU here: nothing was run"
  exit $((failures > 0))
fi

shopt -s nullglob
programs=("$build"/bin/tersum.test.*.cuda)
if ((${#programs[@]})); then
  echo "== CUDA tests"
  for program in "${programs[@]}"; do
    name=${program##*/}
    timeout "$(seconds 60)" "$program" >"$out/$name.txt" 2>&1
    case $? in
      0) note "passed: $name" ;;
      77) note "skipped: $name" ;;
      *) fail "$name" && tail -n 30 "$out/$name.txt" ;;
    esac
  done

  echo "== compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    sanitize() {
      local tool=$1 program=$2 limit=$3
      local text=$4/sanitizer.$tool.${program##*/}.txt
      TERSUM_SMALL=1 timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" >"$text" 2>&1
      local code=$?
      case $code in
        0 | 77) echo "passed: $tool ${program##*/}" ;;
        124) echo "out of time: $tool ${program##*/}" ;;
        *) echo "FAILED: $tool ${program##*/} (exit $code; $text)" ;;
      esac
    }
    export -f sanitize
    for tool in memcheck racecheck initcheck synccheck; do
      for program in "${programs[@]}"; do printf '%s\0%s\0' "$tool" "$program"; done
    done | timeout "$(seconds 150)" xargs -0 -n 2 -P 4 \
      bash -c 'sanitize "$2" "$3" "$0" "$1"' "$(seconds 75)" "$out" >"$out/sanitizer.txt"
    (($? == 0)) || note "compute-sanitizer: not everything ran in time"
    while read -r line; do
      if [[ $line == FAILED* ]]; then fail "compute-sanitizer ${line#FAILED: }"; else note "compute-sanitizer $line"; fi
    done <"$out/sanitizer.txt"
  else
    note "skipped: compute-sanitizer is not on PATH"
  fi
fi

program=$build/bin/tersum.test.interop.nccl
if [ -x "$program" ]; then
  echo "== NCCL, ranks that share the GPU"
  for ranks in 1 2 4; do
    timeout "$(seconds 60)" bash tests/interop/nccl_ranks.sh "$ranks" "$program" >"$out/nccl.$ranks.txt" 2>&1
    case $? in
      0) note "passed: $ranks NCCL ranks" ;;
      *) fail "$ranks NCCL ranks" && tail -n 30 "$out/nccl.$ranks.txt" ;;
    esac
  done
else
  note "skipped: NCCL ranks; NCCL is not here, or the tests are not built"
fi

results=()
if [ -x "$build/bin/tersum.bench.cuda.cuda" ]; then
  echo "== benchmarks"
  for operation in encode decode norms local encode_feedback recompress reduce reduce_once rotate_local exchange \
    select sort; do
    json=$out/cuda.$operation.json
    program=$build/bin/tersum.bench.cuda.cuda pattern="^$operation/.*/n:(6553600|16777216|268435456)/"
    if [[ $operation == select || $operation == sort ]]; then
      program=$build/bin/tersum.bench.select.cuda pattern=^$operation/
    fi
    if timeout "$(seconds 60)" "$program" "--benchmark_filter=$pattern" --benchmark_min_time=0.02 \
      "--benchmark_out=$json" --benchmark_out_format=json >"$out/cuda.$operation.txt" 2>&1; then
      results+=("$json")
    else
      rm -f "$json"
      fail "the benchmarks of $operation, or their time ran out; see $out/cuda.$operation.txt"
    fi
  done
fi
if [ -x "$build/bin/tersum.bench.low_rank.cuda" ]; then
  timeout "$(seconds 60)" "$build/bin/tersum.bench.low_rank.cuda" --benchmark_min_time=0.02 \
    >"$out/cuda.low_rank.txt" 2>&1 ||
    fail "the benchmarks of low-rank steps, or their time ran out; see $out/cuda.low_rank.txt"
fi

{
  echo "device: $device"
  nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,memory.total --format=csv 2>/dev/null
  nvcc --version | tail -n 2
  echo "commit: $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  echo "date: $(date -u +%F)"
  printf '%s\n' "${notes[@]}"
} >"$out/summary.txt"
echo
cat "$out/summary.txt"
if ((${#results[@]})) && command -v python3 >/dev/null; then
  python3 bench/report.py "${results[@]}" --svg "$out/cuda.svg" >"$out/cuda.md" || fail "a benchmark reported an error"
  python3 bench/report.py "${results[@]}" --brief --filter '/n:268435456/' || true
fi
echo "$failures failed, $SECONDS s, results in $out"
exit $((failures > 0))
