#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the headers of element and block scope as one file, to be copied into other projects: write_kernels.py OUTPUT."""

import pathlib
import re
import sys

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include"
ROOTS = ("random", "quantize", "rotate", "range", "reduce", "block")
OWN = re.compile(r"^#include <(tersum/[^>]+)>\n", re.MULTILINE)
OTHER = re.compile(r"^\s*#\s*include\s*(\S+)", re.MULTILINE)
# Which say once what compilers have.
MAY_INCLUDE = ("tersum/detail/std.hpp", "tersum/block/detail/cuda_floats.cuh")
MOST_LINES = 8000


def text_of(name):
    """What a header holds beside its licence, what it is about, and includes of the library."""
    text = OWN.sub("", (HEADERS / name).read_text())
    others = OTHER.findall(text)
    if others and name not in MAY_INCLUDE:
        raise SystemExit(f"{name} includes {others[0]}: headers that kernels include take it from {MAY_INCLUDE[0]}")
    text = re.sub(r"^// SPDX.*\n|^//! @file\n(//!.*\n)*|^#pragma once\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
    return f"#if defined(__CUDACC__)\n{text}#endif\n" if name.endswith(".cuh") else text


def in_order(names):
    """The headers of these names and of all that they include, each behind those that it includes."""
    found = {}

    def visit(name):
        if name not in found:
            found[name] = None
            for other in OWN.findall((HEADERS / name).read_text()):
                visit(other)
            found[name] = found.pop(name)

    for name in names:
        visit(name)
    return list(found)


def one_file():
    """The text of the file."""
    roots = [path for folder in ROOTS for path in sorted((HEADERS / "tersum" / folder).glob("*.[hc][pu][ph]"))]
    names = ["tersum/version.hpp"] + [path.relative_to(HEADERS).as_posix() for path in roots]
    head = (
        "// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors\n// SPDX-License-Identifier: Apache-2.0\n\n"
        "//! @file\n//! Element and block scope of tersum in one file, which cmake/write_kernels.py wrote.\n\n#pragma once\n"
    )
    return head + "".join(f"\n// {name}\n\n{text_of(name)}" for name in in_order(names))


def main():
    text = one_file()
    lines = text.count("\n")
    if lines > MOST_LINES:
        raise SystemExit(f"the file has {lines} lines, {MOST_LINES} at most")
    output = pathlib.Path(sys.argv[1])
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
