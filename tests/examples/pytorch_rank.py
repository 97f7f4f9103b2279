# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""One rank of test_pytorch.py: pytorch_rank.py RANK WORLD FOLDER TASK... A task is a name, or name:argument. Starting a
process takes longer than most tasks, so one does many."""

import copy
import datetime
import hashlib
import os
import re
import sys

import numpy
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import tersum_torch

TIMEOUT = datetime.timedelta(seconds=60)

BEFORE_GROUPS = tersum_torch.ddp_hook("two_shot_4", timeout=TIMEOUT)  # as Lightning takes it: no group exists yet


class Model(nn.Module):
    """Matrices, vectors, a tensor of three dimensions and a parameter of one element."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(300, 64)
        self.convolution = nn.Conv1d(64, 96, 3, padding=1)
        self.hidden = nn.Linear(96, 257)
        self.out = nn.Linear(257, 300)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, tokens):
        x = self.convolution(self.embedding(tokens).transpose(1, 2)).transpose(1, 2)
        return self.out(torch.tanh(self.hidden(x))) * self.scale


def digest(module):
    total = hashlib.sha256()
    for parameter in module.parameters():
        total.update(parameter.detach().float().contiguous().numpy().tobytes())
    return total.hexdigest()


def same_everywhere(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    assert len(set(values)) == 1, f"the ranks differ: {values}"


def make(codec=None, **options):
    """A module, a DDP of it, an optimizer and a hook."""
    torch.manual_seed(3)
    module, hook = Model(), None
    # Buckets of some 50 KB: several of them, which DDP rebuilds after the first step.
    model = DistributedDataParallel(module, bucket_cap_mb=0.05)
    if codec is not None:
        hook = hook_of(codec, module, **options)
        model.register_comm_hook(None, hook)
    return module, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), hook


def hook_of(codec, module, **options):
    return tersum_torch.ddp_hook(codec, module=module, seed=5, bucket_mb=0.1, timeout=TIMEOUT, **options)


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    tokens = torch.randint(0, 300, (8, 16), generator=generator)
    return tokens, (tokens * 7 + 3) % 300


def loss_of(model, step, rank):
    tokens, expected = batch(step, rank)
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), expected.flatten())


def train(model, optimizer, steps, rank):
    last = None
    for step in steps:
        optimizer.zero_grad()
        last = loss_of(model, step, rank)
        last.backward()
        optimizer.step()
    return float(last)


def states_of(*parts):
    return [copy.deepcopy(part.state_dict()) for part in parts]


def load(states, *parts):
    for part, state in zip(parts, states):
        part.load_state_dict(state)


