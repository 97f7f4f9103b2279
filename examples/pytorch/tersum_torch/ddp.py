# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""A communication hook of DistributedDataParallel.

DDP hands out buckets, and rebuilds them after the first step; a resumed process begins with other buckets than one that
went on. What is exchanged must not depend on that, so the hook has buckets of its own, here called units: the parameters
in the order in which the first step brings them, apart by codec and type, cut at `bucket_mb`. Gradients are copied to a
unit and their means back; a unit is exchanged when all of its gradients have come. One thread does it, in the order in
which DDP hands out buckets, which is the same on all ranks; so backward goes on meanwhile.
"""

from __future__ import annotations

import atexit
import copy
import dataclasses
import datetime
import gc
import inspect
import math
import queue
import threading
import warnings
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .configuration import NONE, Codecs, Configuration, Rule
from .exchange import Exchange, check_saved, check_type
from .two_levels import TwoLevelExchange

STATE_VERSION = 2

_SPARSE = "gradients are sparse, and cannot be compressed: make the embedding without sparse=True"
_TWO_MODELS = "the hook has got gradients of two models, or of parameters that are new: each model needs a hook of its own"

# What wrappers add to the names of parameters.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


def register(ddp: DistributedDataParallel, codec: Codecs = "two_shot_4", *, seed: int = 0, bucket_mb: float = 25,
             bypass_below: int = 0, threads: int = 1, timeout: datetime.timedelta | None = None,
             ranks_per_host: int | None = None) -> DDPHook:
    """Makes the hook of a DistributedDataParallel, gives it to it, and returns it.

    The ranks are those of DDP's group, also where that is a part of all; names, which rules match, are those of the module that it
    wraps. Every rank of the group calls it at the same point; with a torch before 2.1 all ranks do, if the group is not of all. The
    rest is as of `ddp_hook`. Under `ddp.join(divide_by_initial_world_size=False)` means are over all ranks, as with torch's own hooks.
    """
    ddp = getattr(ddp, "_orig_mod", ddp)  # of torch.compile
    if not isinstance(ddp, DistributedDataParallel):
        raise TypeError(f"register takes a DistributedDataParallel, or what torch.compile made of one, not a {type(ddp).__name__}")
    hook = ddp_hook(codec, module=ddp, seed=seed, bucket_mb=bucket_mb, bypass_below=bypass_below, threads=threads, timeout=timeout,
                    ranks_per_host=ranks_per_host)
    ddp.register_comm_hook(None, hook)
    return hook


def ddp_hook(codec: Codecs = "two_shot_4", *, module: torch.nn.Module | None = None, process_group: Any = None, seed: int = 0,
             bucket_mb: float = 25, bypass_below: int = 0, threads: int = 1, timeout: datetime.timedelta | None = None,
             ranks_per_host: int | None = None) -> DDPHook:
    """A hook for `DistributedDataParallel.register_comm_hook(None, hook)`. Every rank makes it, at the same point; `register` does both.

    codec          A preset, or whatever Configuration.of takes: a configuration by names, or the path of one.
    module         Whose parameters have the names that rules match; needed where there are rules. Each rule must match one. Wrappers,
                   such as DDP and torch.compile, add nothing to names. Of a DDP the hook takes the ranks of its group, too.
    process_group  Of the ranks that exchange, for the hook alone: its collectives run beside those of others. By default, and in
                   place of DDP's own, the hook makes a new group: at once, or at the first bucket if there is no group yet.
    seed           Of the rounding, the same on all ranks.
    bucket_mb      Megabytes of gradient in one exchange. Codecs that choose chunks do better with more.
    bypass_below   Parameters of fewer elements are averaged uncompressed; those of one dimension always are.
    threads        Of the CPU, for encoding and decoding.
    timeout        A datetime.timedelta for each collective of a new group.
    ranks_per_host On how many consecutive ranks of all a host has, such as its GPUs: they add their gradients among themselves in
                   16 bits, and each sends codes of its shard only to other hosts. The hook makes the groups, of all ranks.
                   Low-rank presets, which take whole matrices, do not go with it.
    """
    return DDPHook(Configuration.of(codec), module, process_group, seed, bucket_mb, bypass_below, threads, timeout,
                   ranks_per_host)


class DDPHook:
    """What `ddp_hook` makes."""

    def __init__(self, configuration: Configuration, module: torch.nn.Module | None, process_group: Any, seed: int, bucket_mb: float,
                 bypass_below: int, threads: int, timeout: datetime.timedelta | None, ranks_per_host: int | None = None) -> None:
        if configuration.rules and module is None:
            raise ValueError("module is None, but the configuration has rules: parameters have their names from it")
        if ranks_per_host is not None and process_group is not None:
            raise ValueError("process_group and ranks_per_host are both given: with the latter the hook makes its groups")
        self.__name__ = self.__qualname__ = "tersum_hook"  # DDP asks for both
        self._configuration = configuration
        self._named = [] if module is None else _named_parameters(module)
        self._names = {id(parameter): name for name, parameter in self._named}
        configuration.check_names(list(self._names.values()))
        if module is not None:
            _check_gradients(module)
        self._seed, self._threads, self._bypass_below = seed, threads, bypass_below
        self._unit_bytes = int(bucket_mb * (1 << 20))
        self._group_options = {} if timeout is None else {"timeout": timeout}
        self._ranks_per_host = ranks_per_host
        of_ddp = module.process_group if isinstance(module, DistributedDataParallel) else None
        self._like = of_ddp if process_group is None else process_group  # whose ranks exchange
        self._group: Any = None
        self._levels: Any = None
        if dist.is_initialized():
            if process_group is None or process_group is of_ddp or process_group is dist.group.WORLD:
                self._make_groups()
            else:
                self._group = process_group
        self._units: Any = None  # a list after the first step has shown the parameters
        self._places: dict[int, tuple[_Unit, int]] = {}
        self._saved: Any = None
        self._carried: dict[str, torch.Tensor] | None = None  # residuals of another number of ranks, by the names of their parameters
        self._momenta: tuple[str, float] | None = None  # the codec and the beta of momenta, where they travel in place of gradients
        self._error: BaseException | None = None
        self._steps = 0
        self._work: Any = None
        self._thread: threading.Thread | None = None

    def __deepcopy__(self, memo: Any) -> DDPHook:
        """A hook like this one before its first step, for a copy of the model. Its group is made at the first bucket."""
        other = copy.copy(self)
        other._named = copy.deepcopy(self._named, memo)
        other._names = {id(parameter): name for name, parameter in other._named}
        other._group = other._levels = None
        other._units, other._places, other._saved, other._carried, other._momenta = None, {}, None, None, None
        other._error, other._steps, other._work, other._thread = None, 0, None, None
        return other

    def __call__(self, state, bucket):  # type: ignore[no-untyped-def]  # DDP looks at annotations
        future = _future(bucket.buffer().device)
        # What DDP waits for is a future that raises: of one with an exception in it, it would take that for the tensor.
        result = future.then(_value_of)
        if self._error is None and self._thread is None:
            self._error = self._take_ranks(bucket)
        if self._error is not None:
            future.set_result(_copy_of(self._error))
            return result
        if self._thread is None:
            self._begin()
        if bucket.buffer().is_sparse:
            job = _Job(future, bucket.index(), bucket.buffer(), [], [], bucket.is_last())
            job.error = TypeError(_SPARSE)  # which buckets that wait get, too
        else:
            job = _Job(future, bucket.index(), bucket.buffer(), bucket.parameters(), bucket.gradients(), bucket.is_last())
        if job.buffer.is_cuda:
            job.ready = torch.cuda.current_stream(job.buffer.device).record_event()
        self._work.put(job)
        return result

    def _take_ranks(self, bucket: Any) -> RuntimeError | None:
        """Where the hook was made without DDP: takes the ranks of the DDP that calls it, or says why it cannot."""
        ddp = _ddp_of(bucket.parameters()[0]) if self._like is None and not bucket.buffer().is_sparse else None
        if ddp is None or dist.get_world_size(ddp.process_group) == dist.get_world_size():
            return None
        if self._group is not None:
            return RuntimeError(f"DDP is of {dist.get_world_size(ddp.process_group)} of {dist.get_world_size()} ranks, and the hook of all: "
                                "make it by register, or with module=ddp")
        self._like = ddp.process_group
        return None

    def _begin(self) -> None:
        if self._group is None:
            self._make_groups()
        self._work = queue.Queue()
        self._thread = threading.Thread(target=self._serve, name="tersum", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # no thread is in a collective while the interpreter ends

    def _make_groups(self) -> None:
        """Groups of the hook's own."""
        if self._ranks_per_host is not None:
            if self._like is not None and dist.get_world_size(self._like) != dist.get_world_size():
                raise ValueError("ranks_per_host is for all ranks, and the group of DDP is a part of them")
            self._levels = _groups_of_hosts(self._ranks_per_host, self._group_options)
        self._group = _new_group(self._like, self._group_options)

    # What a training loop asks.

    @property
    def bits_per_coordinate(self) -> float:
        """What a rank gives to its collectives, over all parameters; known after the first step."""
        units = self._units or []
        total = sum(unit.exchange.coordinates for unit in units)
        return sum(u.exchange.bits_per_coordinate * u.exchange.coordinates for u in units) / total if total else 0.0

    def was_non_finite(self) -> bool:
        """Whether any rank's gradient held NaN or Inf in the last step: the same answer on every rank."""
        return any([unit.exchange.was_non_finite() for unit in self._units or []])

    def rescale_residuals(self, factor: float) -> None:
        """Multiplies what feedback keeps, and momenta: call it with new scale / old scale when a loss scaler has changed its
        scale."""
        for unit in self._units or []:
            if unit.exchange.residual is not None:
                unit.exchange.residual.mul_(factor)
            if unit.momentum is not None:
                unit.momentum.mul_(factor)

    def send_momenta(self, codec: str, momentum_of: Callable[[torch.Tensor], torch.Tensor], beta: float) -> None:
        """From the next step on the ranks average beta m + (1 - beta) gradient in place of the gradient, which has m, the last
        such mean, then. Every rank calls it between the same two steps; MomentumAdamW does.

        codec        The preset for parameters that are compressed. The others travel in float32 as before.
        momentum_of  m of a parameter at the beginning, the same on all ranks.
        """
        if self._units is None:
            raise RuntimeError("momenta can travel after the first step, which shows the parameters")
        for unit in self._units:
            unit.momentum = torch.cat([momentum_of(p).detach().flatten().to(torch.float32) for p in unit.parameters])
        self._send_momenta(codec, beta)

    def state_dict(self) -> dict[str, Any]:
        """This rank's states, to be saved between two steps. Residuals differ, so every rank saves its own. Before the first step
        it is what was loaded, or says that there was no step."""
        if self._saved is not None:
            return copy.deepcopy(self._saved)
        units = [{"preset": unit.exchange.preset, "tensors": unit.described, "state": unit.exchange.save(),
                  "residual": unit.exchange.saved_residual} for unit in self._units or []]
        momenta = None
        if self._momenta is not None:
            momenta = {"codec": self._momenta[0], "beta": self._momenta[1],
                       "values": [unit.momentum.clone() for unit in self._units]}
        world, rank = self._place()
        return {"version": STATE_VERSION, "codec": self._configuration.described(), "world": world, "rank": rank,
                "steps": self._steps, "units": units, "momenta": momenta}

    def _place(self) -> tuple[int, int]:
        if not dist.is_initialized():
            raise RuntimeError("the hook knows no ranks yet: call torch.distributed.init_process_group first")
        return dist.get_world_size(self._group), dist.get_rank(self._group)

    def load_state_dict(self, saved: Any) -> None:
        """Goes on where `state_dict` was called, with the same bits. Before the first step, or between two.

        Raises ValueError if the state is of another codec, rank or number of ranks, and TersumError if a bit of it has changed
        since; the hook then keeps its own.
        """
        self._check_codec(saved)
        here = self._place()
        if saved["world"] != here[0]:
            raise ValueError(f"the state is of {saved['world']} ranks, and here are {here[0]}: carry_residuals takes what can be "
                             "carried over")
        if saved["rank"] != here[1]:
            raise ValueError(f"the state is of rank {saved['rank']} of {saved['world']}, and this is rank {here[1]}")
        if not saved["units"] and self._units is not None:
            raise ValueError("the state is of no step, and this hook has made some: begin with a new hook")
        if self._units is None:
            for unit in saved["units"]:
                check_saved(unit["state"])
            self._saved = copy.deepcopy(saved)  # until the first step has shown what the units are
        else:
            self._restore(saved)

    def carry_residuals(self, saved: Any) -> None:
        """Before the first step: begins with the residuals of a training on another number of ranks. What else a state holds
        begins anew; what the owners of parts keep in codecs of two shots is lost.

        saved  What `state_dict` of every rank of that training has returned. Each rank here begins with the mean of its residuals,
               so the next mean holds all that was kept then. Parameters that it does not name begin without.
        """
        if self._units is not None:
            raise RuntimeError("residuals can be carried over before the first step: begin with a new hook")
        if self._ranks_per_host is not None:
            raise ValueError("residuals of hosts of several ranks are of shards, and cannot be carried over")
        saved = list(saved)
        for state in saved:
            self._check_codec(state)
            for unit in state["units"]:
                check_saved(unit["state"])
        if sorted(state["rank"] for state in saved) != list(range(saved[0]["world"] if saved else 1)):
            raise ValueError(f"the states are of ranks {sorted(state['rank'] for state in saved)}; all of one training are needed")
        carried: dict[str, torch.Tensor] = {}
        for state in saved:
            for unit in state["units"] if state["momenta"] is None else []:
                begin = unit["residual"]
                for name, shape in unit["tensors"] if begin else []:
                    end = begin + 4 * math.prod(shape)
                    kept = unit["state"][begin:end].clone().view(torch.float32) / len(saved)
                    carried[name] = carried[name] + kept if name in carried else kept
                    begin = end
        self._carried = carried

    def _take_residuals(self, carried: dict[str, torch.Tensor]) -> None:
        for unit in self._units:
            if unit.exchange.residual is not None:
                for (name, shape), begin in zip(unit.described, unit.begins):
                    if name in carried and carried[name].numel() == math.prod(shape):
                        unit.exchange.residual[begin:begin + math.prod(shape)] = carried[name].to(unit.device)

    def _check_codec(self, saved: Any) -> None:
        if saved.get("version") != STATE_VERSION:
            raise ValueError(f"the state has version {saved.get('version')!r}; this package reads {STATE_VERSION}")
        if saved["codec"] != self._configuration.described():
            raise ValueError(f"the state is of the codec {saved['codec']}, and this hook has {self._configuration.described()}")

    def close(self) -> None:
        """Ends the thread of the hook. DDP must not use it afterwards."""
        if self._thread is None:
            return
        atexit.unregister(self.close)
        self._work.put(None)
        self._thread.join(10)

    # The thread.

    def _serve(self) -> None:
        waiting, streams = [], {}
        while True:
            job = self._work.get()
            if job is None:
                return
            waiting.append(job)
            try:
                if job.error is not None:
                    raise job.error
                if job.ready is not None:
                    device = job.buffer.device
                    if device not in streams:
                        # A thread begins on device 0, where it must not make a context. From now on the stream is this
                        # thread's current one of the device: exchanges work in it, and so do the events of futures.
                        torch.cuda.set_device(device)
                        streams[device] = torch.cuda.Stream(device)
                        torch.cuda.set_stream(streams[device])
                    job.buffer.record_stream(streams[device])
                    streams[device].wait_event(job.ready)
                self._take(job, waiting)
            except BaseException as error:  # the training must learn of it, whatever it is
                self._error = error
                for other in waiting:
                    other.future.set_result(_copy_of(error))
                waiting.clear()

    def _take(self, job: _Job, waiting: list[_Job]) -> None:
        """Puts the gradients of a bucket in their units, exchanges those that are complete, returns what is done."""
        if self._units is None:
            if sum(other.index == job.index for other in waiting) > 1:
                raise RuntimeError(f"{_TWO_MODELS}; and a first backward pass must not be interrupted")
            if not job.last:
                return  # the first step shows all parameters before the first exchange
            self._form_units([p for other in waiting for p in zip(other.parameters, other.gradients)])
        for other in waiting:
            if other.left is not None:
                continue
            other.left = len(other.parameters)
            for parameter, gradient in zip(other.parameters, other.gradients):
                if id(parameter) not in self._places:
                    raise RuntimeError(_TWO_MODELS)
                unit, begin = self._places[id(parameter)]
                if unit.put(begin, gradient, other):
                    unit.average()
                    unit.give_back()
        if job.last:
            if any(other.left != 0 for other in waiting):
                raise RuntimeError("the last bucket came before all gradients: the parameters of the model have changed")
            self._steps += 1  # before the backward pass can end
        while waiting and waiting[0].left == 0:
            done = waiting.pop(0)
            done.future.set_result(done.buffer)

    def _form_units(self, gradients: Any) -> None:
        open_units: dict[Any, _Unit] = {}
        units: list[_Unit] = []
        for number, (parameter, gradient) in enumerate(gradients):
            if self._configuration.rules and id(parameter) not in self._names:
                raise RuntimeError("module has other parameters than DDP: give ddp_hook the module that DDP wraps")
            rule = self._configuration.rule_for(self._names.get(id(parameter)))
            compressed = rule.codec != NONE
            if not compressed:  # travels beside the parameters of the default
                rule = dataclasses.replace(self._configuration.default)
            key = (NONE if rule.codec == NONE else rule.codec, rule.bits, rule.weighting, rule.clip, gradient.dtype,
                   gradient.device)
            unit = open_units.get(key)
            if unit is None:
                unit = open_units[key] = _Unit(rule, gradient.dtype, gradient.device)
                units.append(unit)
            name = self._names.get(id(parameter), f"#{number}")
            unit.append(parameter, name, tuple(gradient.shape), compressed, rule.weight)
            if unit.size * gradient.element_size() >= self._unit_bytes:
                del open_units[key]
        for number, unit in enumerate(units):
            unit.exchange = self._exchange_of(unit, self._seed * 1000003 + number)
            unit.values = torch.zeros(unit.size, dtype=unit.dtype, device=unit.device)
            unit.exchange.agree()
        self._units = units
        self._places = {id(p): (unit, begin) for unit in units for p, begin in zip(unit.parameters, unit.begins)}
        if self._saved is not None:
            self._restore(self._saved)
            self._saved = None
        if self._carried is not None:
            self._take_residuals(self._carried)
            self._carried = None

    def _send_momenta(self, codec: str, beta: float) -> None:
        self._momenta = (codec, beta)
        for number, unit in enumerate(self._units):
            unit.beta = beta
            if unit.rule.codec != NONE:
                unit.rule = dataclasses.replace(unit.rule, codec=codec, bits=None, weighting=None, clip=None)
                unit.exchange = self._exchange_of(unit, self._seed * 1000003 + len(self._units) + number)
                unit.exchange.agree()

    def _exchange_of(self, unit: _Unit, seed: int) -> Any:
        def make(preset: str, **parameters: Any) -> Any:
            kind, groups = (Exchange, (self._group,)) if self._levels is None else (TwoLevelExchange, self._levels)
            return kind(preset, unit.tensors, unit.dtype, unit.device, *groups, seed=seed % (1 << 64),
                        bypass_below=self._bypass_below, threads=self._threads, **parameters)
        rule = unit.rule
        if rule.codec == NONE:
            return make("fp32")
        assert rule.codec is not None
        exchange = make(rule.codec, bits=rule.bits, weighting=rule.weighting, clip=rule.clip)
        if exchange.travels:
            return exchange
        warnings.warn(f"{unit.size} values are too few for the budget of {rule.codec}: they travel as fp16")
        return make("fp16")

    def _restore(self, saved: Any) -> None:
        if not saved["units"]:  # of no step: states are as they begin
            return
        momenta = saved.get("momenta")
        if momenta is None and self._momenta is not None:
            raise ValueError("the state is of gradients, and this hook sends momenta already: begin with a new hook")
        if momenta is not None and self._momenta is None:
            for unit, values in zip(self._units, momenta["values"]):
                if values.numel() != unit.size:
                    raise ValueError("the state is of other parameters than this hook has")
                unit.momentum = values.to(unit.device, copy=True)
            self._send_momenta(momenta["codec"], momenta["beta"])
        mine = [(unit.exchange.preset, unit.described) for unit in self._units]
        theirs = [(unit["preset"], [(name, tuple(shape)) for name, shape in unit["tensors"]]) for unit in saved["units"]]
        if mine != theirs:
            raise ValueError("the state is of other parameters, codecs or bucket_mb than this hook has")
        for unit, state in zip(self._units, saved["units"]):
            unit.exchange.check_saved(state["state"])  # all of them, before the first one is taken
        for number, (unit, state) in enumerate(zip(self._units, saved["units"])):
            unit.exchange.load(state["state"])
            if momenta is not None:
                unit.momentum.copy_(momenta["values"][number])
        self._steps = saved["steps"]


