#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Losses without clocks and networks: all ranks of a training in one process, which a laptop can do.

    PYTHONPATH=examples/pytorch TERSUM_C_LIBRARY=... examples/time_to_accuracy/losses.py --codecs two_shot_2 metric_2

Prints the last validation loss of each training, and how far it is above that of fp32 with the same seed.
"""

import argparse
import ctypes
import statistics

import torch

from tasks import TASKS
from tersum_torch import library
from tersum_torch.library import lib


class Ranks:
    """The exchange of all ranks: `mean` averages a list of flat gradients, one a rank."""

    def __init__(self, preset, parameters, world, seed):
        records, at = (library.Tensor * len(parameters))(), 0
        for record, p in zip(records, parameters):
            record.rows = p.shape[0] if p.dim() > 1 else 1
            record.columns, record.offset, record.weight = p.numel() // record.rows, at, 1
            at += p.numel()
        self.codecs, self.states, self.workspaces, self.world = [], [], [], world
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
        self.steps = []
        for index in range(lib.tersum_step_count(self.codecs[0])):
            self.steps.append(library.Step())
            lib.tersum_get_step(self.codecs[0], index, self.steps[-1])

    def mean(self, gradients):
        for index, step in enumerate(self.steps):
            size = step.count * step.element_bytes
            if step.kind == library.CALL:
                for codec, values, state, work in zip(self.codecs, gradients, self.states, self.workspaces):
                    lib.tersum_run(codec, index, values.data_ptr(), state.data_ptr(), work.data_ptr(), None)
            elif step.kind == library.REDUCE:
                first = self.workspaces[0]
                for work in self.workspaces[1:]:
                    lib.tersum_add(self.codecs[0], index, first.data_ptr(), first.data_ptr() + step.offset,
                                   first.data_ptr() + step.offset, work.data_ptr() + step.offset, 0, step.count, None)
                for work in self.workspaces[1:]:
                    work[step.offset:step.offset + size] = first[step.offset:step.offset + size]
            else:
                self._move(step, size)
        return gradients[0]

    def _move(self, step, size):
        for r, to in enumerate(self.workspaces):
            for k, work in enumerate(self.workspaces):
                part, begin = (k, step.offset) if step.kind == library.GATHER else (r, step.received_offset)
                if step.kind == library.SCATTER or k != r:
                    sent = work[step.offset + part * size:step.offset + (part + 1) * size]
                    to[begin + k * size:begin + (k + 1) * size] = sent


def train(name, codec, seed, given):
    """The last validation loss."""
    task = TASKS[name](seed)
    if given.batch:
        task.size = given.batch
    torch.manual_seed(seed)  # the same initial weights for all codecs
    model = task.model()
    optimizer, parameters = task.optimizer(model.parameters()), list(model.parameters())
    ranks = Ranks(codec, parameters, given.ranks, seed)
    for step in range(given.steps):
        gradients = []
        for rank in range(given.ranks):
            optimizer.zero_grad()
            task.loss(model, task.batch(step, rank)).backward()
            gradients.append(torch.cat([p.grad.flatten() for p in parameters]))
        for p, mean in zip(parameters, ranks.mean(gradients).split([p.numel() for p in parameters])):
            p.grad.copy_(mean.view_as(p))
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return statistics.fmean(float(task.loss(model, batch)) for batch in task.held_out())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--task", default="transformer", choices=list(TASKS))
    parser.add_argument("--codecs", nargs="+", required=True, help="presets; fp32 is always there")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=0, help="of each rank in a step; of transformers, whose is 16")
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(1)
    above = {codec: [] for codec in given.codecs if codec != "fp32"}
    for seed in given.seeds:
        least = train(given.task, "fp32", seed, given)
        print(f"fp32 seed {seed}: {least:.4f}", flush=True)
        for codec, differences in above.items():
            differences.append(train(given.task, codec, seed, given) - least)
            print(f"{codec} seed {seed}: {least + differences[-1]:.4f}, {differences[-1]:+.4f}", flush=True)
    for codec, differences in above.items():
        error = statistics.stdev(differences) / len(differences)**0.5 if len(differences) > 1 else float("nan")
        print(f"{codec}: {statistics.fmean(differences):+.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
