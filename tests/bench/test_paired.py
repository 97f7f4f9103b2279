#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/paired.py: no time decides."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import paired
import report

NAME = "encode/fp16/float/cpu-avx2/n:16777216/threads:1"


class Paired(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tree(self, name, headers):
        for path, declared in headers.items():
            file = self.folder / name / "include" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"inline constexpr two<a, b> {preset}{{.c = {{}}}};\n" for preset in declared))
        return self.folder / name

    def test_presets_are_those_of_this_commit_that_both_have_wherever_they_lie(self):
        old = self.tree("old", {"tersum/presets.hpp": ["fp16", "gone_4"], "tersum/baseline/catalogue.hpp": ["mxfp4"]})
        new = self.tree("new", {"tersum/presets.hpp": ["fp16", "sharded_4", "young_2"], "others/presets.hpp": ["mxfp4"]})
        self.assertEqual(sorted(paired.shared(old, new, "")), ["fp16", "mxfp4"])
        self.assertEqual(paired.shared(old, new, "^fp"), ["fp16"])

    def test_the_working_tree_has_names(self):
        names = paired.presets(ROOT)
        self.assertGreater(len(names), 50)
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"rotated_sat4", "two_shot_4", "mxfp4"}, set(names))

    def test_ratios_are_of_medians_and_what_is_slower_is_named(self):
        other = NAME.replace("encode", "decode")
        found = paired.ratios({NAME: [1.0, 9.0, 2.0], other: [1.0]}, {NAME: [2.2, 2.2, 8.0], other: [1.0], "new": [1.0]})
        self.assertEqual(list(found), [NAME, other])
        self.assertAlmostEqual(found[NAME], 1.1)
        text = paired.page(found, {"new"})
        self.assertIn("| encode | fp16 | cpu-avx2 | 1.100 |", text)
        self.assertIn("median of 2: 1.050", text)
        self.assertIn(f"over 1.05: {NAME} (1.100)\n", text)
        self.assertIn("only one of the two has new", text)

    def test_a_run_asks_for_its_names_and_reads_medians(self):
        program = self.folder / "tersum.bench.encode"
        result = {"context": {}, "benchmarks": [{"name": NAME + "/iterations:1/manual_time", "median": 1.25},
                                                {"name": NAME.replace("fp16", "bf16"), "error_occurred": True, "median": 0}]}
        program.write_text(f"#!/bin/sh\necho \"$1\" > {self.folder}/asked\ncat > \"${{2#*=}}\" <<'END'\n{json.dumps(result)}\nEND\n")
        program.chmod(0o755)
        found = paired.run(self.folder, "encode", ["fp16", "bf16"], 16777216, 0, self.folder / "out.json")
        self.assertEqual(found, {NAME: 1.25})
        asked = (self.folder / "asked").read_text().strip().split("=", 1)[1]
        self.assertRegex(NAME + "/iterations:1", asked)
        self.assertNotRegex(NAME.replace("fp16", "fp32") + "/", asked)

    def test_a_commit_that_is_not_there_is_a_sentence(self):
        done = subprocess.run([sys.executable, ROOT / "bench/paired.py", "--old", "no-such"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "no-such is no commit of this clone\n")


if __name__ == "__main__":
    unittest.main()
