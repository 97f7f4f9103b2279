#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Layers hold: no header includes upward, and none includes itself by way of others. Headers that users read are pages.

Which file is in which layer stands in the table of docs/developer/layers.md, from the lowest layer to the highest. The
longest pattern that matches a file decides.
"""

import fnmatch
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "tersum"
PAGE = ROOT / "docs" / "developer" / "layers.md"
# instruction_sets.inl includes what TERSUM_SIMD_SOURCE names.
INCLUDE = re.compile(r"^\s*#\s*(?:include|define TERSUM_SIMD_SOURCE)\s*<tersum/([^>]+)>", re.MULTILINE)
MOST_LINES = 250


def is_page(path):
    """Whether a file of the library is a header for users to read."""
    return path.endswith((".hpp", ".cuh")) and not re.search(r"(^|/)(detail|baseline)/", path)


def includes_of(folder):
    """Each file of a folder, with the files of the library that it includes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): INCLUDE.findall(path.read_text()) for path in files}


def layers_of(page):
    """The layers in a page's table, lowest first: (name, patterns)."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*?) \|$", page, re.MULTILINE)
    return [(name, re.findall(r"`([^`]+)`", patterns)) for name, patterns in rows]


def layer_of(path, layers):
    """The number of a file's layer, or None."""
    found = [
        (len(pattern), number)
        for number, (_, patterns) in enumerate(layers)
        for pattern in patterns
        if fnmatch.fnmatchcase(path, pattern)
    ]
    return max(found)[1] if found else None


def upward(includes, layers):
    """What lies in a higher layer than the file that includes it."""
    return {
        (path, other)
        for path, others in includes.items()
        for other in others
        if (layer_of(other, layers) or 0) > (layer_of(path, layers) or 0)
    }


def cycle(includes):
    """A chain of files, each of which includes the next, and the last the first; empty if there is none."""
    done = set()

    def search(path, chain):
        if path in chain:
            return chain[chain.index(path) :]
        if path not in done:
            for other in includes.get(path, []):
                if found := search(other, chain + [path]):
                    return found
            done.add(path)
        return []

    for path in includes:
        if found := search(path, []):
            return found
    return []


class Rules(unittest.TestCase):
    """The rules find what they are for."""

    layers = [("low", ["low/*", "high/but_low.hpp"]), ("high", ["high/*"])]

    def test_the_longest_pattern_decides(self):
        self.assertEqual(layer_of("high/any.hpp", self.layers), 1)
        self.assertEqual(layer_of("high/but_low.hpp", self.layers), 0)
        self.assertIsNone(layer_of("any.hpp", self.layers))

    def test_an_upward_include_is_found(self):
        includes = {"low/a.hpp": ["high/b.hpp", "high/but_low.hpp"], "high/b.hpp": ["low/a.hpp"]}
        self.assertEqual(upward(includes, self.layers), {("low/a.hpp", "high/b.hpp")})

    def test_a_cycle_is_found(self):
        includes = {"a": ["b", "c"], "b": [], "c": ["d"], "d": ["b", "c"]}
        self.assertEqual(cycle(includes), ["c", "d"])
        includes["d"] = ["b"]
        self.assertEqual(cycle(includes), [])

    def test_pages_are_headers_outside_of_detail(self):
        paths = ("codec.hpp", "execute/cuda_executor.cuh", "detail/bits.hpp", "range/detail/sum.hpp", "baseline/blocks.hpp", "codec.ipp")
        self.assertEqual([is_page(path) for path in paths], [True, True, False, False, False, False])

    def test_a_table_is_read(self):
        page = "| layer | what | files |\n|---|---|---|\n| `low` | `x` | `a/*` `b.hpp` |\n"
        self.assertEqual(layers_of(page), [("low", ["a/*", "b.hpp"])])


class Library(unittest.TestCase):
    """The library keeps them."""

    def setUp(self):
        self.includes = includes_of(HEADERS)
        self.layers = layers_of(PAGE.read_text())

    def test_headers_for_users_are_pages(self):
        lengths = {path: len((HEADERS / path).read_text().splitlines()) for path in self.includes if is_page(path)}
        self.assertGreater(len(lengths), 50)
        self.assertEqual({path: lines for path, lines in lengths.items() if lines > MOST_LINES}, {}, f"more than {MOST_LINES} lines")

    def test_every_file_has_a_layer(self):
        none = [path for path in self.includes if layer_of(path, self.layers) is None]
        self.assertEqual(none, [], f"name them in the table of {PAGE.relative_to(ROOT)}")

    def test_every_pattern_has_files(self):
        for name, patterns in self.layers:
            for pattern in patterns:
                self.assertTrue(fnmatch.filter(self.includes, pattern), f"{pattern} in layer {name} is no file")

    def test_every_include_exists(self):
        gone = [(path, other) for path, others in self.includes.items() for other in others if other not in self.includes]
        self.assertEqual(gone, [])

    def test_no_file_includes_upward(self):
        found = upward(self.includes, self.layers)
        self.assertEqual(sorted(found), [], "these point from a layer to a higher one")

    def test_no_file_includes_itself_by_way_of_others(self):
        self.assertEqual(cycle(self.includes), [])


if __name__ == "__main__":
    unittest.main()
