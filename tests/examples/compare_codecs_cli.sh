#!/usr/bin/env bash
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
#
# The built program compare_codecs from outside: exit codes, both streams, files written.
#   bash tests/examples/compare_codecs_cli.sh BINARY GRADIENT_DIR
set -u

if [ $# -ne 2 ]; then
  echo "usage: compare_codecs_cli.sh BINARY GRADIENT_DIR" >&2
  exit 2
fi
binary=$(realpath "$1") || exit 2
gradients=$(realpath "$2") || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
failures=0

report() {
  echo "FAILED: $1" >&2
  sed 's/^/  stdout: /' out >&2
  sed 's/^/  stderr: /' err >&2
  failures=$((failures + 1))
}

# expect STATUS WHAT ARGUMENTS...: runs the program; keeps its streams in the files out and err.
expect() {
  local status=$1 what=$2
  shift 2
  "$binary" "$@" >out 2>err </dev/null
  local got=$?
  [ $got -eq "$status" ] || report "$what: exit status $got instead of $status"
}

# refuses WORDS WHAT ARGUMENTS...: exit status 1, nothing on stdout, on stderr one sentence that has
# WORDS in it.
refuses() {
  local words=$1 what=$2
  shift 2
  expect 1 "$what" "$@"
  [ -s out ] && report "$what: something on stdout"
  [ "$(wc -l <err)" -eq 1 ] || report "$what: not one line on stderr"
  grep -q '^compare_codecs: ' err || report "$what: the line does not start with the program's name"
  grep -qF -- "$words" err || report "$what: the line does not say: $words"
}

# misused WORDS ARGUMENTS...: exit status 2, a sentence with WORDS and then the usage on stderr.
misused() {
  local words=$1
  shift
  expect 2 "misuse: $*" "$@"
  [ -s out ] && report "misuse: $*: something on stdout"
  head -n 1 err | grep -qF -- "$words" || report "misuse: $*: the first line does not say: $words"
  sed -n 2p err | grep -q '^usage: ' || report "misuse: $*: no usage on stderr"
}

holds() { grep -q -- "$1" "$2" || report "$3"; }

# documented WHAT STEPS CODEC...: results.json is what --json promises: these codecs on each set, in order, with every number.
documented() {
  command -v python3 >/dev/null || { echo "skipped: JSON is not parsed, as there is no python3"; return; }
  python3 - "$gradients" "${@:2}" >out 2>err <<'PYTHON' || report "$1: the JSON is not as documented"
import json, os, sys
def refuse(text):
    raise ValueError(text + " is no JSON")
with open("results.json", encoding="utf-8") as file:
    report = json.load(file, parse_constant=refuse)
assert list(report) == ["version", "device", "results"], list(report)
assert report["device"] == "cpu", report["device"]
keys = ["set", "codec", "ranks", "coordinates", "bits_per_coordinate", "bits_pulled", "nmse", "nmse_first_step",
        "nmse_of_mean", "update_error", "update_error_of_mean", "zeros_fraction",
        "zeros_fraction_of_mean", "zeros_by_tensor", "saturated_fraction", "ranks_identical", "encode_ns", "reduce_ns",
        "decode_ns", "memcpy_ns"]
names = os.listdir(sys.argv[1])
with open(os.path.join(sys.argv[1], "layers.csv"), encoding="utf-8") as file:
    sizes = {line.rsplit(",", 3)[0]: int(line.split(",")[-3]) * int(line.split(",")[-2])
             for line in list(file)[1:]}
sets = sorted({name.rsplit("_worker", 1)[0] for name in names if "_worker" in name})
assert sorted((r["set"], r["codec"]) for r in report["results"]) == sorted(
    (s, c) for s in sets for c in sys.argv[3:])
for s in sets:
    assert [r["codec"] for r in report["results"] if r["set"] == s] == sys.argv[3:]
for r in report["results"]:
    assert list(r) == keys, list(r)
    assert r["ranks"] == sum(name.startswith(r["set"] + "_worker") for name in names), r
    assert r["ranks_identical"] is True, r
    assert r["nmse"] > 0 and r["bits_per_coordinate"] > 0 and r["memcpy_ns"] > 0, r
    assert (r["bits_pulled"] is not None) == r["codec"].startswith("served_"), r
    assert r["update_error"] > 0 and r["update_error_of_mean"] > 0, r
    for key in "zeros_fraction", "zeros_fraction_of_mean":
        shares = {one["tensor"]: one[key] for one in r["zeros_by_tensor"]}
        assert list(shares) == ([] if r["codec"].endswith("_permuted") else list(sizes)), r
        zeros = sum(share * sizes[tensor] for tensor, share in shares.items())
        assert not shares or abs(zeros - r[key] * r["coordinates"]) < 1e-2, r
        assert all(0 <= share <= 1 for share in shares.values()), r
    # What is sent changes from step to step with feedback, and so does rounding.
    several = int(sys.argv[2]) > 1
    assert r["codec"] != "topkc_b2_ef" or (r["zeros_fraction_of_mean"] < r["zeros_fraction"]) == several, r
    assert r["codec"] != "rotated_sat4" or (r["update_error_of_mean"] < r["update_error"]) == several, r
    assert 0 <= r["zeros_fraction_of_mean"] <= r["zeros_fraction"] <= 1, r
PYTHON
}

# A .npy file: npy FILE COUNT DATA, the data as printf writes it.
npy() {
  local header
  header=$(printf "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" "$2")
  # shellcheck disable=SC2059  # the data are a format on purpose
  { printf '\223NUMPY\001\000v\000%-117s\n' "$header"; printf "$3"; } >"$1"
}
one='\000\000\200\077'
two='\000\000\000\100'
nan='\000\000\300\177'

# Help and the list.
expect 0 "--help" --help
holds '^usage: ' out "--help: no usage on stdout"
[ -s err ] && report "--help: something on stderr"
expect 0 "--list" --list
holds '^fp16 ' out "--list: no fp16"
holds '^rotated_sat4 ' out "--list: no rotated_sat4"
cut -d' ' -f1 out >names
[ "$(sort names | uniq -d | wc -l)" -eq 0 ] || report "--list: a name stands twice"

# A run.
quick=(--steps 2 --repeat 1)
expect 0 "a run" --gradients "$gradients" --codecs fp16,rotated_sat4,topkc_b2,topkc_b2_ef "${quick[@]}" --json results.json
[ -s err ] && report "a run in a pipe: something on stderr, a progress line perhaps"
holds '^fp16 ' out "a run: fp16 is not in the table"
holds '^rotated_sat4 ' out "a run: rotated_sat4 is not in the table"
holds '^topkc_b2 .*[1-9][0-9.]*  [a-z][a-z0-9.]*$' out "a run: no tensor with zeros is named"
documented "a run" 2 fp16 rotated_sat4 topkc_b2 topkc_b2_ef
expect 0 "all codecs" --gradients "$gradients" --steps 1 --repeat 1 --json results.json
mapfile -t all <names
documented "all codecs" 1 "${all[@]}"
expect 0 "--x=v" "--gradients=$gradients" --codecs=fp16 --steps=1 --repeat=1 --ranks=2
holds ': 2 ranks, ' out "--ranks=2: the table does not say so"
if command -v script >/dev/null; then
  command="'$binary' --gradients '$gradients' --codecs fp16 --steps 1 --repeat 1"
  TERM=xterm script -qec "$command" /dev/null </dev/null >out 2>err
  holds $'\033\\[K\\[1/' out "a run on a terminal: no progress line"
  TERM=dumb script -qec "$command" /dev/null </dev/null >out 2>err
  grep -q $'\033' out && report "a run on a dumb terminal: escape sequences"
else
  echo "skipped: there is no terminal, as there is no program script"
fi

# Usage. compare_codecs_interface.test.cpp has the other mistakes.
misused '--gradients DIR is missing'
misused 'similar: rotated_sat4' --gradients "$gradients" --codecs rotated_sat44

# Input that cannot be used; compare_codecs.test.cpp has other such files, names and layers.
mkdir empty bad
refuses 'cannot list none' "no such folder" --gradients none
refuses '--ranks asks for 60000' "too many ranks" --gradients "$gradients" --ranks 60000
npy bad/s_worker0.npy 2 "$one$two"
npy bad/s_worker1.npy 2 "$one$nan"
refuses 'bad/s_worker1.npy ' "a value that is not finite" --gradients bad --codecs fp16 "${quick[@]}"
npy bad/s_worker1.npy 2 "$two$one"
printf 'name,rows,columns,offset\na,1,1,0\n' >bad/layers.csv
refuses 'bad/layers.csv covers 1 coordinates' "layers that end early" --gradients bad --codecs fp16
printf 'name,rows,columns,offset\na,1,2,0\n' >bad/layers.csv
expect 0 "two coordinates" --gradients bad --codecs fp16 "${quick[@]}"

# What overflows is told in the table, in a sentence and by the exit status.
mkdir large
huge='\312\362\111\161'
less='\312\362\111\361'  # -huge
npy large/s_worker0.npy 2 "$huge$one"
npy large/s_worker1.npy 2 "$less$one"
npy large/t_worker0.npy 2 "$huge$one"
expect 1 "a result that is not finite" --gradients large --codecs fp16,fp32 "${quick[@]}" --json results.json
holds '^fp16 .* nan ' out "a result that is not finite: the table does not say nan"
holds '^fp16 .* inf ' out "a result that is not finite: the table does not say inf"
holds '^fp32 ' out "a result that is not finite: the other codec did not run"
holds '^compare_codecs: s, fp16: an error is not finite$' err "a result that is not finite: no sentence says so"
[ "$(wc -l <err)" -eq 2 ] || report "a result that is not finite: not one sentence for each"

# An output over an input, by whatever name; what was there stays.
for input in s_worker0.npy s_worker1.npy layers.csv; do
  cp "bad/$input" kept
  ln -sf "bad/$input" "link_$input"
  refuses "would overwrite the input bad/$input" "JSON over $input" --gradients bad --codecs fp16 --json "bad/../bad/$input"
  refuses "would overwrite the input bad/$input" "JSON over a link" --gradients bad --codecs fp16 --json "link_$input"
  cmp -s kept "bad/$input" || report "JSON over $input: it was changed"
done

# Output that cannot be written is known before the run; what was there stays.
refuses 'cannot write none/x' "JSON in no folder" --gradients bad --codecs fp16 --json none/x
refuses 'is a folder' "JSON that is a folder" --gradients bad --codecs fp16 --json empty
[ -z "$(ls empty)" ] || report "a folder was written to"
echo kept >kept.json
refuses 'cannot list none' "no such folder" --gradients none --json kept.json
holds '^kept$' kept.json "a failed run changed the old JSON"
if [ -w /dev/full ]; then
  "$binary" --list >/dev/full 2>err </dev/null
  [ $? -eq 1 ] || report "a full disk goes unnoticed"
  expect 1 "JSON on a full disk" --gradients bad --codecs fp16 "${quick[@]}" --json /dev/full
fi

if [ $failures -ne 0 ]; then
  echo "$failures checks failed" >&2
  exit 1
fi
echo "all checks passed"
