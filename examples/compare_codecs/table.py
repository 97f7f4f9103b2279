#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""One line for each result that compare_codecs has written with --json, as comma-separated values: docs/all_codecs.csv.

usage: table.py JSON...

set          the gradients
codec        its name
ranks        how many there are
bits         that leave a rank for each coordinate: norms, scales and positions are included; 32 or more where everything bypasses the codec.
             Of `served_*` what a worker pushes to the parameter server
pulled       of `served_*` the bits that a worker pulls
error        |mean - estimate|^2 / |mean|^2 of the last exchange; under feedback it carries what earlier exchanges left out
time         processor time of a rank over a memcpy of its gradient: it encodes, adds what it owns or what a ring brings, and decodes
server_time  of `served_*` that of the server, over the same memcpy
"""

import csv
import json
import pathlib
import sys

COLUMNS = ["set", "codec", "ranks", "bits", "pulled", "error", "time", "server_time"]


def sends_of(codec, ranks):
    """How often what a rank gives to its collectives leaves it: a gather sends it to every other rank, a reduce-scatter each part
    to its owner, a gather of shards each part to all others, and an all-reduce does both."""
    if codec.startswith(("topk_", "gathered_")):
        return ranks - 1
    if codec.startswith("served_"):
        return 1
    once = codec.startswith(("sharded_", "summed_shards_", "values_", "differences_"))
    return (1 if once else 2) * (ranks - 1) / ranks


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


def row(one):
    """The values of a result, in the order of COLUMNS."""
    served = one["codec"].startswith("served_")

    def over_copy(*parts):
        return f"{sum(one[part] or 0 for part in parts) / one['memcpy_ns']:.1f}"

    return [one["set"], one["codec"], one["ranks"], f"{one['bits_per_coordinate'] * sends_of(one['codec'], one['ranks']):.2f}",
            f"{one['bits_pulled']:.2f}" if served else "", number(one["nmse"]),
            over_copy("encode_ns", "decode_ns") if served else over_copy("encode_ns", "reduce_ns", "decode_ns"),
            over_copy("reduce_ns") if served else ""]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(COLUMNS)
    for path in sys.argv[1:]:
        lines.writerows(row(one) for one in json.loads(pathlib.Path(path).read_text())["results"])


if __name__ == "__main__":
    main()
