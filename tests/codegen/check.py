#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the code that nvcc makes of each kernel to a budget.

    check.py --budgets budgets.json... --arch sm_90 [--kernels cuda_kernels.cuh...] kernels.cubin...
    check.py --budgets budgets.json... --table kernels.md kernels.cubin...
    check.py --budgets budgets.json --rest budgets_rest.json kernels.cubin...

The budgets are JSON lists of objects:

    kernel                           regular expression, searched in the demangled and in the
                                     mangled name; every kernel that matches must keep the budget
    arch                             "sm_90", or a list of such
    coordinates_per_thread           coordinates that one thread handles
    max_instructions_per_coordinate  static instructions of the kernel / coordinates_per_thread
    max_registers                    per thread
    global_width_bits                least width of a global load or store; default 128
    scalar_global_accesses_allowed   how many loads and stores may be narrower; default 0
    local_accesses_allowed           loads and stores of local memory; default 0

Where "arch" is left out, numbers are objects with one for each architecture.

Prints a Markdown table, and ends with status 1 if a number is worse than its budget, if a kernel
has no budget, or more local memory than its budget allows, if a budget matches no kernel, or if a
kernel that a file of --kernels defines is in no cubin. --table writes a table of the cubins of
all architectures instead.
--rest writes budgets, with nothing to spare, for the kernels that have none in --budgets;
coordinates of those that are new there are one.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import re
import sys

import sass_report


class BudgetError(Exception):
    """The table of budgets cannot be used."""


@dataclasses.dataclass(frozen=True)
class Budget:
    kernel: str
    arch: str | list[str]
    coordinates_per_thread: float
    max_instructions_per_coordinate: float
    max_registers: int
    global_width_bits: int = 128
    scalar_global_accesses_allowed: int = 0
    local_accesses_allowed: int = 0

    def applies_to(self, architecture):
        return architecture in ([self.arch] if isinstance(self.arch, str) else self.arch)

    def matches(self, kernel, demangled):
        return re.search(self.kernel, demangled) or re.search(self.kernel, kernel.name)

    def instructions_per_coordinate(self, kernel):
        return kernel.instructions / self.coordinates_per_thread

    def scalar_global_accesses(self, kernel):
        accesses = kernel.global_loads + kernel.global_stores
        return sum(n for bits, n in accesses.items() if bits < self.global_width_bits)

    def excesses(self, kernel):
        """What is worse than allowed, a phrase each."""
        limits = [
            (
                "instructions per coordinate",
                self.instructions_per_coordinate(kernel),
                self.max_instructions_per_coordinate,
            ),
            ("registers", kernel.registers, self.max_registers),
            (
                f"global accesses below {self.global_width_bits} bits",
                self.scalar_global_accesses(kernel),
                self.scalar_global_accesses_allowed,
            ),
        ]
        return [
            f"{value:.4g} {what}, budget {limit:g}"
            for what, value, limit in limits
            if value > limit
        ]


def budgets_of(line):
    """The budgets of an object: one, or one an architecture."""
    architectures = line.get("max_registers")
    if not isinstance(architectures, dict):
        return [Budget(**line)]
    return [
        Budget(
            arch=arch,
            **{key: value[arch] if isinstance(value, dict) else value for key, value in line.items()},
        )
        for arch in architectures
    ]


def read_budgets(path):
    try:
        lines = json.loads(pathlib.Path(path).read_text())
        budgets = [budget for line in lines for budget in budgets_of(line)]
        for budget in budgets:
            re.compile(budget.kernel)
    except (OSError, ValueError, TypeError, KeyError, re.error) as error:
        raise BudgetError(f"{path}: {error}") from error
    return budgets


def local_memory(kernel, budgets):
    """What the kernel uses of local memory beyond its budgets, as a list of at most one phrase."""
    allowed = min((budget.local_accesses_allowed for budget in budgets), default=0)
    if kernel.local_accesses <= allowed and (allowed > 0 or kernel.stack_bytes == 0):
        return []
    return [f"{kernel.local_accesses} accesses to {kernel.stack_bytes} bytes of local memory"]


