#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# Which codec costs what on this machine? Builds the benchmarks of the CPU on a Debian 12 machine, installs what is missing,
# runs them and writes JSON, a page of tables and a picture. On a machine with a GPU: bench/gpu_check.sh.
#
#   bash bench/run.sh [--quick] [--sizes] [--filter REGEX] [--seconds S] [--out FOLDER] [operation...]
#
#   --quick      the presets of README.md and rotated_sat4_ef, instead of all; minutes less to compile
#   --sizes      these also with 25 MB, 2^26 and 2^28 coordinates, and rotated_sat4 of half and bfloat16: minutes more to
#                run, and 12 GB of memory
#   --filter     which results, by their names `<operation>/<preset>/<type>/<executor>/n:<n>/threads:<t>`; default: the widest
#                instructions of this CPU, 2^24 coordinates (rotations: 25 MB to 2^26), with all presets only float
#   --seconds    most that the runs of one benchmark take, once there were five (default .2)
#   --out        default bench/results/<CPU>; a second compiler adds to what is there
#   operation    programs to run (default: all): alternatives norms encode encode_feedback decode recompress reduce exchange
#                rotate select low_rank
#
# CXX names the compiler, BUILD the build folder (default build/bench-<compiler>). Other work on the machine is noise: in the
# best times it is least where all of a run was undisturbed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/install_missing.sh

presets=all sizes_too=false filter='' seconds=.2 out='' operations=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) presets=few ;;
    --sizes) sizes_too=true ;;
    --filter | --seconds | --out)
      [ $# -gt 1 ] || { echo "$1 needs a value" >&2; exit 2; }
      case $1 in
        --filter) filter=$2 ;;
        --seconds) seconds=$2 ;;
        --out) out=$2 ;;
      esac
      shift
      ;;
    --help) sed -n '5,/^$/s/^# \{0,1\}//p' "$0" && exit ;;
    -*) echo "unknown option $1; see --help" >&2 && exit 2 ;;
    *) operations+=("$1") ;;
  esac
  shift
done
everything=false
[ ${#operations[@]} -gt 0 ] || {
  everything=true
  operations=(alternatives norms encode encode_feedback decode recompress reduce exchange rotate select low_rank)
}

install_missing g++:g++ cmake:cmake ninja:ninja-build python3:python3 /usr/include/benchmark/benchmark.h:libbenchmark-dev
install_missing /usr/include/zstd.h:libzstd-dev /usr/include/lz4.h:liblz4-dev ||
  echo "zstd or lz4 will be skipped"
find_matplotlib || echo "there will be no picture, as there is no matplotlib (Debian's python3-matplotlib)"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

compiler=${CXX:-g++}
compiler=${compiler##*/}
build=${BUILD:-build/bench-$compiler}
mkdir -p "$build"
echo "== build ($presets presets, $compiler; $build/build.log)"
{
  cmake --preset cpu -B "$build" -DTERSUM_BUILD_TESTS=OFF -DTERSUM_BUILD_EXAMPLES=OFF -DTERSUM_TRANSPORTS=OFF \
    -DTERSUM_BENCH_PRESETS=$presets -DCMAKE_CXX_COMPILER="${CXX:-g++}" &&
    cmake --build "$build" --parallel "$(nproc)" --target "${operations[@]/#/tersum.bench.}"
} >"$build/build.log" 2>&1 || {
  tail -n 40 "$build/build.log" >&2
  exit 1
}

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
slug=$(tr '[:upper:] ' '[:lower:]-' <<<"${cpu:-cpu}" | tr -cd 'a-z0-9-' | sed 's/--*/-/g')
out=${out:-bench/results/$slug}
mkdir -p "$out"
# Of the tree before its results go.
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
# Results of other compilers stay; old ones of this one would be mixed with the new ones.
if $everything; then
  for file in "$out"/*.json; do
    [[ $file == */compile_time.json || $file == *.*++.json && $file != *".$compiler.json" ]] || rm -f "$file"
  done
fi

