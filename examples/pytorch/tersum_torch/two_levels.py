# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""One gradient that ranks on several hosts average: floats within a host, a codec between hosts."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist

from .exchange import Exchange
from tersum.codec import Tensors
from tersum.library import lib

_HEADER = 64  # bytes of a state's first section


class TwoLevelExchange:
    """`Exchange` for ranks of which some share a host. It has the same calls.

    The ranks of a host add their gradients among themselves, in float; each then exchanges its shard of the host's mean with the
    ranks of the same number on the other hosts, by the preset; at last the host gathers the shards, in the gradients' type. So a host sends each value once, however many ranks it has.

    `within` is the group of the ranks of this host, `between` that of the ranks of the same number on all hosts.
    """

    def __init__(self, preset: str, tensors: Tensors, dtype: torch.dtype, device: Any, within: Any, between: Any, *, seed: int = 0,
                 bypass_below: int = 0, bits: float | None = None, weighting: float | None = None, clip: float | None = None,
                 threads: int = 1) -> None:
        self._within, self._ranks = within, dist.get_world_size(within)
        self.coordinates = sum(math.prod(shape) for shape, _, _ in tensors)
        n, rank = self.coordinates, dist.get_rank(within)
        self._cuts = [n // self._ranks * r + n % self._ranks * r // self._ranks for r in range(self._ranks + 1)]
        self._shard = slice(self._cuts[rank], self._cuts[rank + 1])
        self._between = Exchange(preset, tensors, dtype, device, between, seed=seed, bypass_below=bypass_below, bits=bits,
                                 weighting=weighting, clip=clip, threads=threads,
                                 part=(self._shard.start, self._shard.stop))
        self.preset = preset
        self._headers: list[torch.Tensor] = []

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to the exchange between hosts, over all values."""
        return self._between.bits_per_coordinate * self._between.coordinates / max(self.coordinates, 1)

    @property
    def travels(self) -> bool:
        return self._between.travels

    def agree(self) -> None:
        self._between.agree()

    def __call__(self, values: torch.Tensor) -> None:
        summed = values.float()
        dist.all_reduce(summed, group=self._within)
        values.copy_(summed.div_(self._ranks))
        shard = values[self._shard]
        self._between(shard)
        # The header goes along, for a rank learns only of its own shard whether a value was not finite.
        mine = torch.cat([self._between.header, shard.view(torch.uint8)])
        sizes = [_HEADER + (end - begin) * values.element_size() for begin, end in zip(self._cuts, self._cuts[1:])]
        gathered = torch.empty(sum(sizes), dtype=torch.uint8, device=values.device)
        if len(sizes) == 1:
            gathered.copy_(mine)
        else:
            dist.all_to_all_single(gathered, mine.repeat(len(sizes)), output_split_sizes=sizes,
                                   input_split_sizes=[mine.numel()] * len(sizes), group=self._within)
        self._headers = []
        for part, begin, end in zip(gathered.split(sizes), self._cuts, self._cuts[1:]):
            self._headers.append(part[:_HEADER])
            values[begin:end].view(torch.uint8).copy_(part[_HEADER:])

    def save(self) -> torch.Tensor:
        """The state of the exchange between hosts."""
        return self._between.save()

    def load(self, saved: Any) -> None:
        self._between.load(saved)

    def check_saved(self, saved: Any) -> None:
        self._between.check_saved(saved)

    def check(self) -> None:
        self._between.check()

    def was_non_finite(self) -> bool:
        """Whether a gradient of any rank held NaN or Inf in the last exchange: the same answer on every rank."""
        headers = [header.cpu().contiguous() for header in self._headers]
        return any([bool(lib.tersum_was_non_finite(self._between.handle, header.data_ptr())) for header in headers])

    @property
    def saved_residual(self) -> int:
        return 0

    @property
    def residual(self) -> torch.Tensor | None:
        """What feedback keeps of the host's mean of this rank's shard, or None: a view, in their unit."""
        return self._between.residual