def expect(kind, words, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert words in str(error), f"{words!r} is not in {str(error)!r}"
    else:
        raise AssertionError(f"{call} has taken what is damaged")


def refuses_damage(saved, *calls):
    """Each call takes a saved state, and raises if one of its bits has changed or its end is missing."""
    for call in calls:
        call(saved)
        for at in (*range(0, 200, 7), *range(200, saved.numel(), saved.numel() // 20), saved.numel() - 1):
            damaged = saved.clone()
            damaged[at] ^= 1 << at % 8
            expect(tersum_torch.TersumError, "saved", call, damaged)
        damaged = saved.clone()
        damaged[-1] ^= 128
        expect(tersum_torch.TersumError, "saved is damaged: its bytes have changed", call, damaged)
        expect(tersum_torch.TersumError, "was cut", call, saved[:-1])


def damaged_copy(saved):
    """What a hook saved, with one bit of its last state changed."""
    units = [dict(unit) for unit in saved["units"]]
    units[-1]["state"] = units[-1]["state"].clone()
    units[-1]["state"][-3] ^= 16
    return dict(saved, units=units)


# Tasks.

def presets(rank, world, folder):
    """Every preset by itself, in every type: equal bits everywhere, and the mean, to what the bits allow."""
    shapes = [((60, 256), True, None), ((33,), True, None), ((7, 300), False, None), ((4, 5, 100), True, 2.0)]
    size = 60 * 256 + 33 + 2100 + 2000
    for name in tersum_torch.presets():
        if name.startswith(("sharded_", "summed_shards_")):
            continue
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            if dtype != torch.float32 and name not in ("fp16", "rotated_sat4", "allocated_2", "two_shot_4"):
                continue
            exchange = tersum_torch.Exchange(name, shapes, dtype, "cpu", dist.group.WORLD, seed=9)
            exchange.agree()
            for step in range(3):
                gradients = [torch.randn(size, generator=torch.Generator().manual_seed(100 * step + k)).to(dtype)
                             for k in range(world)]
                mean = torch.stack([g.double() for g in gradients]).mean(0)
                values = gradients[rank].clone()
                exchange(values)
                same_everywhere(hashlib.sha256(values.float().numpy().tobytes()).hexdigest())
                error = float(((values.double() - mean) ** 2).sum() / (mean ** 2).sum())
                # Half has 11 bits, so a sum of n is off by n times 2^-11 of its terms at most, which is far below 1e-5 in
                # the mean square; bfloat16 has 8. Of independent normal gradients two shots of Lloyd-Max codes of 4 bits
                # have twice the distortion .0095, and saturating codes of 4 bits .07 by the library's tables.
                limit = {"fp32": 1e-12, "fp16": 1e-5, "two_shot_4": 0.025, "rotated_sat4": 0.12}.get(name)
                if limit is not None:
                    rounding = {torch.float32: 0, torch.float16: 2.0 ** -20, torch.bfloat16: 2.0 ** -14}[dtype]
                    assert error <= limit + rounding, f"{name} {dtype}: {error}"
                # What is not compressed is a sum of floats, then rounded to the type.
                if not name.startswith(("topk_", "thc_wide4", "thc_lookup")):
                    part = slice(60 * 256, 60 * 256 + 33)
                    near = torch.allclose(values[part].double(), mean[part], rtol=float(torch.finfo(dtype).eps),
                                          atol=1e-6)
                    assert near or name in ("fp16", "bf16"), f"{name} {dtype}: what bypasses is not the mean"
    other = tersum_torch.Exchange("fp32", shapes, torch.float32, "cpu", dist.group.WORLD, seed=rank)
    expect(tersum_torch.TersumError, "different codecs, gradients or seeds", other.agree)


def shards(rank, world, folder):
    """Presets of reduce-scatters: each rank has the mean of its shard, after one encoding, whose distortion is .0095; of codes that are
    summed with the error of an all-reduce of such codes."""
    for name, dtype in (("sharded_4", torch.float32), ("sharded_4", torch.bfloat16),
                        ("summed_shards_sat4", torch.float32), ("summed_shards_sat4", torch.bfloat16)):
        exchange = tersum_torch.Exchange(name, [((20001,), True, None)], dtype, "cpu", dist.group.WORLD, seed=9,
                                         whole=True)
        exchange.agree()
        gradients = [torch.randn(20001, generator=torch.Generator().manual_seed(k)).to(dtype) for k in range(world)]
        values, part = gradients[rank].clone(), exchange.shard
        exchange(values)
        mean = torch.stack([g.double() for g in gradients]).mean(0)[part]
        error = float(((values[part].double() - mean) ** 2).sum() / (mean ** 2).sum())
        expected = 0.0095
        if name == "summed_shards_sat4":
            whole = tersum_torch.Exchange("rotated_sat4", [((20001,), True, None)], dtype, "cpu", dist.group.WORLD, seed=9,
                                          whole=True)
            total = gradients[rank].clone()
            whole(total)
            expected = float(((total[part].double() - mean) ** 2).sum() / (mean ** 2).sum())
            assert error > 0.7 * expected, f"{name}: {error}"
        assert error < 1.3 * expected + 2.0 ** -14, f"{name}: {error}"
        values[part] = gradients[rank][part]
        assert torch.equal(values, gradients[rank]), "what is not in the shard has changed"
        refuses_damage(exchange.save(), exchange.load, exchange.check_saved, tersum_torch.exchange.check_saved)
        refuses_damage(exchange.save(), lambda saved: tersum_torch.fsdp2_reduce_scatter("sharded_4").load_state_dict(
            {"version": 1, "codec": "sharded_4", "state": saved}))
        expect(ValueError, "on cpu", exchange, torch.empty(20001, dtype=dtype, device="meta"))
        exchange.check()
        exchange._state[40] ^= 1  # the number of coordinates
        expect(tersum_torch.TersumError, "header is damaged", exchange.check)
        exchange._state[40] ^= 1
        covered = torch.zeros(20001)
        covered[part] = 1
        dist.all_reduce(covered)
        assert bool((covered == 1).all()), "the shards do not cover the gradient"


def fp32_accumulation(rank, world, folder):
    """At 16 bits what Megatron's function of this name computes, bit for bit; at 8 and 4 bits nearly, from codes. The input stays."""
    drop_in, size = tersum_torch.reduce_scatter_with_fp32_accumulation, 4096 * world
    errors = {}
    for bits in (16, 8, 4) if "sharded_8" in tersum_torch.presets() else (16, 4):
        for step in range(3):
            of_all = [torch.randn(size, generator=torch.Generator().manual_seed(100 * step + k)).bfloat16() for k in range(world)]
            mine, given = of_all[rank].clone(), of_all[rank].clone()
            shard = slice(rank * 4096, (rank + 1) * 4096)
            expected = torch.stack([of[shard] for of in of_all]).sum(0, dtype=torch.float32).bfloat16()
            out = torch.empty(4096, dtype=torch.bfloat16)
            handle = drop_in(out, given, dist.ReduceOp.SUM, dist.group.WORLD, True, bits=bits)
            handle.wait()
            assert torch.equal(given, mine), "the input has changed"
            assert drop_in(given[shard], given, op=dist.ReduceOp.SUM, group=dist.group.WORLD, async_op=False, bits=bits) is None
            if bits == 16:
                assert torch.equal(out, expected) and torch.equal(given[shard], expected), "16 bits have other bits"
        errors[bits] = float((out - expected).double().square().sum() / expected.double().square().sum())
    # Lloyd-Max codes of 4 bits have the distortion .0095, of 8 bits .0001; bfloat16 adds 2^-17.
    assert errors[4] < 0.012 and errors.get(8, 0) < 2e-4 and errors[16] == 0, errors
    expect(ValueError, "16, 8 or 4", lambda: drop_in(out, given, dist.ReduceOp.SUM, dist.group.WORLD, bits=2))
    expect(NotImplementedError, "a mean or a sum", drop_in, out, given, dist.ReduceOp.MAX, dist.group.WORLD)


def fsdp2(rank, world, folder):
    """FSDP2 of the newest torch: values as they are train as without, sharded_4 nearly so, and ranks resume with the same bits."""
    from torch.distributed.fsdp import FSDPModule, fully_shard

    def made(codec):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 128))
        for part in (model[0], model[2], model):
            fully_shard(part)
        scatters = []
        for number, module in enumerate(m for m in model.modules() if isinstance(m, FSDPModule)):
            if codec is not None:
                scatters.append(tersum_torch.fsdp2_reduce_scatter(codec, seed=number))
                module.set_custom_reduce_scatter(scatters[-1])
        return model, scatters, torch.optim.SGD(model.parameters(), lr=0.5)

    def steps(model, optimizer, numbers):
        losses = []
        for number in numbers:
            x = torch.randn(32, 128, generator=torch.Generator().manual_seed(10 * number + rank))
            optimizer.zero_grad()
            loss = (model(x) - x.roll(1, 1)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        return losses, [p.to_local().clone() for p in model.parameters()]

    model, _, optimizer = made(None)
    plain, parameters = steps(model, optimizer, range(20))
    model, _, optimizer = made("all_to_all")
    exact = steps(model, optimizer, range(20))[1]
    assert all(torch.equal(a, b) for a, b in zip(exact, parameters)), "uncompressed values train otherwise"
    model, scatters, optimizer = made("sharded_4")
    compressed, _ = steps(model, optimizer, range(20))
    assert plain[-1] < plain[0] and abs(compressed[-1] - plain[-1]) < 0.03 * plain[0], (plain[-1], compressed[-1])
    assert any(4 < s.bits_per_coordinate < 5 for s in scatters), [s.bits_per_coordinate for s in scatters]
    model, scatters, optimizer = made("sharded_4")
    steps(model, optimizer, range(3))
    saved = [s.state_dict() for s in scatters], [p.detach().clone() for p in model.parameters()]
    _, went_on = steps(model, optimizer, range(3, 6))
    model, scatters, optimizer = made("sharded_4")
    with torch.no_grad():
        for parameter, before in zip(model.parameters(), saved[1]):
            parameter.copy_(before)
    for scatter, state in zip(scatters, saved[0]):
        scatter.load_state_dict(state)
    _, resumed_ones = steps(model, optimizer, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(went_on, resumed_ones)), "the resumed training has other bits"


def training(rank, world, folder, codec):
    """Replicas stay equal; fp32 trains as without a hook."""
    module, model, optimizer, _ = make(codec)
    first = float(loss_of(module, 0, rank).detach())
    last = train(model, optimizer, range(12), rank)
    same_everywhere(digest(module))
    assert last < first, f"the loss went from {first} to {last}"
    if codec == "fp32":
        plain, model, optimizer, _ = make()
        train(model, optimizer, range(12), rank)
        for a, b in zip(module.parameters(), plain.parameters()):
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-6), "fp32 does not train as without a hook"


def resume(rank, world, folder, codec):
    """Three steps, a checkpoint, three steps; `resumed` goes on with the checkpoint in another process."""
    module, model, optimizer, hook = make(codec)
    train(model, optimizer, range(3), rank)
    torch.save(states_of(module, optimizer, hook), os.path.join(folder, f"checkpoint_{codec}_{rank}"))
    train(model, optimizer, range(3, 6), rank)
    with open(os.path.join(folder, f"went_on_{codec}_{rank}"), "w") as file:
        file.write(digest(module))


def resumed(rank, world, folder, codec):
    saved = torch.load(os.path.join(folder, f"checkpoint_{codec}_{rank}"))
    module, model, optimizer, hook = make(codec)
    load(saved[:2], module, optimizer)
    saved = saved[2]
    damaged = damaged_copy(saved)
    expect(tersum_torch.TersumError, "its bytes have changed", hook.load_state_dict, damaged)
    hook.load_state_dict(saved)
    train(model, optimizer, range(3, 6), rank)
    with open(os.path.join(folder, f"went_on_{codec}_{rank}")) as file:
        assert file.read() == digest(module), "the resumed training has other bits"
    # Between two steps, too; what is damaged changes no unit.
    kept = [unit["state"] for unit in hook.state_dict()["units"]]
    expect(tersum_torch.TersumError, "its bytes have changed", hook.load_state_dict, damaged)
    assert all(torch.equal(a, b["state"]) for a, b in zip(kept, hook.state_dict()["units"])), "a unit has changed"
    hook.load_state_dict(saved)
    expect(ValueError, "is of rank", hook.load_state_dict, dict(saved, rank=saved["rank"] + 1))
    for other in (hook, hook_of("fp16", module)):  # at once, whether there was a step or not
        wrong = dict(saved, codec="two_shot_4") if other is hook else saved
        expect(ValueError, "the state is of the codec", other.load_state_dict, wrong)


def killed(rank, world, folder):
    _, model, optimizer, _ = make("rotated_sat4")
    train(model, optimizer, range(2), rank)
    if rank == world - 1:
        os._exit(9)
    try:
        train(model, optimizer, range(2, 30), rank)
    except RuntimeError as error:
        print(f"rank {rank} learned of it: {error}", flush=True)
        os._exit(3)
    os._exit(0)


def accumulation(rank, world, folder):
    """Two micro-batches without an exchange in between are one exchange of their sum."""
    module, model, optimizer, hook = make("fp32")
    for step in range(4):
        with model.no_sync():
            loss_of(model, 2 * step, rank).backward()
        before = hook.state_dict()["steps"]
        loss_of(model, 2 * step + 1, rank).backward()
        assert (before, hook.state_dict()["steps"]) == (step, step + 1), "no_sync exchanged something"
        expected = Model()
        expected.load_state_dict(module.state_dict())
        for k in range(world):
            for half in range(2):
                (loss_of(expected, 2 * step + half, k) / world).backward()
        for a, b in zip(module.parameters(), expected.parameters()):
            assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6)
        optimizer.step()
        optimizer.zero_grad()


