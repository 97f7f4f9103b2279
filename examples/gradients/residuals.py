#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""What feedback loses if its residuals are not kept in float, simulated in double.

usage: residuals.py FROM SET [DRAWS]     FROM/SET_worker<k>.npy

Every rank has the same gradient in each of 200 steps. Error is |sum of the estimates - sum of the means|^2 over the latter's. Printed is
how much more it is than with residuals in double, mean of three draws or of DRAWS.
"""

import pathlib
import sys

import numpy as np

CHUNK, COORDINATES, STEPS = 256, 1 << 15, 200


def rotated(x):
    """Chunks in the last axis, times a normalized Hadamard matrix, its own inverse."""
    y = x.reshape(-1, CHUNK)
    h = 1
    while h < CHUNK:
        y = y.reshape(len(y), -1, 2, h)
        y = np.concatenate((y[:, :, 0] + y[:, :, 1], y[:, :, 0] - y[:, :, 1]), axis=2).reshape(len(y), CHUNK)
        h *= 2
    return y / np.sqrt(CHUNK)


def in_rotation(quantize):
    """A codec that quantizes rotated chunks with random signs."""

    def codec(x, random):
        signs = random.choice((-1.0, 1.0), x.shape)
        return rotated(quantize(rotated(x * signs), random)).reshape(x.shape) * signs

    return codec


def one_bit(y, _):
    return np.copysign(np.abs(y).mean(axis=1, keepdims=True), y)


def rounded(bits, clip):
    def quantize(y, random):
        levels = (1 << bits - 1) - 1
        step = np.sqrt((y**2).mean(axis=1, keepdims=True)) * clip / levels
        step[step == 0] = 1
        return step * np.clip(np.floor(y / step + random.random(y.shape)), -levels, levels)

    return quantize


def largest(size, share):
    """Sends a share of the blocks of `size` coordinates, those of the largest norms on each rank."""

    def codec(x, _):
        blocks = x.reshape(len(x), -1, size)
        norms = (blocks**2).sum(axis=2)
        count = int(norms.shape[1] * share)
        least = np.partition(norms, -count, axis=1)[:, -count, None]
        return (blocks * (norms >= least)[:, :, None]).reshape(x.shape)

    return codec


CODECS = {
    "1 bit, rotated": in_rotation(one_bit),
    "2 bits, rotated": in_rotation(rounded(2, 1.6)),
    "4 bits, rotated": in_rotation(rounded(4, 2.8)),
    "an eighth of chunks of 64": largest(64, 1 / 8),
    "1 % of coordinates": largest(1, 0.01),
}


def bfloat16(at_random):
    def keep(x, random):
        mantissa, exponent = np.frexp(x)
        scaled = mantissa * 256
        kept = np.floor(scaled + random.random(x.shape)) if at_random else np.rint(scaled)
        return np.ldexp(kept / 256, exponent)

    return keep


def blocks_of_8_bits(size, at_random, power_of_two=False):
    def keep(x, random):
        y = x.reshape(-1, size)
        step = np.abs(y).max(axis=1, keepdims=True) / 127
        if power_of_two:
            mantissa, exponent = np.frexp(step)
            step = np.ldexp(np.ceil(mantissa), exponent - (mantissa == 0.5))
        step[step == 0] = 1
        codes = np.floor(y / step + random.random(y.shape)) if at_random else np.rint(y / step)
        return (step * codes).reshape(x.shape)

    return keep


STORES = {
    "double": lambda x, _: x,
    "bfloat16, nearest": bfloat16(False),
    "bfloat16, at random": bfloat16(True),
    "8 bits in blocks of 32, at random": blocks_of_8_bits(32, True),
    "8 bits in blocks of 32, a power of two as the scale, at random": blocks_of_8_bits(32, True, True),
    "8 bits in blocks of 64, at random": blocks_of_8_bits(64, True),
    "8 bits in blocks of 256, nearest": blocks_of_8_bits(256, False),
}


def error(gradients, codec, keep, draws):
    errors = []
    for draw in range(draws):
        of_codec, of_store = np.random.default_rng(draw), np.random.default_rng(100 + draw)
        residual = np.zeros_like(gradients)
        total = np.zeros(gradients.shape[1])
        for _ in range(STEPS):
            values = gradients + residual
            sent = codec(values, of_codec)
            total += sent.sum(axis=0)
            residual = keep(values - sent, of_store)
        truth = STEPS * gradients.sum(axis=0)
        errors.append(((total - truth) ** 2).sum() / (truth**2).sum())
    return np.mean(errors)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    draws = int(sys.argv[3]) if len(sys.argv) == 4 else 3
    files = sorted(pathlib.Path(sys.argv[1]).glob(sys.argv[2] + "_worker*.npy"))
    whole = np.stack([np.load(file).astype(float) for file in files])
    first = whole.shape[1] // 3 // CHUNK * CHUNK
    gradients = whole[:, first : first + COORDINATES]
    for name, codec in CODECS.items():
        base = None
        for store, keep in STORES.items():
            found = error(gradients, codec, keep, draws)
            base = base or found
            print(f"{name}, {store}: {found:.3e}, {100 * (found / base - 1):+.1f} %", flush=True)


if __name__ == "__main__":
    main()
