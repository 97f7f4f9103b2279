#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/pytorch/tersum, numpy alone, with ranks that are threads: test_tersum_core.py [TEST...]. TERSUM_C_LIBRARY names the
shared library. Ends with 77, skipped, without numpy."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest

if importlib.util.find_spec("numpy") is None:
    print(f"skipped: {sys.executable} has no numpy")
    sys.exit(77)

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"
if "TERSUM_C_LIBRARY" in os.environ:
    sys.path.insert(0, str(PACKAGE))

import numpy as np  # noqa: E402

import tersum  # noqa: E402

WORLD, SHAPES = 3, [((60, 256), True, None), ((33,), True, None), ((7, 300), False, None), ((4, 5, 100), True, 2.0)]
SIZE = 60 * 256 + 33 + 2100 + 2000


class Meeting:
    """Where threads exchange arrays; `of(rank)` is a transport."""

    def __init__(self, size):
        self.size, self.sent, self.barrier = size, [None] * size, threading.Barrier(size, timeout=60)

    def of(self, rank):
        class Ours:
            size = self.size

            def all_to_all(_, sent, received):
                self.sent[rank] = sent
                self.barrier.wait()
                for other, part in enumerate(received):
                    assert self.sent[other][rank].size == part.size
                    part[:] = self.sent[other][rank]
                self.barrier.wait()

        Ours.rank = rank
        return Ours()


def on_ranks(work):
    """work(rank, transport) on all ranks; what it returned."""
    meeting, results, errors = Meeting(WORLD), [None] * WORLD, []

    def run(rank):
        try:
            results[rank] = work(rank, meeting.of(rank))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(WORLD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def gradient(rank, step=0, dtype=np.float32):
    return np.random.default_rng(100 * step + rank).standard_normal(SIZE).astype(dtype)


class Core(unittest.TestCase):
    def test_no_torch_is_imported(self):
        code = "import sys, tersum; assert 'torch' not in sys.modules and 'jax' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))

    def test_every_preset(self):
        """Equal bits on all ranks, and the mean: sums of every kind are added by the library."""
        for name, summary in tersum.presets().items():
            self.assertTrue(summary)
            for dtype in (np.float32, np.float16) if name in ("fp16", "two_shot_4") else (np.float32,):
                def work(rank, transport):
                    exchange = tersum.Exchange(name, SIZE, transport, dtype=dtype, seed=9,
                                               tensors=None if "shard" in name else SHAPES)
                    exchange.agree()
                    for step in range(2):
                        values = gradient(rank, step, dtype)
                        exchange(values)
                    self.assertFalse(exchange.was_non_finite())
                    return values, exchange.codec.shard
                got = on_ranks(work)
                mean = np.mean([gradient(rank, 1, dtype).astype(np.float64) for rank in range(WORLD)], axis=0)
                whole = np.concatenate([values[shard] for values, shard in got]) if "shard" in name else got[0][0]
                for values, _ in got if "shard" not in name else []:
                    self.assertEqual(values.tobytes(), whole.tobytes(), name)
                error = ((whole - mean) ** 2).sum() / (mean ** 2).sum()
                # Of normal gradients codes of 4 bits have .0095 an encoding, saturating ones .07 by the library's tables.
                limit = {"fp32": 1e-12, "fp16": 1e-5, "two_shot_4": 0.025, "rotated_sat4": 0.12, "sharded_4": 0.013}.get(name, 12)
                self.assertLess(error, limit, name)

    def test_states(self):
        def work(rank, transport):
            made = lambda codec: tersum.Exchange(codec, SIZE, transport, seed=9)  # noqa: E731
            first, second = made("two_shot_4"), made("two_shot_4")
            first(gradient(rank))
            saved = first.save()
            second.load(saved)
            results = []
            for exchange in (first, second):
                values = gradient(rank, 1)
                exchange(values)
                results.append(values)
            self.assertEqual(*(values.tobytes() for values in results))
            saved[-1] ^= 1
            with self.assertRaisesRegex(tersum.TersumError, "its bytes have changed"):
                second.load(saved)
            with self.assertRaisesRegex(tersum.TersumError, "of another codec"):
                made("rotated_sat4").load(first.save())
        on_ranks(work)

    def test_faults_have_sentences(self):
        one = Meeting(1).of(0)
        with self.assertRaisesRegex(TypeError, "arrays of float64"):
            tersum.Exchange("two_shot_4", 10, one, dtype=np.float64)
        with self.assertRaisesRegex(ValueError, "have 6 values, and the array 7"):
            tersum.Exchange("two_shot_4", 7, one, tensors=[((2, 3), True, None)])
        with self.assertRaisesRegex(tersum.TersumError, "options.preset"):
            tersum.Exchange("two_shot_5", 7, one)
        exchange = tersum.Exchange("two_shot_4", 8, one)
        for wrong in (np.zeros(7, np.float32), np.zeros(8), np.zeros(16, np.float32)[::2]):
            with self.assertRaisesRegex(ValueError, "8 contiguous values of float32"):
                exchange(wrong)

        def differ(rank, transport):
            with self.assertRaisesRegex(tersum.TersumError, "different codecs, arrays or seeds"):
                tersum.Exchange("two_shot_4", SIZE, transport, seed=rank).agree()
        on_ranks(differ)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "there is no JAX")
    def test_the_example_of_jax(self):
        """At most 60 lines; both ranks end with the same parameters, and learn as without compression."""
        program = PACKAGE.parent / "jax/train.py"
        self.assertLessEqual(len(program.read_text(encoding="utf-8").splitlines()), 60)
        losses = {}
        for codec in ("fp32", "two_shot_4"):
            printed = subprocess.run([sys.executable, str(program), codec], check=True, capture_output=True, text=True,
                                     env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), JAX_PLATFORMS="cpu")).stdout
            found = re.findall(r"^rank (\d): loss ([\d.]+), ([\d.]+) bits, \|parameters\| ([\d.]+)$", printed, re.MULTILINE)
            self.assertEqual(sorted(rank for rank, *_ in found), ["0", "1"], printed)
            self.assertEqual(found[0][3], found[1][3])
            self.assertTrue(float(found[0][2]) == 32 if codec == "fp32" else 4 < float(found[0][2]) < 5, printed)
            losses[codec] = sum(float(loss) for _, loss, *_ in found) / 2
        self.assertLess(losses["two_shot_4"], 1.1 * losses["fp32"])
        self.assertLess(losses["two_shot_4"], 0.1)  # of zeros it is 1


if __name__ == "__main__":
    unittest.main()