def not_finite(rank, world, folder):
    """An Inf on one rank: all ranks see it, skip the step, and go on with equal bits."""
    module, model, optimizer, hook = make("two_shot_4_ef")
    train(model, optimizer, range(2), rank)
    assert not hook.was_non_finite()
    residuals = [unit.exchange.residual.clone() for unit in hook._units]
    optimizer.zero_grad()
    (loss_of(model, 2, rank) * (float("inf") if rank == 0 else 1)).backward()
    assert hook.was_non_finite()
    assert not all(torch.isfinite(p.grad).all() for p in module.parameters()), "a scaler would see nothing"
    for unit, before in zip(hook._units, residuals):
        assert torch.equal(unit.exchange.residual, before), "the skipped step changed a residual"
    hook.rescale_residuals(0.5)
    for unit, before in zip(hook._units, residuals):
        assert torch.equal(unit.exchange.residual, before * 0.5)
    train(model, optimizer, range(3, 5), rank)
    assert not hook.was_non_finite()
    same_everywhere(digest(module))


def momenta(rank, world, folder, codec):
    """Ranks send momenta once second moments are frozen: as 1-bit Adam's formulas say where nothing is lost; replicas stay equal;
    and a checkpoint of a frozen training goes on with the same bits, those of an Inf included."""
    freeze, lr, decay, (b1, b2), eps = 4, 2e-3, 0.01, (0.9, 0.999), 1e-8

    def made():
        module, model, _, hook = make("fp32" if codec == "fp32" else "two_shot_4")
        return module, model, tersum_torch.MomentumAdamW(model.parameters(), hook, codec, freeze, lr=lr), hook

    module, model, optimizer, hook = made()
    first = float(loss_of(module, 0, rank).detach())
    train(model, optimizer, range(8), rank)
    assert optimizer.frozen
    same_everywhere(digest(module))
    if codec == "fp32":
        expected = make()[0].double()
        m, v = ([torch.zeros_like(p) for p in expected.parameters()] for _ in range(2))
        for step in range(8):
            expected.zero_grad()
            for k in range(world):
                (loss_of(expected, step, k) / world).backward()
            with torch.no_grad():
                for p, mean, square in zip(expected.parameters(), m, v):
                    mean.mul_(b1).add_(p.grad, alpha=1 - b1)
                    if step < freeze:
                        square.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                    unbiased = mean / (1 - b1 ** (step + 1)) if step < freeze else mean
                    root = (square / (1 - b2 ** min(step + 1, freeze))).sqrt() + eps
                    if step >= freeze:
                        root = root.clamp(min=0.1 * float(root.square().mean().sqrt()))
                    p.mul_(1 - lr * decay).sub_(lr * unbiased / root)
        for a, b in zip(module.parameters(), expected.parameters()):
            # Adam divides by roots: what rounding does to gradients near 0 is a share of a whole step.
            assert float((a - b).abs().max()) < 0.5 * lr, "momenta do not train as the formulas say"
            assert float((a - b).square().mean().sqrt()) < 1e-5, "momenta do not train as the formulas say"
    else:
        assert train(model, optimizer, range(8, 16), rank) < first
    saved = states_of(module, optimizer, hook)
    optimizer.zero_grad()
    (loss_of(model, 20, rank) * (float("inf") if rank == 0 else 1)).backward()  # and no step
    train(model, optimizer, range(21, 24), rank)
    assert all(torch.isfinite(p).all() for p in module.parameters()), "a momentum is not finite for good"
    other, other_model, other_optimizer, other_hook = made()
    load(saved, other, other_optimizer, other_hook)
    other_optimizer.zero_grad()
    (loss_of(other_model, 20, rank) * (float("inf") if rank == 0 else 1)).backward()
    train(other_model, other_optimizer, range(21, 24), rank)
    assert digest(other) == digest(module), "a frozen training that was resumed has other bits"


