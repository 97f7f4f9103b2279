#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/time_to_accuracy: optimizers by their formulas, the report by hand, and the whole program, quick; and of
train_ranks.py, which trains as well.

TERSUM_C_LIBRARY names the shared library. Ends with 77, skipped, without torch.
"""

import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

if importlib.util.find_spec("torch") is None:
    print(f"skipped: {sys.executable} has no torch (Debian's python3-torch)")
    sys.exit(77)

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / folder) for folder in ("time_to_accuracy", "pytorch", "gradients")]
import more_ranks
import optimizers
import report
import train_ranks


def norm(values):
    return math.sqrt(sum(v * v for v in values))


class Optimizers(unittest.TestCase):
    """Both papers' algorithms in plain Python, one list of numbers as the block."""

    LR, BETA1, BETA2, EPS, DECAY = 0.1, 0.9, 0.99, 1e-6, 0.05
    GRADIENTS = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 1.0], [0.0, 0.0, 0.0]]

    def trained(self, kind):
        x = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
        optimizer = kind([x], lr=self.LR, betas=(self.BETA1, self.BETA2), eps=self.EPS, weight_decay=self.DECAY)
        for gradient in self.GRADIENTS:
            x.grad = torch.tensor(gradient, dtype=torch.float64)
            optimizer.step()
        return x.tolist()

    def moments(self, normalized):
        m, v = [0.0] * 3, [0.0] * 3
        for t, gradient in enumerate(self.GRADIENTS, 1):
            if normalized and norm(gradient) > 0:
                gradient = [g / norm(gradient) for g in gradient]
            m = [self.BETA1 * a + (1 - self.BETA1) * g for a, g in zip(m, gradient)]
            v = [self.BETA2 * a + (1 - self.BETA2) * g * g for a, g in zip(v, gradient)]
            yield (gradient, [a / (1 - self.BETA1 ** t) for a in m],
                   [math.sqrt(a / (1 - self.BETA2 ** t)) + self.EPS for a in v])

    def test_lamb(self):
        x = [1.0, -2.0, 0.5]
        for _, m, root in self.moments(False):
            u = [a / b + self.DECAY * c for a, b, c in zip(m, root, x)]
            ratio = norm(x) / norm(u)
            x = [a - self.LR * ratio * b for a, b in zip(x, u)]
        for a, b in zip(self.trained(optimizers.LAMB), x):
            self.assertAlmostEqual(a, b, places=12)

    def test_lans(self):
        x = [1.0, -2.0, 0.5]
        for gradient, m, root in self.moments(True):
            r = [a / b + self.DECAY * c for a, b, c in zip(m, root, x)]
            c = [a / b + self.DECAY * d for a, b, d in zip(gradient, root, x)]
            d = [self.BETA1 * norm(x) / norm(r) * a + (1 - self.BETA1) * norm(x) / norm(c) * b for a, b in zip(r, c)]
            x = [a - self.LR * b for a, b in zip(x, d)]
        for a, b in zip(self.trained(optimizers.LANS), x):
            self.assertAlmostEqual(a, b, places=12)


class Report(unittest.TestCase):
    def test_rolling_mean_and_time(self):
        curve = [[0, 0.0, 4.0], [10, 1.0, 2.0], [20, 2.0, 1.0], [30, 3.0, 1.0]]
        smooth = report.rolling(curve, 2)
        self.assertEqual([loss for _, _, loss in smooth], [4.0, 3.0, 1.5, 1.0])
        self.assertEqual(report.time_to(smooth, 3.5), 0.5)  # half way from 4 to 3
        self.assertEqual(report.time_to(smooth, 1.0), 3.0)
        self.assertIsNone(report.time_to(smooth, 0.9))

    def test_differences_are_paired_by_seed(self):
        with tempfile.TemporaryDirectory() as folder:
            for codec, losses, speed in (("fp16", (1.0, 3.0), 2.0), ("other", (1.1, 3.3), 1.0)):
                for seed, loss in enumerate(losses):
                    # Linear from 10 to the final loss.
                    curve = [[k, speed * k, 10 + (loss - 10) * k / 10] for k in range(11)]
                    run = {"task": "t", "mbit": 0, "ranks": 2, "codec": codec, "seed": seed, "bits": 4.0, "rolling": 1,
                           "curve": curve}
                    pathlib.Path(folder, f"{codec}{seed}.json").write_text(json.dumps(run), encoding="utf-8")
            lines = report.summaries(report.read(*pathlib.Path(folder).glob("*.json")))
        self.assertEqual([line["codec"] for line in lines], ["fp16", "other"])
        mean, error = lines[1]["difference"]
        self.assertAlmostEqual(mean, 0.2)
        self.assertAlmostEqual(error, 0.1)  # of .1 and .3: standard deviation .1 sqrt(2), over sqrt(2)
        self.assertEqual((lines[0]["reached"], lines[0]["speed"]), (2, 1.0))
        self.assertEqual((lines[1]["reached"], lines[1]["speed"]), (0, None))


