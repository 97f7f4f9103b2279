# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Should I? What compression would do to a step of a training, by the program `advise`; and gradients for `compare_codecs`."""

from __future__ import annotations

import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
from typing import Any, Callable, Iterable

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .ddp import _named_parameters

_MOST_RANKS = 4  # whose gradients are measured


def save_gradients(ddp: DistributedDataParallel, folder: str | os.PathLike[str], name: str = "step0") -> None:
    """Writes what `compare_codecs --gradients FOLDER` reads: `<name>_worker<rank>.npy`, the gradients that the parameters of this rank
    have now, one after the other as float32; and by the first rank layers.csv.

    Every rank calls it after a backward pass under `ddp.no_sync()`: after another one all ranks have the mean, which is refused.

    layers.csv has the line `name,rows,columns,offset`, and then a line for each parameter in the order of the file: its name, the
    rows and columns of the matrix that it is to a codec (the first dimension, and all others together; a vector has one column), and
    how many values lie before it.
    """
    folder, rank = pathlib.Path(folder), dist.get_rank(ddp.process_group)
    values, lines = _gradient_of(ddp)
    if dist.get_world_size(ddp.process_group) > 1:
        total = values.double().sum().reshape(1)
        most, least = total.clone(), total.clone()
        dist.all_reduce(most, op=dist.ReduceOp.MAX, group=ddp.process_group)
        dist.all_reduce(least, op=dist.ReduceOp.MIN, group=ddp.process_group)
        if torch.equal(most, least):
            raise ValueError("all ranks have the same gradients, which are their mean: save them after a backward pass under no_sync()")
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{name}_worker{rank}.npy", values.cpu().numpy())
    if rank == 0:
        (folder / "layers.csv").write_text(lines, encoding="utf-8")


def advise(ddp: DistributedDataParallel, batches: Iterable[Any], loss: Callable[[Any, Any], torch.Tensor] | None = None, *,
           program: str | os.PathLike[str] | None = None, options: Iterable[str] = ()) -> str:
    """Whether compression pays for this model on this network, and which codec: prints the table and the sentences of `advise`
    (docs/advisor.md) on the first rank, and returns them on every rank.

    It times forward and backward passes, measures the bandwidth and the latency of DDP's group, and takes gradients of up to four
    ranks, on which codecs are measured. Parameters and gradients stay as they were. Every rank calls it, outside of a step.

    batches  Two or more; the first one warms up, and is not timed.
    loss     Of the model and a batch; by default ddp(batch) is the loss.
    program  advise, as `cmake --build BUILD --target advise` makes it; by default TERSUM_ADVISE, or that of PATH.
    options  More of its options, such as ("--max-error", "0.05").
    """
    found = program or os.environ.get("TERSUM_ADVISE") or shutil.which("advise")
    group, before = ddp.process_group, [p.grad for p in ddp.parameters()]
    forward, backward = [], []
    try:
        for batch in batches:
            for p in ddp.parameters():
                p.grad = None
            times = [_now(ddp)]
            with ddp.no_sync():
                value = ddp(batch) if loss is None else loss(ddp, batch)
                if value.numel() != 1:
                    raise ValueError("the model returns no loss: give advise one, such as loss=lambda model, batch: ...")
                times.append(_now(ddp))
                value.backward()
            times.append(_now(ddp))
            forward.append(times[1] - times[0])
            backward.append(times[2] - times[1])
        if len(backward) < 2:
            raise ValueError("batches must be two or more: the first one is not timed")
        values, lines = _gradient_of(ddp)
    finally:
        for p, gradient in zip(ddp.parameters(), before):
            p.grad = gradient
    bandwidth, latency = _probe(group, values.device)
    measured = [_mean(statistics.median(times[1:]), group, values.device) for times in (forward, backward)]
    rank, gathered = dist.get_rank(group), _first_ranks(values, group)
    text = ""
    if rank == 0:
        text = _run(found, lines, gathered, ["--forward", f"{measured[0] * 1e3:.4g}", "--backward", f"{measured[1] * 1e3:.4g}",
                                             "--bandwidth", f"{bandwidth * 8e-9:.4g}", "--latency", f"{latency * 1e6:.4g}",
                                             "--ranks", str(dist.get_world_size(group)), *options])
    texts = [text]
    dist.broadcast_object_list(texts, src=_global_rank(group, 0), group=group)
    if texts[0].startswith("!"):
        raise RuntimeError(texts[0][1:])
    if rank == 0:
        print(text, end="", flush=True)
    return texts[0]


def _run(program: Any, lines: str, gradients: list[torch.Tensor], options: list[str]) -> str:
    """What the program prints, or what is wrong, after an exclamation mark."""
    if not program:
        return "!there is no program advise: build it by cmake --build BUILD --target advise, and name it in TERSUM_ADVISE"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "layers.csv").write_text(lines, encoding="utf-8")
        for rank, values in enumerate(gradients):
            np.save(pathlib.Path(folder, f"step0_worker{rank}.npy"), values.cpu().numpy())
        command = [os.fspath(program), folder, "--gradients", folder, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"!{program}: {error}"
    return done.stdout if done.returncode == 0 else f"!{done.stderr}"


def _gradient_of(ddp: Any) -> tuple[torch.Tensor, str]:
    """All gradients as one tensor of floats, and the text of layers.csv."""
    parts, lines, offset = [], ["name,rows,columns,offset"], 0
    for name, p in _named_parameters(ddp):
        if p.requires_grad and p.numel() > 0:
            if p.grad is None:
                raise ValueError(f"{name} has no gradient: call it after a backward pass")
            rows = p.shape[0] if p.dim() > 0 else 1
            lines.append(f"{name},{rows},{p.numel() // rows},{offset}")
            parts.append(p.grad.detach().flatten().float())
            offset += p.numel()
    return torch.cat(parts), "\n".join(lines) + "\n"


def _now(ddp: Any) -> float:
    if next(ddp.parameters()).is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def _mean(value: float, group: Any, device: torch.device) -> float:
    total = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(total, group=group)
    return float(total) / dist.get_world_size(group)


def _probe(group: Any, device: torch.device) -> tuple[float, float]:
    """Bytes per second of a rank while all send, and seconds of a message."""
    world = dist.get_world_size(group)
    if world == 1:
        return 1.25e9, 2e-5

    def seconds(size: int, times: int) -> float:
        sent = torch.zeros(size * world, dtype=torch.uint8, device=device)
        received, taken = torch.empty_like(sent), []
        for _ in range(times):
            dist.barrier(group=group)
            begin = time.perf_counter()
            dist.all_to_all_single(received, sent, group=group)
            if received.is_cuda:
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - begin)
        return _mean(statistics.median(taken[1:]), group, device)

    size, latency = 4 << 20, seconds(64, 20)
    return (world - 1) * size / max(seconds(size, 6) - latency, 1e-6), latency / (world - 1)


def _first_ranks(values: torch.Tensor, group: Any) -> list[torch.Tensor]:
    """On the first rank the gradients of the first ranks."""
    rank, gathered = dist.get_rank(group), [values]
    for other in range(1, min(dist.get_world_size(group), _MOST_RANKS)):
        if rank == 0:
            gathered.append(torch.empty_like(values))
            dist.recv(gathered[-1], src=_global_rank(group, other), group=group)
        elif rank == other:
            dist.send(values, dst=_global_rank(group, 0), group=group)
    return gathered


def _global_rank(group: Any, rank: int) -> int:
    return rank if dist.get_world_size(group) == dist.get_world_size() else dist.get_global_rank(group, rank)
