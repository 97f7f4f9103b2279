#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the pictures of the data flow in docs/concepts.md and docs/codecs.md against the list of stages in codec.hpp.

    check_stages.py ROOT

Below "```text stages of FORM" a line has a call of exchange.hpp, where it changes, and the name of a stage, or "=>" and
the name of a round. These must be the last stages and rounds of a codec of that form, in their order, in their calls. What only
some codecs have may be left out: what stands in `stages_if`, and one of two lists of rounds. Each role in the table of concepts.md is
named in the codec above it, and does something in the picture below it, but for coder and form, which are made of what is there.
"""

import pathlib
import re
import sys


def parts_of(text):
    """{stage or round: the call that it belongs to}, from stages.hpp."""
    return dict(re.findall(r"struct (\w+)\s*: (?:stage::)?of_part<exchange_part::(\w+)>", text))


def entries(text):
    """Names of stages and rounds, in order."""
    return re.findall(r"(?:stage|rounds)::(\w+)", text)


def stages_of(codec, form):
    """(names, whether a codec may lack them) of the stages and rounds of a form, in order."""
    first = (re.search(r"using first_round = (.*?);", form, re.S) or [None, "rounds::sum_bypass"])[1]  # of usual_form
    lists = re.findall(r"stage_list<(.*?)>", re.search(r"using rounds_of\s*= (.*?);", form, re.S)[1], re.S)
    stages = re.search(r"using stages =(.*?);", codec, re.S)[1]
    for entry in re.findall(r"stages_if<[^;]*?(?:>\(\)|<\w+>), *[^>]*?>|Form::first_round|rounds_of<Coder>|stage::\w+", stages):
        if entry == "Form::first_round":
            yield from ((name, False) for name in entries(first))
        elif entry == "rounds_of<Coder>":
            yield from ((name, len(lists) > 1) for of in lists for name in entries(of))
        else:
            yield from ((name, entry.startswith("stages_if")) for name in entries(entry))


def is_end(lines, wanted):
    """Whether lines are the last of what is wanted, but for some that may be left out."""
    if not lines:
        return True
    if not wanted:
        return False
    *before, (line, optional) = wanted
    return (lines[-1] == line and is_end(lines[:-1], before)) or (optional and is_end(lines, before))


def drawn(block):
    """(call, stage or round) of each line of a picture."""
    call = None
    for line in block.splitlines():
        if match := re.match(r"(\w+)? +(?:=> )?(\w+)  ", line):
            call = match[1] or call
            yield call, match[2]


def roles_left_out(page):
    """Roles of the table that the composed codec, or the picture of its stages, does not name."""
    roles = re.findall(r"^\| ([\w-]+) \| [^|]*\? \|", page, re.M)
    composed = re.findall(r"//(.*)", re.search(r"^```cpp\n(.*?)^```", page, re.S | re.M)[1])
    picture = re.search(r"^```text stages of in_wire\n(.*?)^```", page, re.S | re.M)[1]
    return [role for role in roles or ["all"] if role not in "".join(composed) or (role not in picture and role not in ("coder", "form"))]


def main():
    root = pathlib.Path(sys.argv[1])
    headers = root / "include" / "tersum"
    parts = parts_of((headers / "stages.hpp").read_text())
    codec = (headers / "codec.hpp").read_text()
    page = "".join((root / "docs" / name).read_text() for name in ("concepts.md", "codecs.md"))
    pictures = re.findall(r"^```text stages of (\S+)\n(?:call [^\n]*\n)?(.*?)^```", page, re.S | re.M)
    faults = [] if len(pictures) == 4 else [f"{len(pictures)} pictures"]
    faults += [f"docs/concepts.md does not draw the role {role}" for role in roles_left_out((root / "docs/concepts.md").read_text())]
    for form, block in pictures:
        lines = list(drawn(block))
        of_form = stages_of(codec, (headers / "form" / f"{form}.hpp").read_text())
        wanted = [((parts[name], name), optional) for name, optional in of_form]
        if not lines or not is_end(lines, wanted):
            faults.append(f"drawn of {form}: {lines}, in the headers: {wanted}")
    print(*faults or [f"{len(pictures)} pictures"], sep="\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