@unittest.skipUnless("TERSUM_C_LIBRARY" in os.environ, "TERSUM_C_LIBRARY is not set")
class Losses(unittest.TestCase):
    def test_ranks_of_one_process(self):
        """All ranks get the same mean, by every kind of round."""
        import losses
        parameters = [torch.zeros(40, 64), torch.zeros(64), torch.zeros(100, 64)]
        generator = torch.Generator().manual_seed(3)
        common = torch.randn(9024, generator=generator)
        for preset, most in (("fp32", 1e-12), ("rotated_sat8", 0.01), ("allocated_4", 0.1),
                             ("metric_3", 0.3), ("gathered_4", 0.1)):
            ranks = losses.Ranks(preset, parameters, 3, 1)
            for _ in range(2):
                gradients = [common + torch.randn(9024, generator=generator) for _ in range(3)]
                exact = sum(gradients) / 3
                mean = ranks.mean(gradients)
                self.assertTrue(all(torch.equal(mean, other) for other in gradients), preset)
                self.assertLess(float(((mean - exact)**2).sum() / (exact**2).sum()), most, preset)
                self.assertLess(float((mean - exact)[2560:2624].abs().max()), 1e-5, preset)  # a vector bypasses

    def test_two_ways(self):
        """The way up loses D(bits) times the ranks' mean energy over n times that of the mean, here one half; the way down D(bits)."""
        import losses
        generator = torch.Generator().manual_seed(6)
        parameters = [torch.zeros(128, 128), torch.zeros(64), torch.zeros(128, 128)]
        common = torch.randn(32832, generator=generator)
        for preset, least, most in (("sharded_4,gathered_4", 0.01, 0.02), ("sharded_4,gathered_2", 0.1, 0.16)):
            ranks = losses.Ranks(preset, parameters, 3, 1)
            gradients = [common + torch.randn(32832, generator=generator) for _ in range(3)]
            exact = sum(gradients) / 3
            mean = ranks.mean(gradients)
            self.assertTrue(least < losses.lost(mean, exact) < most, (preset, losses.lost(mean, exact)))
            self.assertLess(float((mean - exact)[16384:16448].abs().max()), 1e-5)  # a vector bypasses, in the second rank's shard

    def test_update_without_trace(self):
        """What a step would add is what it adds afterwards, and nothing has changed in between."""
        import losses
        generator = torch.Generator().manual_seed(5)
        weight = torch.nn.Parameter(torch.randn(30, generator=generator))
        optimizer = torch.optim.AdamW([weight], lr=0.1)
        for _ in range(3):
            gradient = torch.randn(30, generator=generator)
            before = weight.detach().clone()
            would = losses.update_without_trace(optimizer, [weight], gradient)
            self.assertTrue(torch.equal(weight.detach(), before))
            self.assertTrue(torch.equal(losses.update(optimizer, [weight], gradient), would))
            self.assertGreater(float(would.abs().max()), 0.01)

    def test_momenta(self):
        """From `send_momenta` on the mean is that of beta m + (1 - beta) gradient, and m the last mean; a training gets there."""
        import losses
        import momenta
        import tasks
        parameters = [torch.zeros(40, 64), torch.zeros(64)]
        generator = torch.Generator().manual_seed(4)
        m = torch.randn(2624, generator=generator)
        ranks = losses.Ranks("two_shot_4", parameters, 3, 1)
        ranks.send_momenta("fp32", lambda p: m[:2560] if p.dim() > 1 else m[2560:], 0.9)
        for _ in range(2):
            gradients = [torch.randn(2624, generator=generator) for _ in range(3)]
            m = 0.9 * m + 0.1 * sum(gradients) / 3
            self.assertTrue(torch.allclose(ranks.mean(gradients), m, rtol=1e-5, atol=1e-6))
        run = {"task": "transformer", "codec": "momentum_1", "seed": 0, "ranks": 2, "batch": 1, "steps": 5, "every": 1,
               "rate": 1}
        result = losses.train(run)
        bits = [losses.Ranks(name, list(tasks.TASKS["transformer"](0).model().parameters()), 2, 0).bits
                for name in momenta.MOMENTA["momentum_1"]]
        self.assertAlmostEqual(result["bits"], (bits[0] + 4 * bits[1]) / 5)  # frozen after the first of five steps
        self.assertTrue(all(math.isfinite(loss) for _, _, loss in result["curve"]))
        with self.assertRaisesRegex(ValueError, "AdamW"):
            momenta.optimizer_of(tasks.TASKS["cnn"](0), parameters, "momentum_1", ranks, 5)

    def test_phases(self):
        """Of five steps the last one is by the second preset."""
        import losses
        import tasks
        run = {"task": "transformer", "codec": "two_shot_4>fp32", "seed": 0, "ranks": 2, "batch": 1, "steps": 5, "every": 5,
               "rate": 1}
        parameters = list(tasks.TASKS["transformer"](0).model().parameters())
        first, second = (losses.Ranks(name, parameters, 2, 0).bits for name in ("two_shot_4", "fp32"))
        self.assertAlmostEqual(losses.train(run)["bits"], (4 * first + second) / 5)  # round(3.5) is 4

    def test_rate(self):
        """It warms up over a twentieth of the steps, is largest then, and falls to zero."""
        from tasks import warmed_cosine
        rates = [warmed_cosine(step / 1000) for step in range(1001)]
        self.assertLess(rates[0], 0.03)
        self.assertGreater(max(rates), 0.99)
        self.assertEqual(rates.index(max(rates)), 49)
        self.assertAlmostEqual(rates[500], 0.5)
        self.assertAlmostEqual(rates[1000], 0)

    def test_summaries(self):
        """Differences and steps are to the baseline of the same seed; one that has none is left out."""
        import losses_report as losses
        run = lambda codec, seed, curve: {"codec": codec, "seed": seed, "bits": 2.0, "error": [0.1, 0.3],
                                          "update_error": [0.5], "zeros": [0.25],
                                          "curve": [[step, step, loss] for step, loss in curve]}
        runs = [run("fp16", 0, [(0, 4.0), (10, 2.0)]), run("other", 0, [(0, 4.0), (10, 2.2)]),
                run("other", 1, [(0, 9.0), (10, 9.0)])]
        lines = losses.summaries(runs)
        self.assertEqual([(line["codec"], line["seeds"]) for line in lines], [("fp16", 1), ("other", 1)])
        self.assertAlmostEqual(lines[1]["difference"][0], 0.1)  # of rolling means: (4 + 2.2) / 2 less (4 + 2) / 2
        self.assertEqual((lines[1]["reached"], lines[1]["steps"]), (0, None))  # the target is 3.03, the last mean 3.1
        self.assertAlmostEqual(lines[1]["error"], 0.2)
        self.assertIn("| `other` | 2.00 | 3.1000 | +0.1000 | 0 of 1 | - | 0.2 | 0.5 | 25 % |", losses.table(lines))
        self.assertAlmostEqual(losses.rank_correlation([1, 5, 9], [2, 3, 70]), 1)
        self.assertAlmostEqual(losses.rank_correlation([1, 5, 9], [2, 70, 3]), 0.5)

    def test_program(self):
        """Trains what has no file, and prints the table of all."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.pathsep.join([str(ROOT / "examples/pytorch"), os.environ.get("PYTHONPATH", "")])
            command = [sys.executable, str(ROOT / "examples/time_to_accuracy/losses.py"), "--task", "recommender", "--ranks", "2",
                       "--steps", "4", "--every", "2", "--seeds", "0", "--out", folder, "--codecs", "rotated_sat4", "--json",
                       str(pathlib.Path(folder, "all"))]
            for trained in (2, 0):
                done = subprocess.run(command, env=dict(os.environ, PYTHONPATH=path), capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count(" of 2: "), trained, done.stderr)
                self.assertIn("| `rotated_sat4` | 4.", done.stdout)
                runs = json.loads(pathlib.Path(folder, "all").read_text(encoding="utf-8"))
                self.assertEqual([(run["codec"], len(run["curve"])) for run in runs], [("fp16", 3), ("rotated_sat4", 3)])


class TrainRanks(unittest.TestCase):
    """examples/gradients/train_ranks.py, which trains the sets with many zeros of docs/all_codecs.csv, for two steps."""

    def trained(self, task, folder):
        """The gradients of two ranks, and lines of layers.csv."""
        default = torch.get_default_dtype(), torch.get_num_threads()
        kind = {"cnn": train_ranks.Images, "recommender": train_ranks.Clicks}[task]
        try:
            with mock.patch.object(kind, "steps", 2), mock.patch("sys.argv", ["train_ranks.py", task, folder, "2"]):
                train_ranks.main()
        finally:
            torch.set_default_dtype(default[0])
            torch.set_num_threads(default[1])
        self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["layers.csv", "step2_worker0.npy", "step2_worker1.npy"])
        lines = [line.split(",") for line in pathlib.Path(folder, "layers.csv").read_text(encoding="utf-8").splitlines()]
        return [more_ranks.read(pathlib.Path(folder, f"step2_worker{rank}.npy")) for rank in range(2)], lines

    def test_gradients_have_the_layers_and_zeros_of_the_samples(self):
        for task, least_zeros in (("cnn", 0), ("recommender", 0.9)):
            with self.subTest(task), tempfile.TemporaryDirectory() as once, tempfile.TemporaryDirectory() as again:
                ranks, (heading, *layers) = self.trained(task, once)
                sample = (ROOT / f"examples/gradients/{task}/layers.csv").read_text(encoding="utf-8").splitlines()
                self.assertEqual([line[-3:] for line in [heading, *layers]], [line.split(",")[-3:] for line in sample])
                size = sum(int(rows) * int(columns) for *_, rows, columns, _ in layers)
                for values in ranks:
                    self.assertEqual(len(values), size)
                    self.assertTrue(all(map(math.isfinite, values)) and any(values))
                    self.assertGreaterEqual(values.count(0.0), least_zeros * size)
                self.assertFalse(ranks[0] == ranks[1])  # differences of so many numbers take minutes to print
                self.assertTrue(self.trained(task, again)[0] == ranks)


class Program(unittest.TestCase):
    def test_quick(self):
        """Prints the table, writes the picture, and does not train again what it has."""
        if "TERSUM_C_LIBRARY" not in os.environ:
            self.skipTest("TERSUM_C_LIBRARY is not set")
        with tempfile.TemporaryDirectory() as folder:
            command = ["bash", str(ROOT / "examples/time_to_accuracy/run.sh"), "--quick", "--steps", "20",
                       "--codecs", "rotated_sat4", "--out", folder]
            environment = dict(os.environ, PYTHON=sys.executable)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for task in ("transformer", "cnn", "recommender"):
                self.assertIn(f"\n{task}, 2 ranks", done.stdout)
            self.assertEqual(done.stdout.count("| `rotated_sat4` | 4."), 3, done.stdout)
            runs = sorted(pathlib.Path(folder, "quick").glob("*.json"))
            self.assertEqual(len(runs), 6)  # and fp16
            for run in runs:
                losses = [loss for _, _, loss in json.loads(run.read_text(encoding="utf-8"))["curve"]]
                self.assertLess(losses[-1], losses[0], run.name)
            if importlib.util.find_spec("matplotlib"):
                self.assertIn("<svg", pathlib.Path(folder, "quick.svg").read_text(encoding="utf-8"))
            runs[0].unlink()
            again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540)
            self.assertIn("1 trainings", again.stderr)
            self.assertTrue(runs[0].exists())


if __name__ == "__main__":
    unittest.main()