class _Job:
    """One bucket of DDP on its way."""

    def __init__(self, future: Any, index: int, buffer: Any, parameters: Any, gradients: Any, last: bool) -> None:
        self.future, self.index, self.buffer, self.last = future, index, buffer, last
        self.parameters, self.gradients = parameters, gradients
        self.left: int | None = None  # gradients that have no mean yet; None: not looked at
        self.error: Exception | None = None
        self.ready: Any = None  # the event after which a GPU has written the gradients


class _Unit:
    """Parameters that are exchanged together."""

    def __init__(self, rule: Rule, dtype: torch.dtype, device: Any) -> None:
        self.rule, self.dtype, self.device = rule, dtype, device
        self.parameters: list[torch.nn.Parameter] = []
        self.begins: list[int] = []
        self.tensors: list[Any] = []
        self.described: list[tuple[str, tuple[int, ...]]] = []
        self.size = 0
        self.exchange: Any = None
        self.values: Any = None
        self.momentum: Any = None
        self.beta = 0.0  # the last mean, where momenta travel
        self._filled: list[Any] = []

    def append(self, parameter: Any, name: str, shape: Any, compressed: bool, weight: float | None) -> None:
        self.parameters.append(parameter)
        self.begins.append(self.size)
        self.tensors.append((shape, compressed, weight))
        self.described.append((name, shape))
        self.size += math.prod(shape)

    def put(self, begin: int, gradient: Any, job: _Job) -> bool:
        """Copies a gradient; whether it was the last one."""
        self.values[begin:begin + gradient.numel()].view(gradient.shape).copy_(gradient)
        self._filled.append((begin, gradient, job))
        return len(self._filled) == len(self.parameters)

    def average(self) -> None:
        """Replaces the gradients by what the ranks average."""
        if self.momentum is None:
            self.exchange(self.values)
            return
        self.values.copy_(torch.lerp(self.values.to(torch.float32), self.momentum, self.beta))
        self.exchange(self.values)
        # What is not finite makes the optimizer skip the step, and must not stay.
        self.momentum = torch.where(self.values.isfinite(), self.values.to(torch.float32), self.momentum)

    def give_back(self) -> None:
        for begin, gradient, job in self._filled:
            gradient.copy_(self.values[begin:begin + gradient.numel()].view(gradient.shape))
            job.left -= 1
        self._filled = []


