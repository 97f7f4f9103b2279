#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients with many exact zeros of more ranks than the samples have, where drawn noise (more_ranks.py) would fill the zeros: trains a
network of the same layers, and writes the gradient that each rank has in one step. Needs torch and a minute.

usage: train_ranks.py cnn|recommender TO [RANKS]     TO/step<n>_worker<0 .. RANKS-1>.npy and TO/layers.csv; 16 ranks if not given

Data, rates and the step are chosen so that four ranks resemble the samples: in their zeros, in how much of the energy of the ranks
their mean keeps, and in what codecs lose. Training is in double, so that the same numbers come from other processors.
"""

import array
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from more_ranks import write


def generator(*numbers):
    seed = 0
    for number in numbers:
        seed = seed * 1000003 + number
    return torch.Generator().manual_seed(seed)


class Images:
    """Generated pictures of a small pattern, whose place is random, with a fainter one and noise; SGD with momentum."""

    steps, classes, side, part, size = 100, 8, 20, 5, 8

    def __init__(self):
        self.patterns = torch.randn(self.classes, 2, self.part, self.part, generator=generator(1))

    def model(self):
        return nn.Sequential(nn.Conv2d(2, 24, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1200, 120), nn.ReLU(), nn.Linear(120, self.classes))

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    def batch(self, step, rank):
        g = generator(2, step, rank)
        classes = torch.randint(0, self.classes, (2, self.size), generator=g)
        places = torch.randint(0, self.side - self.part + 1, (2, self.size, 2), generator=g)
        pictures = 0.1 * torch.randn(self.size, 2, self.side, self.side, generator=g)
        for share, of, at in zip((1, 0.65), classes.tolist(), places.tolist()):
            for picture, pattern, (y, x) in zip(pictures, of, at):
                picture[:, y : y + self.part, x : x + self.part] += share * self.patterns[pattern]
        return pictures, classes[0]

    def loss(self, outputs, classes):
        return F.cross_entropy(outputs, classes)


class Embeddings(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.u, self.i = nn.Embedding(users, 24), nn.Embedding(items, 24)
        for embedding in (self.u, self.i):
            nn.init.normal_(embedding.weight, std=0.4)
        self.f = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, pairs):
        return self.f(torch.cat([self.u(pairs[:, 0]), self.i(pairs[:, 1])], 1)).squeeze(1)


class Clicks:
    """Clicks of generated users on items, some of which are far more frequent than others; Adam."""

    steps, users, items, size = 200, 3000, 2000, 128

    def __init__(self):
        self.traits = [torch.randn(n, 4, generator=generator(n)) for n in (self.users, self.items)]
        self.often = [torch.arange(1.0, n + 1) ** -power for n, power in ((self.users, 0.8), (self.items, 1.1))]

    def model(self):
        return Embeddings(self.users, self.items)

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, lr=1e-2)

    def batch(self, step, rank):
        g = generator(3, step, rank)
        user, item = (torch.multinomial(often, self.size, replacement=True, generator=g) for often in self.often)
        liking = 3 * (self.traits[0][user] * self.traits[1][item]).sum(1)
        clicks = torch.rand(self.size, generator=g) < torch.sigmoid(liking)
        return torch.stack([user, item], 1), clicks.to(liking)

    def loss(self, outputs, clicks):
        return F.binary_cross_entropy_with_logits(outputs, clicks)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task, target = {"cnn": Images, "recommender": Clicks}[sys.argv[1]](), pathlib.Path(sys.argv[2])
    ranks = int(sys.argv[3]) if len(sys.argv) == 4 else 16
    model = task.model()
    parameters = list(model.parameters())
    optimizer = task.optimizer(parameters)
    for step in range(task.steps):
        given, wanted = (torch.cat(of_ranks) for of_ranks in zip(*(task.batch(step, rank) for rank in range(ranks))))
        optimizer.zero_grad()
        task.loss(model(given), wanted).backward()
        optimizer.step()
    target.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        given, wanted = task.batch(task.steps, rank)
        gradients = torch.autograd.grad(task.loss(model(given), wanted), parameters)
        values = torch.cat([gradient.flatten() for gradient in gradients])
        write(target / f"step{task.steps}_worker{rank}.npy", array.array("f", values.tolist()))
    lines, offset = ["name,rows,columns,offset"], 0
    for name, parameter in model.named_parameters():
        lines.append(f"{name},{len(parameter)},{parameter.numel() // len(parameter)},{offset}")
        offset += parameter.numel()
    (target / "layers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
