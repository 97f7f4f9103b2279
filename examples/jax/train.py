# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Data-parallel JAX with compressed gradients: train.py [CODEC]. Two ranks are processes, which meet over a pipe here."""

import multiprocessing
import sys
import jax
import jax.numpy as jnp
import numpy as np
import tersum
from jax.experimental import io_callback
from jax.flatten_util import ravel_pytree


class Pipe:
    def __init__(self, rank, end):
        self.rank, self.size, self.end = rank, 2, end

    def all_to_all(self, sent, received):
        received[self.rank][:] = sent[self.rank]
        if self.rank == 0:
            self.end.send_bytes(sent[1].tobytes())
        received[1 - self.rank][:] = np.frombuffer(self.end.recv_bytes(), np.uint8)
        if self.rank == 1:
            self.end.send_bytes(sent[0].tobytes())


def rank_of_training(rank, end, codec):
    w = jax.random.normal(jax.random.key(0), (2, 64, 512)) / 16
    parameters = {"in": w[0], "bias": jnp.zeros(512), "out": w[1, :8].T}
    tensors = [(p.shape, p.ndim > 1, None) for p in jax.tree.leaves(parameters)]
    exchange = tersum.Exchange(codec, 64 * 512 + 512 + 512 * 8, Pipe(rank, end), tensors=tensors)
    exchange.agree()

    def exchanged(gradient):
        exchange(mean := np.array(gradient))
        return mean

    def loss_of(p, x, y):
        return jnp.mean((jnp.tanh(x @ p["in"] + p["bias"]) @ p["out"] - y) ** 2)

    @jax.jit
    def step(parameters, x, y):
        loss, gradient = jax.value_and_grad(loss_of)(parameters, x, y)
        flat, unflatten = ravel_pytree(gradient)
        mean = unflatten(io_callback(exchanged, jax.ShapeDtypeStruct(flat.shape, flat.dtype), flat, ordered=True))
        return loss, jax.tree.map(lambda p, g: p - 0.5 * g, parameters, mean)

    for number in range(100):
        x = jax.random.normal(jax.random.key(1000 * rank + number), (64, 64))
        loss, parameters = step(parameters, x, x[:, :8])
    print(f"rank {rank}: loss {loss:.4f}, {exchange.bits_per_coordinate:.2f} bits, |parameters| {float(jnp.linalg.norm(parameters['in']))}")


if __name__ == "__main__":
    spawn, (codec,) = multiprocessing.get_context("spawn"), sys.argv[1:] or ["two_shot_4"]
    running = [spawn.Process(target=rank_of_training, args=(*end, codec)) for end in enumerate(spawn.Pipe())]
    _ = [process.start() for process in running]
    sys.exit(max(process.join() or process.exitcode for process in running))