def _ddp_of(parameter: torch.Tensor) -> DistributedDataParallel | None:
    """The DDP that has a parameter, which DDP does not say to its hooks."""
    found = [each for each in gc.get_objects() if issubclass(type(each), DistributedDataParallel)]
    return next((each for each in found if any(p is parameter for p in each.parameters())), None)


def _check_gradients(module: torch.nn.Module) -> None:
    """Raises if the gradients of a module are known to be such as cannot be exchanged."""
    ignored = getattr(module, "parameters_to_ignore", ())
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and name not in ignored:
            check_type(parameter.dtype, name)
    for name, part in module.named_modules():
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and part.sparse and part.weight.requires_grad:
            raise TypeError(f"{name or type(part).__name__}: {_SPARSE}")


def _named_parameters(module: Any) -> list[tuple[str, torch.nn.Parameter]]:
    """Parameters with the names that they have in the model, whatever it is wrapped in."""
    while True:
        inner = getattr(module, "_orig_mod", None)  # of torch.compile
        if inner is None and isinstance(module, (DistributedDataParallel, torch.nn.DataParallel)):
            inner = module.module
        if inner is None:
            break
        module = inner
    named = [(".".join(part for part in name.split(".") if part not in _WRAPPERS), parameter)
             for name, parameter in module.named_parameters()]
    while named and all(name.startswith("module.") for name, _ in named):  # of a wrapper that is not torch's
        named = [(name[len("module."):], parameter) for name, parameter in named]
    return named


