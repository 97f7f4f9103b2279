# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""A preset for one gradient and one rank: what `tersum_open` makes. It knows no arrays, only addresses."""

import ctypes
import math
from typing import Any, List, Optional, Sequence, Tuple

from . import library
from .library import lib

Tensors = Sequence[Tuple[Sequence[int], bool, Optional[float]]]


class Codec:
    """`tensors` are the shapes that a flat gradient is made of, with a flag whether each is compressed and a weight: (shape,
    compressed, weight). With `whole` it is one vector, which is compressed whatever its shape. With `part` the codec is for the values
    from part[0] to part[1]. `element` and `device` are those of tersum_c.h, as are `bits`, `weighting` and `clip`."""

    def __init__(self, preset: str, tensors: Tensors, element: int, world: int, rank: int, *, device: int = library.HOST,
                 bypass_below: int = 0, bits: Optional[float] = None, weighting: Optional[float] = None,
                 clip: Optional[float] = None, threads: int = 1, whole: bool = False,
                 part: Optional[Tuple[int, int]] = None) -> None:
        records, self.coordinates = (library.Tensor * len(tensors))(), 0
        for record, (shape, compressed, weight) in zip(records, tensors):
            size = math.prod(shape)
            # A tensor of one row bypasses the codec.
            record.rows = shape[0] if compressed and len(shape) > 1 and size > 0 else 1
            record.columns = size // max(record.rows, 1)
            record.offset, record.weight = self.coordinates, 1 if weight is None else weight
            self.coordinates += size
        options = library.Options()
        lib.tersum_default_options(options)
        options.preset, options.coordinates = preset.encode(), self.coordinates
        if not whole:
            options.tensors, options.tensor_count = records, len(tensors)
        if part is not None:
            options.boundaries = (ctypes.c_uint64 * 2)(*part)
            self.coordinates = part[1] - part[0]
        options.bypass_below, options.element = bypass_below, element
        options.world, options.rank, options.threads, options.device = world, rank, threads, device
        if bits is not None:
            options.bits = bits
        if weighting is not None:
            options.weighting = weighting
        if clip is not None:
            options.clip = clip
        self.world, self.rank = world, rank
        self.handle = ctypes.c_void_p()
        lib.tersum_open(options, self.handle)
        self.steps: List[Any] = []
        for index in range(lib.tersum_step_count(self.handle)):
            step = library.Step()
            lib.tersum_get_step(self.handle, index, step)
            self.steps.append(step)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            lib.tersum_close(self.handle)

    @property
    def state_bytes(self) -> int:
        return int(lib.tersum_state_bytes(self.handle))

    @property
    def workspace_bytes(self) -> int:
        return int(lib.tersum_workspace_bytes(self.handle))

    @property
    def saved_bytes(self) -> int:
        return int(lib.tersum_saved_bytes(self.handle))

    @property
    def residual_offset(self) -> int:
        """Where the residual begins in the state, in bytes; 0 where the codec keeps none."""
        return int(lib.tersum_residual_offset(self.handle))

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to its collectives: 32 at most, where the values travel as floats."""
        return float(lib.tersum_bits_per_coordinate(self.handle))

    @property
    def shard(self) -> slice:
        """The values that this rank gets the mean of: all, but of presets of shards."""
        begin = lib.tersum_shard_begin(self.handle)
        return slice(begin, begin + lib.tersum_shard_size(self.handle))

    @property
    def travels(self) -> bool:
        """Whether the budget pays for anything; if not, the values travel as floats."""
        return bool(lib.tersum_travels(self.handle))

    def fingerprint(self, seed: int) -> int:
        """The same on all ranks whose codecs, gradients and seeds are the same. It fits a signed integer."""
        return int(lib.tersum_fingerprint(self.handle, seed)) >> 1

    def parts(self, index: int) -> List[Tuple[int, int]]:
        """Of step `index`, a SHARDS: the offset and the size of what goes to each rank, in bytes of the workspace."""
        found = []
        for rank in range(self.world):
            offset, size = ctypes.c_size_t(), ctypes.c_size_t()
            lib.tersum_get_part(self.handle, index, rank, offset, size)
            found.append((offset.value, size.value))
        return found

    def blocks(self, index: int) -> List[int]:
        """Cuts of the elements of step `index`, a REDUCE, in a block for each rank to add up."""
        count = self.steps[index].count
        return [count * rank // self.world for rank in range(self.world + 1)]


def check_saved(address: int, size: int, codec: Optional[Codec] = None) -> None:
    """Raises if a saved state is of another version, or of another codec than the one given, or any bit has changed."""
    lib.tersum_check_saved(codec.handle if codec is not None else None, address, size)
