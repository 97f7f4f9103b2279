#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Losses without clocks and networks: all ranks of a training in one process, which a laptop can do.

    PYTHONPATH=examples/pytorch TERSUM_C_LIBRARY=... examples/time_to_accuracy/losses.py --codecs two_shot_2 metric_2

Prints for each codec how far its last validation loss is above that of fp16 with the same seed, after how many of fp16's steps
it has reached fp16's loss, and three figures that may predict it: the error of the decoded mean and of the optimizer's update
that is made of it, each relative to the exact one's energy, and the share of coordinates that are decoded to zero. A training
that has its file in the folder is not run again.
"""

import argparse
import concurrent.futures
import copy
import ctypes
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys

import torch

from losses_report import BASELINE, draw, summaries, table
from momenta import MOMENTA, first_codec, optimizer_of
from tasks import TASKS
from tersum import library
from tersum.library import lib

LAST_PHASE = 0.3  # of all steps: those in which the second of two presets is used


class Ranks:
    """The exchange of all ranks: `mean` averages a list of flat gradients, one a rank, or momenta since `send_momenta`. With two
    presets, "sharded_4,gathered_2", the first one gives each rank a shard of the mean, and the second one codes the mean."""

    def __init__(self, preset, parameters, world, seed):
        self.parameters, self.world, self.seed = parameters, world, seed
        self.momentum, self.beta = None, 0.0
        self.open(preset)

    def open(self, preset):
        """From the next exchange on they use this preset, with new states."""
        parameters, world, seed = self.parameters, self.world, self.seed
        preset, _, down = preset.partition(",")
        self.down = Ranks(down, parameters, 1, seed) if down else None
        records, at = (library.Tensor * len(parameters))(), 0
        for record, p in zip(records, parameters):
            record.rows = p.shape[0] if p.dim() > 1 else 1
            record.columns, record.offset, record.weight = p.numel() // record.rows, at, 1
            at += p.numel()
        self.codecs, self.states, self.workspaces = [], [], []
        for rank in range(world):
            options, codec = library.Options(), ctypes.c_void_p()
            lib.tersum_default_options(options)
            options.preset, options.coordinates = preset.encode(), at
            options.tensors, options.tensor_count = records, len(records)
            options.element, options.world, options.rank, options.threads = library.FLOAT, world, rank, 1
            lib.tersum_open(options, codec)
            self.codecs.append(codec)
            self.states.append(torch.zeros(lib.tersum_state_bytes(codec), dtype=torch.uint8))
            self.workspaces.append(torch.empty(lib.tersum_workspace_bytes(codec), dtype=torch.uint8))
            lib.tersum_initialize(codec, self.states[rank].data_ptr(), seed, None)
        self.rounds = []  # of each, how the ranks see it: where things lie differs under sharded_*
        for index in range(lib.tersum_step_count(self.codecs[0])):
            self.rounds.append([library.Step() for _ in self.codecs])
            for codec, step in zip(self.codecs, self.rounds[-1]):
                lib.tersum_get_step(codec, index, step)

    @property
    def bits(self):
        """What a rank gives to its collectives, per coordinate; of two presets the mean, as each goes one of the two ways."""
        bits = lib.tersum_bits_per_coordinate(self.codecs[0])
        return bits if self.down is None else (bits + self.down.bits) / 2

    def send_momenta(self, preset, momentum_of, beta):
        """As DDPHook.send_momenta."""
        self.momentum, self.beta = flat(momentum_of(p) for p in self.parameters), beta
        self.open(preset)

    def summands(self, gradients):
        """What the ranks average."""
        return gradients if self.momentum is None else [torch.lerp(g, self.momentum, self.beta) for g in gradients]

    def mean(self, gradients):
        summands = self.summands(gradients)
        self._exchange(summands)
        if self.down is not None:
            return self.down.mean([torch.cat([values[self._shard(k)] for k, values in enumerate(summands)])])
        if self.momentum is not None:
            self.momentum = summands[0].clone()
        return summands[0]

    def _exchange(self, gradients):
        for index, steps in enumerate(self.rounds):
            kind = steps[0].kind
            if kind == library.CALL:
                for codec, values, state, work in zip(self.codecs, gradients, self.states, self.workspaces):
                    lib.tersum_run(codec, index, values.data_ptr(), state.data_ptr(), work.data_ptr(), None)
            elif kind == library.REDUCE:
                self._reduce(index, steps)
            elif kind == library.SHARDS:
                self._move_shards(index, steps)
            else:
                self._move(steps)

    def _reduce(self, index, steps):
        count, size = steps[0].count, steps[0].count * steps[0].element_bytes
        first, total = self.workspaces[0], self.workspaces[0].data_ptr() + steps[0].offset
        for step, work in zip(steps[1:], self.workspaces[1:]):
            lib.tersum_add(self.codecs[0], index, first.data_ptr(), total, total, work.data_ptr() + step.offset, 0, count, None)
        for step, work in zip(steps[1:], self.workspaces[1:]):
            work[step.offset:step.offset + size] = first[steps[0].offset:steps[0].offset + size]

    def _move(self, steps):
        step, size = steps[0], steps[0].count * steps[0].element_bytes
        for r, to in enumerate(self.workspaces):
            for k, work in enumerate(self.workspaces):
                part, begin = (k, step.offset) if step.kind == library.GATHER else (r, step.received_offset)
                if step.kind == library.SCATTER or k != r:
                    sent = work[step.offset + part * size:step.offset + (part + 1) * size]
                    to[begin + k * size:begin + (k + 1) * size] = sent

    def _move_shards(self, index, steps):
        for r, to in enumerate(self.workspaces):
            at = steps[r].received_offset
            for codec, work in zip(self.codecs, self.workspaces):
                offset, size = ctypes.c_size_t(), ctypes.c_size_t()
                lib.tersum_get_part(codec, index, r, offset, size)
                to[at:at + size.value] = work[offset.value:offset.value + size.value]
                at += size.value

    def _shard(self, rank):
        begin = lib.tersum_shard_begin(self.codecs[rank])
        return slice(begin, begin + lib.tersum_shard_size(self.codecs[rank]))


def flat(tensors):
    return torch.cat([t.detach().flatten() for t in tensors])


def lost(estimate, exact):
    """The energy of the difference, relative to that of `exact`."""
    return float((estimate - exact).square().sum() / exact.square().sum())


def update(optimizer, parameters, gradient):
    """Makes a step of the optimizer, and says what it added to the parameters."""
    before = flat(parameters)
    for p, part in zip(parameters, gradient.split([p.numel() for p in parameters])):
        p.grad = part.view_as(p).clone()
    optimizer.step()
    return flat(parameters) - before


def update_without_trace(optimizer, parameters, gradient):
    """What a step of the optimizer would add."""
    state, weights = copy.deepcopy(optimizer.state_dict()), [p.detach().clone() for p in parameters]
    added = update(optimizer, parameters, gradient)
    optimizer.load_state_dict(state)
    with torch.no_grad():
        for p, weight in zip(parameters, weights):
            p.copy_(weight)
    return added


def validate(task, model):
    model.eval()
    with torch.no_grad():
        loss = statistics.fmean(float(task.loss(model, batch)) for batch in task.held_out())
    model.train()
    return loss


def train(run):
    """One training: its losses, and at every validation the errors of the mean and of the update."""
    torch.set_num_threads(1)
    task = TASKS[run["task"]](run["seed"])
    task.size = run["batch"] or getattr(task, "size", None)
    torch.manual_seed(run["seed"])  # the same initial weights for all codecs
    model = task.model()
    parameters = list(model.parameters())
    codec, _, later = run["codec"].partition(">")
    ranks = Ranks(first_codec(codec), parameters, run["ranks"], run["seed"])
    optimizer = optimizer_of(task, parameters, codec, ranks, run["steps"])
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: run["rate"] * task.rate(step / run["steps"]))
    bits = 0.0
    curve, of_mean, of_update, zeros = [], [], [], []
    for step in range(run["steps"] + 1):
        looks = step % run["every"] == 0
        if looks:
            curve.append([step, step, validate(task, model)])
        if step == run["steps"] or not math.isfinite(curve[-1][2]):
            break
        if later and step == round((1 - LAST_PHASE) * run["steps"]):
            ranks.open(later)
        gradients = []
        for rank in range(run["ranks"]):
            optimizer.zero_grad()
            task.loss(model, task.batch(step, rank)).backward()
            gradients.append(flat(p.grad for p in parameters))
        exact = torch.stack(ranks.summands(gradients)).mean(0)
        mean = ranks.mean(gradients)
        bits += ranks.bits / run["steps"]
        if looks:
            would = update_without_trace(optimizer, parameters, exact)
        did = update(optimizer, parameters, mean)
        rate.step()
        if looks:
            of_mean.append(lost(mean, exact))
            of_update.append(lost(did, would))
            zeros.append(float(((mean == 0) & (exact != 0)).double().mean()))
    return dict(run, curve=curve, bits=bits, parameters=len(mean), error=of_mean, update_error=of_update, zeros=zeros,
                torch=torch.__version__)


def train_to_file(run, path):
    result = train(run)
    path.with_suffix(".part").write_text(json.dumps(result), encoding="utf-8")
    path.with_suffix(".part").replace(path)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--task", default="transformer", choices=list(TASKS))
    parser.add_argument("--codecs", nargs="+", required=True,
                        help=f"presets; SHARDED,GATHERED, which go one way each; PRESET>PRESET, the second "
                             f"one in the last {LAST_PHASE} of the steps; {', '.join(MOMENTA)}; {BASELINE} is always there")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=0, help="of each rank in a step; of transformers, whose is 16")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=1, help="multiplies the task's learning rate")
    parser.add_argument("--every", type=int, default=25, help="steps between two validations")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="trainings at the same time")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/time_to_accuracy/losses"))
    parser.add_argument("--json", type=pathlib.Path, help="write all trainings to this file")
    parser.add_argument("--picture", type=pathlib.Path, help="draw this SVG (needs matplotlib)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    runs = [{"task": given.task, "codec": codec, "seed": seed, "ranks": given.ranks, "batch": given.batch, "steps": given.steps,
             "every": given.every, "rate": given.rate} for seed in given.seeds for codec in dict.fromkeys([BASELINE, *given.codecs])]
    keys = ["task", "codec", "ranks", "batch", "steps", "every", "seed"] + (["rate"] if given.rate != 1 else [])
    paths = [given.out / ("-".join(str(run[key]) for key in keys) + ".json") for run in runs]
    with concurrent.futures.ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(train_to_file, run, path): run for run, path in zip(runs, paths) if not path.exists()}
        for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            run, result = waiting[done], done.result()
            print(f"{number} of {len(waiting)}: {run['codec']} seed {run['seed']}: {result['curve'][-1][2]:.4f}", file=sys.stderr,
                  flush=True)
    results = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    print(table(summaries(results)))
    if given.json:
        given.json.write_text("[\n" + ",\n".join(json.dumps(result) for result in results) + "\n]\n", encoding="utf-8")
    if given.picture:
        draw(summaries(results), given.picture)


if __name__ == "__main__":
    main()