flags=$(grep -m 1 '^flags' /proc/cpuinfo || true)
executor="cpu-baseline"
if [[ $flags == *avx512bw*avx512vl* ]]; then executor="cpu-avx512"; elif [[ $flags == *avx2* ]]; then executor="cpu-avx2"; fi
types='[a-z0-9]+'
[ $presets = few ] || types=float
failures=0
for operation in "${operations[@]}"; do
  sizes='(16777216|25165824)'
  [ "$operation" != exchange ] || sizes='(4096|65536|16777216)'
  [ "$operation" != rotate ] || sizes='(6553600|16777216|67108864)'
  pattern=${filter:-"/$types/(cpu|$executor)/n:$sizes/"}
  if $sizes_too && [ -z "$filter" ]; then
    # Four ranks' gradients, means and payloads of 2^28 are more than most machines have.
    others='(6553600|67108864|268435456)'
    [ "$operation" != exchange ] || others=67108864
    few='(fp16|two_shot_4|metric_[23]|gathered_2|two_shot_1_ef|topkc_b2_ef|rotated_sat4|rotated_sat4_ef|sharded_4)'
    pattern+="|/$few/float/$executor/n:$others/|/rotated_sat4/(half|bfloat16)/$executor/n:(16777216|268435456)/"
  fi
  echo "== $operation"
  json=$out/$operation.$compiler.json
  TERSUM_BENCH_SECONDS=$seconds OMP_PROC_BIND=true "$build/bin/tersum.bench.$operation" "--benchmark_filter=$pattern" \
    "--benchmark_context=commit=$commit" "--benchmark_out=$build/$operation.json" --benchmark_out_format=json \
    >"$build/$operation.txt" 2>&1 || failures=1
  rm -f "$json"
  # Empty, or unfinished, where nothing of this operation passes the filter.
  if grep -q '^Failed to match any benchmarks' "$build/$operation.txt"; then
    echo "no benchmark of $operation matches $pattern"
    continue
  fi
  [ ! -s "$build/$operation.json" ] || python3 bench/report.py "$build/$operation.json" --merge >"$json"
done

results=()
for file in "$out"/*.json; do
  [[ ! -s $file || $file == */compile_time.json ]] || results+=("$file")
done
if [ ${#results[@]} -eq 0 ]; then
  echo "there are no results: no benchmark's name matches the filter; names are <operation>/<preset>/<type>/<executor>/n:<n>/threads:<t>" >&2
  exit 1
fi

# Not drawn where none of the operations in the picture was measured, either.
rm -f "$out/plot.svg"
"$drawing_python" bench/plot.py "${results[@]}" --out "$out/plot.svg" || echo "not drawn: $out/plot.svg"

# section TITLE TEXT ARGUMENT...: a part of the page, if there are results for it.
section() {
  local tables
  tables=$(python3 bench/report.py "${results[@]}" "${@:3}" 2>/dev/null) || true
  [ -z "$tables" ] || printf '\n## %s\n\n%s\n\n%s\n' "$1" "$2" "$tables"
}

{
  echo "# ${cpu:-CPU}, $(nproc) processors"
  echo
  echo "By \`bash bench/run.sh\`:"
  echo
  python3 bench/report.py "${results[@]}" --runs
  echo
  echo "\`over_copy\` is the median over all runs of the time over that of the memcpy of the input before it (\`reduce\`: of a"
  echo "payload, \`select\` and \`nth_element\`: of the norms, \`orthogonalize\`: of the factor) on as many threads. \`best\`, or the"
  echo "number in parentheses, is the best time over the best memcpy, which may come from unlike moments; a dash stands for a"
  echo "median that was not kept. \`of_copy\` is the share of the memcpy's bandwidth, of best times. Bytes are what has to be read"
  echo "and written once; bits what a codec sends for a coordinate."
  echo
  [ ! -s "$out/plot.svg" ] || printf '%s\n' "![Time over copy](plot.svg)"
  [ ! -s "$out/compile_time.md" ] || printf '\n[Compile times](compile_time.md)\n'
  section "Against what one would try first" "Time over that of memcpy." --ratios --filter '^(de)?compress/'
  section "Rotations" \
    "Time over that of memcpy: of a rotation alone, and of all that a rank computes before 4-bit codes travel." \
    --ratios --filter '^rotate'
  section "Codecs" "Four ranks in one memory for \`exchange\`, one rank for the rest." \
    --ratios --filter '^(?!(de)?compress/|rotate|select|nth_element|orthogonalize|exchange/.*/n:(4096|65536)/)'
  section "Small exchanges" "Of four ranks in one memory." --filter '^exchange/.*/n:(4096|65536)/'
  section "Parts of a codec" "Choosing chunks, orthonormal columns." --filter '^(select|nth_element|orthogonalize)/'
} >"$out/README.md"
! grep -h '^failed: ' "$out/README.md" || failures=1
echo "written: $out/README.md, JSON$([ ! -s "$out/plot.svg" ] || echo ", plot.svg")"
exit $failures
