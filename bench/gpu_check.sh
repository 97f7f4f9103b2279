#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# The first minutes on a machine with a GPU: one call of nine minutes at most, or one for each of two parts.
#
#   bash bench/gpu_check.sh                builds what it runs, then runs it
#   bash bench/gpu_check.sh --build-only   builds it and packs it into $BUILD/programs.tar.gz; needs no GPU, and takes its time
#   bash bench/gpu_check.sh --run-only     runs what was packed; needs no compiler
#
# The first part is what all else stands on: tests of one preset of each kind against the bytes of the CPU executor, captured
# graphs, repeats, compute-sanitizer; then ceilings of the memory, encode, decode and norms, exchanges of up to 2^20
# coordinates, launched and replayed from a graph, and the kernels of three exchanges by ncu. The second has all other tests and
# benchmarks, layouts, a gradient of more than 2^31 coordinates, then kernels that wait for those of other ranks, which are
# streams of the GPU, and last NCCL ranks that share it. Each writes a page that puts predictions beside measurements and names
# the three largest gaps.
#
# Each part has a limit of time, and results are written after each: what does not fit is "out of time", which is no failure. A test that
# fails makes it fail, and so does a part of which nothing was tested or nothing measured, or a machine without a GPU. Building needs the CUDA toolkit, cmake 3.25,
# ninja or make, and g++; no network.
#
#   PARTS          first, second, or both of them (default)
#   OUT            folder of results (default bench/results/<device>, with PARTS a folder of that name in it): gpu.md, the page; summary.txt; cuda.md, cuda.json and, where
#                  Python has matplotlib, cuda.svg, all benchmarks; details.tar.gz, what every program said; profiles.tar.gz,
#                  ncu's reports. Nothing else is written there, and no file has more than 16 MB.
#   BUILD          build folder (default build/gpu-check)
#   ARCHITECTURE   of the code (default: the device's, or 90 where there is none)
#   PRESETS        those that are measured, by name (default: those that were predicted or are profiled); few; or all
#   TESTS          regular expression: tests to build and run, of <area>.<name>.cuda (default: all of the parts)
#   DOCTEST_DIR    doctest, BENCHMARK_DIR Google Benchmark: the project's source tree, or a folder into which it is
#                  installed; needed where the system has none. What cannot be built is skipped, in so many words.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

budget=520
most_packed=30 most_returned=16 # MB
read -ra parts <<<"${PARTS:-first second}"
measured=(rotated_sat4 rotated_sat4_ef allocated_sat_4 topkc_b2 topk_b2 two_shot_4 allocated_4 metric_2
  thc_lookup4 thc_wide4 powersgd_r4)
read -ra presets <<<"${PRESETS:-${measured[*]} fp16}"
# The tests of the first part, in their order: numbers and arguments, lanes that saturate, chosen chunks, graphs, launches that do not overlap,
# two shots, metrics, factors, calls on arrays.
kinds=(core.types execute.kernel_arguments execute.cuda_presets execute.cuda_choosing execute.cuda_executor execute.cuda_blocks
  execute.cuda_two_shots execute.cuda_metric lowrank.low_rank device.arrays)
repeated=execute.cuda_presets repeats=20
first_profiled=(rotated_sat4 two_shot_4 allocated_sat_4)
largest=268435456 smaller='6553600|16777216|67108864' 
short='4096|16384|65536|262144|1048576' long='4194304|16777216|67108864|268435456' beyond=2148532224 patience=1
of_smaller=(encode decode norms reduce encode_feedback local)
if [ -n "${TERSUM_SMALL:-}" ]; then # to show that all parts run, on a simulated device: what benchmarks take then
  largest=32768 smaller=32768 short=4096 long=32768 beyond=4096 patience=10 repeats=1
  of_smaller=(encode_feedback)
fi

builds=1 runs=1
case ${1:-} in
  "") ;;
  --build-only) runs=0 ;;
  --run-only) builds=0 ;;
  *)
    echo "usage: gpu_check.sh [--build-only | --run-only]" >&2
    exit 2
    ;;
esac
for part in "${parts[@]}"; do
  [[ $part =~ ^(first|second)$ ]] || {
    echo "gpu_check.sh: PARTS is first, second or both, not $part" >&2
    exit 2
  }
done

build=$(realpath -m "${BUILD:-build/gpu-check}")
programs=$build/bin
jobs=$(nproc)
failures=0 passed=0
notes=()

