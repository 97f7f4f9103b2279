# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""torch's CUDA device, on the simulated one: enough of it for examples/pytorch, on a machine without a GPU.

A tensor of the device lies in memory of the simulator's CUDA runtime, which the shared library that TERSUM_C_LIBRARY names
has in place of NVIDIA's. torch works on it as on memory of the host, at once; what the library enqueues is done when torch
next works in that stream, and not earlier. Collectives are Gloo's, which work in the current stream, as NCCL's wait for it.

Every stream has a vector clock, which events carry to others. So it is an error, which names both streams, if one touches
memory that another has touched, without an event between them; if the library is given another stream than torch's current
one; and, at `Device.check()`, if memory was used in a stream that its allocator was not told of (`record_stream`).
"""

import ctypes
import threading
import types
import unittest.mock

import torch
import torch.distributed as dist

from tersum import library

CUDA = torch.device("cuda", 0)
_POSTPONE = "_ZN6tersum9simulator8postponeEP11CUstream_st"  # of tests/support/simulator/runtime_state.hpp


class Stream:
    def __init__(self, device=CUDA):
        self.device, self.name, self.clock = device, f"stream {next(_numbers)}", {}
        handle = ctypes.c_void_p()
        _require(library.lib.cudaStreamCreateWithFlags(ctypes.byref(handle), 1))
        library.lib[_POSTPONE](handle)
        self.cuda_stream = handle.value

    def record_event(self):
        return types.SimpleNamespace(clock=dict(self.clock))

    def wait_event(self, event):
        for stream, at in event.clock.items():
            self.clock[stream] = max(at, self.clock.get(stream, 0))

    def synchronize(self):
        _require(library.lib.cudaStreamSynchronize(ctypes.c_void_p(self.cuda_stream)))


class _Memory:
    """One allocation, which is not freed: what uses it after its end would be another test."""

    def __init__(self, size):
        pointer = ctypes.c_void_p()
        _require(library.lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(size, 1))))
        _require(library.lib.cudaMemset(pointer, 0xff, ctypes.c_size_t(max(size, 1))))  # torch's writes are not seen there
        self.begin, self.end = pointer.value, pointer.value + max(size, 1)
        self.told = {torch.cuda.current_stream()}  # the streams that its allocator knows of
        self.touched, self.pending = {}, set()  # by streams; and by those that the host has not waited for since

    def touch(self, stream):
        for other, at in self.touched.items():
            assert other is stream or stream.clock.get(other, 0) >= at, (
                f"{stream.name} touches memory that {other.name} has touched, and does not wait for it")
        self.touched[stream] = stream.clock[stream]
        self.pending.add(stream)


class Device:
    """`with Device() as device:` torch.cuda is there, for this process; `check` at the end."""

    def __init__(self):
        self._memory, self._patches, self._thread = [], [], threading.local()
        self.calls = 0

    def __enter__(self):
        for owner, name, to in ((torch, "zeros", self._made(torch.zeros)), (torch, "empty", self._made(torch.empty)),
                                (torch, "tensor", self._made(torch.tensor)), (torch.futures, "Future", _future_of(torch.futures.Future)),
                                (torch.cuda, "current_stream", self._current_stream), (torch.cuda, "set_stream", self._set_stream),
                                (torch.cuda, "Stream", Stream), (torch.cuda, "device", self._on), (torch.cuda, "set_device", self._set),
                                (torch.cuda, "current_device", lambda: 0), (dist, "all_reduce", self._collective(dist.all_reduce)),
                                (dist, "all_to_all_single", self._collective(dist.all_to_all_single))):
            self._patches.append(unittest.mock.patch.object(owner, name, to))
        for name in ("tersum_initialize", "tersum_run", "tersum_add", "tersum_save", "tersum_load", "tersum_check_state"):
            self._patches.append(unittest.mock.patch.object(library.lib, name, self._call(name, getattr(library.lib, name))))
        for patch in self._patches:
            patch.start()
        OnDevice.home = self
        return self

    def __exit__(self, *_):
        for patch in reversed(self._patches):
            patch.stop()

    def put(self, tensor):
        """A copy on the device, made in the current stream."""
        return torch.empty(tensor.shape, dtype=tensor.dtype, device=CUDA).copy_(tensor)

    def check(self):
        for memory in self._memory:
            for stream in memory.pending - memory.told:
                raise AssertionError(f"memory was used in {stream.name} without record_stream")

    def host_waits(self):
        for memory in self._memory:
            memory.pending.discard(torch.cuda.current_stream())

    def of(self, pointer):
        return next((m for m in self._memory if m.begin <= pointer < m.end), None)

    def work(self, pointers):
        """What the current stream does next touches these."""
        stream = torch.cuda.current_stream()
        stream.clock[stream] = stream.clock.get(stream, 0) + 1
        for pointer in pointers:
            memory = self.of(pointer)
            if memory is not None:
                memory.touch(stream)
        return stream

    def _made(self, make):
        def on(*arguments, device=None, **options):
            made = make(*arguments, **options)
            if device is None or torch.device(device).type != "cuda":
                return made
            memory = _Memory(made.numel() * made.element_size())
            self._memory.append(memory)
            raw = torch.frombuffer((ctypes.c_byte * (memory.end - memory.begin)).from_address(memory.begin), dtype=torch.uint8)
            raw = raw[:made.numel() * made.element_size()].view(made.dtype).view(made.shape)
            raw.copy_(made)
            self.work([memory.begin])
            return raw.as_subclass(OnDevice)
        return on

    def _current_stream(self, device=None):
        if not hasattr(self._thread, "stream"):
            self._thread.stream = Stream()  # of a thread that has chosen none: the one that all share would hide mistakes
        return self._thread.stream

    def _set_stream(self, stream):
        self._thread.stream = stream

    def _set(self, device):
        self._thread.device = True

    def _on(self, device):
        self._thread.device = True
        return unittest.mock.MagicMock()

    def _collective(self, function):
        def on(*tensors, **options):
            given = [t for t in tensors if isinstance(t, OnDevice)]
            if given:
                self.work([t.data_ptr() for t in given]).synchronize()
            return function(*tensors, **options)
        return on

    def _call(self, name, function):
        def on(codec, *arguments):
            pointers = [a for a in arguments if isinstance(a, int) and self.of(a) is not None]
            if pointers:
                given, stream = arguments[-1], self.work(pointers)
                assert getattr(self._thread, "device", False), f"{name} was called in a thread without a device"
                assert given == stream.cuda_stream, f"{name} works in another stream than torch"
                self.calls += 1
            result = function(codec, *arguments)
            if pointers and name in ("tersum_save", "tersum_load", "tersum_check_state"):
                self.host_waits()
            return result
        return on


class OnDevice(torch.Tensor):
    """A tensor of the device. Whatever torch does with it, it does after what its current stream was given."""

    home = None
    device = CUDA
    is_cuda = True

    def cpu(self):
        copy = self.clone().as_subclass(torch.Tensor)
        OnDevice.home.host_waits()
        return copy

    def record_stream(self, stream):
        OnDevice.home.of(self.data_ptr()).told.add(stream)

    @classmethod
    def __torch_function__(cls, function, of, arguments=(), options=None):
        if getattr(function, "__name__", "") in _TOUCHING:
            tensors = [t for t in _flat(arguments) if isinstance(t, OnDevice)]
            with torch._C.DisableTorchFunction():
                pointers = [t.data_ptr() for t in tensors]
            OnDevice.home.work(pointers).synchronize()
        return super().__torch_function__(function, of, arguments, options or {})


_TOUCHING = {"copy_", "clone", "cat", "repeat", "mul_", "isfinite", "tolist", "to", "where", "lerp", "equal", "allclose"}


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def _future_of(plain):
    class Future:
        """torch's: what waits for it goes on in its current stream after what the stream of `set_result` had."""

        def __init__(self, *, devices=None):
            self._future, self._event, self._before = plain(), None, None
            self._devices = devices

        def __class_getitem__(cls, _):  # the methods of torch.futures name their class so
            return cls

        def set_result(self, result):
            if self._devices:
                self._event = torch.cuda.current_stream().record_event()
            self._future.set_result(result)

        def set_exception(self, error):
            self._future.set_exception(error)

        def then(self, callback):
            after = Future(devices=self._devices)
            after._future, after._before = self._future.then(callback), self
            return after

        def wait(self):
            result = self._future.wait()
            event = self._event if self._before is None else self._before._event
            if event is not None:
                torch.cuda.current_stream().wait_event(event)
            return result

    return Future


def _count():
    number = 0
    while True:
        number += 1
        yield number


_numbers = _count()


def _require(error):
    assert error == 0, f"the simulated runtime returns {error}"
