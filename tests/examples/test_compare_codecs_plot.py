#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/compare_codecs/plot.py and table.py, on results of the built program and on odd ones, and of the data in docs.

    tests/examples/test_compare_codecs_plot.py BINARY GRADIENT_DIR

Ends with 77, skipped, where there is no matplotlib.
"""

import csv
import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

if importlib.util.find_spec("matplotlib") is None:
    print(f"skipped: {sys.executable} has no matplotlib (Debian's python3-matplotlib)")
    sys.exit(77)
BINARY, GRADIENTS = sys.argv[1:]

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/compare_codecs"))
import plot
import table

SPACE = "{http://www.w3.org/2000/svg}"


def result(codec, bits, error):
    return {"set": "a", "codec": codec, "ranks": 4, "bits_per_coordinate": bits, "nmse": error}


def line(codec, bits, error, ranks=4):
    return {"set": "a", "codec": codec, "ranks": str(ranks), "bits": str(bits), "error": error}


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(plot.pyplot.close, "all")
        self.folder = pathlib.Path(folder.name)

    def draw(self, *arguments):
        target = self.folder / "picture.svg"
        with mock.patch("sys.argv", ["plot.py", str(arguments[0]), str(target), *arguments[1:]]):
            plot.main()
        return target.read_text(encoding="utf-8")

    def told(self, svg):
        """What a pointer on each codec is told."""
        return [group.find(SPACE + "title").text for group in ElementTree.fromstring(svg).iter(SPACE + "g")
                if group.get("id", "").startswith("codec-")]

    def test_the_picture_of_the_page_is_that_of_the_data(self):
        picture = (ROOT / "docs/errors.svg").read_text(encoding="utf-8")
        drawn = self.draw(ROOT / "docs/all_codecs.csv", "step20", "step300")
        self.assertEqual(self.told(picture), self.told(drawn))
        self.assertEqual(len(plot.PRESETS), 9)
        names = {told.split(":")[0] for told in self.told(picture)}
        self.assertTrue(set(plot.PRESETS) <= names <= set(plot.PRESETS + plot.BASELINES))
        for svg in (picture, drawn):
            texts = [text.text for text in ElementTree.fromstring(svg).iter(SPACE + "text")]
            self.assertEqual([texts.count(codec) for codec in plot.PRESETS], [2] * 9)
            self.assertFalse(set(texts) & set(plot.BASELINES))

    def test_no_name_covers_another(self):
        lines = [line(codec, 24 if codec == "fp16" else 6, str(1e-3 * 1.5 ** k)) for k, codec in enumerate(plot.PRESETS)]
        with plot.matplotlib.rc_context(plot.STYLE):
            figure, _ = plot.draw(lines)
            figure.canvas.draw()
            texts = [t for t in figure.findobj(plot.matplotlib.text.Text) if t.get_text() and t.get_visible()]
            boxes = {t.get_text(): t.get_window_extent(figure.canvas.get_renderer()) for t in texts}
        self.assertLessEqual(set(plot.PRESETS), set(boxes))
        for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
            self.assertFalse(a.overlaps(b), f"{one} covers {other}")

    def test_bits_are_those_of_an_all_reduce_with_as_much_traffic(self):
        # Of 2 bits an all-reduce of 4 ranks sends 3, a reduce-scatter 1.5 and a gather 6, with which an all-reduce could send 4.
        lines = [line("two_shot_4", 3, ".1"), line("sharded_4", 1.5, ".1"), line("gathered_2", 6, ".1")]
        self.assertEqual([bits for _, bits, _ in plot.points(lines, plot.PRESETS)], [2, 2, 4])

    def test_what_has_no_place_is_left_out(self):
        lines = [line("fp16", 24, "1e-7"), line("metric_2", 3, ""), line("fp32", 48, "0"), line("metric_3", 0, ".1"),
                 line("two_shot_4", 4, ".1", ranks=2)]
        self.assertEqual([codec for codec, *_ in plot.points(lines, plot.PRESETS)], ["fp16"])

    def test_names_of_sets_are_text(self):
        table_file = self.folder / "table.csv"
        table_file.write_text("set,codec,ranks,bits,error\n<&>$x_1$\x01,fp16,4,24,1e-7\n", encoding="utf-8")
        svg = self.draw(table_file)
        self.assertIn("<&>$x_1$?", [text.text for text in ElementTree.fromstring(svg).iter(SPACE + "text")])
        self.assertEqual(svg, self.draw(table_file))
        with self.assertRaises(SystemExit):
            self.draw(table_file, "another set")


class Table(unittest.TestCase):
    def test_bits_are_those_that_leave_a_rank(self):
        # Among 4 ranks an all-reduce sends 3/4 of the payload twice, a reduce-scatter once, a gather all of it to three others.
        timed = {"encode_ns": 300, "reduce_ns": None, "decode_ns": None, "memcpy_ns": 100}
        rows = [table.row(dict(result(codec, 4.0, error), **timed))
                for codec, error in (("two_shot_4", 0.01234), ("sharded_4", 1.5e-7), ("gathered_4", None))]
        self.assertEqual(rows, [["a", "two_shot_4", 4, "6.00", "", ".012", "3.0", ""], ["a", "sharded_4", 4, "3.00", "", "1.5e-7", "3.0", ""],
                                ["a", "gathered_4", 4, "12.00", "", "", "3.0", ""]])

    def test_time_is_that_of_all_a_rank_computes_and_workers_push_and_pull(self):
        timed = {"encode_ns": 300, "reduce_ns": 220, "decode_ns": 110, "memcpy_ns": 100}
        self.assertEqual(table.row(dict(result("two_shot_4", 4.0, 0.01), **timed))[-2:], ["6.3", ""])
        self.assertEqual(table.row(dict(result("served_4_8", 4.0, 0.25), bits_pulled=8.0, **timed)),
                         ["a", "served_4_8", 4, "4.00", "8.00", ".25", "4.1", "2.2"])


class Data(unittest.TestCase):
    """docs/all_codecs.csv has all that the program knows, and the bits that it sends."""

    def setUp(self):
        with (ROOT / "docs/all_codecs.csv").open(encoding="utf-8", newline="") as file:
            heading, *rows = csv.reader(file)
        self.assertEqual(heading, table.COLUMNS)
        self.rows = {tuple(row[:3]): row for row in rows}
        self.assertEqual(len(self.rows), len(rows))

    def test_every_codec_has_its_row(self):
        listed = {line.split()[0] for line in subprocess.run([BINARY, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()}
        for name in ("step20", "step300", "step100", "step200"):
            codecs = {codec for of_set, codec, _ in self.rows if of_set == name}
            self.assertLessEqual(listed, codecs)
            if "mxfp4" in listed:  # the program knows older codecs
                self.assertEqual(listed, codecs)

    def test_bits_are_those_of_the_program(self):
        codecs = ("fp16", "rotated_sat4", "two_shot_4", "sharded_4", "values_4", "gathered_2", "served_4_8", "served_half")
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "results.json"
            subprocess.run([BINARY, "--gradients", GRADIENTS, "--codecs", ",".join(codecs), "--steps", "1", "--repeat", "1", "--json", written],
                           capture_output=True, check=True)
            rows = [table.row(one) for one in json.loads(written.read_text(encoding="utf-8"))["results"]]
        self.assertEqual(len(rows), 2 * len(codecs))
        for row in rows:
            self.assertEqual(row[3:5], self.rows[row[0], row[1], str(row[2])][3:5], row)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