def two_levels(rank, world, folder):
    """Hosts of two ranks: equal bits and the mean everywhere, after two encodings of 4 bits; all learn of an Inf; and a training
    goes on with its checkpoint."""
    within, between = tersum_torch.ddp._groups_of_hosts(2, {})
    shapes = [((60, 256), True, None), ((33,), True, None), ((7, 300), False, None), ((4, 5, 101), True, 2.0)]
    size = 60 * 256 + 33 + 2100 + 2020
    for dtype in (torch.float32, torch.float16):
        exchange = tersum_torch.TwoLevelExchange("two_shot_4", shapes, dtype, "cpu", within, between, seed=9)
        exchange.agree()
        gradients = [torch.randn(size, generator=torch.Generator().manual_seed(k)).to(dtype) for k in range(world)]
        mean = torch.stack([g.double() for g in gradients]).mean(0)
        for spoiled in (False, True, False):
            values = gradients[rank].clone()
            if spoiled and rank == 0:
                values[3] = float("inf")
            exchange(values)
            same_everywhere(hashlib.sha256(values.float().numpy().tobytes()).hexdigest())
            assert exchange.was_non_finite() == spoiled, "not every rank knows"
            error = (values.double() - mean) ** 2
            if spoiled:
                # An Inf spoils its chunk of the first shard alone.
                error, mean_of = error[3072:], mean[3072:]
                assert not torch.isfinite(values[3])
            else:
                mean_of = mean
            # Twice the distortion .0095 of Lloyd-Max codes of 4 bits, of the hosts' means, which here have the mean's energy.
            assert float(error.sum() / (mean_of ** 2).sum()) < 0.025, error
            part = slice(60 * 256, 60 * 256 + 33 + 2100)
            assert torch.allclose(values[part].double(), mean[part], rtol=2 * float(torch.finfo(dtype).eps),
                                  atol=max(1e-6, float(torch.finfo(dtype).eps)))
        bits = torch.tensor(exchange.bits_per_coordinate)
        dist.all_reduce(bits, group=within)
        # Codes and scales of 4 bits, and floats of what bypasses; chunks end where a shard does.
        assert 4 < float(bits) * size / (size - 2133) - 32 * 2133 / (size - 2133) < 4.5, bits
    saved = exchange.save()
    exchange.load(saved)
    saved[-3] ^= 16
    expect(tersum_torch.TersumError, "its bytes have changed", exchange.load, saved)
    expect(tersum_torch.TersumError, "part of the gradient", tersum_torch.TwoLevelExchange, "powersgd_r4", shapes, dtype, "cpu", within,
           between)

    plain = train(*make("fp32")[1:3], range(6), rank)
    module, model, optimizer, hook = make("allocated_4", ranks_per_host=2)
    assert abs(train(model, optimizer, range(6), rank) - plain) < 0.05 * plain
    same_everywhere(digest(module))
    saved = states_of(module, optimizer, hook)
    train(model, optimizer, range(6, 8), rank)
    other, model, optimizer, hook = make("allocated_4", ranks_per_host=2)
    load(saved, other, optimizer, hook)
    train(model, optimizer, range(6, 8), rank)
    assert digest(other) == digest(module), "the resumed training has other bits"
    expect(ValueError, "must divide", lambda: hook_of("allocated_4", module, ranks_per_host=3))


