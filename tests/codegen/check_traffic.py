#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Holds what kernels ask of memory to budgets, by counts of the simulated device.

    check_traffic.py --budgets traffic_budgets.json [--write] PROGRAM... [--tests NAME=PROGRAM...]

PROGRAM is a benchmark that is linked with the simulator, tersum.test.bench.<name>.simulated, or has the test <area>.<name>. The budgets
are a JSON object: by the regular expression of a benchmark, which runs in the program named `program`,

    case          of a test instead: its name, and a subcase named as the preset, which does one exchange where TERSUM_PROFILE is
                  set. Subcases stand here in the order of the test. Tests that are not built are left out
    half_of       where tensors are not aligned: the regular expression of the same exchange of aligned ones, and for each kernel
                  on the gradient its twin there. It loads and stores at most twice as many bytes of sectors
    launches      kernels of one exchange of all its ranks, where it has marks for a profiler
    dram          bytes a coordinate and rank, of the sectors that its launches read and write, each once a launch
    kernels       for each kernel [sectors of a load request, sectors of a store request, the share of all these sectors that
                  is used in percent, bytes of sectors that a coordinate and rank loads and stores, extra wavefronts of shared
                  memory a thousand coordinates and ranks, bytes of memory as of `dram`], of a launch where there are no marks

Ends with status 1 if one is worse than its budget, or if a kernel is not there or has no budget. --write writes what was counted.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from gpu_page import short_name

# Columns of TERSUM_SIMULATED_COUNTS; the kernel's name follows.
COLUMNS = ("marked blocks threads asked statements barriers loads load_sectors load_bytes load_distinct"
           " stores store_sectors store_bytes store_distinct shared wavefronts conflicts").split()
BEFORE = ("initialize_kernel", "initialize_shards_kernel", "item_kernel")  # a first exchange
LOOK = ("steps_kernel", "inspect_parts_kernel")  # which store only a flag, where something is not finite
LIMITS = ("sectors a load", "sectors a store", "used", "L2 bytes", "conflicts", "bytes of memory")