# Seconds for a part that may take $1: less when the whole is nearly used up.
seconds() {
  local most=$(($1 * patience)) left=$((budget * patience - SECONDS))
  ((left < 1)) && left=1
  echo $((most < left ? most : left))
}

note() {
  notes+=("$*")
  echo "== $*"
}

in_part() { [[ " ${parts[*]} " == *" $1 "* ]]; }

fail() {
  failures=$((failures + 1))
  note "FAILED: $*"
}

# Folders of NVIDIA's libraries in Python's packages.
python_libraries() {
  python3 - 2>/dev/null <<'END'
import glob, importlib
for folder in importlib.import_module("nvidia").__path__:
    print("\n".join(sorted(glob.glob(folder + "/*/lib"))))
END
}

export PATH="$PATH:/usr/local/cuda/bin"
device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 || true)
[[ $device == *[Ff]ailed* || $device == *"No devices"* ]] && device=
mkdir -p "$build"
log=$build/log.txt
: >"$log"

# ---- Building

# Arguments of cmake for a package: from the folder that a variable names, or the system's. Fails when there is none with which a
# file that includes its header $3 compiles.
package() {
  local name=$1 folder=$2 header=$3
  if [ -n "$folder" ] && [ -f "$folder/CMakeLists.txt" ]; then
    arguments+=("-DFETCHCONTENT_SOURCE_DIR_${name^^}=$(realpath "$folder")")
    return
  fi
  [ -z "$folder" ] || prefixes+=("$(realpath "$folder")")
  local probe=$build/probe-$name list
  list=$(IFS=';' && echo "${prefixes[*]:-}")
  rm -rf "$probe"
  mkdir -p "$probe"
  cat >"$probe/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(probe CXX)
find_package($name REQUIRED)
add_library(probe OBJECT probe.cpp)
target_link_libraries(probe PRIVATE $name::$name)
END
  echo "#include <$header>" >"$probe/probe.cpp"
  timeout -k 5 "$configures" cmake -S "$probe" -B "$probe/build" "-DCMAKE_PREFIX_PATH=$list" >>"$log" 2>&1 &&
    timeout -k 5 "$configures" cmake --build "$probe/build" >>"$log" 2>&1
}

# NCCL of Python's packages, where the toolkit has none.
find_nccl() {
  local folder library
  while read -r folder; do
    library=$(find "$folder" -maxdepth 1 -name 'libnccl.so*' | sort | head -n 1)
    if [ -n "$library" ] && [ -f "$folder/../include/nccl.h" ]; then
      arguments+=("-DTERSUM_NCCL_INCLUDE=$(realpath "$folder/../include")" "-DTERSUM_NCCL_LIBRARY=$library")
      return
    fi
  done < <(python_libraries)
}

build_all() {
  local tool
  for tool in nvcc cmake; do
    if ! command -v "$tool" >/dev/null; then
      echo "gpu_check.sh: $tool is not on PATH nor in /usr/local/cuda/bin" >&2
      exit 1
    fi
  done
  arguments=() prefixes=()
  local limit=240 configures=60
  ((runs)) || limit=86400 configures=600
  # Code for one device alone: nothing is left to compile when programs start.
  local capability=${ARCHITECTURE:-} tests=ON bench=ON list names
  [ -n "$capability" ] ||
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  [[ $capability =~ ^[0-9]+$ ]] || capability=90
  package doctest "${DOCTEST_DIR:-}" doctest/doctest.h || tests=OFF
  [ $tests = ON ] || note "skipped: the tests; there is no doctest that compiles (set DOCTEST_DIR)"
  package benchmark "${BENCHMARK_DIR:-}" benchmark/benchmark.h || bench=OFF
  [ $bench = ON ] || note "skipped: the benchmarks; there is no Google Benchmark that compiles (set BENCHMARK_DIR)"
  [ -f "$(dirname "$(command -v nvcc)")/../include/nccl.h" ] || find_nccl
  local which=${TESTS:-.}
  [ -n "${TESTS:-}" ] || in_part second || which=$(IFS='|' && echo "${kinds[*]}")
  [[ interop.nccl.cuda =~ $which ]] || arguments+=(-DTERSUM_TRANSPORTS=OFF)
  local keep_going=(-k 0)
  if ! command -v ninja >/dev/null; then
    arguments+=(-G "Unix Makefiles")
    keep_going=(-k)
  fi

  echo "== configure and build ($jobs jobs, sm_$capability)"
  list=$(IFS=';' && echo "${prefixes[*]:-}")
  names=$(IFS=';' && echo "${presets[*]}")
  if ! timeout -k 5 "$configures" cmake --preset cuda -B "$build" "-DTERSUM_BUILD_TESTS=$tests" \
    "-DCMAKE_CUDA_ARCHITECTURES=$capability-real" "-DCMAKE_CUDA_FLAGS_RELEASE=-O3 -DNDEBUG" "-DTERSUM_BUILD_BENCH=$bench" \
    "-DTERSUM_BENCH_PRESETS=$names" "-DTERSUM_TEST_ONLY=($which).*\\.cuda\$" -DTERSUM_BENCH_ROTATORS=ON \
    -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_INSTALL=OFF -DTERSUM_TEST_HEADERS=OFF -DFETCHCONTENT_FULLY_DISCONNECTED=ON \
    "-DCMAKE_PREFIX_PATH=$list" "${arguments[@]}" >>"$log" 2>&1; then
    tail -n 20 "$log"
    echo "gpu_check.sh: cmake failed; see $log" >&2
    exit 1
  fi
  # What an earlier build left must not pass for this one's.
  rm -f "$programs"/tersum.{test,bench}.*.cuda "$programs/tersum.test.interop.nccl"
  local begin=$SECONDS
  timeout -k 5 "$limit" cmake --build "$build" -j "$jobs" --target tersum.cuda.programs -- "${keep_going[@]}" \
    >>"$log" 2>&1 || fail "the build, in part or in time; see $log"
  note "build: $((SECONDS - begin)) s"
}