def check(budgets, kernels, names):
    """The table's header and rows, and what is wrong, a sentence each.

    Budgets are those of the architecture at hand; names are {mangled: demangled}.
    """
    header = ["kernel", "instructions / coordinate", "registers", "narrow global accesses"]
    header += ["global loads (bits)", "global stores (bits)", "local memory", "verdict"]
    rows, faults, matched = [], [], set()
    for kernel in kernels:
        name = names[kernel.name]
        mine = [budget for budget in budgets if budget.matches(kernel, name)]
        matched.update(id(budget) for budget in mine)
        traffic = [sass_report.widths(kernel.global_loads)]
        traffic += [sass_report.widths(kernel.global_stores)]
        local = local_memory(kernel, mine)
        faults += [f"{name}: {phrase}" for phrase in local]
        for budget in mine:
            worse = budget.excesses(kernel)
            faults += [f"{name}: {phrase}" for phrase in worse]
            rows.append(
                [
                    f"`{name}`",
                    f"{budget.instructions_per_coordinate(kernel):.2f} of "
                    f"{budget.max_instructions_per_coordinate:g}",
                    f"{kernel.registers} of {budget.max_registers}",
                    f"{budget.scalar_global_accesses(kernel)} of "
                    f"{budget.scalar_global_accesses_allowed}",
                    *traffic,
                    kernel.stack_bytes,
                    "over budget" if worse or local else "kept",
                ]
            )
        if not mine:
            row = [f"`{name}`", f"{kernel.instructions} in all", kernel.registers, "-", *traffic]
            rows.append([*row, kernel.stack_bytes, "no budget"])
            faults.append(f"{name}: no budget")
    faults += [
        f"the budget for /{budget.kernel}/ matches no kernel"
        for budget in budgets
        if id(budget) not in matched
    ]
    return header, rows, faults


def missing_kernels(source, names):
    """The kernels that a source defines and no cubin has, a sentence each."""
    text = pathlib.Path(source).read_text()
    defined = re.findall(r"__global__[^;{}]*?\b(\w+_kernel)\(", text)
    defined += re.findall(r"struct (?!kernel_of_)(\w+) : [^{]*\bkernel_of_\w+", text)
    present = {word for name in names.values() for word in re.findall(r"\w+", name)}
    return [f"{name} of {source} is in no cubin" for name in defined if name not in present]


def table_of_all(budgets, kernels, names):
    """A Markdown table: a line for each kernel, of each architecture what it takes and its budget."""
    architectures = sorted({kernel.architecture for kernel in kernels}, key=lambda a: int(a[3:]))
    by_name = {}
    for kernel in kernels:
        by_name.setdefault(names[kernel.name], {})[kernel.architecture] = kernel
    header = ["kernel", "coordinates", *architectures, "loads (bits)", "stores (bits)"]
    rows = []
    for name in sorted(by_name):
        cells, coordinates = [], "-"
        for architecture in architectures:
            kernel = by_name[name].get(architecture)
            mine = [
                budget
                for budget in budgets
                if kernel and budget.applies_to(architecture) and budget.matches(kernel, name)
            ]
            if not mine:
                cells.append("-")
                continue
            coordinates = f"{mine[0].coordinates_per_thread:g}"
            cells.append(
                f"{mine[0].instructions_per_coordinate(kernel):.4g} of "
                f"{mine[0].max_instructions_per_coordinate:g}; "
                f"{kernel.registers} of {mine[0].max_registers}"
            )
        last = list(by_name[name].values())[-1]
        traffic = [sass_report.widths(last.global_loads), sass_report.widths(last.global_stores)]
        short = re.sub(r"tersum::v\d+::(detail::)?", "", name)
        rows.append([f"`{short}`", coordinates, *cells, *traffic])
    return sass_report.markdown_table(header, rows)


TABLE_TEXT = """# Kernels and their budgets

Written by `tests/codegen/check.py --table`; docs/developer/codegen.md says what for. Of each architecture: static
instructions a coordinate and registers, each with its budget; kernels without coordinates of their own have one, so that
all their instructions count. `coordinates` are those of one thread. The widths of global accesses are those of {last}.

"""


def table_text(budgets, kernels, names):
    last = max((kernel.architecture for kernel in kernels), key=lambda a: int(a[3:]))
    ordered = sorted(kernels, key=lambda kernel: int(kernel.architecture[3:]))
    return TABLE_TEXT.format(last=last) + table_of_all(budgets, ordered, names) + "\n"


