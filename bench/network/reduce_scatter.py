# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Times tersum_torch.reduce_scatter_with_fp32_accumulation at 16 (Megatron's all-to-all and float sums), 8 and 4 bits, of bfloat16,
between ranks in network namespaces of limited bandwidth.

    TERSUM_C_LIBRARY=... PYTHONPATH=examples/pytorch chrt -r 1 python3 bench/network/reduce_scatter.py FILE.json [RANKS [MBIT...]]

writes medians in milliseconds. Needs root, iproute2 and torch. Ends with 77 where namespaces are not allowed.
"""

import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/time_to_accuracy"))

SIZES = [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24]  # coordinates of the gradient
REPEATS = 9


def rank_of_measurement(store, rank, world, file):
    import tersum_torch

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    rows = []
    for size in SIZES:
        values = torch.randn(size, generator=torch.Generator().manual_seed(rank)).bfloat16()
        out, row = torch.empty(size // world, dtype=torch.bfloat16), {"coordinates": size}
        for bits in (16, 8, 4):
            scatter = functools.partial(tersum_torch.reduce_scatter_with_fp32_accumulation, bits=bits)
            taken = []
            for _ in range(REPEATS + 2):
                dist.barrier()
                begin = time.perf_counter()
                scatter(out, values, dist.ReduceOp.SUM, dist.group.WORLD)
                taken.append(time.perf_counter() - begin)
            longest = torch.tensor(taken[2:], dtype=torch.float64)
            dist.all_reduce(longest, op=dist.ReduceOp.MAX)
            row[str(bits)] = round(1e3 * statistics.median(longest.tolist()), 4)
        rows.append(row)
    if rank == 0:
        pathlib.Path(file).write_text(json.dumps(rows), encoding="utf-8")
    dist.barrier()


def main():
    from run import Network

    target, ranks = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    network, measured = Network(ranks), []
    try:
        if not network.allowed:
            print("skipped: network namespaces are not allowed here")
            return 77
        for rate in map(int, sys.argv[3:] or (1000, 10000)):
            network.limit(rate)
            with tempfile.TemporaryDirectory() as folder:
                environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="eth0")
                running = [subprocess.Popen(network.prefix(k) + [sys.executable, __file__, "--rank", f"{folder}/store", str(k), str(ranks),
                                                                 f"{folder}/rows"], env=environment) for k in range(ranks)]
                if any([process.wait() for process in running]):
                    return 1
                rows = json.loads(pathlib.Path(folder, "rows").read_text(encoding="utf-8"))
            measured.append({"mbit": rate, "ranks": ranks, "torch": torch.__version__, "milliseconds": rows})
            for row in rows:
                print(f"{rate:6d} Mbit/s {row['coordinates']:9d} bfloat16: " +
                      ", ".join(f"{bits} bits {row[bits]:9.3f} ms" for bits in ("16", "8", "4")), flush=True)
    finally:
        network.close()
    target.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--rank":
        rank_of_measurement(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(main())
