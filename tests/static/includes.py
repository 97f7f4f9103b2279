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
HEADERS = ROOT / "include"
PAGE = ROOT / "docs" / "developer" / "layers.md"
# instruction_sets.inl includes what TERSUM_SIMD_SOURCE names.
INCLUDE = re.compile(r"^\s*#\s*(?:include|define TERSUM_SIMD_SOURCE)\s*<(tersum(?:_\w+)?/[^>]+)>", re.MULTILINE)
# What a file declares outside of everything but namespaces, where lines begin without a space.
DECLARED = re.compile(
    r"^(?=\S)(?:.*\b)?(?:struct|class|concept) (\w+)(?=[ ;:]|$)|^using (\w+) =|^inline constexpr [^={]*?\b(\w+)(?=\{| =)", re.MULTILINE
)
MOST_LINES = 250
# Pieces of kernels, by their names in examples and in the library.
PIECE = re.compile(r"\b((?:block|thread|make_chunk)_\w+)")


def is_page(path):
    """Whether a file of the library is a header for users to read."""
    return path.endswith((".hpp", ".cuh")) and not re.search(r"(^|/)detail/", path)


def short(path):
    """How layers.md calls a file: as in include/tersum/, but files of siblings by their folder."""
    return path.removeprefix("tersum/")


def file_of(path):
    """The file that layers.md calls so."""
    return HEADERS / path if path.startswith("tersum_") else HEADERS / "tersum" / path


def includes_of(folder):
    """Each file of a folder, with the files of the library that it includes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {short(path.relative_to(folder).as_posix()): [short(other) for other in INCLUDE.findall(path.read_text())] for path in files}


def declared(text):
    """The names that a header declares, but not those that it specializes."""
    return {name for names in DECLARED.findall(text) for name in names if name}


def names_of(folder):
    """What a folder's files and their declarations are called."""
    names = set()
    for path in folder.rglob("*"):
        if path.is_file():
            names |= {path.stem} | declared(path.read_text())
    return names


def code_of(path):
    """What a file says without comments and includes."""
    return re.sub(r"//.*|^\s*#.*", "", path.read_text(), flags=re.MULTILINE)


def pieces_of(texts, pieces):
    """The pieces that code names, and those that these are made of."""
    used, texts = set(), list(texts)
    while texts:
        new = set(PIECE.findall(texts.pop())) & set(pieces) - used
        used |= new
        texts += [pieces[name] for name in new]
    return used


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


def reached(includes, path):
    """The file, and all that it includes, directly or by way of others."""
    found, new = set(), [path]
    while new:
        if (other := new.pop()) not in found:
            found.add(other)
            new += includes.get(other, [])
    return found


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

    def test_what_is_included_by_way_of_others_is_found(self):
        includes = {"a": ["b"], "b": ["c", "a"], "d": ["a"]}
        self.assertEqual(reached(includes, "a"), {"a", "b", "c"})

    def test_pages_are_headers_outside_of_detail(self):
        paths = ("codec.hpp", "execute/cuda_executor.cuh", "detail/bits.hpp", "range/detail/sum.hpp", "tersum_own/blocks.hpp", "codec.ipp")
        self.assertEqual([is_page(path) for path in paths], [True, True, False, False, True, False])

    def test_declarations_are_found_and_specializations_are_not(self):
        text = """
template <class T>
requires(T::kept) struct one {
  struct inner {};
};
class two : one<int> {};
template <class T>
concept three = true;
template <class T>
struct four<T> {};
using five = one<int>;
inline constexpr one<int> six{};
template <class T>
inline constexpr bool seven = true;
"""
        self.assertEqual(declared(text), {"one", "two", "three", "five", "six", "seven"})

    def test_a_table_is_read(self):
        page = "| layer | what | files |\n|---|---|---|\n| `low` | `x` | `a/*` `b.hpp` |\n"
        self.assertEqual(layers_of(page), [("low", ["a/*", "b.hpp"])])


class Library(unittest.TestCase):
    """The library keeps them."""

    def setUp(self):
        self.includes = includes_of(HEADERS)
        self.layers = layers_of(PAGE.read_text())

    def test_headers_for_users_are_pages(self):
        lengths = {path: len(file_of(path).read_text().splitlines()) for path in self.includes if is_page(path)}
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

    def test_the_core_names_nothing_of_its_siblings(self):
        core = HEADERS / "tersum"
        own = names_of(core)
        found = []
        for sibling in HEADERS.glob("tersum_*"):
            names = names_of(sibling) - own
            self.assertGreater(len(names), 20)
            word = re.compile(rf"\b(?:{'|'.join(sorted(names | {sibling.name}))})\b")
            for path in sorted(core.rglob("*")):
                if path.is_file():
                    lines = enumerate(path.read_text().splitlines(), 1)
                    found += [f"{path.relative_to(HEADERS)}:{n}: {hit[0]}" for n, line in lines if (hit := word.search(line))]
        self.assertEqual(found, [], "\n".join(["", *found]))

    def test_kernels_use_every_piece_that_examples_use(self):
        files = [path for folder in ("block", "quantize", "rotate") for path in (HEADERS / "tersum" / folder).glob("*.*")]
        pieces = {name: code_of(path) for path in files for name in [*declared(path.read_text()), "make_chunk_step"] if name in code_of(path)}
        kernels = [code_of(path) for path in HEADERS.rglob("*.*") if re.search("/(detail|device)/", path.as_posix())]
        self.assertEqual(pieces_of(["block_norms"], pieces), set())
        examples = pieces_of(map(code_of, (ROOT / "examples" / "kernels").glob("*.hpp")), pieces)
        self.assertGreater(len(examples), 10)
        self.assertEqual(examples - pieces_of(kernels, pieces), set())

    def test_who_does_not_send_factors_does_not_include_their_stages(self):
        for path in ("codec.hpp", "execute/cpu_executor.hpp", "exchange/exchange_launches.hpp", "exchange/all_reduce_mean.hpp", "single_process/loopback.hpp"):
            self.assertIn(path, self.includes)
            self.assertEqual([other for other in reached(self.includes, path) if other.startswith("lowrank/")], [], path)

    def test_no_file_includes_itself_by_way_of_others(self):
        self.assertEqual(cycle(self.includes), [])


if __name__ == "__main__":
    unittest.main()
