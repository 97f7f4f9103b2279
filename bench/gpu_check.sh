#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# One call on a machine with a GPU: builds the CUDA programs, runs the tests (the CPU executor's bytes over presets and
# sizes, captured graphs, NCCL ranks that share the GPU), the same under compute-sanitizer on small sizes, and the
# benchmarks; then looks at the three slowest of them with ncu. Needs the CUDA toolkit, cmake 3.25, ninja or make, and
# g++; no network. Ends within nine minutes: what does not fit is left out, and said. Without a GPU it builds, says so
# and exits with 0.
#
#   OUT            folder of text and JSON (default bench/results/<device>): summary.txt, cuda.md, cuda.json, log.txt
#                  and details.tar.gz, what every program said; cuda.svg where Python has matplotlib
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
if ! command -v cmake >/dev/null; then
  echo "gpu_check.sh: cmake is not on PATH" >&2
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
details=$out/details
rm -rf "$details"
mkdir -p "$details" "$build"
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
  timeout -k 5 "$(seconds 30)" cmake -S "$probe" -B "$probe/build" "-DCMAKE_PREFIX_PATH=$list" >>"$log" 2>&1
}

arguments=() prefixes=()
# Code for the device at hand alone: nothing is left to compile when programs start.
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
[[ ! $capability =~ ^[0-9]+$ ]] || arguments+=("-DCMAKE_CUDA_ARCHITECTURES=$capability-real")
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
if ! timeout -k 5 "$(seconds 60)" cmake --preset cuda -B "$build" "-DTERSUM_BUILD_TESTS=$tests" \
  "-DCMAKE_CUDA_FLAGS_RELEASE=-O1 -DNDEBUG" "-DTERSUM_BUILD_BENCH=$bench" "-DTERSUM_BENCH_PRESETS=${PRESETS:-few}" \
  -DTERSUM_BENCH_ROTATORS=ON -DTERSUM_BUILD_EXAMPLES=OFF \
  -DTERSUM_INSTALL=OFF -DTERSUM_TEST_HEADERS=OFF -DFETCHCONTENT_FULLY_DISCONNECTED=ON \
  "-DCMAKE_PREFIX_PATH=$list" "${arguments[@]}" >>"$log" 2>&1; then
  tail -n 20 "$log"
  echo "gpu_check.sh: cmake failed; see $log" >&2
  exit 1
fi
# What an earlier build left must not pass for this one's.
rm -f "$build"/bin/tersum.{test,bench}.*.cuda "$build/bin/tersum.test.interop.nccl"
begin=$SECONDS
timeout -k 5 "$(seconds 240)" cmake --build "$build" -j "$jobs" --target tersum.cuda.programs -- "${keep_going[@]}" \
  >>"$log" 2>&1 || fail "the build, in part or in time; see $log"
note "build: $((SECONDS - begin)) s"

if [ -z "$device" ]; then
  note "no GPU here: nothing was run"
  rmdir "$details"
  exit $((failures > 0))
fi

# run_program PROGRAM DEADLINE FOLDER: prints the verdict on one program.
run_program() {
  local name=${1##*/} left=$(($2 - $(date +%s)))
  timeout -k 5 "$((left < 1 ? 1 : left))" "$1" >"$3/$name.txt" 2>&1
  local code=$?
  case $code in
    0) echo "passed: $name" ;;
    77) echo "skipped: $name" ;;
    124 | 137) echo "FAILED: $name (out of time)" ;;
    *) echo "FAILED: $name (exit $code; $3/$name.txt)" ;;
  esac
}

