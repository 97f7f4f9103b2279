#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Counts what the host does in an exchange before its last launch: instructions, by valgrind's callgrind.

    bench/host_cost.py [COMPILER]    prints a table; COMPILER is g++ unless given

The launches themselves do nothing (bench/host_cost.cpp): what a driver takes for each comes on top.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "g++"
    with tempfile.TemporaryDirectory() as folder:
        program, out = f"{folder}/host_cost", f"{folder}/out"
        flags = ["-std=c++20", "-O2", "-DNDEBUG", "-fopenmp", f"-I{ROOT}/include"]
        subprocess.run([compiler, *flags, f"{ROOT}/bench/host_cost.cpp", "-o", program], check=True)
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program],
                              check=True, capture_output=True, text=True)
        if done.stdout:
            sys.exit(done.stdout)
        rows = {}
        for path in sorted(pathlib.Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:])):
            text = path.read_text(encoding="utf-8")
            case = re.search(r"^desc: Trigger: Client Request: (\w+) (\d+) (\w+) (\d+)$", text, re.MULTILINE)
            if case:
                preset, size, tensors, launches = case.groups()
                cost = re.search(r"^summary: (\d+)", text, re.MULTILINE)[1]
                rows.setdefault(preset, {})[f"2^{int(size).bit_length() - 1}, {tensors.replace('_', ' ')}"] = f"{cost} / {launches}"
    heads = list(next(iter(rows.values())))
    print("Instructions / launches of an exchange of so many coordinates in so many tensors\n")
    print(f"| preset | {' | '.join(heads)} |\n| --- | {' | '.join('---:' for _ in heads)} |")
    for preset, cells in rows.items():
        print(f"| {preset} | {' | '.join(cells.values())} |")


if __name__ == "__main__":
    main()
