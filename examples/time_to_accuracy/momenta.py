# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Codecs of trainings with AdamW in which momenta travel in place of gradients, once second moments are frozen."""

import torch

import tersum_torch

# Of gradients, and of momenta. With fp16 for both it is the same optimizer uncompressed.
MOMENTA = {"momentum_1": ("two_shot_4", "two_shot_1_ef"), "momentum_fp16": ("fp16", "fp16")}
FREEZE = 0.2  # of all steps: when second moments are frozen


def first_codec(name):
    """The preset of a training's first step."""
    return MOMENTA[name][0] if name in MOMENTA else name


def optimizer_of(task, parameters, name, hook, steps):
    """The task's optimizer, or MomentumAdamW with the same parameters."""
    parameters = list(parameters)
    own = task.optimizer(parameters)
    if name not in MOMENTA:
        return own
    if type(own) is not torch.optim.AdamW:
        raise ValueError(f"{name} is for tasks with AdamW")
    options = {key: own.defaults[key] for key in ("lr", "betas", "eps", "weight_decay")}
    return tersum_torch.MomentumAdamW(parameters, hook, MOMENTA[name][1], max(1, round(FREEZE * steps)), **options)
