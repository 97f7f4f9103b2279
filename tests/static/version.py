#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Whether all that names the release names the version of include/tersum/version.hpp."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    header = (ROOT / "include/tersum/version.hpp").read_text(encoding="utf-8")
    version = ".".join(re.search(rf"#define TERSUM_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    named = {
        "CHANGELOG.md": (r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", version),
        "tests/package/find_package/CMakeLists.txt": (r"find_package\(tersum (\d+\.\d+) REQUIRED\)", version.rpartition(".")[0]),
    }
    faults = 0
    for name, (pattern, wanted) in named.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M)
        if not found or found[1] != wanted:
            print(f"{name} names {found[1] if found else 'no version'}, not {wanted}")
            faults += 1
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