def rules(rank, world, folder):
    """Codecs by name: what is not compressed is the exact mean, and the rest is not."""
    configuration = {"version": 1, "default": "rotated_sat4",
                     "rules": [{"pattern": "embedding.*", "codec": "none"},
                               {"pattern": "hidden.weight", "codec": "allocated_2", "bits": 3, "weight": 2},
                               {"pattern": "out.*", "codec": "powersgd_r4"}]}
    module, model, _, hook = make(configuration)
    loss_of(model, 0, rank).backward()
    expected = Model()
    expected.load_state_dict(module.state_dict())
    for k in range(world):
        (loss_of(expected, 0, k) / world).backward()
    exact = {name: torch.allclose(a.grad, b.grad, rtol=1e-5, atol=1e-8)
             for (name, a), b in zip(module.named_parameters(), expected.parameters())}
    compressed = {name for name, yes in exact.items() if not yes}
    assert compressed == {"convolution.weight", "hidden.weight", "out.weight"}, compressed
    presets = {name: u.exchange.preset for u in hook._units for name, _ in u.described}
    assert presets["hidden.weight"] == "allocated_2" and presets["out.weight"] == "powersgd_r4", presets
    assert presets["embedding.weight"] == "rotated_sat4", presets
    expect(ValueError, "module is None", tersum_torch.ddp_hook, configuration)


class Wrapped(nn.Module):
    """As torch.compile wraps a module."""

    def __init__(self, module):
        super().__init__()
        self._orig_mod = module

    def forward(self, *inputs):
        return self._orig_mod(*inputs)


