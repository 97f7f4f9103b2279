#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""A Markdown table for each set of gradients, of what compare_codecs has written with --json: which bits a rank sends, and what is
lost, with how many ranks.

usage: table.py JSON...     of each set one file for each number of ranks, in any order
"""

import json
import pathlib
import sys


def sends_of(codec, ranks):
    """How often what a rank gives to its collectives leaves it: a gather sends it to every other rank, a reduce-scatter each part
    to its owner, a gather of shards each part to all others, and an all-reduce does both."""
    if codec.startswith(("topk_", "gathered_", "entropy_")) and "two_shot" not in codec:
        return ranks - 1
    once = codec.startswith(("sharded_", "summed_shards_", "values_", "differences_"))
    return (1 if once else 2) * (ranks - 1) / ranks


def is_bypassed(one):
    """Whether floats travel, because the bits pay for no chunk among so many ranks or factors would be no smaller than matrices."""
    return one["codec"] != "fp32" and one["bits_per_coordinate"] >= 32


def bits(one):
    """Those that leave a rank, with a star where they are floats."""
    return f"{one['bits_per_coordinate'] * sends_of(one['codec'], one['ranks']):.2f}{'*' if is_bypassed(one) else ''}"


def copies(one):
    """Processor time of a rank over a memcpy: it encodes, adds in two shots what it owns and encodes that once more, or in lanes what
    a ring brings, and decodes. What all ranks add, and what shards add, counts as decoding."""
    return sum(one[part] or 0 for part in ("encode_ns", "reduce_ns", "decode_ns")) / one["memcpy_ns"]


def number(value):
    """Two digits that say something."""
    if value is None:
        return ""
    if value < 1e-14:
        return "0"
    if value < 0.001:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.2g}".lstrip("0") if value < 1 else f"{value:.2g}"


def tables(results):
    """Yields (set, coordinates, lines of its table)."""
    by_set = {}
    for one in results:
        by_set.setdefault(one["set"], {}).setdefault(one["codec"], {})[one["ranks"]] = one
    for name, codecs in by_set.items():
        worlds = sorted({ranks for of_codec in codecs.values() for ranks in of_codec})
        lines = ["| codec | " + " | ".join([*(f"bits, {n}" for n in worlds), *(f"error, {n}" for n in worlds), "time"]) + " |",
                 "| --- |" + " ---: |" * (2 * len(worlds) + 1)]
        for codec, of_world in codecs.items():
            sent = [bits(of_world[n]) if n in of_world else "" for n in worlds]
            errors = [number(of_world[n]["nmse"]) if n in of_world else "" for n in worlds]
            one = of_world.get(4) or next(iter(of_world.values()))
            lines.append(f"| `{codec}` | " + " | ".join([*sent, *errors, f"{copies(one):.1f}"]) + " |")
        yield name, next(iter(next(iter(codecs.values())).values()))["coordinates"], lines


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    results = [one for path in sys.argv[1:] for one in json.loads(pathlib.Path(path).read_text())["results"]]
    for name, coordinates, lines in tables(results):
        print(f"## {name}, {coordinates} coordinates\n")
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
