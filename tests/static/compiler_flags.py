#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""No option that lets a compiler depart from IEEE 754 goes unseen: the preprocessor shows it, or `initialize` finds it.

    compiler_flags.py G++ CLANG++    either may be "", which leaves its options out
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
GCC, CLANG = "", ""

SHOWN_BY_GCC = ["-ffast-math", "-Ofast", "-ffinite-math-only", "-fno-signed-zeros", "-freciprocal-math", "-funsafe-math-optimizations",
                "-fassociative-math -fno-signed-zeros -fno-trapping-math", "-ffast-math -fno-finite-math-only", "-mfpmath=387",
                "-fsingle-precision-constant"]
SHOWN_BY_CLANG = ["-ffast-math", "-Ofast", "-ffinite-math-only"]
FOUND_WITH_CLANG = ["-fno-honor-nans", "-fno-signed-zeros", "-fassociative-math -fno-signed-zeros", "-freciprocal-math",
                    "-funsafe-math-optimizations", "-ffast-math -fno-finite-math-only"]
HARMLESS = ["-O0", "-O3 -march=native -ffp-contract=fast", "-fno-math-errno -fno-trapping-math", "-frounding-math"]


def compiled(compiler, options, *more):
    return subprocess.run([compiler, "-std=c++20", "-O1", *options.split(), "-I", INCLUDE, *more], capture_output=True, text=True)


class Flags(unittest.TestCase):
    def shows(self, compiler, options):
        with self.subTest(compiler=compiler, options=options):
            said = compiled(compiler, options, "-fsyntax-only", "-x", "c++", INCLUDE / "tersum/config.hpp")
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("tersum: ", said.stderr)

    def says(self, compiler, options, alone=True):
        """What the program prints."""
        options += " -DTERSUM_PROBE_ALONE" if alone else ""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            said = compiled(compiler, options, HERE / "compiler_flags.cpp", "-pthread", "-o", program)
            self.assertEqual(said.returncode, 0, said.stderr)
            return subprocess.run([program], capture_output=True, text=True, check=True).stdout

    def test_the_preprocessor_shows_them(self):
        if sys.platform == "linux" and subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() != "x86_64":
            SHOWN_BY_GCC.remove("-mfpmath=387")
        for options in SHOWN_BY_GCC if GCC else []:
            self.shows(GCC, options)
        for options in SHOWN_BY_CLANG if CLANG else []:
            self.shows(CLANG, options)

    def test_initialize_finds_those_that_it_does_not_show(self):
        for options in FOUND_WITH_CLANG if CLANG else []:
            with self.subTest(options=options):
                self.assertIn("does not compute as IEEE 754 says", self.says(CLANG, options))
        if CLANG:
            self.assertIn("does not compute as IEEE 754 says", self.says(CLANG, "-fno-honor-nans", alone=False))

    def test_others_are_accepted(self):
        for compiler in filter(None, (GCC, CLANG)):
            for options in HARMLESS:
                with self.subTest(compiler=compiler, options=options):
                    self.assertEqual(self.says(compiler, options), "0 \n")


if __name__ == "__main__":
    GCC, CLANG = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
