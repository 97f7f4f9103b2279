#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/plot.py. Ends with 77, skipped, where there is no matplotlib."""

import contextlib
import importlib.util
import io
import itertools
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

if importlib.util.find_spec("matplotlib") is None:
    print(f"skipped: {sys.executable} has no matplotlib (Debian's python3-matplotlib)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import plot
import report


def run(name, best, **more):
    """A result as Google Benchmark writes it; the copy takes one."""
    return {"name": name, "best_ns": best, "copy_ns": 1.0, "bytes": 6.0, "copied_bytes": 4.0, "bits": 16.0, **more}


def name(operation, preset, element="float", executor="cpu-avx2", n=1024, threads=1):
    return f"{operation}/{preset}/{element}/{executor}/n:{n}/threads:{threads}"


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(plot.pyplot.close, "all")
        self.folder = pathlib.Path(folder.name)

    def file(self, runs, compiler="g++"):
        path = self.folder / f"{compiler}.json"
        path.write_text(json.dumps({"context": {"compiler": compiler}, "benchmarks": runs}), encoding="utf-8")
        return str(path)

    def draw(self, *files):
        """The exit status, and what is written in the SVG if there is one."""
        target = self.folder / "plot.svg"
        arguments = ["plot.py", *files, "--out", str(target), "--out", str(target.with_suffix(".png"))]
        with mock.patch("sys.argv", arguments), contextlib.redirect_stderr(io.StringIO()):
            status = plot.main()
        if not target.exists():
            return status, []
        self.assertTrue(target.with_suffix(".png").read_bytes().startswith(b"\x89PNG"))
        return status, [text.text for text in ElementTree.parse(target).iter("{http://www.w3.org/2000/svg}text")]

    def test_medians_lead_and_best_times_stand_in_for_them(self):
        status, texts = self.draw(self.file([run(name("local", "fp16"), 2.0, median=2.25), run(name("decode", "fp16"), 1.5)]))
        self.assertEqual(status, 0)
        self.assertIn("2.25", texts)
        self.assertNotIn("2.00", texts)
        self.assertIn("1.50", texts)
        for text in ("Compress", "Decompress", "copies of the gradient", "fp16", "median", "one copy"):
            self.assertIn(text, texts)
        self.assertNotIn("Add two payloads", texts)

    def test_shown_are_the_presets_of_the_readme_on_one_thread_at_the_size_and_by_the_compiler_with_most_results(self):
        some = [run(name("local", preset), 2.0, median=1.11) for preset in ("topkc_b2_ef", "fp16")]
        others = [run(name("local", "fp32"), 1.0, median=9.01), run(name("local", "fp16", threads=2), 1.0, median=9.02),
                  run(name("local", "fp16", element="half"), 1.0, median=9.03),
                  run(name("local", "fp16", n=2048), 1.0, median=9.04),
                  run(name("local", "fp16", executor="cpu-baseline"), 1.0, median=9.05),
                  run(name("norms", "fp16"), 1.0, median=9.06)]
        status, texts = self.draw(self.file(some + others), self.file([run(name("local", "fp16"), 1.0)], "clang++"))
        self.assertEqual(status, 0)
        self.assertEqual(texts.count("1.11"), 2)
        self.assertEqual([text for text in texts if text.startswith("9")], [])
        self.assertIn("Shorter is faster. 1,024 floats, 1 thread, cpu-avx2, g++", texts)
        self.assertEqual([text for text in texts if text in plot.SHOWN], ["fp16", "topkc_b2_ef"])

    def test_nothing_to_draw_is_an_error(self):
        self.assertEqual(self.draw(self.file([run(name("select", "topkc_b2"), 1.0)])), (1, []))

    def test_no_text_of_the_committed_results_covers_another_or_is_cut(self):
        folders = {file.parent for file in (ROOT / "bench/results").glob("*/*++.json")}  # others have results of networks alone
        self.assertTrue(folders)
        for folder in folders:
            with self.subTest(folder=folder.name), plot.matplotlib.rc_context(plot.STYLE):
                figure = plot.draw(report.read(sorted(folder.glob("*++.json")), "")[0])
                figure.canvas.draw()
                # Panels share the names of presets, which only the first one shows.
                hidden = {t for axes in figure.axes[1:] for t in axes.get_yticklabels()}
                boxes = [(t.get_text(), t.get_window_extent()) for t in figure.findobj(plot.matplotlib.text.Text)
                         if t.get_text() and t.get_visible() and t not in hidden]
                self.assertGreater(len(boxes), 30)
                for text, box in boxes:
                    self.assertTrue(0 <= box.x0 and box.x1 <= figure.bbox.x1 and 0 <= box.y0 and box.y1 <= figure.bbox.y1,
                                    f"{text} is cut")
                for (one, a), (other, b) in itertools.combinations(boxes, 2):
                    self.assertFalse(a.overlaps(b), f"{one} covers {other}")


if __name__ == "__main__":
    unittest.main()
