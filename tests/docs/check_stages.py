#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the pictures of the data flow in docs/concepts.md against the lists of stages in the headers.

    check_stages.py ROOT

Below "```text stages of HEADER" a line has a call of exchange.hpp, where it changes, and the name of a stage, or "=>" and
the name of a round. These must be the last stages and rounds of the codec of that header, in their order, in their calls.
"""

import pathlib
import re
import sys


def parts_of(text):
    """{stage or round: the call that it belongs to}, from stages.hpp."""
    return dict(re.findall(r"struct (\w+)\s*: (?:stage::)?of_part<exchange_part::(\w+)>", text))


def stages_of(text):
    """The stages and rounds of a codec's header, all that it may have, in order."""
    return re.findall(r"(?:stage|rounds)::(\w+)", re.search(r"using stages =(.*?);", text, re.S)[1])


def drawn(block):
    """(call, stage or round) of each line of a picture."""
    call = None
    for line in block.splitlines():
        if match := re.match(r"(\w+)? +(?:=> )?(\w+)  ", line):
            call = match[1] or call
            yield call, match[2]


def main():
    root = pathlib.Path(sys.argv[1])
    headers = root / "include" / "tersum"
    parts = parts_of((headers / "stages.hpp").read_text())
    page = (root / "docs" / "concepts.md").read_text()
    pictures = re.findall(r"^```text stages of (\S+)\n(?:call [^\n]*\n)?(.*?)^```", page, re.S | re.M)
    faults = [] if len(pictures) == 4 else [f"{len(pictures)} pictures"]
    for header, block in pictures:
        lines = list(drawn(block))
        wanted = [(parts[name], name) for name in stages_of((headers / header).read_text())]
        if not lines or lines != wanted[-len(lines) :]:
            faults.append(f"drawn of {header}: {lines}, in the header: {wanted}")
    print(*faults or [f"{len(pictures)} pictures"], sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