def pattern_of(name):
    """A regular expression for one demangled name, whatever the version's namespace."""
    text = re.sub("> ?(?=>)", "> ?", re.escape(name).replace("\\ ", " "))  # demanglers differ in that blank
    text = re.sub(r"tersum::v\d+::(detail::)?", "[^|]*", text.split("::detail::", 1)[-1])
    return f"(^|::){text}$"


def rest_of(budgets, known, kernels, names):
    """Budgets, an object a kernel, of those that have none; known are {pattern: coordinates}."""
    rest = {}
    for kernel in sorted(kernels, key=lambda kernel: int(kernel.architecture[3:])):
        arch, name = kernel.architecture, names[kernel.name]
        if any(b.applies_to(arch) and b.matches(kernel, name) for b in budgets):
            continue
        pattern = pattern_of(name)
        coordinates = known.get(pattern, 1)
        line = rest.setdefault(name, {"kernel": pattern, "coordinates_per_thread": coordinates})
        # Rounded up by less than an instruction, so that one more is over the budget.
        most = kernel.instructions if coordinates == 1 else math.ceil(1e4 * kernel.instructions / coordinates) / 1e4
        scalar = Budget("", arch, 1, 0, 0).scalar_global_accesses(kernel)
        for field, number in [
            ("max_instructions_per_coordinate", most),
            ("max_registers", kernel.registers),
            ("scalar_global_accesses_allowed", scalar),
            ("local_accesses_allowed", kernel.local_accesses),
        ]:
            line.setdefault(field, {})[arch] = number
    for line in rest.values():
        for field in ("scalar_global_accesses_allowed", "local_accesses_allowed"):
            if not any(line[field].values()):
                del line[field]
    return [rest[name] for name in sorted(rest)]


def write_rest(path, budgets, kernels, names):
    known = {}
    if path.exists():
        lines = json.loads(path.read_text())
        known = {line["kernel"]: line["coordinates_per_thread"] for line in lines}
    rest = rest_of(budgets, known, kernels, names)
    path.write_text("[\n" + ",\n".join("  " + json.dumps(line) for line in rest) + "\n]\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", required=True, nargs="+", type=pathlib.Path)
    parser.add_argument("--arch", help="the architecture of the cubins: sm_90")
    parser.add_argument("--kernels", type=pathlib.Path, nargs="+", help="sources; all their kernels must be here")
    parser.add_argument("--table", type=pathlib.Path, help="write a table of all architectures here")
    parser.add_argument("--rest", type=pathlib.Path, help="write budgets of what has none here")
    parser.add_argument("cubins", nargs="+", type=pathlib.Path)
    options = parser.parse_args(arguments)
    try:
        table = [budget for path in options.budgets for budget in read_budgets(path)]
        kernels = [kernel for path in options.cubins for kernel in sass_report.read_cubin(path)]
    except (BudgetError, sass_report.CubinError, OSError) as error:
        sys.exit(f"check: {error}")
    # The metric of most codecs, which is their last argument and the default one, goes without saying.
    names = {
        mangled: re.sub(r", tersum::v\d+::plain_metric>", ">", demangled)
        for mangled, demangled in sass_report.demangle(sorted({kernel.name for kernel in kernels})).items()
    }
    if options.table:
        options.table.write_text(table_text(table, kernels, names))
        return
    if options.rest:
        write_rest(options.rest, table, kernels, names)
        return
    if not options.arch:
        parser.error("--arch, --table or --rest is needed")
    for kernel in kernels:
        if kernel.architecture != options.arch:
            sys.exit(f"check: {kernel.name} is for {kernel.architecture}, not {options.arch}")
    budgets = [budget for budget in table if budget.applies_to(options.arch)]
    if not budgets:
        sys.exit(f"check: {options.budgets[0]} has no budget for {options.arch}")
    header, rows, faults = check(budgets, kernels, names)
    if options.kernels:
        faults += [fault for source in options.kernels for fault in missing_kernels(source, names)]
    print(sass_report.markdown_table(header, rows))
    for fault in faults:
        print(f"check: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