def launches_of(program, arguments):
    """Dictionaries of what each launch did, and what the program says."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "counts"
        environment = {**os.environ, "TERSUM_SMALL": "1", "TERSUM_PROFILE": "1", "TERSUM_SIMULATED_COUNTS": str(path)}
        done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode != 0 or not path.exists():
            sys.exit(f"check_traffic: {program} {arguments}: {done.stdout}{done.stderr}")
        launches = []
        for line in path.read_text(encoding="utf-8").splitlines():
            *numbers, name = line.split("\t")
            launches.append({**dict(zip(COLUMNS, map(int, numbers), strict=True)), "kernel": short_name(name)})
    return launches, done.stdout


def ratio(part, whole, digits=2):
    return round(part / whole, digits) if whole else 0


def coordinates_of(name):
    """Those of a benchmark."""
    return int(re.search(r"/n:(\d+)/", name)[1])


def launches_of_tests(programs, budgets):
    """The launches of each exchange in a test that is built. A process does those of a case; each is another range of marks."""
    cases = {}
    for key, budget in budgets.items():
        if "case" in budget and budget["program"] in programs:
            cases.setdefault((budget["program"], budget["case"]), []).append(key)
    found = {}
    for (test, case), keys in cases.items():
        subcases = ",".join(key.split("/")[1] for key in keys)
        launches, _ = launches_of(programs[test], [f"--test-case=[cuda_executor] {case}", f"--subcase={subcases}"])
        ranges = {}
        for one in launches:
            if one["marked"] and not one["kernel"].startswith(BEFORE):
                ranges.setdefault(one["marked"], []).append(one)
        if len(ranges) != len(keys):
            sys.exit(f"check_traffic: {test}: {len(ranges)} exchanges in {case}, where budgets name {subcases}")
        found.update(zip(keys, ranges.values(), strict=True))
    return found


def count(launches, coordinates, ranks):
    """What budgets are about."""
    launches = [one for one in launches if one["marked"]] or launches
    marked = launches[0]["marked"]
    work = coordinates * ranks
    found = {"unused": {one["kernel"] for one in launches if one["asked"] and not one["shared"]}}
    if marked:
        sectors = sum(one["load_distinct"] + one["store_distinct"] for one in launches)
        found.update(launches=len(launches), dram=ratio(32 * sectors, work))
    kernels = {}
    for name in dict.fromkeys(one["kernel"] for one in launches):
        of_kernel = [one for one in launches if one["kernel"] == name]
        total = {column: sum(one[column] for one in of_kernel) for column in COLUMNS}
        sectors = total["load_sectors"] + total["store_sectors"]
        if not sectors:
            continue
        each = work if marked else coordinates * len(of_kernel)
        kernels[name] = [ratio(total["load_sectors"], total["loads"]), ratio(total["store_sectors"], total["stores"]),
                         ratio(100 * (total["load_bytes"] + total["store_bytes"]), 32 * sectors, 0),
                         ratio(32 * sectors, each), ratio(1000 * total["conflicts"], each, 1),
                         ratio(32 * (total["load_distinct"] + total["store_distinct"]), each)]
    return {**found, "kernels": kernels}


def excesses(budget, found):
    """What is worse than allowed, a phrase each."""
    for name in ("launches", "dram"):
        if name in budget and found.get(name, 0) > budget[name]:
            yield f"{name}: {found[name]}, budget {budget[name]}"
    for kernel in sorted(found["unused"]):
        yield f"{kernel} asks for shared memory that it does not use"
    for kernel in budget["kernels"].keys() | found["kernels"].keys():
        if kernel not in found["kernels"]:
            yield f"{kernel} was not launched"
        elif kernel not in budget["kernels"]:
            yield f"{kernel} has no budget"
        elif found["kernels"][kernel][1] == 0 and not kernel.startswith(LOOK):
            yield f"{kernel} stores nothing: a launch that has nothing to do"
        else:
            for what, limit, number in zip(LIMITS, budget["kernels"][kernel], found["kernels"][kernel], strict=True):
                if number < limit if what == "used" else number > limit:
                    yield f"{kernel}: {what}: {number}, budget {limit}"


def slower_than_half(twins, found, aligned):
    """Kernels on tensors that are not aligned which move more than twice as many sectors as their twins, a phrase each."""
    for kernel, twin in twins.items():
        if found[kernel][3] > 2 * aligned[twin][3]:
            yield f"{kernel}: L2 bytes: {found[kernel][3]}, more than twice those of {twin} on aligned tensors, {aligned[twin][3]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", required=True, type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--tests", nargs="*", default=[], metavar="NAME=PROGRAM")
    options = parser.parse_args()
    programs = {**{pathlib.Path(path).name: path for path in options.programs}, **dict(one.split("=", 1) for one in options.tests)}
    budgets = json.loads(options.budgets.read_text(encoding="utf-8"))
    in_tests = launches_of_tests(programs, budgets)
    counted, status = {}, 0
    for benchmark, budget in budgets.items():
        if benchmark in in_tests:
            counted[benchmark] = count(in_tests[benchmark], coordinates_of(benchmark), budget["ranks"])
        elif "case" not in budget:
            launches, said = launches_of(programs[budget["program"]], ["--benchmark_min_time=0", f"--benchmark_filter={benchmark}"])
            counted[benchmark] = count(launches, coordinates_of(said), budget["ranks"])
        else:
            counted[benchmark] = budget
            continue
        worse = [] if options.write else list(excesses(budget, counted[benchmark]))
        if "half_of" in budget:
            aligned, twins = budget["half_of"]
            worse += slower_than_half(twins, counted[benchmark]["kernels"], counted[aligned]["kernels"])
        for excess in worse:
            print(f"check_traffic: {benchmark}: {excess}", file=sys.stderr)
            status = 1
    if options.write:
        written = []
        for benchmark, found in counted.items():
            of_all = {name: budgets[benchmark][name] for name in ("program", "case", "ranks", "half_of") if name in budgets[benchmark]}
            of_all.update((name, found[name]) for name in ("launches", "dram") if name in found)
            kernels = ",\n".join(f"      {json.dumps(name)}: {json.dumps(limits)}" for name, limits in found["kernels"].items())
            kernels = json.dumps(found["kernels"]) if "case" in of_all else f"{{\n{kernels}\n    }}"
            written.append(f"  {json.dumps(benchmark)}: {json.dumps(of_all)[:-1]}, \"kernels\": {kernels}}}")
        options.budgets.write_text("{\n" + ",\n".join(written) + "\n}\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
