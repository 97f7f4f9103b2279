#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of examples/pytorch on a simulated device: gradients in its memory give the bits of gradients of the host, and streams
wait where they must. Two ranks over Gloo, which stands for NCCL: simulated_torch.py says what is real.

    tests/examples/test_pytorch_device.py [TEST...]

TERSUM_C_LIBRARY names the shared library that was linked with the simulator. Ends with 77, skipped, without torch.
"""

import datetime
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("torch") is None:
    print(f"skipped: {sys.executable} has no torch (Debian's python3-torch)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))

import torch
import torch.distributed as dist

import tersum_torch
from simulated_torch import CUDA, Device

WORLD = 2
SHAPES = [((24, 80), True, None), ((33,), True, None), ((31, 64), True, None)]
SIZE = 24 * 80 + 33 + 31 * 64


def gradient(seed, dtype=torch.float32, size=SIZE):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(dtype)


def same(a, b):
    return torch.equal(a.cpu().view(torch.uint8), b.cpu().view(torch.uint8))


# What each rank does.

def exchanges(device, rank):
    """Every preset, three steps: the bits of the host; of factors, whose sums differ, nearly so."""
    for name in tersum_torch.presets():
        whole = name.startswith(("sharded_", "summed_shards_"))
        for dtype in (torch.float32, torch.bfloat16) if name == "rotated_sat4" else (torch.float32,):
            here, there = (tersum_torch.Exchange(name, SHAPES, dtype, of, dist.group.WORLD, seed=9, whole=whole)
                           for of in ("cpu", CUDA))
            there.agree()
            for step in range(3):
                expected = gradient(10 * step + rank, dtype)
                values = device.put(expected)
                here(expected)
                there(values)
                mean = values.cpu()
                if name.startswith("powersgd"):
                    assert torch.allclose(mean, expected, rtol=1e-3, atol=1e-4), name
                else:
                    assert same(mean, expected), f"{name}, {dtype}: the device has other bits than the host"
            assert not there.was_non_finite()
            saved = there.save()
            there.load(saved)
            assert torch.equal(saved, there.save()), name
            there.check()
            values = device.put(torch.full((SIZE,), float("inf") if rank == 1 else 1.0, dtype=dtype))
            there(values)
            assert whole or there.was_non_finite(), f"{name}: an Inf was not seen"


class Bucket:
    """As DDP hands it out."""

    def __init__(self, parameters, gradients, buffer, last):
        self.parameters, self.gradients = lambda: parameters, lambda: gradients
        self.buffer, self.is_last, self.index = lambda: buffer, lambda: last, lambda: int(last)


def buckets(parameters, values):
    """Two of them, the last parameters first."""
    cuts, begin = [], 0
    for parameter in parameters:
        cuts.append(values[begin:begin + parameter.numel()].view(parameter.shape))
        begin += parameter.numel()
    first = parameters[0].numel()
    return [Bucket(parameters[1:], cuts[1:], values[first:], False), Bucket(parameters[:1], cuts[:1], values[:first], True)]


def hook(device, rank):
    """The hook of DDP, whose thread works in a stream of its own: gradients come from the stream of the training, and means
    go back to it."""
    timeout = datetime.timedelta(seconds=60)
    hooks = [tersum_torch.ddp_hook("two_shot_4", seed=5, bucket_mb=0.005, timeout=timeout) for _ in range(2)]
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape, _, _ in SHAPES]
    for step in range(3):
        means = []
        for of, made in zip(hooks, (lambda g: g, device.put)):
            values = made(gradient(100 * step + rank))
            futures = [of(None, bucket) for bucket in buckets(parameters, values)]
            for future in futures:
                future.wait()
            means.append(values.cpu())
        assert same(*means), "the hook has other bits on the device"
    assert not hooks[1].was_non_finite()
    saved = hooks[1].state_dict()
    hooks[1].load_state_dict(saved)
    for of in hooks:
        of.close()


def reduce_scatter(device, rank):
    """The reduce-scatter of FSDP2, in the stream that calls it."""
    scatters = [tersum_torch.fsdp2_reduce_scatter("sharded_4", seed=2) for _ in range(2)]
    size = 4096
    for step in range(2):
        shards = []
        for scatter, of, made in zip(scatters, ("cpu", CUDA), (lambda g: g, device.put)):
            values = made(gradient(7 * step + rank, size=size))
            out = scatter.allocate((size // WORLD,), dtype=torch.float32, device=torch.device(of))
            scatter(out, values, dist.group.WORLD, dist.ReduceOp.AVG)
            shards.append(out.cpu())
        assert same(*shards), "a shard has other bits on the device"


def run_rank(task, rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{task}", rank=rank, world_size=WORLD,
                            timeout=datetime.timedelta(seconds=60))
    with Device() as device:
        {"exchanges": exchanges, "hook": hook, "reduce_scatter": reduce_scatter}[task](device, rank)
        assert device.calls > 0, "nothing ran on the device"
        device.check()
    dist.barrier()  # nobody ends while another one still talks to it
    dist.destroy_process_group()


class OnTheDevice(unittest.TestCase):
    def ranks(self, task):
        with tempfile.TemporaryDirectory() as folder:
            running = [subprocess.Popen([sys.executable, __file__, "--rank", task, str(rank), folder], text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"),
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(WORLD)]
            try:
                printed = [process.communicate(timeout=240)[0] for process in running]
            finally:
                for process in running:
                    process.kill()
            self.assertEqual([process.returncode for process in running], [0] * WORLD, "\n".join(printed))

    def test_exchanges(self):
        self.ranks("exchanges")

    def test_hook(self):
        self.ranks("hook")

    def test_reduce_scatter(self):
        self.ranks("reduce_scatter")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        run_rank(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        unittest.main()
