#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""What designs that the library does not have would gain, simulated in double: other choices of widths for two shots, and chunks
whose mean travels apart. Needs numpy.

usage: what_if.py FROM [DRAWS]     FROM/<set>_worker<k>.npy; draws of signs and dither, 8 if not given
"""

import pathlib
import re
import sys

import numpy as np

HEADER = pathlib.Path(__file__).parents[2] / "include/tersum/quantize/detail/lloyd_max_levels.hpp"
LEVELS = [float(x) for x in re.findall(r"(\d*\.\d+)f", HEADER.read_text().split("= {")[1].split("};")[0])]
LOSS = {1: 0.5708, 2: 0.1331, 3: 0.03578, 4: 0.009643, 5: 0.002511, 6: 6.447e-4, 8: 4.119e-5}  # of lloyd_max


def chunks(values, size):
    return np.pad(values.astype(float), (0, -len(values) % size)).reshape(-1, size)


def allocate(energy, loss, cost, bits):
    """A width for each chunk, the sum of energy * loss[width] being least; loss and cost of none are 1 and 0."""
    steps, at, lost = [], 0, 1.0
    while options := [((lost - loss[w]) / (cost[w] - cost.get(at, 0)), w) for w in loss if w > at and loss[w] < lost]:
        worth, width = max(options)
        steps.append((worth, width, cost[width] - cost.get(at, 0)))
        at, lost = width, loss[width]
    worth = np.concatenate([energy * s[0] for s in steps])
    order = np.argsort(-worth, kind="stable")
    fits = order[np.cumsum(np.repeat([s[2] for s in steps], len(energy))[order]) <= bits]
    widths = np.zeros(len(energy), int)
    np.maximum.at(widths, fits % len(energy), np.repeat([s[1] for s in steps], len(energy))[fits])
    return widths


def lloyd_max(v, widths):
    out = np.zeros_like(v)
    for q in set(widths) - {0}:
        x = v[widths == q]
        levels = np.array(LEVELS[2 ** (q - 1) - 1 : 2**q - 1])
        energy = (x * x).sum(1, keepdims=True)
        root = np.sqrt(np.divide(x.shape[1], energy, where=energy > 0, out=np.ones_like(energy)))
        level = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, np.abs(x) * root, side="right")]
        scale = energy / (np.abs(x) * level).sum(1, keepdims=True).clip(1e-300)
        out[widths == q] = np.sign(x) * level * scale
    return out


def second_widths(ranks, bits, rng, size=512):
    """Errors of two shots: with equal widths, with widths of its own in the second, with equal widths by what both encodings
    lose, with the next greater width in the second, with both from known energies."""
    signs = rng.choice([-1.0, 1.0], chunks(ranks[0], size).shape)
    hadamard = np.ones((1, 1))
    while len(hadamard) < size:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    v = [(chunks(x, size) * signs) @ (hadamard / np.sqrt(size)) for x in ranks]
    total = sum(v)
    own, mean = sum((x * x).sum(1) for x in v), (total * total).sum(1)
    count = len(own)
    room = bits * len(ranks[0]) - 16 * count
    cost = {q: q * size + 32 for q in LOSS}

    def error(first, second):
        return ((total - lloyd_max(sum(lloyd_max(x, first) for x in v), second)) ** 2).sum() / mean.sum()

    equal = allocate(own, {q: 2 * LOSS[q] for q in LOSS}, cost, room)
    both = 2 * room - 4 * count  # the second widths travel in 4 bits
    anew = []
    for share in (0.44, 0.46, 0.48, 0.5, 0.52, 0.54):
        first = allocate(own, LOSS, cost, share * both)
        summed = sum(lloyd_max(x, first) for x in v)
        energy = np.where(first > 0, (summed * summed).sum(1), 0)
        anew.append(error(first, allocate(energy, LOSS, cost, (1 - share) * both)))

    def choose(pairs, down):
        """Widths up and down for each chunk, one of the pairs, if the energy of its sum is as `down` says."""
        pairs = [(0, 0), *pairs]
        costs = np.array([cost.get(a, 0) + cost.get(b, 0) for a, b in pairs], float)
        losses = np.stack([own * LOSS[a] + down * LOSS[b] if a else down for a, b in pairs], 1)
        low, high = 1e-30, 1e12
        for _ in range(200):
            price = np.sqrt(low * high)
            low, high = (price, high) if costs[np.argmin(losses + price * costs, 1)].sum() > both else (low, price)
        return error(*np.array(pairs)[np.argmin(losses + high * costs, 1)].T)

    widths = sorted(LOSS)
    alike = own * mean.sum() / own.sum()  # what is known of the sums if only their energy in all is
    return (
        error(equal, equal),
        min(anew),
        choose([(a, a) for a in LOSS], mean),
        choose(zip(widths, widths[1:]), alike),
        choose([(a, b) for a in LOSS for b in LOSS], mean),
    )


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    draws = int(sys.argv[2]) if len(sys.argv) == 3 else 8
    for name in sorted({path.name.rsplit("_worker", 1)[0] for path in source.glob("*_worker*.npy")}):
        ranks = [np.load(path) for path in sorted(source.glob(f"{name}_worker*.npy"))]
        for bits in (2, 3, 4):
            got = np.mean([second_widths(ranks, bits, np.random.default_rng(k)) for k in range(draws)], 0)
            print(
                f"{name}, {bits} bits: equal widths {got[0]:.5f}, second anew {got[1]:.5f}, weighed {got[2]:.5f}, "
                f"wider down {got[3]:.5f}, joint {got[4]:.5f}"
            )


if __name__ == "__main__":
    main()
