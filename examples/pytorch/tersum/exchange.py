# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""A gradient in a numpy array that ranks average over a transport of the caller's."""

from typing import Any, List, Optional, Protocol, Sequence

import numpy as np

from . import library
from .codec import Codec, Tensors
from .codec import check_saved as _check_saved
from .library import lib

_elements = {"float32": library.FLOAT, "float16": library.HALF, "bfloat16": library.BFLOAT16}


class Transport(Protocol):
    """What an exchange needs of the ranks. Whatever has these members will do."""

    rank: int
    size: int

    def all_to_all(self, sent: Sequence[np.ndarray], received: Sequence[np.ndarray]) -> None:
        """Gives sent[r] to rank r, and puts what rank r gives to this one in received[r]: arrays of bytes, whose sizes may differ, this
        rank's own among them. All ranks call it in the same order."""


class Exchange:
    """Averages flat arrays of one length and type over the ranks of a transport, compressed.

    All ranks make it with the same arguments and call it in the same order. `tensors` are the shapes that the array is made of; by
    default all of it is one tensor, which is compressed. Arrays are float32, float16 or bfloat16 of ml_dtypes.
    """

    def __init__(self, preset: str, size: int, transport: Transport, *, dtype: Any = np.float32, tensors: Optional[Tensors] = None,
                 seed: int = 0, bypass_below: int = 0, threads: int = 1) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.name not in _elements:
            raise TypeError(f"arrays of {self.dtype} cannot be compressed: float32, float16 and bfloat16 can")
        self.transport, self.seed = transport, seed
        self.codec = Codec(preset, [((size,), True, None)] if tensors is None else tensors, _elements[self.dtype.name], transport.size,
                           transport.rank, bypass_below=bypass_below, threads=threads, whole=tensors is None)
        if self.codec.coordinates != size:
            raise ValueError(f"the tensors have {self.codec.coordinates} values, and the array {size}")
        self._state, self._workspace = _aligned(self.codec.state_bytes), _aligned(self.codec.workspace_bytes)
        lib.tersum_initialize(self.codec.handle, self._state.ctypes.data, seed, None)

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to the transport."""
        return self.codec.bits_per_coordinate

    def agree(self) -> None:
        """Raises on every rank if one of them has another codec, array or seed."""
        mine = np.array([self.codec.fingerprint(self.seed)]).view(np.uint8)
        theirs = [np.empty_like(mine) for _ in range(self.codec.world)]
        self.transport.all_to_all([mine] * self.codec.world, theirs)
        if any(bytes(other) != bytes(mine) for other in theirs):
            raise library.TersumError("the ranks have different codecs, arrays or seeds")

    def __call__(self, values: np.ndarray) -> None:
        """Replaces the values by their mean over the ranks, with the same bits on all of them; under presets of shards those of
        `codec.shard`, and leaves the others as they are."""
        contiguous = values.flags.c_contiguous and values.flags.writeable
        if values.dtype != self.dtype or values.size != self.codec.coordinates or not contiguous:
            raise ValueError(f"the exchange is of {self.codec.coordinates} contiguous values of {self.dtype} that can be written")
        for index, step in enumerate(self.codec.steps):
            if step.kind == library.CALL:
                lib.tersum_run(self.codec.handle, index, values.ctypes.data, self._state.ctypes.data, self._workspace.ctypes.data, None)
            elif step.kind == library.REDUCE:
                self._reduce(index, step)
            elif step.kind == library.GATHER:
                self._gather(self._bytes(step.offset, step.count * step.element_bytes * self.codec.world),
                             [step.count * step.element_bytes] * self.codec.world)
            else:
                self._scatter(index, step)

    def was_non_finite(self) -> bool:
        """Whether a rank's values held NaN or Inf in the last exchange: the same answer on every rank."""
        return bool(lib.tersum_was_non_finite(self.codec.handle, self._state.ctypes.data))

    def save(self) -> np.ndarray:
        """The state as bytes: only this rank of as many ranks can load it."""
        saved = np.empty(self.codec.saved_bytes, np.uint8)
        lib.tersum_save(self.codec.handle, self._state.ctypes.data, saved.ctypes.data, saved.size, None)
        return saved

    def load(self, saved: np.ndarray) -> None:
        """Goes on where `save` was called, with the same bits. Raises, and keeps its own state, if the bytes are another codec's or
        have changed."""
        saved = np.ascontiguousarray(saved, np.uint8)
        _check_saved(saved.ctypes.data, saved.size, self.codec)
        lib.tersum_load(self.codec.handle, saved.ctypes.data, saved.size, self._state.ctypes.data, None)

    # Rounds.

    def _bytes(self, offset: int, size: int) -> np.ndarray:
        return self._workspace[offset:offset + size]

    def _reduce(self, index: int, step: Any) -> None:
        """The owner of each block adds it up in the order of the ranks, by the codec's own operation."""
        size, cuts, rank = step.element_bytes, self.codec.blocks(index), self.codec.rank
        data = self._bytes(step.offset, step.count * size)
        mine = data[cuts[rank] * size:cuts[rank + 1] * size]
        received = [_aligned(mine.size) for _ in range(self.codec.world)]
        self.transport.all_to_all([data[a * size:b * size] for a, b in zip(cuts, cuts[1:])], received)
        for other in received[1:] if mine.size else []:
            lib.tersum_add(self.codec.handle, index, self._workspace.ctypes.data, received[0].ctypes.data, received[0].ctypes.data,
                           other.ctypes.data, cuts[rank], mine.size // size, None)
        mine[:] = received[0]
        self._gather(data, [(b - a) * size for a, b in zip(cuts, cuts[1:])])

    def _gather(self, data: np.ndarray, sizes: List[int]) -> None:
        parts = _split(data, sizes)
        self.transport.all_to_all([parts[self.codec.rank].copy()] * self.codec.world, parts)

    def _scatter(self, index: int, step: Any) -> None:
        if step.kind == library.SHARDS:
            sent = self.codec.parts(index)
        else:
            size = step.count * step.element_bytes
            sent = [(step.offset + rank * size, size) for rank in range(self.codec.world)]
        mine = sent[self.codec.rank][1]
        received = self._bytes(step.received_offset, mine * self.codec.world)
        self.transport.all_to_all([self._bytes(*part) for part in sent], _split(received, [mine] * self.codec.world))


def _split(data: np.ndarray, sizes: Sequence[int]) -> List[np.ndarray]:
    parts, begin = [], 0
    for size in sizes:
        parts.append(data[begin:begin + size])
        begin += size
    return parts


def _aligned(size: int) -> np.ndarray:
    """Bytes at a multiple of 16."""
    memory = np.zeros(size + 15, np.uint8)
    begin = -memory.ctypes.data % 16
    return memory[begin:begin + size]
