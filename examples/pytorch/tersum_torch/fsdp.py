# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""The reduce-scatter of FSDP2 (`fully_shard`), compressed."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .exchange import Exchange, check_saved


def fsdp2_reduce_scatter(codec: str = "sharded_4", *, seed: int = 0, threads: int = 1) -> ReduceScatter:
    """For `FSDPModule.set_custom_reduce_scatter`: one for each module, because each keeps a state.

        for number, module in enumerate(m for m in model.modules() if isinstance(m, FSDPModule)):
            module.set_custom_reduce_scatter(tersum_torch.fsdp2_reduce_scatter("sharded_4", seed=number))

    codec    A preset sharded_* or summed_shards_*. Every rank gets the mean of its shard after one encoding.
    seed     Of the rounding: the same on all ranks, another for each module.
    threads  Of the CPU, for encoding and decoding.
    """
    return ReduceScatter(codec, seed, threads)


class ReduceScatter:
    """What `fsdp2_reduce_scatter` makes. It works in the stream and on the group that FSDP gives it."""

    def __init__(self, codec: str, seed: int, threads: int) -> None:
        if not codec.startswith(("sharded_", "summed_shards_")):
            raise ValueError(f"{codec} leaves the whole mean on every rank: a reduce-scatter takes a preset sharded_* or "
                             "summed_shards_*")
        self._codec, self._seed, self._threads = codec, seed, threads
        self._exchange: Any = None
        self._saved: Any = None

    def allocate(self, size: Any, *, dtype: torch.dtype, device: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        # torch hands out both forms.
        kind, mean, total = (getattr(of, "op", of) for of in (op, dist.ReduceOp.AVG, dist.ReduceOp.SUM))
        if kind not in (mean, total):
            raise NotImplementedError(f"the reduce-scatter can do a mean or a sum, and not {op}")
        values = input_tensor.view(-1)
        if self._exchange is None:
            self._exchange = Exchange(self._codec, [((values.numel(),), True, None)], values.dtype, values.device, group,
                                      seed=self._seed, threads=self._threads, whole=True)
            self._exchange.agree()
            if self._saved is not None:
                self._exchange.load(self._saved)
                self._saved = None
        self._exchange(values)
        output_tensor.view(-1).copy_(values[self._exchange.shard])
        if kind == total:
            output_tensor.mul_(dist.get_world_size(group))
        return None

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to its collectives, known after the first step."""
        return self._exchange.bits_per_coordinate if self._exchange else 0.0

    def was_non_finite(self) -> bool:
        """Whether a gradient was not finite in this rank's shard in the last step: other shards only their ranks know, but under
        summed_shards_* all do."""
        return bool(self._exchange and self._exchange.was_non_finite())

    def state_dict(self) -> dict[str, Any]:
        """This rank's state, to be saved between two steps; every rank saves its own."""
        return {"version": 1, "codec": self._codec, "state": self._exchange.save() if self._exchange else self._saved}

    def load_state_dict(self, saved: Any) -> None:
        """Goes on where `state_dict` was called, with the same bits. Raises TersumError if a bit has changed since."""
        if (saved["version"], saved["codec"]) != (1, self._codec):
            raise ValueError(f"the state is of {saved['codec']}, and this is {self._codec}")
        if saved["state"] is not None:
            check_saved(saved["state"])
        if self._exchange is not None and saved["state"] is not None:
            self._exchange.load(saved["state"])
        else:
            self._saved = saved["state"]
