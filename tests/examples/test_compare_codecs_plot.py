#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/compare_codecs/plot.py and table.py, on results of the built program and on odd ones, and of the page with the tables.

    tests/examples/test_compare_codecs_plot.py BINARY GRADIENT_DIR

Ends with 77, skipped, where there is no matplotlib.
"""

import contextlib
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
        left_out = [r["codec"] for r in results if r["codec"].startswith(("values_", "differences_", "hosts2_", "served_"))]
        self.assertLessEqual({"values_4", "hosts2_fp16", "served_4"}, set(left_out))
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
        for codec, bits in (("topk_b2", 4), ("topkc_b2", 2), ("entropy_2", 4), ("entropy_two_shot_2", 2), ("gathered_2", 4), ("sorted_entropy_2", 2)):
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
        results = [dict(result(codec, 4.0, error), **timed)
                   for codec, error in (("two_shot_4", 0.01234), ("sharded_4", 1.5e-7), ("gathered_4", 0.5))]
        results.append(dict(results[0], ranks=2, nmse=None))
        ((name, coordinates, lines),) = table.tables(results)
        self.assertEqual((name, coordinates), ("a", 1000))
        self.assertEqual(lines[0], "| codec | bits, 2 | bits, 4 | error, 2 | error, 4 | time |")
        self.assertEqual(lines[2:], ["| `two_shot_4` | 4.00 | 6.00 |  | .012 | 3.0 |", "| `sharded_4` |  | 3.00 |  | 1.5e-7 | 3.0 |",
                                     "| `gathered_4` |  | 12.00 |  | .5 | 3.0 |"])

    def test_time_is_that_of_all_a_rank_computes(self):
        timed = {"encode_ns": 300, "reduce_ns": 220, "decode_ns": 110, "memcpy_ns": 100}
        ((_, _, lines),) = table.tables([dict(result("two_shot_4", 4.0, 0.01), **timed)])
        self.assertEqual(lines[2:], ["| `two_shot_4` | 6.00 | .01 | 6.3 |"])

    def test_where_floats_travel_is_marked(self):
        timed = {"encode_ns": 100, "reduce_ns": 0, "decode_ns": 100, "memcpy_ns": 100}
        results = [dict(result(codec, bits, 0.0), **timed) for codec, bits in (("fp32", 32.0), ("sorted_1", 32.34), ("topk_b8", 8.0))]
        ((_, _, lines),) = table.tables(results)
        self.assertEqual(lines[2:], ["| `fp32` | 48.00 | 0 | 2.0 |", "| `sorted_1` | 48.51* | 0 | 2.0 |", "| `topk_b8` | 24.00 | 0 | 2.0 |"])

    def test_two_levels_send_between_hosts_and_within_and_workers_push_and_pull(self):
        # Of hosts of 2 among 8 ranks there are 4: two shots send 3/4 of the payload twice between them, a gather all of it to three
        # others; within, half of what both collectives are given leaves a rank.
        timed = {"encode_ns": 300, "reduce_ns": 200, "decode_ns": 100, "memcpy_ns": 100}
        results = [dict(result(codec, 2.0, 0.5), ranks=ranks, bits_within=32.0, bits_pulled=None, **timed)
                   for ranks in (4, 8) for codec in ("hosts2_two_shot_4", "hosts2_gathered_4")]
        results.append(dict(result("served_4_8", 4.0, 0.25), bits_within=None, bits_pulled=8.0, **timed))
        levels, by_server = table.tables(results)
        self.assertEqual(levels[:2], ("a on two levels", 1000))
        self.assertEqual(levels[2][0], "| codec | within | between, 4 | between, 8 | error, 4 | error, 8 | time |")
        self.assertEqual(levels[2][2:], ["| `hosts2_two_shot_4` | 16.00 | 2.00 | 3.00 | .5 | .5 | 6.0 |",
                                         "| `hosts2_gathered_4` | 16.00 | 2.00 | 6.00 | .5 | .5 | 6.0 |"])
        self.assertEqual(by_server[:2], ("a by a parameter server", 1000))
        self.assertEqual(by_server[2][::2], ["| codec | pushed | pulled | error, 4 | time | time of the server |",
                                             "| `served_4_8` | 4.00 | 8.00 | .25 | 4.0 | 2.0 |"])


class Page(unittest.TestCase):
    """docs/all_codecs.md has all that the program knows, and says what its tables say."""

    def setUp(self):
        page = (ROOT / "docs/all_codecs.md").read_text(encoding="utf-8")
        # Of each heading: the cells of each codec by the words above them.
        self.tables = {title: self.cells(rows.splitlines())
                       for title, rows in re.findall(r"^## (.*), \d+ coordinates\n\n((?:\|.*\n)+)", page, re.M)}

    @staticmethod
    def cells(lines):
        headings, _, *rows = ([cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines)
        return {row[0]: dict(zip(headings, row)) for row in rows}

    def test_every_codec_has_its_row(self):
        listed = [line.split()[0] for line in subprocess.run([BINARY, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
        for name in ("step20", "step300", "step100", "step200"):
            with self.subTest(name):
                rows = [codec for form in ("", " on two levels", " by a parameter server") for codec in self.tables[name + form]]
                self.assertEqual(len(rows), len(set(rows)))
                self.assertLessEqual(set(listed), set(rows))
                if "mxfp4" in listed:  # the program knows older codecs
                    self.assertEqual(set(listed), set(rows))

    def test_bits_are_those_of_the_program(self):
        codecs = "fp16,rotated_sat4,two_shot_4,sharded_4,values_8,gathered_2,hosts2_fp16,hosts2_two_shot_2,served_4_8,served_half"
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "results.json"
            subprocess.run([BINARY, "--gradients", GRADIENTS, "--codecs", codecs, "--steps", "1", "--repeat", "1", "--json", written],
                           capture_output=True, check=True)
            results = json.loads(written.read_text(encoding="utf-8"))["results"]
        compared = 0
        for title, _, lines in table.tables(results):
            for codec, cells in self.cells(lines).items():
                for heading, cell in cells.items():
                    if re.match("bits|within|between|pushed|pulled", heading):
                        self.assertEqual(cell, self.tables[title][codec][heading], (title, codec, heading))
                        compared += 1
        self.assertEqual(compared, 2 * (6 + 2 * 2 + 2 * 2))

    def test_what_the_page_says_of_other_forms(self):
        def of(title, codec, heading):
            return float(self.tables[title][codec][heading])

        for name in ("step20", "step300", "step100", "step200"):
            levels, served = f"{name} on two levels", f"{name} by a parameter server"
            with self.subTest(name):
                for codec in ("two_shot_4", "allocated_4"):
                    self.assertAlmostEqual(3 * of(levels, "hosts2_" + codec, "between, 4") / of(name, codec, "bits, 4"), 1, delta=0.01)
                lost = of(levels, "hosts2_allocated_4", "error, 4") / of(name, "allocated_4", "error, 4")
                self.assertTrue(0.95 < lost < 1.65, lost)
                for host, worlds in ((2, (4, 8, 16)), (4, (8, 16))):
                    halves, in_8 = (f"hosts{host}_two_shot_4{within}" for within in ("", "_in_8"))
                    self.assertAlmostEqual(2 * of(levels, in_8, "within") / of(levels, halves, "within"), 1, delta=0.01)
                    self.assertAlmostEqual(of(levels, in_8, "time") / of(levels, halves, "time"), 2, delta=0.25)
                    for ranks in worlds:
                        self.assertAlmostEqual(of(levels, in_8, f"error, {ranks}"), of(levels, halves, f"error, {ranks}"), delta=0.001001)
                for ranks in (2, 4, 8, 16):
                    for by_server, codec in (("served_4", "two_shot_4"), ("served_4_8", "sharded_4")):
                        self.assertAlmostEqual(of(served, by_server, f"error, {ranks}") / of(name, codec, f"error, {ranks}"), 1, delta=0.1)
                for codec in self.tables[served]:
                    self.assertTrue(1.7 <= of(served, codec, "time of the server") / of(served, codec, "time") <= 2.85, codec)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
