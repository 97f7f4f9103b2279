# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Compressed gradients for PyTorch's data-parallel training: see README.md beside this package."""

from tersum import TersumError, presets, version

from .advice import advise, save_gradients
from .configuration import Configuration, Rule
from .ddp import DDPHook, ddp_hook, register
from .exchange import Exchange
from .fsdp import fsdp2_reduce_scatter, reduce_scatter_with_fp32_accumulation
from .momentum import MomentumAdamW
from .two_levels import TwoLevelExchange

__all__ = ["Configuration", "DDPHook", "Exchange", "MomentumAdamW", "Rule", "TersumError", "TwoLevelExchange",
           "advise", "ddp_hook", "fsdp2_reduce_scatter", "presets", "reduce_scatter_with_fp32_accumulation", "register", "save_gradients", "version"]
