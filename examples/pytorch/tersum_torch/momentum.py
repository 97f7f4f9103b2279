# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""AdamW whose ranks send momenta in place of gradients, which takes 1 or 2 bits where gradients take 4."""

from __future__ import annotations

from typing import Any

import torch

LEAST_ROOT = 0.1


class MomentumAdamW(torch.optim.AdamW):
    """1-bit Adam (Tang et al., ICML'21, algorithm 1) with any codec, and with AdamW's decay.

        hook = tersum_torch.ddp_hook("two_shot_4")
        ddp.register_comm_hook(None, hook)
        optimizer = tersum_torch.MomentumAdamW(ddp.parameters(), hook, "two_shot_1_ef", freeze_after=1500, lr=1e-3)

    It is torch's AdamW for `freeze_after` steps, in which gradients travel by the codec of the hook. From then on second moments
    stay as they are, and what the ranks average, in `codec`, is beta_1 m + (1 - beta_1) gradient with the last mean for m. A
    learning rate that warms up should have done so by then. All parameters have the same beta_1.

    A coordinate that had hardly a gradient by then, such as a row of an embedding that did not occur, would take steps without
    bound. So no root of a second moment is below a tenth of the root mean square of those of its parameter.

    parameters    As of AdamW, and those of the model that has the hook.
    hook          A DDPHook, or whatever has its `send_momenta`.
    codec         A preset. With feedback (`_ef`) 1 bit is enough.
    freeze_after  Steps, at least 1. A tenth to a fifth of all steps.

    A checkpoint holds `state_dict()` of the optimizer and that of the hook.
    """

    def __init__(self, parameters: Any, hook: Any, codec: Any, freeze_after: int, **options: Any) -> None:
        super().__init__(parameters, **options)
        if freeze_after < 1:
            raise ValueError("freeze_after must be at least 1: before the first step there is no second moment")
        if self.defaults["amsgrad"] or self.defaults["maximize"]:
            raise ValueError("MomentumAdamW has neither amsgrad nor maximize")
        if len({group["betas"][0] for group in self.param_groups}) != 1:
            raise ValueError("all parameters need the same beta_1: the hook has one momentum")
        self._hook, self._codec, self._freeze_after = hook, codec, freeze_after
        for group in self.param_groups:
            group["steps"] = 0

    @property
    def frozen(self) -> bool:
        """Whether second moments stay and momenta travel."""
        return self.param_groups[0]["steps"] >= self._freeze_after

    def step(self, closure: Any = None) -> Any:
        if self.frozen:
            loss = self._frozen_step(closure)
        else:
            loss = super().step(closure)
        for group in self.param_groups:
            group["steps"] += 1
        if self.param_groups[0]["steps"] == self._freeze_after:
            self._freeze()
        return loss

    @torch.no_grad()
    def _freeze(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if state:
                    unbiased = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
                    root = unbiased.sqrt_().add_(group["eps"])
                    least = LEAST_ROOT * root.square().mean().sqrt()
                    state["root"] = torch.maximum(root, least)
        self._hook.send_momenta(self._codec, self._momentum_of, self.param_groups[0]["betas"][0])
        for state in self.state.values():
            for name in ("exp_avg", "exp_avg_sq"):
                state.pop(name, None)

    def _momentum_of(self, parameter: Any) -> torch.Tensor:
        state = self.state[parameter]
        return state["exp_avg"] if state else torch.zeros_like(parameter)

    @torch.no_grad()
    def _frozen_step(self, closure: Any) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and "root" in self.state[p]:
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.addcdiv_(p.grad.to(p.dtype), self.state[p]["root"], value=-group["lr"])
        return loss