# Whether the first part runs a program.
is_first() {
  local name=${1##*/tersum.}
  [[ $name =~ ^bench\.(ceilings|cuda)\.cuda$ || " ${kinds[*]/%/.cuda} " == *" ${name#test.} "* ]]
}

# The programs, without what only a debugger reads, and the libraries that another machine may not have.
pack() {
  local folder=$build/programs program
  rm -rf "$folder"
  mkdir -p "$folder/lib"
  for program in "$programs"/tersum.{test,bench}.*.cuda "$programs/tersum.test.interop.nccl"; do
    [ -x "$program" ] || continue
    in_part second || is_first "$program" || continue
    in_part first || ! is_first "$program" || [[ $program == *bench* ]] || continue
    strip -o "$folder/${program##*/}" "$program" || cp "$program" "$folder/" || return 1
    ldd "$program" | awk '$1 ~ /^lib(benchmark|gomp)/ && $3 ~ /^\// { print $3 }' | xargs -r cp -Lt "$folder/lib" || return 1
  done
  git rev-parse --short HEAD >"$folder/commit" 2>/dev/null
  tar -czf "$build/programs.tar.gz" -C "$build" programs || return 1
  note "packed: $(du -h "$build/programs.tar.gz" | cut -f 1) in $build/programs.tar.gz"
  [ "$(stat -c %s "$build/programs.tar.gz")" -le $((most_packed << 20)) ] ||
    fail "$build/programs.tar.gz has more than $most_packed MB: pack the programs of one part (PARTS), or fewer tests (TESTS)"
}

if ((builds)); then build_all; fi
if ! ((runs)); then
  pack || fail "the programs could not be packed"
  exit $((failures > 0))
fi
if [ -z "$device" ]; then
  fail "no GPU here: nothing was run"
  exit 1
fi
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
if ! ((builds)); then
  programs=$build/programs
  [ ! -f "$programs.tar.gz" ] || tar -xzf "$programs.tar.gz" -C "$build" || fail "$programs.tar.gz cannot be unpacked"
  if ! compgen -G "$programs/tersum.*" >/dev/null; then
    echo "gpu_check.sh: there are no programs in $programs; build them with --build-only" >&2
    exit 1
  fi
  [ ! -s "$programs/commit" ] || commit=$(cat "$programs/commit")
fi
mapfile -t of_python < <(python_libraries)
libraries=$(printf '%s:' "$programs/lib" /usr/local/cuda/lib64 "${of_python[@]}")
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${libraries%:}"

# ---- Results

slug=$(tr '[:upper:] ' '[:lower:]-' <<<"$device" | tr -cd 'a-z0-9-')
out=${OUT:-bench/results/$slug${PARTS:+/${PARTS// /-}}}
details=$build/details profiles=$build/profiles
rm -rf "$details" "$profiles"
mkdir -p "$out" "$details" "$profiles"
results=()
shopt -s nullglob

# What else decides how programs run.
versions() {
  local tool
  nvidia-smi 2>/dev/null | grep -o 'CUDA Version: [0-9.]*'
  for tool in nvcc ncu compute-sanitizer; do
    if command -v "$tool" >/dev/null; then echo "$tool: $("$tool" --version 2>/dev/null | tail -n 1)"; fi
  done
  local folders
  IFS=: read -ra folders <<<"$LD_LIBRARY_PATH"
  find "${folders[@]}" -maxdepth 1 -name 'libnccl.so.*' 2>/dev/null | sort -u
  uname -sr
}

# Packs folder $1 of the build folder, without its largest files if that would be too much to come back.
give_back() {
  local archive=$out/$1.tar.gz left
  while tar -czf "$archive" -C "$build" "$1" && [ "$(stat -c %s "$archive")" -gt $((most_returned << 20)) ]; do
    left=$(find "$build/$1" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
    [ -n "$left" ] || return
    rm -f "$left"
    note "left out: ${left##*/}, as $1.tar.gz would have more than $most_returned MB"
  done
}

# Writes what there is so far: a call that is ended from outside leaves it.
save() {
  {
    echo "device: $device"
    nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,memory.total --format=csv 2>/dev/null
    versions
    echo "parts: ${parts[*]}"
    echo "commit: $commit"
    echo "date: $(date -u +%F)"
    printf '%s\n' "${notes[@]}"
    echo "$failures failed, $SECONDS s so far"
  } >"$out/summary.txt"
  cp "$log" "$details/log.txt"
  python3 bench/gpu_page.py "${results[@]}" --ncu "$details"/ncu.*.csv --size "$largest" >"$out/gpu.md" ||
    fail "the page could not be written"
  if ((${#results[@]})); then
    python3 bench/report.py "${results[@]}" >"$out/cuda.md" 2>>"$log" || true
    python3 bench/report.py "${results[@]}" --merge >"$out/cuda.json" 2>>"$log" || true
  fi
  give_back details
  local reports=("$profiles"/*)
  ((${#reports[@]} == 0)) || give_back profiles
}

# ---- Tests

# run_program PROGRAM DEADLINE FOLDER: prints the verdict on one program.
run_program() {
  local name=${1##*/} left=$(($2 - $(date +%s)))
  timeout -k 5 "$((left < 1 ? 1 : left))" "$1" >"$3/$name.txt" 2>&1
  local code=$?
  case $code in
    0) echo "passed: $name" ;;
    77) echo "skipped: $name" ;;
    124 | 137) echo "out of time: $name" ;;
    *) echo "FAILED: $name (exit $code; $3/$name.txt)" ;;
  esac
}

# sanitize PROGRAM DEADLINE FOLDER TOOL: the same under compute-sanitizer. The test of refused calls is for others.
sanitize() {
  local what="$4 ${1##*/}" text=$3/sanitizer.$4.${1##*/}.txt left=$(($2 - $(date +%s)))
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
      [[ -n $1 || $line != passed* ]] || passed=$((passed + 1))
      note "$1$line"
      continue
    fi
    fail "$1${line#FAILED: }"
    [[ ! $line =~ \;\ (.*)\)$ ]] || tail -n 15 "${BASH_REMATCH[1]}"
  done <"$2"
}

# run_tests NAME SECONDS PROGRAM...: in this order, four at a time.
run_tests() {
  local name=$1 deadline=$(($(date +%s) + $(seconds "$2")))
  shift 2
  if (($# == 0)); then
    note "skipped: $name; there are none"
    return
  fi
  echo "== $name"
  printf '%s\0' "$@" |
    OMP_NUM_THREADS=$((jobs > 4 ? jobs / 4 : 1)) xargs -0 -n 1 -P 4 \
      bash -c 'run_program "$2" "$0" "$1"' "$deadline" "$details" >"$details/$name.txt"
  tell "" "$details/$name.txt"
}

# The tests that the first part runs, in its order; with an argument all others, those of presets that differ from others in little last: what
# does not fit is theirs. Kernels that wait for others have a step of their own: one that never ends would take the time of all.
tests_of() {
  local kind program more=()
  if (($# == 0)); then
    for kind in "${kinds[@]}"; do [ ! -x "$programs/tersum.test.$kind.cuda" ] || echo "$programs/tersum.test.$kind.cuda"; done
    return
  fi
  for program in "$programs"/tersum.test.*.cuda; do
    if is_first "$program" || [[ $program == */tersum.test.nccl_device.* ]]; then continue; fi
    if [[ $program == */tersum.test.*.cuda_more_* ]]; then more+=("$program"); else echo "$program"; fi
  done
  ((${#more[@]} == 0)) || printf '%s\n' "${more[@]}"
}

# Runs one test again and again: what depends on the order of threads differs from the CPU's bytes some time.
run_repeats() {
  local program=$programs/tersum.test.$repeated.cuda i left end=$((SECONDS + $(seconds 40))) verdict
  [ -x "$program" ] || return
  for ((i = 0; i < repeats; i++)); do
    left=$((end - SECONDS))
    if ((left < 2)); then break; fi
    verdict=$(run_program "$program" "$(($(date +%s) + left))" "$details")
    [[ $verdict == passed* || $verdict == skipped* ]] && continue
    [[ $verdict != FAILED* ]] || fail "$repeated, run once more: ${verdict#FAILED: }"
    break
  done
  note "repeats: $i of $repeats of $repeated"
}

run_nccl() {
  local program=$programs/tersum.test.interop.nccl ranks text
  if [ ! -x "$program" ]; then
    note "skipped: NCCL ranks; NCCL is not here, or the tests are not built"
    return
  fi
  echo "== NCCL, ranks that share the GPU"
  for ranks in 1 2 3 4 8; do
    text=$details/nccl.$ranks.txt
    timeout -k 5 "$(seconds 30)" bash tests/interop/nccl_ranks.sh "$ranks" "$program" >"$text" 2>&1
    case $? in
      0) note "passed: $ranks NCCL ranks" ;;
      77) note "skipped: $ranks NCCL ranks" ;;
      124 | 137)
        note "out of time: $ranks NCCL ranks, and more of them" # processes that share a GPU take turns
        return
        ;;
      *) fail "$ranks NCCL ranks" && tail -n 30 "$text" ;;
    esac
    # Parts that a passed run has left out, as its first rank says it.
    while read -r line; do note "$ranks NCCL ranks, $line"; done < <(grep '^skipped: ' "$text" | sort -u)
  done
}

run_sanitizer() {
  local program deadline here=()
  while read -r program; do here+=("$program" memcheck); done < <(tests_of)
  program=$programs/tersum.test.$repeated.cuda
  [ ! -x "$program" ] || here+=("$program" racecheck)
  ((${#here[@]})) || return
  if ! command -v compute-sanitizer >/dev/null; then
    note "skipped: compute-sanitizer is not on PATH"
    return
  fi
  echo "== compute-sanitizer"
  deadline=$(($(date +%s) + $(seconds 90)))
  printf '%s\0' "${here[@]}" |
    xargs -0 -n 2 -P 6 bash -c 'sanitize "$2" "$0" "$1" "$3"' "$deadline" "$details" >"$details/sanitizer.txt"
  tell "compute-sanitizer " "$details/sanitizer.txt"
}

# ---- Measurements

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

# measure NAME PROGRAM SECONDS FILTER: runs the benchmarks of a program whose names the filter finds.
measure() {
  local name=$1 program=$programs/tersum.bench.$2.cuda limit json=$details/$1.json text=$details/$1.txt
  limit=$(seconds "$3")
  if [ ! -x "$program" ]; then
    note "skipped: benchmarks of $name; ${program##*/} is not built"
    return
  fi
  if ((limit < 5 && limit < $3)); then
    note "out of time: benchmarks of $name"
    return
  fi
  timeout -k 5 "$limit" "$program" "--benchmark_filter=$4" --benchmark_min_time=0.02 "--benchmark_context=commit=$commit" \
    "--benchmark_out=$json" --benchmark_out_format=json >"$text" 2>&1
  local code=$?
  if ((code == 124 || code == 137)); then
    note "out of time: some benchmarks of $name; see $text"
    if finish_json "$json" 2>/dev/null; then results+=("$json"); else rm -f "$json"; fi
  elif ((code)) || ! [ -s "$json" ]; then
    fail "benchmarks of $name (exit $code; $text)"
    rm -f "$json"
  else
    results+=("$json")
    ! grep -q 'ERROR OCCURRED' "$text" || fail "benchmarks of $name: some have errors; see $text"
  fi
}

# Every kernel of one exchange of a preset, as the benchmark marks it for the profiler. The clocks are left as they are.
profile() {
  local preset=$1 program=$programs/tersum.bench.cuda.cuda report=$profiles/$1 text=$details/ncu.$1.txt code
  TERSUM_PROFILE=1 timeout -k 5 "$(seconds 40)" ncu --clock-control none --profile-from-start off --force-overwrite \
    --section SpeedOfLight --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables \
    --section ComputeWorkloadAnalysis --section SchedulerStats --section WarpStateStats --section SourceCounters \
    --section LaunchStats --section Occupancy \
    --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum --export "$report" \
    "$program" "--benchmark_filter=^pair/$preset/float/cuda/n:$largest/" --benchmark_min_time=0 >"$text" 2>&1
  code=$?
  if grep -q ERR_NVGPUCTRPERM "$text"; then
    note "skipped: ncu may not read the counters here"
    return 1
  fi
  if [ -s "$report.ncu-rep" ]; then
    timeout -k 5 "$(seconds 20)" ncu --import "$report.ncu-rep" --page raw --csv --print-units base \
      >"$details/ncu.$preset.csv" 2>>"$text"
  fi
  if [ -s "$details/ncu.$preset.csv" ]; then
    note "ncu: $preset, $(grep -c '^"[0-9]' "$details/ncu.$preset.csv") launches"
  else
    note "ncu: nothing of $preset (exit $code; $text)"
    rm -f "$details/ncu.$preset.csv"
  fi
}

run_ncu() {
  local preset names end=$((SECONDS + $(seconds 130)))
  if ! command -v ncu >/dev/null; then
    note "skipped: ncu is not on PATH"
    return
  fi
  [ -x "$programs/tersum.bench.cuda.cuda" ] || return
  echo "== ncu, every kernel of one exchange"
  names=$("$programs/tersum.bench.cuda.cuda" --benchmark_list_tests 2>/dev/null)
  for preset in "$@"; do
    if ! grep -q "^pair/$preset/" <<<"$names"; then
      note "skipped: ncu of $preset, which is not built"
    elif ((SECONDS > end - 5)); then
      note "out of time: ncu of $preset"
    else
      profile "$preset" || return
    fi
  done
}

# What must be right, then what it takes.
run_first() {
  local operation here
  mapfile -t here < <(tests_of)
  run_tests tests.first 110 "${here[@]}"
  save
  run_repeats
  run_sanitizer
  save
  echo "== benchmarks"
  measure ceilings ceilings 20 '^ceiling/'
  for operation in encode decode norms; do
    measure "$operation" cuda 25 "^$operation/.*/n:$largest/"
  done
  save
  measure sizes cuda 30 "^pair(_replayed)?/.*/float/.*/n:($short)/"
  save
  run_ncu "${first_profiled[@]}"
  save
}

run_second() {
  local operation rest=() here
  mapfile -t here < <(tests_of others)
  run_tests tests.second 100 "${here[@]}"
  save
  echo "== benchmarks"
  for operation in reduce encode_feedback; do
    measure "$operation" cuda 25 "^$operation/.*/n:$largest/"
  done
  measure large cuda 30 "^pair(_replayed)?/.*/float/.*/n:($long)/"
  measure layouts cuda 40 '^pair_(tensors|misaligned)/.*/float/'
  measure beyond cuda 30 "^pair/rotated_sat4/bfloat16/.*/n:$beyond/"
  save
  for operation in "${measured[@]}"; do
    [[ " ${first_profiled[*]} " == *" $operation "* ]] || rest+=("$operation")
  done
  run_ncu "${rest[@]}"
  save
  # The rest of what bench/README.md lists, while there is time.
  for operation in local recompress exchange; do
    measure "$operation" cuda 20 "^$operation/.*/n:$largest/"
  done
  measure low_rank low_rank 20 '/(powersgd|gram_schmidt)_'
  measure householder low_rank 15 '/householder_'
  measure select select 15 '^select/'
  measure sort select 15 '^sort/'
  measure rotate rotate 15 "/n:$largest/"
  for operation in "${of_smaller[@]}"; do
    measure "$operation.smaller" cuda 20 "^$operation/.*/n:($smaller)/"
  done
  save
  run_tests tests.streams 40 "$programs"/tersum.test.nccl_device.*.cuda
  run_nccl
}

for part in "${parts[@]}"; do "run_$part"; done
((passed)) || fail "no test has passed"
((${#results[@]})) || fail "nothing was measured"
save

if ((${#results[@]})); then
  python3 bench/plot.py "${results[@]}" --out "$out/cuda.svg" >>"$log" 2>&1 || echo "not drawn: $out/cuda.svg (needs matplotlib)"
fi
echo
cat "$out/summary.txt"
sed -n '/^## Ceilings/,/^## Kernels/p' "$out/gpu.md" | sed '$d'
echo "$failures failed, $SECONDS s, results in $out"
exit $((failures > 0))