def names(rank, world, folder):
    """Wrappers add nothing to names, and a rule that matches nothing is an error, as is a module of other parameters."""
    configuration = {"version": 1, "default": "two_shot_4", "rules": [{"pattern": "hidden.weight", "codec": "none"}]}
    compiled = DistributedDataParallel(Wrapped(Model()))
    inner = Model()
    inner.out = Wrapped(inner.out)
    for module in (Model(), compiled, Wrapped(DistributedDataParallel(Model())), inner):
        hook = tersum_torch.ddp_hook(configuration, module=module, timeout=TIMEOUT)
        assert set(hook._names.values()) == {name for name, _ in Model().named_parameters()}, hook._names.values()
    for module in (Model(), compiled):
        wrong = dict(configuration, rules=[*configuration["rules"], {"pattern": "hiden.*", "codec": "none"}])
        expect(ValueError, "the rule 'hiden.*' matches no parameter",
               lambda of: tersum_torch.ddp_hook(wrong, module=of), module)
    hook = tersum_torch.register(compiled, configuration, timeout=TIMEOUT)
    loss_of(compiled, 0, rank).backward()
    exact = {name for unit in hook._units for (name, _), (_, compressed, _) in zip(unit.described, unit.tensors)
             if not compressed}
    assert exact == {"hidden.weight"}, exact
    _, model, *_ = make()
    model.register_comm_hook(None, tersum_torch.ddp_hook(configuration, module=Model(), timeout=TIMEOUT))
    expect(RuntimeError, "the exchange of gradients failed: module has other parameters", loss_of(model, 0, rank).backward)


