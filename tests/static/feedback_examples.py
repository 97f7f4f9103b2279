#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a scheme of a paper takes at most 40 lines of code, and is named in docs/codecs.md: examples/feedback/."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES = 40


def lines_of_code(text):
    """All but comments, the licence among them, includes and blank lines."""
    return sum(re.match(r"\s*(//|#include\b|$)", line) is None for line in text.splitlines())


def main():
    page = (ROOT / "docs/codecs.md").read_text(encoding="utf-8")
    files = sorted((ROOT / "examples/feedback").glob("*.hpp"))
    faults = 0 if files else 1
    for path in files:
        text = path.read_text(encoding="utf-8")
        if "/*" in text:
            print(f"{path.name} has a comment of another kind, which would count")
            faults += 1
        if (lines := lines_of_code(text)) > MOST_LINES:
            print(f"{path.name} has {lines} lines of code, more than {MOST_LINES}")
            faults += 1
        if f"| `{path.name}` |" not in page:
            print(f"{path.name} is not in the table of docs/codecs.md")
            faults += 1
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
