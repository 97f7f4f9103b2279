# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""One gradient that the ranks of a process group average: a codec, its memory, and its rounds over torch's collectives."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.distributed as dist

from tersum import library
from tersum.codec import Codec, Tensors
from tersum.library import lib

_elements = {torch.float32: library.FLOAT, torch.float16: library.HALF, torch.bfloat16: library.BFLOAT16}

# As what a round's elements travel where a process group adds them itself: sums of unsigned integers have the bits of
# signed ones. What is missing is moved, and added by the codec.
_sums = {library.FLOAT: torch.float32, library.HALF: torch.float16, library.INT8: torch.int8,
         library.UINT8: torch.uint8, library.INT32: torch.int32, library.UINT32: torch.int32,
         library.INT64: torch.int64, library.UINT64: torch.int64}
_maxima = {library.FLOAT: torch.float32, library.UINT8: torch.uint8}

_LEGACY_STREAM = 1  # cudaStreamLegacy


class Exchange:
    """Averages flat tensors of one length, type and device over a process group, compressed.

    All ranks make it with the same arguments and call it in the same order. `tensors` are the shapes that the flat tensor
    is made of, with a flag whether each is compressed and a weight: (shape, compressed, weight). With `whole` it is one
    vector, which is compressed whatever its shape. With `part` the exchange is of the values from part[0] to part[1] of
    what the tensors make up.

    On a GPU all of it works in torch's current stream of that device, in which it was made, or in another one that waits for
    what was done before. `save`, `load`, `check` and `was_non_finite` wait for theirs.
    """

    def __init__(self, preset: str, tensors: Tensors, dtype: torch.dtype, device: Any, group: Any, *, seed: int = 0,
                 bypass_below: int = 0, bits: float | None = None, weighting: float | None = None, clip: float | None = None,
                 threads: int = 1, whole: bool = False, part: tuple[int, int] | None = None) -> None:
        check_type(dtype)
        self.preset, self.dtype, self.device = preset, dtype, with_index(torch.device(device))
        self.group, self.seed = group, seed
        self.world, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self._codec = Codec(preset, tensors, _elements[dtype], self.world, self.rank, bypass_below=bypass_below, bits=bits,
                            device=library.CUDA if self.device.type == "cuda" else library.HOST, weighting=weighting, clip=clip,
                            threads=threads, whole=whole, part=part)
        self._handle, self._steps, self.coordinates = self._codec.handle, self._codec.steps, self._codec.coordinates
        self._state = torch.zeros(self._codec.state_bytes, dtype=torch.uint8, device=self.device)
        self._workspace = torch.empty(self._codec.workspace_bytes, dtype=torch.uint8, device=self.device)
        with self._on_device():
            lib.tersum_initialize(self._handle, self._state.data_ptr(), seed, self._stream())

    @property
    def bits_per_coordinate(self) -> float:
        """What this rank gives to its collectives: 32 at most, where the values travel as floats."""
        return self._codec.bits_per_coordinate

    @property
    def shard(self) -> slice:
        """The values that this rank gets the mean of: all, but of presets of shards."""
        return self._codec.shard

    @property
    def travels(self) -> bool:
        """Whether the budget pays for anything; if not, the values travel as floats."""
        return self._codec.travels

    def agree(self) -> None:
        """Raises on every rank if one of them has another codec, gradient or seed."""
        mine = self._codec.fingerprint(self.seed)
        both = torch.tensor([mine, -mine], dtype=torch.int64, device=self.device)
        dist.all_reduce(both, op=dist.ReduceOp.MAX, group=self.group)
        if both.tolist() != [mine, -mine]:
            raise library.TersumError("the ranks have different codecs, gradients or seeds")

    def __call__(self, values: torch.Tensor) -> None:
        """Replaces the values by their mean over the ranks, with the same bits on all ranks; of presets of shards those of
        `shard`, and leaves the others as they are."""
        if (values.dtype != self.dtype or values.numel() != self.coordinates or not values.is_contiguous()
                or values.device != self.device):
            raise ValueError(f"the exchange is of {self.coordinates} contiguous values of {self.dtype} on {self.device}")
        with self._on_device():
            self._exchange(values)

    def _exchange(self, values: torch.Tensor) -> None:
        if self.device.type == "cuda":
            # Their memory must not be given to others before this stream is done, whichever it was allocated in.
            for memory in (self._state, self._workspace):
                memory.record_stream(torch.cuda.current_stream(self.device))
        for index, step in enumerate(self._steps):
            if step.kind == library.CALL:
                lib.tersum_run(self._handle, index, values.data_ptr(), self._state.data_ptr(),
                               self._workspace.data_ptr(), self._stream())
            elif step.kind == library.SHARDS:
                self._exchange_shards(index, step)
            elif self.world == 1:
                if step.kind == library.SCATTER:
                    self._bytes(step, step.count, step.received_offset).copy_(self._bytes(step, step.count))
            elif step.kind == library.REDUCE:
                self._reduce(index, step)
            elif step.kind == library.SCATTER:
                parts = step.count * self.world
                dist.all_to_all_single(self._bytes(step, parts, step.received_offset), self._bytes(step, parts),
                                       group=self.group)
            else:
                self._gather(self._bytes(step, step.count * self.world),
                             [step.count * step.element_bytes] * self.world)

    # What lives from step to step.

    def save(self) -> torch.Tensor:
        """The state as a tensor of bytes in host memory: only this rank of a world of this size can load it."""
        saved = torch.empty(self._codec.saved_bytes, dtype=torch.uint8)
        with self._on_device():
            lib.tersum_save(self._handle, self._state.data_ptr(), saved.data_ptr(), saved.numel(), self._stream())
        return saved

    def load(self, saved: Any) -> None:
        """Goes on where `save` was called. Raises if `check_saved` does, and then keeps its own state."""
        saved = saved.cpu().contiguous()
        with self._on_device():
            lib.tersum_load(self._handle, saved.data_ptr(), saved.numel(), self._state.data_ptr(), self._stream())

    def check_saved(self, saved: Any) -> None:
        """Raises if `load` cannot take a saved state: if it is of another exchange or version, or any bit has changed."""
        saved = saved.cpu().contiguous()
        lib.tersum_check_saved(self._handle, saved.data_ptr(), saved.numel())

    def check(self) -> None:
        """Raises if the state is damaged where it tells an exchange which memory to use. Waits for what a GPU does."""
        with self._on_device():
            lib.tersum_check_state(self._handle, self._state.data_ptr(), None, self._stream())

    def was_non_finite(self) -> bool:
        """Whether a rank's gradient held NaN or Inf in the last exchange: the same answer on every rank."""
        header = self._state[:64].cpu()
        return bool(lib.tersum_was_non_finite(self._handle, header.data_ptr()))

    @property
    def residual(self) -> torch.Tensor | None:
        """What feedback keeps of this rank's gradients, or None: a view, in their unit."""
        offset = self._codec.residual_offset
        if offset == 0:
            return None
        return self._state[offset:offset + 4 * self.coordinates].view(torch.float32)

    @property
    def saved_residual(self) -> int:
        """Where `residual` begins in what `save` returns, in bytes; 0 where there is none."""
        offset = self._codec.residual_offset
        return offset + self._codec.saved_bytes - self._codec.state_bytes if offset else 0

    @property
    def header(self) -> torch.Tensor:
        """The first bytes of the state: what `was_non_finite` reads."""
        return self._state[:64]

    @property
    def handle(self) -> Any:
        """The codec, for calls of tersum_c.h."""
        return self._handle

    # Rounds.

    def _stream(self) -> int | None:
        return stream_argument(torch.cuda.current_stream(self.device)) if self.device.type == "cuda" else None

    def _on_device(self) -> Any:
        """The library launches on the device that is current in the calling thread, as CUDA does."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else contextlib.nullcontext()

    def _bytes(self, step: Any, count: int, offset: int | None = None) -> torch.Tensor:
        begin = step.offset if offset is None else offset
        return self._workspace[begin:begin + count * step.element_bytes]

    def _reduce(self, index: int, step: Any) -> None:
        table = {library.SUM: _sums, library.MAX: _maxima}.get(step.operation, {})
        if step.element in table:
            op = dist.ReduceOp.SUM if step.operation == library.SUM else dist.ReduceOp.MAX
            dist.all_reduce(self._bytes(step, step.count).view(table[step.element]), op=op, group=self.group)
            return
        # The owner of each block adds it up in the order of the ranks.
        size, data = step.element_bytes, self._bytes(step, step.count)
        cuts = self._codec.blocks(index)
        sizes = [(end - begin) * size for begin, end in zip(cuts, cuts[1:])]
        mine = sizes[self.rank]
        received = torch.empty(mine * self.world, dtype=torch.uint8, device=self.device)
        dist.all_to_all_single(received, data, output_split_sizes=[mine] * self.world, input_split_sizes=sizes,
                               group=self.group)
        begin = data.data_ptr() + cuts[self.rank] * size
        left = received.data_ptr()
        for k in range(1, self.world if mine > 0 else 0):
            lib.tersum_add(self._handle, index, self._workspace.data_ptr(), begin, left,
                           received.data_ptr() + k * mine, cuts[self.rank], mine // size, self._stream())
            left = begin
        self._gather(data, sizes)

    def _exchange_shards(self, index: int, step: Any) -> None:
        parts = self._codec.parts(index)
        sent, sizes = [self._workspace[begin:begin + size] for begin, size in parts], [size for _, size in parts]
        mine = sizes[self.rank]
        received = self._workspace[step.received_offset:step.received_offset + self.world * mine]
        if self.world == 1:
            received.copy_(sent[0])
            return
        dist.all_to_all_single(received, torch.cat(sent), output_split_sizes=[mine] * self.world, input_split_sizes=sizes,
                               group=self.group)

    def _gather(self, data: torch.Tensor, sizes: list[int]) -> None:
        """Every rank gets the blocks of all; an all-gather of blocks that differ in size."""
        begin = sum(sizes[:self.rank])
        mine = data[begin:begin + sizes[self.rank]]
        dist.all_to_all_single(data, mine.repeat(self.world), output_split_sizes=sizes,
                               input_split_sizes=[sizes[self.rank]] * self.world, group=self.group)


def check_type(dtype: torch.dtype, name: str | None = None) -> None:
    """Raises if gradients of a type, such as those of the parameter of a name, cannot be exchanged."""
    if dtype not in _elements:
        raise TypeError(f"{name + ': ' if name else ''}gradients of {dtype} cannot be compressed: float32, float16 and bfloat16 can")


def check_saved(saved: Any) -> None:
    """Raises if a saved state, or any of a list, is of another version or any bit has changed, whatever exchange it is of."""
    if isinstance(saved, (list, tuple)):
        for part in saved:
            check_saved(part)
        return
    saved = saved.cpu().contiguous()
    lib.tersum_check_saved(None, saved.data_ptr(), saved.numel())


def stream_argument(stream: Any) -> int:
    """A stream of torch as tersum_c.h takes it, where NULL names none: the handle of torch's default stream is 0."""
    return stream.cuda_stream or _LEGACY_STREAM


def with_index(device: Any) -> torch.device:
    """The device as its tensors name it: "cuda" alone leaves the number to the thread that asks, and "cpu" has none."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu") if device.type == "cpu" else device