def subset(rank, world, folder):
    """A DDP of a part of the ranks has the mean of those: of small integers, which halves hold."""
    pairs = [dist.new_group([first, first + 1]) for first in range(0, world, 2)]
    model = DistributedDataParallel(nn.Linear(64, 64, bias=False), process_group=pairs[rank // 2])
    hook = tersum_torch.register(model, "fp16", timeout=TIMEOUT)
    assert hook._group is not pairs[rank // 2], "the collectives of the hook run beside those of DDP"
    model(torch.full((4, 64), float(rank + 1))).sum().backward()
    first = rank // 2 * 2
    assert torch.equal(model.module.weight.grad, torch.full((64, 64), 4 * (first + 1 + first + 2) / 2))
    assert (hook.state_dict()["world"], hook.state_dict()["rank"]) == (2, rank % 2)
    for made in (copy.deepcopy(BEFORE_GROUPS), tersum_torch.ddp_hook("two_shot_4", timeout=TIMEOUT)):
        other = DistributedDataParallel(nn.Linear(64, 64), process_group=pairs[rank // 2])  # which no one has told the hook
        other.register_comm_hook(None, made)
        backward = other(torch.full((4, 64), float(rank + 1))).sum().backward
        if made._group is None:
            backward()
            assert torch.equal(other.module.bias.grad, torch.full((64,), 4.0)) and made.state_dict()["world"] == 2
            error = other.module.weight.grad / (4 * (first + 1 + first + 2) / 2) - 1
            assert float(error.square().mean()) < 0.04, error  # two encodings with the distortion .0095, and room
        else:
            expect(RuntimeError, "DDP is of 2 of 4 ranks, and the hook of all", backward)


def early_errors(rank, world, folder):
    """What cannot be exchanged is refused when the hook is made, or in the first backward pass, in a sentence of its own."""
    wrapped = lambda module: DistributedDataParallel(module)  # noqa: E731
    expect(TypeError, "weight: gradients of torch.float64 cannot be compressed", tersum_torch.register,
           wrapped(nn.Linear(64, 64).double()))
    expect(TypeError, "0: gradients are sparse", tersum_torch.register,
           wrapped(nn.Sequential(nn.Embedding(300, 64, sparse=True), nn.Linear(64, 8))))
    expect(TypeError, "made of one, not a Linear", tersum_torch.register, nn.Linear(8, 8))
    frozen = nn.Sequential(nn.Linear(64, 64).double().requires_grad_(False), nn.Linear(64, 64))
    tersum_torch.register(wrapped(frozen), timeout=TIMEOUT).close()

    def backward(*models):
        sum(model(torch.ones(2, 64)).float().sum() for model in models).backward()

    hook = tersum_torch.ddp_hook(timeout=TIMEOUT)
    double = wrapped(nn.Linear(64, 64).double())
    double.register_comm_hook(None, hook)
    expect(RuntimeError, "failed: gradients of torch.float64", lambda: double(torch.ones(2, 64).double()).sum().backward())
    hook = tersum_torch.ddp_hook(timeout=TIMEOUT)
    # A bucket of the layer waits when the sparse one comes.
    sparse = DistributedDataParallel(nn.Sequential(nn.Embedding(300, 64, sparse=True), nn.Linear(64, 8)), bucket_cap_mb=0.01)
    sparse.register_comm_hook(None, hook)
    expect(RuntimeError, "failed: gradients are sparse", lambda: sparse(torch.tensor([1, 2])).sum().backward())
    for at_once in (False, True):
        hook = tersum_torch.ddp_hook(timeout=TIMEOUT)
        models = [wrapped(nn.Linear(64, 64)) for _ in range(2)]
        for model in models:
            model.register_comm_hook(None, hook)
        if not at_once:
            backward(models[0])
        expect(RuntimeError, "of two models", backward, *(models if at_once else models[1:]))


def several_models(rank, world, folder):
    """Two models in one backward pass, each with a hook, have the means of their own gradients."""
    models = [DistributedDataParallel(nn.Linear(64, 64, bias=False), bucket_cap_mb=0.01) for _ in range(2)]
    hooks = [tersum_torch.register(model, codec, timeout=TIMEOUT) for model, codec in zip(models, ("fp16", "fp32"))]
    for step in range(3):
        for model in models:
            model.zero_grad()
        sum(factor * model(torch.full((4, 64), float(rank + 1))).sum() for factor, model in zip((1, 2), models)).backward()
        for factor, model in zip((1, 2), models):
            expected = torch.full((64, 64), factor * 4 * (world + 1) / 2)
            assert torch.equal(model.module.weight.grad, expected), model.module.weight.grad
    assert [hook._steps for hook in hooks] == [3, 3]


def carried(rank, world, folder):
    """Residuals go over to another number of ranks: the mean of what a training kept is what each rank of the next one begins with."""
    module, model, *_ = make()
    hook = tersum_torch.register(model, "rotated_sat4_ef", seed=5, timeout=TIMEOUT)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), range(3), rank)
    of_all = [None] * world
    dist.all_gather_object(of_all, hook.state_dict())
    kept = [u.exchange.residual.clone() for u in hook._units]
    for residual in kept:
        dist.all_reduce(residual)
        residual /= world
    expect(ValueError, "carry_residuals", hook.load_state_dict, dict(of_all[rank], world=world + 1))
    alone = [dist.new_group([k]) for k in range(world)][rank]
    other = DistributedDataParallel(copy.deepcopy(module), process_group=alone)
    new = tersum_torch.register(other, "rotated_sat4_ef", seed=5, timeout=TIMEOUT)
    expect(ValueError, "all of one training", new.carry_residuals, of_all[:-1])
    expect(ValueError, "the state is of the codec", new.carry_residuals, [dict(of_all[0], codec="fp16")])
    new.carry_residuals(of_all)
    seen = []
    form = new._take_residuals
    new._take_residuals = lambda residuals: (form(residuals), seen.extend(u.exchange.residual.clone() for u in new._units))
    loss_of(other, 0, rank).backward()
    by_name = {name: flat for unit, residual in zip(new._units, seen)
               for (name, _), flat in zip(unit.described, residual.split([p.numel() for p in unit.parameters]))}
    for unit, residual in zip(hook._units, kept):
        for (name, _), flat in zip(unit.described, residual.split([p.numel() for p in unit.parameters])):
            assert torch.allclose(by_name[name], flat, rtol=1e-5, atol=1e-5 * float(flat.abs().max())), name
    assert any(float(flat.abs().max()) > 0 for flat in by_name.values())
    expect(RuntimeError, "before the first step", new.carry_residuals, of_all)


def compiled(rank, world, folder):
    """torch.compile inside and outside of DDP: as without it."""
    digests = []
    for compile_ in (lambda module: DistributedDataParallel(module),
                     lambda module: DistributedDataParallel(torch.compile(module, backend="aot_eager")),
                     lambda module: torch.compile(DistributedDataParallel(module), backend="aot_eager")):
        torch.manual_seed(3)
        module = Model()
        model = compile_(module)
        hook = tersum_torch.register(model,
                                     {"version": 1, "default": "two_shot_4", "rules": [{"pattern": "out.*", "codec": "none"}]},
                                     seed=5, timeout=TIMEOUT)
        train(model, torch.optim.SGD(module.parameters(), lr=0.1), range(3), rank)
        same_everywhere(digest(module))
        exact = {name for u in hook._units for (name, _), (_, compressed, _) in zip(u.described, u.tensors) if not compressed}
        assert exact == {"out.weight", "out.bias"}, exact
        digests.append(torch.cat([p.detach().flatten() for p in module.parameters()]))
    assert all(float((each - digests[0]).abs().max()) < 1e-3 for each in digests[1:]), "compiled models train otherwise"


def advice(rank, world, folder):
    """What compare_codecs reads, of this rank's own gradients; and what `advise` says of them on the group that was probed."""
    module, model, *_ = make()
    loss_of(model, 0, rank).backward()
    folder = os.path.join(folder, "gradients")
    expect(ValueError, "under no_sync()", tersum_torch.save_gradients, model, folder)
    model.zero_grad()
    with model.no_sync():
        loss_of(model, 0, rank).backward()
    tersum_torch.save_gradients(model, folder)
    dist.barrier()
    with open(os.path.join(folder, "layers.csv"), encoding="utf-8") as file:
        lines = [line.split(",") for line in file.read().splitlines()]
    assert lines[0] == ["name", "rows", "columns", "offset"] and ",".join(lines[0]) in tersum_torch.save_gradients.__doc__
    values, offset = numpy.load(os.path.join(folder, f"step0_worker{rank}.npy")), 0
    for (name, rows, columns, begin), (known, parameter) in zip(lines[1:], module.named_parameters(), strict=True):
        size = int(rows) * int(columns)
        assert (name, int(begin), size) == (known, offset, parameter.numel())
        assert numpy.array_equal(values[offset:offset + size], parameter.grad.flatten().numpy())
        offset += size
    kept = [parameter.grad.clone() for parameter in module.parameters()]
    loss = lambda of, step: loss_of(of, step, rank)  # noqa: E731
    expect(ValueError, "two or more", tersum_torch.advise, model, [0], loss)
    expect(RuntimeError, "no-such-program", lambda: tersum_torch.advise(model, range(2), loss, program="no-such-program"))
    if "TERSUM_ADVISE" in os.environ:
        text = tersum_torch.advise(model, range(3), loss, options=("--codecs", "two_shot_4,rotated_sat4"))
        assert re.search(r"^(Use \S+|Do not compress)", text, re.M) and "two_shot_4" in text, text
        assert f"{sum(p.numel() for p in module.parameters())}" in text.replace(",", ""), text
        same_everywhere(text)
    else:
        print("TERSUM_ADVISE names no program")
    assert all(torch.equal(a, parameter.grad) for a, parameter in zip(kept, module.parameters()))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.one, self.other = nn.Linear(64, 256), nn.Linear(256, 8), nn.Linear(256, 8)

    def forward(self, x, which):
        return (self.one if which else self.other)(self.first(x))


def unused(rank, world, folder):
    """DDP looks for unused parameters in its own group, which the hook does not take."""
    torch.manual_seed(1)
    model = DistributedDataParallel(Branches(), find_unused_parameters=True, bucket_cap_mb=0.05)
    hook = tersum_torch.ddp_hook("two_shot_4", process_group=dist.group.WORLD, bucket_mb=0.05, timeout=TIMEOUT)
    assert hook._group is not dist.group.WORLD
    model.register_comm_hook(None, hook)
    for step in range(20):
        model.zero_grad()
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(10 * step + rank))
        model(x, (step + rank) % 2).square().mean().backward()
        same_everywhere(hashlib.sha256(b"".join(p.grad.numpy().tobytes() for p in model.parameters())).hexdigest())


def early(rank, world, folder):
    """What was loaded is what is saved; a checkpoint before the first step begins like a new hook."""
    module, model, optimizer, hook = make("topkc_b2_ef")
    before = hook.state_dict()
    train(model, optimizer, range(3), rank)
    expect(ValueError, "of no step", hook.load_state_dict, before)
    saved = states_of(module, optimizer, hook)
    train(model, optimizer, range(3, 5), rank)
    other = make("topkc_b2_ef")[3]
    other.load_state_dict(saved[2])
    again = other.state_dict()
    assert again["steps"] == 3 and len(again["units"]) == len(saved[2]["units"])
    assert all(torch.equal(a["state"], b["state"]) for a, b in zip(again["units"], saved[2]["units"]))
    third, third_model, third_optimizer, third_hook = make("topkc_b2_ef")
    load([*saved[:2], again], third, third_optimizer, third_hook)
    train(third_model, third_optimizer, range(3, 5), rank)
    assert digest(third) == digest(module), "a training resumed from what was saved right after loading has other bits"
    first, first_model, first_optimizer, first_hook = make("topkc_b2_ef")
    first_hook.load_state_dict(before)
    train(first_model, first_optimizer, range(3), rank)
    module.load_state_dict(saved[0])
    assert digest(first) == digest(module), "a training resumed from step 0 has other bits"


def late_group(rank, world, folder):
    """A hook that is older than all groups makes its own at the first bucket; and a copy of the model has one like it."""
    _, model, optimizer, _ = make()
    model.register_comm_hook(None, BEFORE_GROUPS)
    model._comm_hooks = [(BEFORE_GROUPS, None)]  # as newer torches keep it
    train(model, optimizer, range(2), rank)
    same_everywhere(digest(model))
    assert BEFORE_GROUPS._steps == 2 and BEFORE_GROUPS._group is not dist.group.WORLD
    copied = copy.deepcopy(model)
    hook = copied._comm_hooks[0][0]
    assert hook is not BEFORE_GROUPS and hook.state_dict()["steps"] == 0
    copied.register_comm_hook(None, hook)
    train(copied, torch.optim.SGD(copied.parameters(), lr=0.1), range(2), rank)
    same_everywhere(digest(copied))
    assert hook._steps == 2
    named = tersum_torch.ddp_hook({"version": 1, "default": "fp16", "rules": [{"pattern": "out.*", "codec": "none"}]},
                                  module=model, timeout=TIMEOUT)
    copied, hook = copy.deepcopy((model, named))
    assert [id(p) for _, p in hook._named] == [id(p) for p in copied.parameters()]


def bfloat16(rank, world, folder):
    """Parameters of 16 bits, of two types in one model."""
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(64, 300), nn.Tanh(), nn.Linear(300, 64)).to(torch.bfloat16)
    module[2].to(torch.float32).register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))
    model = DistributedDataParallel(module, bucket_cap_mb=0.02)
    model.register_comm_hook(None, tersum_torch.ddp_hook("two_shot_4", bucket_mb=0.02))
    for step in range(4):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(10 * step + rank))
        (model(x.to(torch.bfloat16)) - x).pow(2).mean().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    same_everywhere(digest(module))


def main():
    rank, world, folder, tasks = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting_{tasks[0]}", rank=rank, world_size=world,
                            timeout=TIMEOUT)
    for task in tasks:
        name, *arguments = task.split(":")
        print(f"rank {rank}: {task}", flush=True)
        globals()[name](rank, world, folder, *arguments)
        dist.barrier()


if __name__ == "__main__":
    main()
