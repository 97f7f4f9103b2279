#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/compare_codecs/plot.py and table.py, on results of the built program and on odd ones, and of the data in docs.

    tests/examples/test_compare_codecs_plot.py BINARY GRADIENT_DIR

Ends with 77, skipped, where there is no matplotlib.
"""

import contextlib
import csv
import importlib.util
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

if importlib.util.find_spec("matplotlib") is None:
    print(f"skipped: {sys.executable} has no matplotlib (Debian's python3-matplotlib)")
    sys.exit(77)
if len(sys.argv) != 3:
    sys.exit("usage: test_compare_codecs_plot.py BINARY GRADIENT_DIR")
BINARY, GRADIENTS = sys.argv[1:]

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/compare_codecs"))
import plot
import table

SPACE = "{http://www.w3.org/2000/svg}"


def result(codec, bits, error, of="a"):
    return {"set": of, "codec": codec, "ranks": 4, "coordinates": 1000, "bits_per_coordinate": bits, "nmse": error,
            "nmse_of_mean": None}


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(plot.pyplot.close, "all")
        self.folder = pathlib.Path(folder.name)

    def draw(self, results):
        """The exit status, and the SVG's text if there is one."""
        source, target = self.folder / "results.json", self.folder / "picture.svg"
        source.write_text(json.dumps({"version": "1", "device": "cpu", "results": results}), encoding="utf-8")
        arguments = ["plot.py", str(source), str(target), str(target.with_suffix(".png"))]
        with mock.patch("sys.argv", arguments), contextlib.redirect_stderr(io.StringIO()):
            status = plot.main()
        return status, target.read_text(encoding="utf-8") if target.exists() else None

    def labels(self, tree):
        """The names of codecs that stand in the picture."""
        return [text.text for group in tree.iter(SPACE + "g") if group.get("id", "").startswith("label-")
                for text in group.iter(SPACE + "text")]

    def codecs(self, tree):
        """The groups of codecs, by what their tooltips begin with."""
        return [(group.find(SPACE + "title").text.split(":")[0], group) for group in tree.iter(SPACE + "g")
                if group.get("id", "").startswith("codec-")]

    def test_every_codec_has_a_tooltip_and_a_dozen_at_most_a_label(self):
        source = self.folder / "all.json"
        subprocess.run([BINARY, "--gradients", GRADIENTS, "--steps", "1", "--repeat", "1", "--json", str(source)],
                       check=True, stdout=subprocess.DEVNULL)
        results = json.loads(source.read_text(encoding="utf-8"))["results"]
        self.assertGreater(len(results), 24)
        status, svg = self.draw(results)
        self.assertEqual(status, 0)
        tree = ElementTree.fromstring(svg)
        # Values are a mean that is there already; other forms have bits of two kinds.
        left_out = [r["codec"] for r in results if r["codec"].startswith(("values_", "differences_", "served_"))]
        self.assertLessEqual({"values_4", "served_4"}, set(left_out))
        self.assertCountEqual([codec for codec, _ in self.codecs(tree)] + left_out, [r["codec"] for r in results])
        labels = self.labels(tree)
        self.assertGreaterEqual(len(labels), 4)
        self.assertLessEqual(len(labels), 12)
        self.assertEqual(labels.count("fp16, the reference"), len({r["set"] for r in results}))
        self.assertLessEqual({text.split(",")[0] for text in labels}, {r["codec"] for r in results})
        # The families know all codecs that there are.
        self.assertEqual([r["codec"] for r in results if plot.family(r["codec"]) == list(plot.OTHER) and r["codec"] not in left_out], [])
        self.assertTrue((self.folder / "picture.png").read_bytes().startswith(b"\x89PNG"))

    def test_no_text_covers_another(self):
        # A frontier of more codecs than there is room for, close together in both directions.
        results = [result("fp16", 16, 1e-7)] + [result(f"thc_sat_{i}", 2 + i / 20, 1e-3 * .97 ** i) for i in range(60)]
        with plot.matplotlib.rc_context(plot.STYLE):
            figure, _ = plot.draw(results)
            figure.canvas.draw()
            renderer = figure.canvas.get_renderer()
            texts = [t for t in figure.findobj(plot.matplotlib.text.Text) if t.get_text() and t.get_visible()]
            boxes = {(t.get_text(), i): t.get_window_extent(renderer) for i, t in enumerate(texts)}
        self.assertGreater(sum("thc_sat_" in text for text, _ in boxes), 1)
        picture = figure.bbox
        for text, box in boxes.items():
            self.assertTrue(picture.x0 <= box.x0 and box.x1 <= picture.x1 and picture.y0 <= box.y0 <= box.y1 <= picture.y1,
                            f"{text} is cut")
        for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
            self.assertFalse(a.overlaps(b), f"{one} covers {other}")

    def test_the_line_joins_what_no_other_beats(self):
        results = [result("worse", 4, .1), result("best_at_4", 4, .01), result("hardly_fewer_bits", 3.99, .02),
                   result("best_at_2", 2, .5), result("more_bits_for_nothing", 8, .01), result("fp16", 16, 1e-7)]
        self.assertEqual([r["codec"] for r in plot.frontier(results)], ["best_at_2", "best_at_4", "fp16"])

    def test_what_is_gathered_counts_as_often_as_it_is_sent(self):
        # Among 4 ranks a gather sends a payload three times, an all-reduce one and a half times.
        for codec, bits in (("topk_b2", 4), ("topkc_b2", 2), ("gathered_2", 4)):
            with self.subTest(codec=codec):
                self.assertEqual(plot.of_all_reduce(result(codec, 2, .1))["bits_per_coordinate"], bits)
        self.assertEqual(plot.of_all_reduce(result("topk_b2", None, .1))["bits_per_coordinate"], None)

    def test_what_has_no_place_is_left_out_and_what_is_below_stands_on_the_edge(self):
        results = [result("fp16", 16, 1e-7), result("fp32", 32, 0), result("lost", 4, None), result("none", 0, .5),
                   result("rotated_sat4_ef", 4.03, .05)]
        status, svg = self.draw(results)
        self.assertEqual(status, 0)
        heights = {codec: float(group.find(f".//{SPACE}use").get("y"))
                   for codec, group in self.codecs(ElementTree.fromstring(svg))}
        self.assertEqual(sorted(heights, key=heights.get), ["rotated_sat4_ef", "fp16", "fp32"])
        self.assertNotIn("nan", svg)
        self.assertNotIn("inf", svg)

    def test_names_of_sets_are_text(self):
        name = "<&>$x_1$\x01"
        status, svg = self.draw([result("fp16", 16, 1e-7, name), result("thc_sat4", 4, .1, name)])
        self.assertEqual(status, 0)
        texts = [t.text for t in ElementTree.fromstring(svg).iter(SPACE + "text")]
        self.assertIn("<&>$x_1$?: 4 ranks, 1000 coordinates", texts)

    def test_any_number_of_sets_shares_the_dozen(self):
        for count in (1, 3, 13):
            with self.subTest(count=count):
                results = [result(codec, bits, error, f"set{i}") for i in range(count)
                           for codec, bits, error in (("fp16", 16, 1e-7), ("thc_sat4", 4, .1), ("thc_sat2", 2, .5))]
                tree = ElementTree.fromstring(self.draw(results)[1])
                self.assertEqual(len(self.codecs(tree)), 3 * count)
                self.assertLessEqual(len(self.labels(tree)), 12)

    def test_no_file_is_written_twice_and_none_over_the_results(self):
        source = self.folder / "results.svg"
        source.write_text(json.dumps({"results": [result("fp16", 16, 1e-7)]}), encoding="utf-8")
        before = source.read_text(encoding="utf-8")
        one, other = str(self.folder / "one.svg"), str(self.folder / "." / "one.svg")
        for pictures, words in (([one, other], "same file"), ([one, str(source)], "would be overwritten")):
            errors = io.StringIO()
            with (mock.patch("sys.argv", ["plot.py", str(source), *pictures]), contextlib.redirect_stderr(errors),
                  self.assertRaises(SystemExit) as ended):
                plot.main()
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(words, errors.getvalue())
            self.assertFalse(pathlib.Path(one).exists())
            self.assertEqual(source.read_text(encoding="utf-8"), before)

    def test_equal_results_are_equal_pictures(self):
        results = [result("fp16", 16, 1e-7), result("thc_sat4", 4, .1)]
        self.assertEqual(self.draw(results), self.draw(results))

    def test_a_set_without_fp16_is_drawn_and_no_results_are_an_error(self):
        self.assertEqual(self.draw([])[0], 1)
        status, svg = self.draw([result("fp32", 32, 1e-15)])
        self.assertEqual(status, 0)
        self.assertEqual(len(self.codecs(ElementTree.fromstring(svg))), 1)


