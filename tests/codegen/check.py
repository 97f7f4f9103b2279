#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Holds the code that nvcc makes of each kernel to a budget.

    check.py --budgets budgets.json --arch sm_90 kernels.cubin...

The budgets are a JSON list of objects:

    kernel                           regular expression, searched in the demangled and in the
                                     mangled name; every kernel that matches must keep the budget
    arch                             "sm_90", or a list of such
    coordinates_per_thread           coordinates that one thread handles
    max_instructions_per_coordinate  static instructions of the kernel / coordinates_per_thread
    max_registers                    per thread
    global_width_bits                least width of a global load or store; default 128
    scalar_global_accesses_allowed   how many loads and stores may be narrower; default 0

Prints a Markdown table, and ends with status 1 if a number is worse than its budget, if any kernel
uses local memory, with a budget or without, or if a budget matches no kernel.
"""

import argparse
import dataclasses
import json
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


def read_budgets(path):
    try:
        budgets = [Budget(**line) for line in json.loads(pathlib.Path(path).read_text())]
        for budget in budgets:
            re.compile(budget.kernel)
    except (OSError, ValueError, TypeError, re.error) as error:
        raise BudgetError(f"{path}: {error}") from error
    return budgets


def local_memory(kernel):
    """What the kernel uses of local memory, as a list of at most one phrase."""
    if kernel.local_accesses == 0 and kernel.stack_bytes == 0:
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
        local = local_memory(kernel)
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
            rows.append([*row, kernel.stack_bytes, "over budget" if local else "no budget"])
    faults += [
        f"the budget for /{budget.kernel}/ matches no kernel"
        for budget in budgets
        if id(budget) not in matched
    ]
    return header, rows, faults


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", required=True, type=pathlib.Path)
    parser.add_argument("--arch", required=True, help="the architecture of the cubins: sm_90")
    parser.add_argument("cubins", nargs="+", type=pathlib.Path)
    options = parser.parse_args(arguments)
    try:
        table = read_budgets(options.budgets)
        kernels = [kernel for path in options.cubins for kernel in sass_report.read_cubin(path)]
    except (BudgetError, sass_report.CubinError, OSError) as error:
        sys.exit(f"check: {error}")
    for kernel in kernels:
        if kernel.architecture != options.arch:
            sys.exit(f"check: {kernel.name} is for {kernel.architecture}, not {options.arch}")
    budgets = [budget for budget in table if budget.applies_to(options.arch)]
    if not budgets:
        sys.exit(f"check: {options.budgets} has no budget for {options.arch}")
    names = sass_report.demangle([kernel.name for kernel in kernels])
    header, rows, faults = check(budgets, kernels, names)
    print(sass_report.markdown_table(header, rows))
    for fault in faults:
        print(f"check: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
