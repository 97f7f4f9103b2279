#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Objects for unlike architectures in one program launch kernels of their own: neither kernels nor what launches them have names in common.

    architectures.py NVCC NM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
NVCC, NM = "", ""
# launch_kernel has them too: it is given the kernel, as an argument.
WORDS = ["exchange_kernel<", "item_kernel<", "cuda_executor", "::initialize<", "perform", "run_stage"]


def symbols_of(architecture, folder):
    """What the linker keeps one of where several objects define it."""
    made = pathlib.Path(folder) / f"{architecture}.o"
    subprocess.run([NVCC, "-std=c++20", "-O1", f"-arch={architecture}", "-I", HERE.parents[1] / "include", "-c", "-o", made,
                    HERE / "one_architecture.cu"], check=True)
    lines = subprocess.run([NM, "-C", made], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split(" ", 2)[2] for line in lines if line[17:18] in "WVu"}


class Architectures(unittest.TestCase):
    def test_no_name_of_a_kernel_or_of_an_executor_is_in_both(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = symbols_of("sm_80", folder), symbols_of("sm_90", folder)
        for symbols in first, second:
            self.assertTrue(any(name.startswith("tersum::v0::status tersum::v0::initialize<") for name in symbols))
        common = [name for name in first & second if any(word in name for word in WORDS)]
        self.assertEqual([name for name in common if "launch_kernel<" not in name], [])


if __name__ == "__main__":
    NVCC, NM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