class Table(unittest.TestCase):
    def test_bits_are_those_that_leave_a_rank(self):
        # Among 4 ranks an all-reduce sends 3/4 of the payload twice, a reduce-scatter once, a gather all of it to three others.
        timed = {"encode_ns": 300, "reduce_ns": None, "decode_ns": None, "memcpy_ns": 100}
        rows = [table.row(dict(result(codec, 4.0, error), **timed))
                for codec, error in (("two_shot_4", 0.01234), ("sharded_4", 1.5e-7), ("gathered_4", None))]
        self.assertEqual(rows, [["a", "two_shot_4", 4, "6.00", "", ".012", "3.0", ""], ["a", "sharded_4", 4, "3.00", "", "1.5e-7", "3.0", ""],
                                ["a", "gathered_4", 4, "12.00", "", "", "3.0", ""]])

    def test_time_is_that_of_all_a_rank_computes(self):
        timed = {"encode_ns": 300, "reduce_ns": 220, "decode_ns": 110, "memcpy_ns": 100}
        self.assertEqual(table.row(dict(result("two_shot_4", 4.0, 0.01), **timed))[-2:], ["6.3", ""])

    def test_workers_push_and_pull(self):
        timed = {"encode_ns": 300, "reduce_ns": 200, "decode_ns": 100, "memcpy_ns": 100}
        self.assertEqual(table.row(dict(result("served_4_8", 4.0, 0.25), bits_pulled=8.0, **timed)),
                         ["a", "served_4_8", 4, "4.00", "8.00", ".25", "4.0", "2.0"])


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
