# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""One rank of trainings, one after the other: train.py RUNS RANK WORLD STORE. RUNS is a JSON file of run.py's."""

import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import tersum_torch
from momenta import first_codec, optimizer_of
from tasks import TASKS


def register(ddp, codec, seed):
    """Gives DDP the hook of a name. Returns what it sends, in bits per coordinate, after a step; what ends it; and the hook, if
    it is tersum's."""
    if codec == "torch_fp16":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
        return lambda: 16.0, lambda: None, None
    if codec == "torch_powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2,
                                            min_compression_rate=1)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        total = sum(p.numel() for p in ddp.parameters())
        sent = sum(4 * (p.shape[0] + p[0].numel()) if p.dim() > 1 else p.numel() for p in ddp.parameters())
        return lambda: 32.0 * sent / total, lambda: None, None
    hook = tersum_torch.ddp_hook(first_codec(codec), seed=seed)
    ddp.register_comm_hook(None, hook)
    return lambda: hook.bits_per_coordinate, hook.close, hook


def validate(task, model, quick):
    model.eval()
    with torch.no_grad():
        losses = [float(task.loss(model, batch)) for batch in task.held_out()[:1 if quick else None]]
    model.train()
    return sum(losses) / len(losses)


def train(run, rank, world, beat):
    """One training; what its JSON file holds. The clock stands still while rank 0 validates."""
    task = TASKS[run["task"]](run["seed"])
    torch.manual_seed(run["seed"])  # the same initial weights for all codecs
    module = task.model()
    # torch's PowerSGD waits in callbacks, and hangs over Gloo unless there is one bucket.
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 30 if run["codec"] == "torch_powersgd" else 1 << 20
    ddp = DistributedDataParallel(module, gradient_as_bucket_view=True, bucket_cap_mb=1000 if run["codec"] == "torch_powersgd" else 25)
    bits, close, hook = register(ddp, run["codec"], run["seed"])
    optimizer = optimizer_of(task, ddp.parameters(), run["codec"], hook, run["steps"])
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: task.rate(step / run["steps"]))
    curve, seconds, best, since, sent = [], 0.0, math.inf, 0, []
    for step in range(run["steps"] + 1):
        if step % run["every"] == 0:
            verdict = torch.zeros(2, dtype=torch.float64)
            if rank == 0:
                loss = validate(task, module, run["quick"])
                curve.append([step, seconds, loss])
                recent = [point[2] for point in curve[-run["rolling"]:]]
                mean = sum(recent) / len(recent)
                if mean < best * (1 - run["least_gain"]):
                    best, since = mean, 0
                else:
                    since += 1
                verdict[0] = 1.0 if since >= run["patience"] or not math.isfinite(loss) else 0.0
                beat(step / run["steps"], loss)
            dist.broadcast(verdict, 0)
            if verdict[0] > 0 or step == run["steps"]:
                break
        batch = task.batch(step, rank)
        begin = time.perf_counter()
        optimizer.zero_grad()
        task.loss(ddp, batch).backward()
        optimizer.step()
        rate.step()
        seconds += time.perf_counter() - begin
        sent.append(bits())
    result = dict(run, ranks=world, bits=sum(sent) / len(sent), curve=curve, parameters=sum(p.numel() for p in module.parameters()),
                  torch=torch.__version__, tersum=tersum_torch.version())
    close()
    return result


def main():
    file, rank, world, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    with open(file, encoding="utf-8") as opened:
        runs = json.load(opened)
    began = time.monotonic()
    for number, run in enumerate(runs):
        def beat(share, loss, number=number, run=run):
            done = (number + share) / len(runs)
            left = (time.monotonic() - began) * (1 / done - 1) if done > 0.02 else math.nan
            bar = "#" * int(30 * done) + "." * (30 - int(30 * done))
            print(f"\r[{bar}] {100 * done:3.0f} %, {'?' if math.isnan(left) else format(left / 60, '.1f')} min left: "
                  f"{run['task']} {run['codec']} seed {run['seed']}, loss {loss:.3f}   ", end="", file=sys.stderr, flush=True)
        result = train(run, rank, world, beat)
        if rank == 0:
            with open(run["file"] + ".part", "w", encoding="utf-8") as out:
                json.dump(result, out)
            os.replace(run["file"] + ".part", run["file"])
    dist.barrier()
    if rank == 0:
        print(file=sys.stderr)


if __name__ == "__main__":
    main()
