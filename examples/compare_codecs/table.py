#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Markdown tables for each set of gradients, of what compare_codecs has written with --json: which bits a rank sends, and what is
lost, with how many ranks; by codecs of one collective, on two levels, and by a parameter server.

usage: table.py JSON...     of each set one file for each number of ranks, in any order
"""

import json
import pathlib
import re
import sys


def sends_of(codec, ranks):
    """How often what a rank gives to its collectives leaves it: a gather sends it to every other rank, a reduce-scatter each part
    to its owner, a gather of shards each part to all others, and an all-reduce does both."""
    if codec.startswith(("topk_", "gathered_", "entropy_")) and "two_shot" not in codec:
        return ranks - 1
    once = codec.startswith(("sharded_", "summed_shards_", "values_", "differences_"))
    return (1 if once else 2) * (ranks - 1) / ranks


def host_of(codec):
    """(ranks of a host, codec between hosts) of a form on two levels; None of others."""
    form = re.fullmatch(r"hosts(\d+)_(\w+)", codec)
    return (int(form[1]), form[2]) if form else None


def is_served(codec):
    return codec.startswith("served_")


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


def table_of(codecs, columns):
    """Lines of a table. Of each codec by its number of ranks; a column has a heading, of how many ranks it is, or None, and what it
    says of a result."""
    lines = ["| codec | " + " | ".join(f"{heading}, {ranks}" if ranks else heading for heading, ranks, _ in columns) + " |",
             "| --- |" + " ---: |" * len(columns)]
    for codec, of_world in codecs.items():
        usual = of_world.get(4) or next(iter(of_world.values()))
        cells = [says(of_world[ranks] if ranks else usual) if not ranks or ranks in of_world else "" for _, ranks, says in columns]
        lines.append(f"| `{codec}` | " + " | ".join(cells) + " |")
    return lines


def between_hosts(one):
    """Bits that leave a rank for other hosts."""
    host, codec = host_of(one["codec"])
    return f"{one['bits_per_coordinate'] * sends_of(codec, one['ranks'] // host):.2f}"


def within_host(one):
    """Bits that leave a rank for others of its host: each shard once to its owner, and once from it."""
    host, _ = host_of(one["codec"])
    return f"{one['bits_within'] * (host - 1) / host:.2f}"


def over_copy(*parts):
    return lambda one: f"{sum(one[part] for part in parts) / one['memcpy_ns']:.1f}"


def tables(results):
    """Yields (set, coordinates, lines of the table of its codecs), then (set and form, coordinates, lines) of other forms."""
    by_set = {}
    for one in results:
        by_set.setdefault(one["set"], {}).setdefault(one["codec"], {})[one["ranks"]] = one
    for name, codecs in by_set.items():
        coordinates = next(iter(next(iter(codecs.values())).values()))["coordinates"]

        def chosen(belongs):
            these = {codec: of_world for codec, of_world in codecs.items() if belongs(codec)}
            return these, sorted({ranks for of_codec in these.values() for ranks in of_codec})

        errors = lambda worlds: [("error", n, lambda one: number(one["nmse"])) for n in worlds]
        these, worlds = chosen(lambda codec: not host_of(codec) and not is_served(codec))
        if these:
            sent = [("bits", n, bits) for n in worlds]
            yield name, coordinates, table_of(these, [*sent, *errors(worlds), ("time", None, lambda one: f"{copies(one):.1f}")])
        these, worlds = chosen(host_of)
        if these:
            sent = [("between", n, between_hosts) for n in worlds]
            time = ("time", None, lambda one: f"{copies(one):.1f}")
            yield f"{name} on two levels", coordinates, table_of(these, [("within", None, within_host), *sent, *errors(worlds), time])
        these, worlds = chosen(is_served)
        if these:
            sent = [("pushed", None, lambda one: f"{one['bits_per_coordinate']:.2f}"), ("pulled", None, lambda one: f"{one['bits_pulled']:.2f}")]
            times = [("time", None, over_copy("encode_ns", "decode_ns")), ("time of the server", None, over_copy("reduce_ns"))]
            yield f"{name} by a parameter server", coordinates, table_of(these, [*sent, *errors(worlds), *times])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    results = [one for path in sys.argv[1:] for one in json.loads(pathlib.Path(path).read_text())["results"]]
    for name, coordinates, lines in tables(results):
        print(f"## {name}, {coordinates} coordinates\n")
        print("\n".join(lines), end="\n\n")


if __name__ == "__main__":
    main()
