# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""One rank of a training by a library that makes DDP itself: pytorch_trainers.py lightning|configure_ddp|accelerate, with RANK,
WORLD_SIZE and so on in the environment."""

import sys
import unittest.mock

import torch
import torch.distributed as dist

import tersum_torch


def check(hook, weight):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, weight.detach().numpy().tobytes())
    assert len(set(values)) == 1, "the ranks differ"
    assert 4 < hook.bits_per_coordinate < 5 and hook.state_dict()["steps"] == 8, hook.bits_per_coordinate
    print("trained with", hook.bits_per_coordinate, "bits", flush=True)


def lightning(own):
    """The strategy gets a hook before there is a process group; or makes it in its own configure_ddp."""
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(64, 512)

        def training_step(self, batch, index):
            return (self.layer(batch[0]).square().mean() - 1).square()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    class Strategy(DDPStrategy):
        def configure_ddp(self):
            super().configure_ddp()
            self.hook = tersum_torch.register(self.model)

    class OnCuda(DDPStrategy):
        """Lightning gives no hook to DDP on a CPU."""

        def _register_ddp_hooks(self):
            with unittest.mock.patch.object(DDPStrategy, "root_device", torch.device("cuda")):
                super()._register_ddp_hooks()

    hook = None if own else tersum_torch.ddp_hook()
    options = {"process_group_backend": "gloo"}
    strategy = Strategy(**options) if own else OnCuda(ddp_comm_hook=hook, **options)
    data = torch.utils.data.TensorDataset(torch.randn(256, 64, generator=torch.Generator().manual_seed(1)))
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy=strategy, max_epochs=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(data, 16))
    check(strategy.hook if own else hook, module.layer.weight)


def accelerate():
    import accelerate as library

    accelerator = library.Accelerator(cpu=True)
    torch.manual_seed(0)
    model, optimizer = torch.nn.Linear(64, 512), None
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
    hook = tersum_torch.register(model)
    for step in range(8):
        optimizer.zero_grad()
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(10 * step + accelerator.process_index))
        accelerator.backward((model(x).square().mean() - 1).square())
        optimizer.step()
    check(hook, accelerator.unwrap_model(model).weight)


if __name__ == "__main__":
    {"lightning": lambda: lightning(False), "configure_ddp": lambda: lightning(True), "accelerate": accelerate}[sys.argv[1]]()
