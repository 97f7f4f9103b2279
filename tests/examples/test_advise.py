#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""The built program advise from outside: what it reads, answers and writes.

    test_advise.py BINARY ROOT
"""

import fnmatch
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BINARY, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SAMPLE = ROOT / "examples/gradients/lm"
FEW = ("--codecs", "rotated_sat4,two_shot_4,topkc_b2")


def advise(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, check=False)


class Advise(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def answered(self, *arguments):
        """Standard output, and what was written as JSON."""
        file = self.folder / "advice.json"
        done = advise(*arguments, "--json", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(file.read_text())

    @staticmethod
    def layers():
        return [line.rsplit(",", 3) for line in (SAMPLE / "layers.csv").read_text().split()[1:]]

    def coordinates(self, file):
        return self.answered(file, "--codecs", "fp16")[1]["coordinates"]

    def test_fp16_takes_the_time_of_a_ring(self):
        _, advice = self.answered(SAMPLE, *FEW, "--ranks", 8, "--bandwidth", 2, "--latency", 30)
        self.assertEqual(advice["coordinates"], 391008)
        fp16 = next(c for c in advice["codecs"] if c["codec"] == "fp16")
        # Vectors are summed in float32, in a round of their own: 14 messages for each of two rounds.
        vectors = sum(int(rows) * int(columns) for _, rows, columns, _ in self.layers() if "1" in (rows, columns))
        bytes_given = 2 * 391008 + 2 * vectors
        self.assertEqual(fp16["bytes"], bytes_given)
        self.assertAlmostEqual(fp16["network"], 28 * 30e-6 + 2 * 7 / 8 * bytes_given / 0.25e9, delta=1e-7)
        steps = [c["overlapped_step"] for c in advice["codecs"]]
        self.assertEqual(steps, sorted(steps))

    def test_a_slow_network_is_to_be_compressed_for(self):
        out, advice = self.answered(SAMPLE, *FEW, "--bandwidth", 0.1, "--backward", 1)
        self.assertIn("\nUse ", out)
        self.assertNotEqual(advice["codecs"][0]["codec"], "fp16")
        self.assertIn("fp16 is the better choice above", out)

    def test_where_the_network_is_hidden_the_answer_is_not_to_compress(self):
        out, _ = self.answered(SAMPLE, *FEW, "--bandwidth", 400, "--latency", 1, "--backward", 500)
        self.assertIn("Do not compress", out)

    def test_a_codec_that_errs_too_much_is_not_chosen(self):
        out, advice = self.answered(SAMPLE, *FEW, "--gradients", SAMPLE, "--bandwidth", 0.1, "--max-error", 1e-6)
        self.assertIn("Do not compress", out)
        errors = {c["codec"]: c["error"] for c in advice["codecs"]}
        self.assertLess(errors["fp16"], 1e-6)
        self.assertTrue(1e-3 < errors["two_shot_4"] < errors["topkc_b2"] < 1)

    def test_the_configuration_gives_each_tensor_a_codec(self):
        file = self.folder / "config.json"
        done = advise(SAMPLE, *FEW, "--gradients", SAMPLE, "--bandwidth", 0.1, "--config", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        config = json.loads(file.read_text())
        self.assertEqual(config["version"], 1)
        self.assertIn(config["default"], FEW[1].split(","))
        for name, rows, columns, _ in self.layers():
            codecs = [r["codec"] for r in config["rules"] if fnmatch.fnmatchcase(name, r["pattern"])]
            if "1" in (rows, columns):
                self.assertEqual(codecs, ["none"], name)
            else:
                self.assertLessEqual(len(codecs), 1, name)

    def test_names_are_patterns_that_match_nothing_else(self):
        file, config = self.folder / "layers.csv", self.folder / "config.json"
        file.write_text("name,rows,columns,offset\na[0].*,1,9,0\nm,1024,512,9\n")
        self.assertEqual(advise(file, *FEW, "--bandwidth", 0.01, "--config", config).returncode, 0)
        pattern = json.loads(config.read_text())["rules"][0]["pattern"]
        self.assertTrue(fnmatch.fnmatchcase("a[0].*", pattern))
        self.assertFalse(fnmatch.fnmatchcase("a0.b", pattern))

    def test_headers_of_safetensors_are_read(self):
        header = {"__metadata__": {"format": "pt", "deep": "{\"x\": [1]}"},
                  "w": {"dtype": "F32", "shape": [12, 3, 5], "data_offsets": [0, 720]},
                  "scalar": {"dtype": "F32", "shape": [], "data_offsets": [720, 724]},
                  "empty": {"dtype": "F32", "shape": [0, 4], "data_offsets": [724, 724]}}
        text = json.dumps(header).encode()
        file = self.folder / "model.safetensors"
        file.write_bytes(struct.pack("<Q", len(text)) + text)
        self.assertEqual(self.coordinates(file), 12 * 15 + 1)
        for wrong in (struct.pack("<Q", 10**9) + text, struct.pack("<Q", len(text) - 1) + text, b"12"):
            file.write_bytes(wrong)
            done = advise(file)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("model.safetensors", done.stderr)

    def test_headers_of_npz_are_read(self):
        def npy(shape, count):
            head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(4 * count)

        file = self.folder / "model.npz"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("w.npy", npy("(12, 3, 5)", 180))
            archive.writestr("b.npy", npy("(7,)", 7))
        self.assertEqual(self.coordinates(file), 187)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("w.npy", npy("(12, 3, 5)", 180))
        self.assertIn("numpy.savez", advise(file).stderr)

    def test_rates_of_benchmarks_replace_those_of_this_machine(self):
        results = [{"name": f"{what}/rotated_sat4/float/cuda/n:1000000/iterations:1", "best_ns": ns}
                   for what, ns in (("norms", 1e3), ("encode", 2e3), ("decode", 4e3), ("reduce", 8e3))]
        file = self.folder / "bench.json"
        file.write_text(json.dumps({"context": {}, "benchmarks": results}, indent=1))
        _, advice = self.answered(SAMPLE, "--codecs", "rotated_sat4", "--rates", file)
        coding = next(c["coding"] for c in advice["codecs"] if c["codec"] == "rotated_sat4")
        self.assertAlmostEqual(coding, 391008e-6 * (3e-6 + 4e-6 + 0.75 * 8e-6), delta=1e-10)

    def test_mistakes_are_said(self):
        for arguments in ((), (SAMPLE, "--ranks", 1), (SAMPLE, "--nonsense"), (SAMPLE, "--codecs", "none_such"),
                          (SAMPLE, "--bandwidth", "-1"), (SAMPLE, SAMPLE)):
            done = advise(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        done = advise(self.folder / "missing.npz")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("missing.npz", done.stderr)
        self.assertEqual(advise("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
