#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""sass_report and check on kernels whose code is known. Needs nvcc for most; no GPU."""

import collections
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check
import sass_report

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
FFMA, BRA, EXIT, LDL, STL = 0x023, 0x147, 0x14D, 0x183, 0x187

SOURCE = """
struct alignas(16) word4 { unsigned x, y, z, w; };

template <class T>
__global__ void copy(T const* in, T* out) { out[threadIdx.x] = in[threadIdx.x]; }

template __global__ void copy(word4 const*, word4*);
template __global__ void copy(uint2 const*, uint2*);
template __global__ void copy(float const*, float*);
template __global__ void copy(unsigned short const*, unsigned short*);
template __global__ void copy(unsigned char const*, unsigned char*);

__global__ void dynamic_index(int const* in, int* out, int count, int which)
{
  int values[64];
  for (int k = 0; k < count; ++k) { values[k & 63] = in[k]; }
  out[0] = values[which & 63] + values[(which + count) & 63];
}

__global__ void multiply_add(float* values, float a)
{
  float x = values[threadIdx.x];
  #pragma unroll
  for (int k = 0; k < 100; ++k) { x = __fmaf_rn(x, a, a); }
  values[threadIdx.x] = x;
}

__global__ void endless(float volatile* value) { for (;;) { value[0] = value[0] + 1; } }
"""

NVCC = os.environ.get("CUDACXX") or shutil.which("nvcc")


def kernel_of(**changes):
    values = {
        "name": "encode",
        "architecture": "sm_90",
        "instructions": 320,
        "registers": 40,
        "stack_bytes": 0,
        "local_accesses": 0,
        "global_loads": collections.Counter({128: 8}),
        "global_stores": collections.Counter({128: 1, 32: 1}),
        "operations": collections.Counter(),
    }
    return sass_report.Kernel(**(values | changes))


def budget_of(**changes):
    values = {
        "kernel": "^encode$",
        "arch": "sm_90",
        "coordinates_per_thread": 32,
        "max_instructions_per_coordinate": 10,
        "max_registers": 40,
        "scalar_global_accesses_allowed": 1,
    }
    return check.Budget(**(values | changes))


class Budgets(unittest.TestCase):
    def faults(self, budget, *kernels):
        names = {kernel.name: kernel.name for kernel in kernels}
        return check.check([budget], kernels, names)[2]

    def test_numbers_equal_to_the_budget_keep_it(self):
        self.assertEqual(self.faults(budget_of(), kernel_of()), [])

    def test_each_number_over_its_budget_is_named(self):
        for change, phrase in [
            ({"instructions": 352}, "11 instructions per coordinate, budget 10"),
            ({"registers": 41}, "41 registers, budget 40"),
            (
                {"global_loads": collections.Counter({128: 8, 64: 2})},
                "3 global accesses below 128 bits, budget 1",
            ),
            (
                {"stack_bytes": 256, "local_accesses": 9},
                "9 accesses to 256 bytes of local memory",
            ),
        ]:
            with self.subTest(**change):
                self.assertEqual(
                    self.faults(budget_of(), kernel_of(**change)), [f"encode: {phrase}"]
                )

    def test_a_kernel_without_a_budget_is_a_fault_and_so_is_its_local_memory(self):
        spiller = kernel_of(name="other", local_accesses=2)
        self.assertEqual(
            self.faults(budget_of(), kernel_of(), spiller),
            ["other: 2 accesses to 0 bytes of local memory", "other: no budget"],
        )

    def test_local_memory_is_allowed_by_a_budget_alone(self):
        spiller = kernel_of(stack_bytes=8, local_accesses=2)
        self.assertEqual(self.faults(budget_of(local_accesses_allowed=2), spiller), [])
        self.assertEqual(
            self.faults(budget_of(local_accesses_allowed=1), spiller),
            ["encode: 2 accesses to 8 bytes of local memory"],
        )

    def test_a_budget_that_matches_no_kernel_is_a_fault(self):
        self.assertEqual(
            self.faults(budget_of(kernel="decode")),
            ["the budget for /decode/ matches no kernel"],
        )

    def test_a_budget_applies_to_its_architectures(self):
        both = budget_of(arch=["sm_80", "sm_90"])
        self.assertTrue(both.applies_to("sm_80") and both.applies_to("sm_90"))
        self.assertFalse(both.applies_to("sm_100"))
        self.assertFalse(budget_of(arch="sm_100").applies_to("sm_10"))

    def test_an_object_without_arch_has_a_budget_for_each_of_its_architectures(self):
        line = {"kernel": "encode", "coordinates_per_thread": 32}
        line["max_instructions_per_coordinate"] = {"sm_80": 12, "sm_90": 10}
        line["max_registers"] = {"sm_80": 48, "sm_90": 40}
        self.assertEqual(
            check.budgets_of(line),
            [
                check.Budget("encode", "sm_80", 32, 12, 48),
                check.Budget("encode", "sm_90", 32, 10, 40),
            ],
        )

    def test_a_misspelt_field_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "budgets.json")
            path.write_text(json.dumps([{"kernel": "encode", "max_register": 3}]))
            with self.assertRaisesRegex(check.BudgetError, "max_register"):
                check.read_budgets(path)