def _new_group(like: Any, options: Any) -> Any:
    """A group of the ranks of another one, None: of all."""
    world = dist.get_world_size()
    if like is None or dist.get_world_size(like) == world:
        return dist.new_group(**options)
    ranks = [dist.get_global_rank(like, i) for i in range(dist.get_world_size(like))]
    if "use_local_synchronization" in inspect.signature(dist.new_group).parameters:
        return dist.new_group(ranks, use_local_synchronization=True, **options)
    # Every rank makes all groups, in one order.
    of_all: list[Any] = [None] * world
    mine = None
    dist.all_gather_object(of_all, ranks)
    for each in sorted(set(map(tuple, of_all))):
        group = dist.new_group(list(each), **options)
        mine = group if list(each) == ranks else mine
    return mine


def _groups_of_hosts(ranks_per_host: int, options: Any) -> tuple[Any, Any]:
    """The group of the ranks of this host, and that of the ranks of the same number on all hosts."""
    world, rank = dist.get_world_size(), dist.get_rank()
    if ranks_per_host < 1 or world % ranks_per_host != 0:
        raise ValueError(f"ranks_per_host is {ranks_per_host}, which must divide the number of ranks, {world}")
    within = between = None
    for first in range(0, world, ranks_per_host):  # every rank makes all groups, in one order
        group = dist.new_group(list(range(first, first + ranks_per_host)), **options)
        within = group if rank // ranks_per_host == first // ranks_per_host else within
    for number in range(ranks_per_host):
        group = dist.new_group(list(range(number, world, ranks_per_host)), **options)
        between = group if rank % ranks_per_host == number else between
    return within, between


def _future(device: Any) -> Any:
    return torch.futures.Future(devices=[device]) if device.type == "cuda" else torch.futures.Future()


def _value_of(future: Any) -> Any:
    value = future.value()
    if isinstance(value, BaseException):
        raise value
    return value


def _copy_of(error: BaseException) -> RuntimeError:
    """One exception object for each future: they would share a traceback otherwise."""
    return RuntimeError(f"the exchange of gradients failed: {error}")
