#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ code in a page of the documentation, and runs it where what surrounds it has a main, which checks what it made;
its argument is the page.

    check_code.py --page PAGE.md --around PAGE.cpp -- COMPILER ARGUMENT...

In PAGE.cpp the line "// code N" stands for the page's block number N, from 1; "// code N: TEXT" for
the paragraph of that block that begins with TEXT, and the line "// link: LIBRARY" for one to link. What the blocks include comes first, with
tersum.hpp in the place of tersum.cuh. Every block must be used.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def paragraph(block, text):
    found = [part for part in block.split("\n\n") if part.startswith(text)]
    return found[0] if found else None


def compiled(compiler, lines, *more):
    libraries = [argument for argument in compiler if argument.endswith((".so", ".a")) or argument.startswith("-l")]
    rest = [argument for argument in compiler if argument not in libraries]
    after = ["-x", "none", *libraries] if "-fsyntax-only" not in more else []
    return subprocess.run([*rest, *more, "-x", "c++", "-", *after], input="\n".join(lines), text=True).returncode


def program(page, around):
    """The lines of the code in a page with what surrounds it, and the libraries to link; ends where a block of code is not used."""
    blocks = re.findall(r"^```cpp\n(.*?)^```", page.read_text(), re.S | re.M)
    lines = [line.replace("tersum/tersum.cuh", "tersum/tersum.hpp")
             for block in blocks for line in block.splitlines() if line.startswith("#include")]
    blocks = [re.sub(r"^#include.*\n", "", block, flags=re.M) for block in blocks]
    used = set()
    text = around.read_text()
    for line in text.splitlines():
        mark = re.fullmatch(r"\s*// code (\d+)(?:: (.*))?", line)
        if mark is None:
            lines.append(line)
            continue
        number = int(mark[1])
        code = blocks[number - 1] if number <= len(blocks) else None
        if code is not None and mark[2]:
            code = paragraph(code, mark[2])
        if code is None:
            sys.exit(f"{page} has no code for '{line.strip()}'")
        used.add(number)
        lines += [f'#line 1 "{page.name}, code {number}"', code]
    if used != set(range(1, len(blocks) + 1)):
        sys.exit(f"{around} uses {sorted(used)} of {len(blocks)} blocks")
    return lines, re.findall(r"^// link: (.*)", text, re.M)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--page", type=pathlib.Path, required=True)
    arguments.add_argument("--around", type=pathlib.Path, required=True)
    arguments.add_argument("compiler", nargs="+")
    asked = arguments.parse_args()
    lines, libraries = program(asked.page, asked.around)
    compiler = asked.compiler + libraries
    if not re.search(r"^int main\(", "\n".join(lines), re.M):
        sys.exit(compiled(compiler, lines, "-fsyntax-only"))
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "program"
        failed = compiled(compiler, lines, "-O0", "-pthread", "-o", binary)
        sys.exit(failed or subprocess.run([binary, asked.page]).returncode)


if __name__ == "__main__":
    main()
