# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""LAMB and LANS, which keep large batches stable by the norm of each parameter. CLAN is LANS with gradients that are
compressed in both directions."""

import torch


class _Layerwise(torch.optim.Optimizer):
    """First and second moments with corrected bias, in both optimizers. A block is one parameter."""

    def __init__(self, parameters, lr=1e-2, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    x.sub_(self.direction(x, x.grad, self.state[x], group), alpha=group["lr"])
        return loss

    def moments(self, gradient, state, group):
        """m and sqrt(v) + eps, without bias."""
        if not state:
            state["step"] = 0
            state["m"], state["v"] = torch.zeros_like(gradient), torch.zeros_like(gradient)
        state["step"] += 1
        first, second = group["betas"]
        state["m"].mul_(first).add_(gradient, alpha=1 - first)
        state["v"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        m = state["m"] / (1 - first ** state["step"])
        v = state["v"] / (1 - second ** state["step"])
        return m, v.sqrt().add_(group["eps"])


def _of_norm(direction, norm):
    """The direction with this norm; as it is if it or the norm is zero."""
    own = direction.norm()
    return direction * (norm / own) if float(own) > 0 and float(norm) > 0 else direction


class LAMB(_Layerwise):
    """You et al., Large Batch Optimization for Deep Learning (ICLR'20), algorithm 2 with phi(z) = z."""

    def direction(self, x, gradient, state, group):
        m, root = self.moments(gradient, state, group)
        return _of_norm(m / root + group["weight_decay"] * x, x.norm())


class LANS(_Layerwise):
    """Zheng et al., Accelerated Large Batch Optimization of BERT Pretraining in 54 minutes (2020), algorithm 2 with
    phi(z) = z: gradients of norm 1, and Nesterov's momentum with both terms of the parameter's norm."""

    def direction(self, x, gradient, state, group):
        norm = gradient.norm()
        gradient = gradient / norm if float(norm) > 0 else gradient
        m, root = self.moments(gradient, state, group)
        decay, first = group["weight_decay"] * x, group["betas"][0]
        length = x.norm()
        return first * _of_norm(m / root + decay, length) + (1 - first) * _of_norm(gradient / root + decay, length)
