#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Holds what kernels ask of memory to budgets, by counts of the simulated device.

    check_traffic.py --budgets traffic_budgets.json [--write] PROGRAM...

PROGRAM is a benchmark that is linked with the simulator, tersum.test.bench.<name>.simulated. The budgets are a JSON object:
by the regular expression of a benchmark, which runs in the program named `program`,

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

# Columns of TERSUM_SIMULATED_COUNTS; the kernel's name follows.
COLUMNS = ("marked blocks threads statements barriers loads load_sectors load_bytes load_distinct"
           " stores store_sectors store_bytes store_distinct shared wavefronts conflicts").split()
LIMITS = ("sectors a load", "sectors a store", "used", "L2 bytes", "conflicts", "bytes of memory")


def short_name(kernel):
    inner = re.search(r"\w+_kernel<tersum::v0::detail::(\w+(?:<[^<>]*>)?),", kernel)
    return inner[1] if inner else re.search(r"(\w+)<", kernel)[1]


def launches_of(program, benchmark):
    """Dictionaries of what each launch did: those between marks, or all where there are none."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "counts"
        environment = {**os.environ, "TERSUM_SMALL": "1", "TERSUM_PROFILE": "1", "TERSUM_SIMULATED_COUNTS": str(path)}
        done = subprocess.run([program, "--benchmark_min_time=0", f"--benchmark_filter={benchmark}"], env=environment,
                              capture_output=True, text=True)
        if done.returncode != 0 or not path.exists():
            sys.exit(f"check_traffic: {program} {benchmark}: {done.stdout}{done.stderr}")
        launches = []
        for line in path.read_text(encoding="utf-8").splitlines():
            *numbers, name = line.split("\t")
            launches.append({**dict(zip(COLUMNS, map(int, numbers), strict=True)), "kernel": short_name(name)})
    coordinates = re.search(r"/n:(\d+)/", done.stdout)
    return [one for one in launches if one["marked"]] or launches, int(coordinates[1])


def ratio(part, whole, digits=2):
    return round(part / whole, digits) if whole else 0


def count(program, benchmark, ranks):
    """What the budgets of a benchmark are about."""
    launches, coordinates = launches_of(program, benchmark)
    marked = launches[0]["marked"]
    work = coordinates * ranks
    found = {}
    if marked:
        sectors = sum(one["load_distinct"] + one["store_distinct"] for one in launches)
        found = {"launches": len(launches), "dram": ratio(32 * sectors, work)}
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
    for kernel in budget["kernels"].keys() | found["kernels"].keys():
        if kernel not in found["kernels"]:
            yield f"{kernel} was not launched"
        elif kernel not in budget["kernels"]:
            yield f"{kernel} has no budget"
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
    options = parser.parse_args()
    programs = {pathlib.Path(path).name: path for path in options.programs}
    budgets = json.loads(options.budgets.read_text(encoding="utf-8"))
    counted, status = {}, 0
    for benchmark, budget in budgets.items():
        counted[benchmark] = count(programs[budget["program"]], benchmark, budget["ranks"])
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
            of_all = {name: budgets[benchmark][name] for name in ("program", "ranks", "half_of") if name in budgets[benchmark]}
            of_all.update((name, found[name]) for name in ("launches", "dram") if name in found)
            kernels = ",\n".join(f"      {json.dumps(name)}: {json.dumps(limits)}" for name, limits in found["kernels"].items())
            written.append(f"  {json.dumps(benchmark)}: {json.dumps(of_all)[:-1]}, \"kernels\": {{\n{kernels}\n    }}}}")
        options.budgets.write_text("{\n" + ",\n".join(written) + "\n}\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
