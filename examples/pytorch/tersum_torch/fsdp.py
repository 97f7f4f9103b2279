# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Reduce-scatters, compressed: of FSDP2 (`fully_shard`), and in place of Megatron's reduce_scatter_with_fp32_accumulation."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .exchange import Exchange, check_saved


UNCOMPRESSED = "all_to_all"  # values travel as they are, and owners of shards add them in float32


def fsdp2_reduce_scatter(codec: str = "sharded_4", *, seed: int = 0, threads: int = 1) -> ReduceScatter:
    """For `FSDPModule.set_custom_reduce_scatter`: one for each module, because each keeps a state.

        for number, module in enumerate(m for m in model.modules() if isinstance(m, FSDPModule)):
            module.set_custom_reduce_scatter(tersum_torch.fsdp2_reduce_scatter("sharded_4", seed=number))

    codec    A preset sharded_* or summed_shards_*. Every rank gets the mean of its shard after one encoding. "all_to_all" sends values
             as they are, and adds them in float32.
    seed     Of the rounding: the same on all ranks, another for each module.
    threads  Of the CPU, for encoding and decoding.
    """
    return ReduceScatter(codec, seed, threads)


def reduce_scatter_with_fp32_accumulation(output_tensor: torch.Tensor, input_tensor: torch.Tensor, op: Any, group: Any,
                                          async_op: bool = False, *, bits: int = 16) -> Any:
    """In place of Megatron's function of this name, whose bits it has at 16: an all-to-all of the values in their type, and sums in
    float32. `functools.partial(..., bits=8)`, or 4, sends codes, which the owner of a shard decodes and adds in float32.

    What it returns under `async_op` has a `wait`; the work is done before it returns. A state is kept for each size, type and group.
    """
    if bits not in _CODECS:
        raise ValueError(f"bits is {bits}, and may be 16, 8 or 4")
    key = (bits, input_tensor.numel(), input_tensor.dtype, input_tensor.device, group)
    if key not in _scatters:
        _scatters[key] = ReduceScatter(_CODECS[bits], 0, 1)
    _scatters[key](output_tensor, input_tensor, group, op)
    return _Done() if async_op else None


_CODECS = {16: UNCOMPRESSED, 8: "sharded_8", 4: "sharded_4"}
_scatters: dict[Any, ReduceScatter] = {}


class _Done:
    def wait(self) -> None:
        pass


class ReduceScatter:
    """What `fsdp2_reduce_scatter` makes. It works in the stream and on the group that FSDP gives it."""

    def __init__(self, codec: str, seed: int, threads: int) -> None:
        if not codec.startswith(("sharded_", "summed_shards_")) and codec != UNCOMPRESSED:
            raise ValueError(f"{codec} leaves the whole mean on every rank: a reduce-scatter takes a preset sharded_* or "
                             "summed_shards_*")
        self._codec, self._seed, self._threads = codec, seed, threads
        self._exchange: Any = None
        self._saved: Any = None
        self._bits = 0.0  # of UNCOMPRESSED

    def allocate(self, size: Any, *, dtype: torch.dtype, device: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False) -> Any:
        # torch hands out both forms.
        kind, mean, total = (getattr(of, "op", of) for of in (op, dist.ReduceOp.AVG, dist.ReduceOp.SUM))
        if kind not in (mean, total):
            raise NotImplementedError(f"the reduce-scatter can do a mean or a sum, and not {op}")
        values = input_tensor.view(-1)
        if self._codec == UNCOMPRESSED:
            self._sum(output_tensor, values, group, kind == mean)
            return None
        if self._exchange is None:
            self._exchange = Exchange(self._codec, [((values.numel(),), True, None)], values.dtype, values.device, group,
                                      seed=self._seed, threads=self._threads, whole=True)
            self._exchange.agree()
            if self._saved is not None:
                self._exchange.load(self._saved)
                self._saved = None
        mine = values[self._exchange.shard]  # where the exchange leaves the mean
        kept = None if output_tensor.data_ptr() == mine.data_ptr() else mine.clone()
        self._exchange(values)
        output_tensor.view(-1).copy_(mine)
        if kept is not None:
            mine.copy_(kept)
        if kind == total:
            output_tensor.mul_(dist.get_world_size(group))
        return None

    def _sum(self, output_tensor: torch.Tensor, values: torch.Tensor, group: Any, mean: bool) -> None:
        world = dist.get_world_size(group)
        if values.numel() % world != 0:
            raise ValueError(f"{values.numel()} values have no equal shards for {world} ranks")
        self._bits = 8.0 * values.element_size()
        received = torch.empty_like(values)
        dist.all_to_all_single(received.view(torch.uint8), values.view(torch.uint8), group=group)
        total = torch.sum(received.view(world, -1), dim=0, dtype=torch.float32)
        output_tensor.view(-1).copy_(total.div_(world) if mean else total)

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to its collectives, known after the first step."""
        return self._exchange.bits_per_coordinate if self._exchange else self._bits

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