# sanitize PROGRAM DEADLINE FOLDER TOOL: the same under compute-sanitizer. The test of refused calls is for others.
sanitize() {
  local what="$4 ${1##*/}" text=$3/sanitizer.$4.${1##*/}.txt left=$(($2 - $(date +%s)))
  ((left > 75)) && left=75
  if ((left < 5)); then
    echo "out of time: $what"
    return
  fi
  TERSUM_SMALL=1 timeout -k 5 "$left" compute-sanitizer --tool "$4" --error-exitcode 9 "$1" \
    '--test-case-exclude=*refused calls*' >"$text" 2>&1
  local code=$?
  case $code in
    0 | 77) echo "passed: $what" ;;
    124 | 137) echo "out of time: $what" ;;
    *) echo "FAILED: $what (exit $code; $text)" ;;
  esac
}
export -f run_program sanitize

# tell PREFIX FILE: notes the verdicts of a file, and shows the ends of what has failed.
tell() {
  local line
  while read -r line; do
    if [[ $line != FAILED* ]]; then
      note "$1$line"
      continue
    fi
    fail "$1${line#FAILED: }"
    [[ ! $line =~ \;\ (.*)\)$ ]] || tail -n 15 "${BASH_REMATCH[1]}"
  done <"$2"
}

shopt -s nullglob
# Those of presets that differ from others in little come last: what does not fit is theirs.
more=("$build"/bin/tersum.test.*.cuda_more_*.cuda)
programs=()
for program in "$build"/bin/tersum.test.*.cuda; do
  [[ $program == */tersum.test.*.cuda_more_* ]] || programs+=("$program")
done
programs+=("${more[@]}")
if ((${#programs[@]})); then
  echo "== CUDA tests"
  deadline=$(($(date +%s) + $(seconds 120)))
  printf '%s\0' "${programs[@]}" |
    OMP_NUM_THREADS=$((jobs > 4 ? jobs / 4 : 1)) xargs -0 -n 1 -P 4 \
      bash -c 'run_program "$2" "$0" "$1"' "$deadline" "$details" >"$details/tests.txt"
  tell "" "$details/tests.txt"
fi

program=$build/bin/tersum.test.interop.nccl
if [ -x "$program" ]; then
  echo "== NCCL, ranks that share the GPU"
  for ranks in 1 2 3 4 8; do
    timeout -k 5 "$(seconds 40)" bash tests/interop/nccl_ranks.sh "$ranks" "$program" >"$details/nccl.$ranks.txt" 2>&1
    case $? in
      0) note "passed: $ranks NCCL ranks" ;;
      77) note "skipped: $ranks NCCL ranks" ;;
      *) fail "$ranks NCCL ranks" && tail -n 30 "$details/nccl.$ranks.txt" ;;
    esac
  done
else
  note "skipped: NCCL ranks; NCCL is not here, or the tests are not built"
fi

# finish_json FILE: ends a file that was cut off behind the last of its runs. Fails when it has none.
finish_json() {
  python3 - "$1" <<'END'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
end = text.rfind("\n    }")
if '"benchmarks": [' not in text or end < text.index('"benchmarks": ['):
    sys.exit(1)
text = text[:end] + "\n    }\n  ]\n}\n"
json.loads(text)
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write(text)
END
}

# The largest size of every operation first; the others while there is time.
results=()
measure() {
  local operation=$1 size=$2 pattern=$3 program=$build/bin/tersum.bench.cuda.cuda
  local json=$details/cuda.$operation.$size.json
  case $operation in
    select | sort) program=$build/bin/tersum.bench.select.cuda ;;
    products | orthogonalize | reconstruct) program=$build/bin/tersum.bench.low_rank.cuda ;;
    rotate | rotate_local) program=$build/bin/tersum.bench.rotate.cuda ;;
  esac
  [ -x "$program" ] || return
  timeout -k 5 "$(seconds 45)" "$program" "--benchmark_filter=^$operation/$pattern" --benchmark_min_time=0.02 \
    "--benchmark_out=$json" --benchmark_out_format=json >"$details/cuda.$operation.$size.txt" 2>&1
  local code=$?
  ((code != 137)) || code=124 # it had to be killed
  if ((code == 0)) && [ -s "$json" ]; then
    results+=("$json")
    return
  fi
  if ((code == 124)); then
    note "out of time: some benchmarks of $operation, $size; see $details/cuda.$operation.$size.txt"
    if [ -s "$json" ] && finish_json "$json"; then
      results+=("$json")
      return
    fi
  fi
  rm -f "$json"
  ((code == 124)) || fail "the benchmarks of $operation, $size (exit $code); see $details/cuda.$operation.$size.txt"
}
operations=(encode decode norms local reduce encode_feedback recompress reduce_once exchange)
largest=268435456
if [ "$bench" = ON ]; then
  echo "== benchmarks"
  for operation in "${operations[@]}"; do measure "$operation" "$largest" ".*/n:$largest/"; done
  for operation in select sort rotate rotate_local; do measure "$operation" all ''; done