@unittest.skipUnless(NVCC, "nvcc is not installed")
class Cubins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.cubins, cls.kernels, cls.ptxas = {}, {}, {}
        for arch in ARCHITECTURES:
            cls.cubins[arch], cls.ptxas[arch] = cls.compile(SOURCE, arch)
            cls.kernels[arch] = sass_report.read_cubin(cls.cubins[arch])

    @classmethod
    def compile(cls, text, arch):
        """The path of the cubin and what ptxas says about it."""
        source = cls.folder / "kernels.cu"
        source.write_text(text)
        handle, cubin = tempfile.mkstemp(suffix=".cubin", dir=cls.folder)
        os.close(handle)
        command = [NVCC, f"-arch={arch}", "-cubin", "-Xptxas=-v", "-o", cubin, source]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)
        return cubin, run.stderr

    def kernel(self, arch, start):
        found = [kernel for kernel in self.kernels[arch] if kernel.name.startswith(start)]
        self.assertEqual(len(found), 1, f"kernels whose name starts with {start}")
        return found[0]

    def for_each_architecture(self):
        for arch in ARCHITECTURES:
            with self.subTest(arch=arch):
                yield arch

    def test_registers_and_stack_are_what_ptxas_says(self):
        told = re.compile(
            r"Compiling entry function '(\w+)'.*?(\d+) bytes stack.*?Used (\d+) registers", re.S
        )
        for arch in self.for_each_architecture():
            expected = {
                name: (int(stack), int(registers))
                for name, stack, registers in told.findall(self.ptxas[arch])
            }
            read = {
                kernel.name: (kernel.stack_bytes, kernel.registers)
                for kernel in self.kernels[arch]
            }
            self.assertEqual(len(expected), 8)
            self.assertEqual(read, expected)

    def test_widths_of_global_accesses(self):
        types = {"5word4": 128, "5uint2": 64, "f": 32, "t": 16, "h": 8}
        for arch in self.for_each_architecture():
            for mangled, bits in types.items():
                kernel = self.kernel(arch, "_Z4copyI" + mangled)
                self.assertEqual(kernel.global_loads, {bits: 1}, mangled)
                self.assertEqual(kernel.global_stores, {bits: 1}, mangled)

    def test_an_array_with_a_dynamic_index_is_local_memory(self):
        for arch in self.for_each_architecture():
            kernel = self.kernel(arch, "_Z13dynamic_index")
            self.assertGreaterEqual(kernel.stack_bytes, 64 * 4)
            self.assertGreater(kernel.operations[LDL], 0)
            self.assertGreater(kernel.operations[STL], 0)
            self.assertEqual(kernel.local_accesses, kernel.operations[LDL] + kernel.operations[STL])
            self.assertEqual(self.kernel(arch, "_Z12multiply_add").local_accesses, 0)

    def test_operations_are_counted_and_padding_is_not(self):
        for arch in self.for_each_architecture():
            kernel = self.kernel(arch, "_Z12multiply_add")
            self.assertEqual(kernel.operations[FFMA], 100)
            self.assertEqual(kernel.operations[EXIT], 1)
            self.assertEqual(kernel.operations[BRA], 0)
            self.assertEqual(kernel.operations[sass_report.NOP], 0)
            self.assertEqual(kernel.instructions, sum(kernel.operations.values()))
            # Thread rank, two parameters, an address, a load, a store, the end.
            self.assertLess(kernel.instructions, 100 + 20)
            # The branch back of a loop at the end is code.
            self.assertEqual(self.kernel(arch, "_Z7endless").operations[BRA], 1)

    def test_the_architecture_is_read_from_the_file(self):
        for arch in self.for_each_architecture():
            self.assertEqual({kernel.architecture for kernel in self.kernels[arch]}, {arch})

    def test_a_file_of_another_kind_is_refused(self):
        with self.assertRaisesRegex(sass_report.CubinError, "not a cubin"):
            sass_report.read_cubin(self.folder / "kernels.cu")

    def run_check(self, cubin, *budgets, arch="sm_90", more=()):
        path = self.folder / "budgets.json"
        path.write_text(json.dumps(budgets))
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            self.assertRaises(SystemExit) as end,
        ):
            check.main(["--budgets", str(path), *more, "--arch", arch, str(cubin)])
        return end.exception.code, out.getvalue(), err.getvalue()

    BUDGET = {
        "kernel": "^_Z4copyI5word4",
        "arch": ["sm_90"],
        "coordinates_per_thread": 4,
        "max_instructions_per_coordinate": 8,
        "max_registers": 32,
    }
    REST = {
        "kernel": "^(endless|dynamic_index|multiply_add|copy<[uf])",
        "arch": ["sm_80", "sm_90"],
        "coordinates_per_thread": 1,
        "max_instructions_per_coordinate": 1000,
        "max_registers": 255,
        "scalar_global_accesses_allowed": 100,
    }

    def test_check_ends_with_status_1_on_a_fault_and_names_it(self):
        code, out, err = self.run_check(self.cubins["sm_90"], self.BUDGET, self.REST)
        self.assertEqual(code, 1)  # for the local memory of another kernel alone
        self.assertRegex(err, r"\Acheck: dynamic_index: \d+ accesses to \d+ bytes of .*\n\Z")
        self.assertRegex(out, r"copy<word4>` \| \d.\d\d of 8 \| \d+ of 32 \| 0 of 0 .* kept \|")

        clean, _ = self.compile(SOURCE.split("__global__ void dynamic_index")[0], "sm_90")
        rest = self.REST | {"kernel": "^copy<[uf]"}
        self.assertEqual(self.run_check(clean, self.BUDGET, rest)[::2], (0, ""))
        narrow = rest | {"scalar_global_accesses_allowed": 1}
        code, _, err = self.run_check(clean, self.BUDGET, narrow)
        self.assertEqual(code, 1)
        self.assertIn("check: copy<float>: 2 global accesses below 128 bits, budget 1\n", err)
        code, out, err = self.run_check(clean, rest)
        self.assertEqual((code, err), (1, "check: copy<word4>: no budget\n"))
        self.assertRegex(out, "copy<word4>.*no budget")

        code, _, _ = self.run_check(self.cubins["sm_80"], self.BUDGET, arch="sm_80")
        self.assertRegex(code, "has no budget for sm_80")
        code, _, _ = self.run_check(self.cubins["sm_80"], self.BUDGET)
        self.assertRegex(code, "is for sm_80, not sm_90")

    def test_a_kernel_that_is_in_no_cubin_is_named(self):
        source, other = self.folder / "kernels.cuh", self.folder / "none.hpp"
        other.touch()
        clean, _ = self.compile("__global__ void a_kernel(int* p) { *p = 1; }", "sm_90")
        budget = self.REST | {"kernel": "^a_kernel"}
        for text, expected in [
            ("__global__ void a_kernel(int* p)", ""),
            ("__global__ void a_kernel(int* p); __global__ void b_kernel(", f"check: b_kernel of {source} is in no cubin\n"),
            ("struct a_kernel : kernel_of_threads<32> {", ""),
            ("struct b : kernel_of_threads<32> {", f"check: b of {source} is in no cubin\n"),
            ("struct c : table, kernel_of_parts {", f"check: c of {source} is in no cubin\n"),
            ("struct kernel_of_parts : kernel_of_chunks {", ""),
        ]:
            source.write_text(text)
            code, _, err = self.run_check(clean, budget, more=["--kernels", str(source), str(other)])
            self.assertEqual((code, err), (1 if expected else 0, expected))

    def test_the_table_has_a_line_a_kernel_and_a_column_an_architecture(self):
        budgets, table = self.folder / "budgets.json", self.folder / "table.md"
        budgets.write_text(json.dumps([self.BUDGET, self.REST]))
        cubins = [self.cubins[arch] for arch in ("sm_90", "sm_80")]
        check.main(["--budgets", str(budgets), "--table", str(table), *map(str, cubins)])
        text = table.read_text()
        self.assertIn("| kernel | coordinates | sm_80 | sm_90 | loads (bits) |", text)
        line = next(line for line in text.splitlines() if line.startswith("| `copy<word4>`"))
        self.assertRegex(line, r"\| 4 \| - \| [\d.]+ of 8; \d+ of 32 \| 1 x 128 \| 1 x 128 \|$")

    def test_the_rest_gets_budgets_that_it_keeps(self):
        cubin = self.cubins["sm_90"]
        budgets, rest = self.folder / "budgets.json", self.folder / "rest.json"
        budgets.write_text(json.dumps([self.BUDGET]))
        write = ["--budgets", str(budgets), "--rest", str(rest), str(cubin)]
        check.main(write)
        lines = json.loads(rest.read_text())
        self.assertEqual(len(lines), 7)  # all but copy<word4>
        for line in lines:
            line["coordinates_per_thread"] = 4
        rest.write_text(json.dumps(lines))
        check.main(write)
        self.assertEqual({line["coordinates_per_thread"] for line in json.loads(rest.read_text())}, {4})
        self.assertEqual(self.check_files(budgets, rest, cubin), (0, ""))
        # One instruction or one register less is too little.
        for field, less in [("max_instructions_per_coordinate", 1 / 4), ("max_registers", 1)]:
            lines = json.loads(rest.read_text())
            for line in lines:
                line[field]["sm_90"] -= less
            tight = self.folder / "tight.json"
            tight.write_text(json.dumps(lines))
            code, err = self.check_files(budgets, tight, cubin)
            self.assertEqual((code, err.count(", budget ")), (1, 7), err)

    def check_files(self, budgets, rest, cubin):
        """The status of a check, and what it says of faults."""
        err = io.StringIO()
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(err),
            self.assertRaises(SystemExit) as end,
        ):
            check.main(["--budgets", str(budgets), str(rest), "--arch", "sm_90", str(cubin)])
        return end.exception.code, err.getvalue()


if __name__ == "__main__":
    unittest.main()
