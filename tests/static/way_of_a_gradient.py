#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the files of include/ whose code runs in one exchange with `rotated_sat4` on the CPU: there are at most MOST, which is only ever
lowered, and docs/developer/layers.md names each of them.

    python3 tests/static/way_of_a_gradient.py G++ GCOV
"""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/developer/layers.md"
MOST = 26


def files_that_run(compiler, gcov, folder):
    """Those of include/ that have a line which was executed."""
    source = pathlib.Path(__file__).with_suffix(".cpp")
    subprocess.run([compiler, "-std=c++20", "-O0", "-DNDEBUG", "--coverage", "-I", ROOT / "include", "-I", ROOT / "examples", source, "-o", "way"],
                   cwd=folder, check=True)
    subprocess.run([folder / "way"], cwd=folder, check=True)
    subprocess.run([gcov, "--json-format", *folder.glob("*.gcda")], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    counted = (json.loads(gzip.open(path).read()) for path in folder.glob("*.gcov.json.gz"))
    ran = {pathlib.Path(one["file"]) for each in counted for one in each["files"] if any(line["count"] for line in one["lines"])}
    return sorted(path.relative_to(ROOT / "include").as_posix() for path in ran if path.is_relative_to(ROOT / "include"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        ran = files_that_run(sys.argv[1], sys.argv[2], pathlib.Path(folder))
    way = PAGE.read_text().split("## The path of a gradient")[1]
    unnamed = [path for path in ran if f"{pathlib.Path(path).name}`" not in way]
    print(f"{len(ran)} files (at most {MOST})", *ran, sep="\n")
    for path in unnamed:
        print(f"{PAGE.name} does not name {path}")
    return 1 if unnamed or not 1 <= len(ran) <= MOST else 0


if __name__ == "__main__":
    sys.exit(main())
