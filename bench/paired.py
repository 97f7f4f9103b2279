#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of two commits in turns, and the ratios of their times: of what is the new one slower?

    bench/paired.py [--old COMMIT] [--new COMMIT] [--presets REGEX] [--rounds N] [--seconds S]

Builds both, each with its own benchmarks, in build/paired/. Without --new it is the working tree. Presets are those of the new
commit that both have. Every round runs each operation's program of the one and then of the other, the next round the other way
around, on one thread, for all instruction sets of the machine. A ratio is that of the medians over all rounds of `over_copy`
(bench/README.md), new over old.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import report

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPERATIONS = ("encode", "encode_feedback", "decode", "reduce", "recompress")
DECLARED = re.compile(r"^inline constexpr [^;{]*[ \n]([a-z0-9_]+)\{", re.MULTILINE)
IN_SHARDS = re.compile(r"^(sharded|summed_shards|values|differences)_")  # no all-reduces: nothing measures them
SLOWER = 1.05


def presets(tree):
    """Names of the codecs that benchmarks of a tree know, in the order of its headers."""
    headers = [path for path in sorted((tree / "include").glob("**/*.hpp")) if path.name in ("presets.hpp", "catalogue.hpp")]
    names = [name for header in headers for name in DECLARED.findall(header.read_text(encoding="utf-8"))]
    return [name for name in names if not IN_SHARDS.match(name)]


def shared(old, new, pattern):
    """Names of the new tree that the old one has, too, and that a pattern finds."""
    has = set(presets(old))
    return [name for name in presets(new) if name in has and report.compiled(pattern).search(name)]


def check_out(commit, folder):
    """The tree of a commit in a folder, made anew only where it is another commit's."""
    asked = subprocess.run(["git", "rev-parse", "--verify", commit + "^{commit}"], cwd=ROOT, capture_output=True, text=True)
    if asked.returncode != 0:
        raise report.Unreadable(f"{commit} is no commit of this clone")
    wanted = asked.stdout.strip()
    stamp = folder / ".commit"
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        folder.mkdir(parents=True)
        archive = subprocess.Popen(["git", "archive", wanted], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=True)
        if archive.wait() != 0:
            raise report.Unreadable(f"git archive {commit} failed")
        stamp.write_text(wanted)
    return folder


def build(tree, folder, names):
    """Builds the programs, optimized as a release is."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = [f"tersum.bench.{operation}" for operation in OPERATIONS]
    with open(folder / "build.log", "w", encoding="utf-8") as log:
        for command in (["cmake", "--preset", "cpu", "-B", str(folder), "-DTERSUM_BUILD_TESTS=OFF",
                         "-DTERSUM_BUILD_EXAMPLES=OFF", "-DTERSUM_TRANSPORTS=OFF",
                         "-DTERSUM_BENCH_PRESETS=" + ";".join(names)],
                        ["cmake", "--build", str(folder), "--parallel", str(os.cpu_count()), "--target", *targets]):
            if subprocess.run(command, cwd=tree, stdout=log, stderr=log).returncode != 0:
                raise report.Unreadable(f"{tree} cannot be built: see {folder}/build.log")
    return folder / "bin"


def run(programs, operation, names, n, seconds, out):
    """Medians by name of one run of an operation's program."""
    pattern = f"^{operation}/({'|'.join(names)})/float/[^/]*/n:{n}/threads:1/"
    out.unlink(missing_ok=True)
    subprocess.run([programs / f"tersum.bench.{operation}", "--benchmark_filter=" + pattern,
                    f"--benchmark_out={out}", "--benchmark_out_format=json"], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, "TERSUM_BENCH_SECONDS": str(seconds), "OMP_PROC_BIND": "true"})
    if not out.exists() or out.stat().st_size == 0:
        return {}  # no preset has this operation
    found = {}
    for result in report.load(out)["benchmarks"]:
        match = report.NAME.match(result["name"])
        if match and "median" in result and not result.get("error_occurred"):
            found[match[0]] = result["median"]
    return found


def ratios(old, new):
    """New over old by name, of the medians over all rounds; names that only one of them has are left out."""
    return {name: statistics.median(new[name]) / statistics.median(old[name]) for name in new if name in old}


def page(found, missing):
    """Ratios as a table, the slowest first, and what they come to."""
    lines = ["| operation | preset | executor | new / old |", "| --- | --- | --- | ---: |"]
    for name, ratio in sorted(found.items(), key=lambda entry: -entry[1]):
        match = report.NAME.match(name)
        lines.append(f"| {match['operation']} | {match['preset']} | {match['executor']} | {ratio:.3f} |")
    slower = [f"{name} ({ratio:.3f})" for name, ratio in found.items() if ratio > SLOWER]
    lines += ["", f"median of {len(found)}: {statistics.median(found.values()):.3f}" if found else "nothing was measured",
              f"over {SLOWER}: " + (", ".join(slower) if slower else "none")]
    lines += ["only one of the two has " + ", ".join(sorted(missing))] if missing else []
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", default="0c29491", help="commit to compare with")
    parser.add_argument("--new", help="commit to compare; without it the working tree")
    parser.add_argument("--presets", default="", help="regular expression of their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one benchmark in one round")
    parser.add_argument("--n", type=int, default=1 << 24, help="coordinates, of sizes that the benchmarks have")
    arguments = parser.parse_args()
    work = ROOT / "build/paired"
    try:
        trees = {"old": check_out(arguments.old, work / "old"),
                 "new": check_out(arguments.new, work / "new") if arguments.new else ROOT}
        names = shared(trees["old"], trees["new"], arguments.presets)
        if not names:
            raise report.Unreadable("the two have no preset of such a name in common")
        programs = {which: build(tree, work / f"build-{which}", names) for which, tree in trees.items()}
        times = {"old": {}, "new": {}}
        for turn in range(arguments.rounds):
            for operation in OPERATIONS:
                for which in ("old", "new") if turn % 2 == 0 else ("new", "old"):
                    for name, median in run(programs[which], operation, names, arguments.n, arguments.seconds,
                                            work / "run.json").items():
                        times[which].setdefault(name, []).append(median)
    except (report.Unreadable, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    (work / "times.json").write_text(json.dumps(times))
    found = ratios(times["old"], times["new"])
    print(page(found, set(times["old"]) ^ set(times["new"])))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
