#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Draws gradients of more ranks than a set of files has: their mean plus normal noise, as large as the ranks of the
files deviate from it within each 256 neighbours. Fresh data of about the same energies and correlation. It has no exact
zeros: for sets with many of them there is train_ranks.py.

usage: more_ranks.py FROM TO RANKS     FROM/<set>_worker<k>.npy -> TO/<set>_worker<0 .. RANKS-1>.npy
"""

import array
import math
import pathlib
import random
import sys

NEIGHBOURS = 256


def read(path):
    data = path.read_bytes()
    header = data[10 : 10 + int.from_bytes(data[8:10], "little")]
    if data[:8] != b"\x93NUMPY\x01\x00" or b"'<f4'" not in header:
        sys.exit(f"more_ranks.py: {path} is not a float32 .npy file of format 1.0")
    values = array.array("f")
    values.frombytes(data[10 + len(header) :])
    return values


def write(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, target, ranks = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted({path.name.rsplit("_worker", 1)[0] for path in source.glob("*_worker*.npy")}):
        given = [read(path) for path in sorted(source.glob(f"{name}_worker*.npy"))]
        mean = [math.fsum(values) / len(given) for values in zip(*given)]
        spread = []
        for first in range(0, len(mean), NEIGHBOURS):
            part = slice(first, first + NEIGHBOURS)
            squares = math.fsum((a - b) ** 2 for values in given for a, b in zip(values[part], mean[part]))
            count = len(mean[part])
            spread += [math.sqrt(squares / ((len(given) - 1) * count))] * count
        for rank in range(ranks):
            draw = random.Random(f"{name} {rank}").gauss
            write(target / f"{name}_worker{rank}.npy", array.array("f", (m + draw(0, s) for m, s in zip(mean, spread))))


if __name__ == "__main__":
    main()
