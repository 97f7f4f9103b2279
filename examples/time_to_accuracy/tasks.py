# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""What is trained: a model, data that is here or made here, an optimizer. Nothing is downloaded.

A task gives `loss(model, batch)`, `batch(step, rank)` and `held_out()`, a list of batches that no rank trains on; and `rate(share)`,
what the learning rate is multiplied by when this share of all steps is done.
"""

import functools
import math
import pathlib
import sysconfig

import torch
import torch.nn as nn
import torch.nn.functional as F

from optimizers import LAMB, LANS


def _generator(*numbers):
    seed = 0
    for number in numbers:
        seed = (seed * 1000003 + number) % (1 << 62)
    return torch.Generator().manual_seed(seed)


def constant(share):
    return 1.0


def warmed_cosine(share, warm=0.05):
    """Rises over the first steps and falls to zero with the last one, as most trainings have it."""
    return min(1.0, (share + 1e-3) / warm) * 0.5 * (1 + math.cos(math.pi * share))


class CharacterTransformer(nn.Module):
    def __init__(self, characters, width=64, context=64, layers=2):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True,
                                                               norm_first=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, characters)
        self.register_buffer("mask", torch.triu(torch.full((context, context), float("-inf")), 1))

    def forward(self, text):
        x = self.characters(text) + self.positions
        for block in self.blocks:
            x = block(x, src_mask=self.mask)
        return self.out(self.norm(x))


class Transformer:
    """The next character of the sources of Python's standard library; AdamW."""

    def __init__(self, seed, optimizer="adamw", size=16, width=64, layers=2, context=64, lr=None, rate=constant,
                 validated=64):
        folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
        text, held_out = "", ""
        for file in sorted(folder.glob("*.py")):
            if len(text) > 1_500_000:
                break
            source = file.read_text(encoding="utf-8", errors="replace")
            # One file in ten is held out.
            if sum(file.name.encode()) % 10 == 0:
                held_out += source
            else:
                text += source
        self.alphabet = {c: i for i, c in enumerate(sorted(set(text[:300_000]) | {"?"}))}
        self.text, self.held = self._codes(text), self._codes(held_out)
        self.seed, self.size, self.name, self.rate = seed, size, optimizer, rate
        self.width, self.layers, self.context, self.validated = width, layers, context, validated
        self.lr = lr or {"adamw": 2e-3, "lans": 1e-2, "lamb": 1e-2}[optimizer]

    def _codes(self, text):
        unknown = self.alphabet["?"]
        return torch.tensor([self.alphabet.get(c, unknown) for c in text])

    def model(self):
        return CharacterTransformer(len(self.alphabet), self.width, self.context, self.layers)

    def optimizer(self, parameters):
        if self.name == "adamw":
            return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=0.01, **({"fused": True} if hasattr(torch, "compile") else {}))
        return {"lans": LANS, "lamb": LAMB}[self.name](parameters, lr=self.lr)

    def _cut(self, text, generator, size):
        begins = torch.randint(0, len(text) - self.context - 1, (size,), generator=generator)
        return torch.stack([text[b:b + self.context + 1] for b in begins])

    def batch(self, step, rank):
        return self._cut(self.text, _generator(self.seed, step, rank), self.size)

    def held_out(self):
        return [self._cut(self.held, _generator(1, k), self.validated) for k in range(4)]

    def loss(self, model, batch):
        return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


class Images:
    """Classes of generated pictures: smooth patterns that are moved, mixed with another class and covered by noise; SGD
    with momentum."""

    classes, side = 20, 20

    def __init__(self, seed, hidden=(256,), size=32, lr=0.03, rate=constant):
        coarse = torch.randn(self.classes, 3, 5, 5, generator=_generator(7))
        self.patterns = F.interpolate(coarse, size=(self.side, self.side), mode="bilinear", align_corners=False)
        self.seed, self.hidden, self.size, self.lr, self.rate = seed, hidden, size, lr, rate

    def model(self):
        layers, channels = [], 3
        for width in (32, 64, 128):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(8, width), nn.ReLU(), nn.MaxPool2d(2)]
            channels = width
        layers, features = layers + [nn.Flatten()], 128 * 4
        for width in self.hidden:
            layers += [nn.Linear(features, width), nn.ReLU()]
            features = width
        return nn.Sequential(*layers, nn.Linear(features, self.classes))

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=self.lr, momentum=0.9, weight_decay=5e-4)

    def _draw(self, generator, size):
        of = torch.randint(0, self.classes, (2, size), generator=generator)
        shifts = torch.randint(0, self.side, (size, 2), generator=generator)
        pictures = self.patterns[of[0]] + 0.5 * self.patterns[of[1]]
        pictures = torch.stack([p.roll(tuple(s), (1, 2)) for p, s in zip(pictures, shifts.tolist())])
        return pictures + 1.0 * torch.randn(pictures.shape, generator=generator), of[0]

    def batch(self, step, rank):
        return self._draw(_generator(self.seed, step, rank), self.size)

    def held_out(self):
        return [self._draw(_generator(2, k), 128) for k in range(4)]

    def loss(self, model, batch):
        return F.cross_entropy(model(batch[0]), batch[1])


class RecommenderModel(nn.Module):
    def __init__(self, users, items, width=32):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)
        self.top = nn.Sequential(nn.Linear(3 * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, pairs):
        u, i = self.users(pairs[:, 0]), self.items(pairs[:, 1])
        return self.top(torch.cat([u, i, u * i], 1)).squeeze(1)


class Recommender:
    """Clicks of generated users on items, a few of which are popular; embeddings, Adam."""

    rate = staticmethod(constant)

    def __init__(self, seed, users=2000, items=1000):
        g = _generator(11)
        self.user_traits, self.item_traits = torch.randn(users, 4, generator=g), torch.randn(items, 4, generator=g)
        self.popularity = 1.0 / torch.arange(1, items + 1).float()
        self.users, self.items, self.seed = users, items, seed

    def model(self):
        return RecommenderModel(self.users, self.items)

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, lr=3e-3)

    def _draw(self, generator, size):
        user = torch.randint(0, self.users, (size,), generator=generator)
        item = torch.multinomial(self.popularity, size, replacement=True, generator=generator)
        liking = (self.user_traits[user] * self.item_traits[item]).sum(1) - 0.5
        return torch.stack([user, item], 1), (torch.rand(size, generator=generator) < torch.sigmoid(2 * liking)).float()

    def batch(self, step, rank):
        return self._draw(_generator(self.seed, step, rank), 256)

    def held_out(self):
        return [self._draw(_generator(3, k), 2048) for k in range(4)]

    def loss(self, model, batch):
        return F.binary_cross_entropy_with_logits(model(batch[0]), batch[1])


# The names that end in _large have more parameters for what they compute, so that the network matters on a fast one too.
TASKS = {"transformer": Transformer, "cnn": Images, "recommender": Recommender,
         "transformer_lans": functools.partial(Transformer, optimizer="lans"),
         "transformer_lamb": functools.partial(Transformer, optimizer="lamb"),
         "transformer_cosine": functools.partial(Transformer, size=4, lr=1.6e-2, rate=warmed_cosine),
         "transformer_large": functools.partial(Transformer, size=1, context=32, width=256, layers=4, lr=1e-3, rate=warmed_cosine,
                                               validated=16),
         "cnn_large": functools.partial(Images, hidden=(2048, 2048), size=16, rate=warmed_cosine)}