fi

if ((${#programs[@]})); then
  echo "== compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    deadline=$(($(date +%s) + $(seconds 150)))
    for tool in memcheck racecheck initcheck synccheck; do
      for program in "${programs[@]}"; do printf '%s\0%s\0' "$program" "$tool"; done
    done | xargs -0 -n 2 -P 6 bash -c 'sanitize "$2" "$0" "$1" "$3"' "$deadline" "$details" >"$details/sanitizer.txt"
    tell "compute-sanitizer " "$details/sanitizer.txt"
  else
    note "skipped: compute-sanitizer is not on PATH"
  fi
fi

if ((${#results[@]})) && command -v python3 >/dev/null; then
  echo "== ncu, the three slowest"
  if command -v ncu >/dev/null; then
    number=0
    while read -r name; do
      number=$((number + 1))
      program=$build/bin/tersum.bench.cuda.cuda
      text=$details/ncu.$number.txt
      kernel=${name%%/*}
      [[ $name != */fp16/* && $name != */bf16/* && $name != */topkc_b*/* ]] || kernel=cast
      timeout -k 5 "$(seconds 40)" ncu --kernel-name-base mangled --kernel-name "regex:[0-9]${kernel}_[a-z_]*kernel" \
        --launch-count 2 --section SpeedOfLight --section LaunchStats --section Occupancy \
        --section WarpStateStats "$program" "--benchmark_filter=^$name" --benchmark_min_time=0.001 >"$text" 2>&1
      code=$?
      if ((code == 0)) && grep -q Throughput "$text"; then
        note "ncu: $name in $text"
      elif grep -q ERR_NVGPUCTRPERM "$text"; then
        note "skipped: ncu may not read the counters here"
        break
      else
        note "ncu: nothing of $name (exit $code; $text)"
      fi
    done < <(python3 bench/report.py "${results[@]}" --filter "^(encode|decode|norms|reduce)/.*/n:$largest/" --slowest 3)
  else
    note "skipped: ncu is not on PATH"
  fi
fi

if [ "$bench" = ON ]; then
  echo "== benchmarks of low ranks and of smaller sizes"
  for operation in products orthogonalize reconstruct; do
    (($(seconds 45) < 20)) && note "out of time: the benchmarks of $operation" && continue
    measure "$operation" all ''
  done
  for operation in "${operations[@]}"; do
    (($(seconds 45) < 20)) && note "out of time: the benchmarks of $operation, smaller sizes" && continue
    measure "$operation" smaller '.*/n:(6553600|16777216)/'
  done
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
  python3 bench/report.py "${results[@]}" >"$out/cuda.md" || fail "a benchmark reported an error"
  python3 bench/plot.py "${results[@]}" --out "$out/cuda.svg" || echo "not drawn: $out/cuda.svg (needs matplotlib)"
  python3 bench/report.py "${results[@]}" --merge >"$out/cuda.json"
  python3 bench/report.py "${results[@]}" --brief \
    --filter "/n:$largest/|^(select|sort|products|orthogonalize|reconstruct)/" || true
fi
tar -czf "$out/details.tar.gz" -C "$out" details && rm -rf "$details"
echo "$failures failed, $SECONDS s, results in $out"
exit $((failures > 0))
