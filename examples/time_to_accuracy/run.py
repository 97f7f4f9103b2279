# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Trains with every codec on networks of limited bandwidth, and reports. Runs that have a file are not run again, so an
interrupted comparison goes on where it was.

Each rank is a process in a network namespace of its own, whose egress a token bucket limits, as in bench/network/run.sh.
Where namespaces are not allowed all ranks share the machine's own network, and the rate is 0: no limit.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from momenta import MOMENTA
from report import read, report
from tasks import TASKS

HERE = pathlib.Path(__file__).resolve().parent
CODECS = ["fp16", "fp32", "bf16", "torch_fp16", "torch_powersgd", "rotated_sat8", "rotated_sat4", "allocated_sat_4",
          "two_shot_4", "two_shot_2", "metric_2", "metric_3", "allocated_2", "topkc_b2_ef",
          "topk_b2_ef", "powersgd_r4"]
# Steps of training at most; steps between two validations.
LENGTHS = {"transformer": (3000, 50), "transformer_lans": (3000, 50), "transformer_lamb": (3000, 50), "cnn": (1500, 25),
           "recommender": (2000, 25), "transformer_cosine": (1000, 50), "transformer_large": (320, 40),
           "cnn_large": (200, 20)}


def call(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Network:
    """Namespaces, one for each rank, at a bridge in one more. Nothing is made in the namespace of the machine."""

    def __init__(self, ranks):
        self.ranks, self.name = ranks, f"tersum{os.getpid()}"
        self.allowed = bool(shutil.which("ip") and shutil.which("tc")) and self._make()
        if not self.allowed:
            self.close()

    def _make(self):
        bridge = f"{self.name}-bridge"
        inside = lambda k, *command: call("ip", "netns", "exec", f"{self.name}-{k}", *command)
        ok = call("ip", "netns", "add", bridge) and call("ip", "netns", "exec", bridge, "ip", "link", "add", "br0", "type",
                                                         "bridge")
        ok = ok and call("ip", "netns", "exec", bridge, "ip", "link", "set", "br0", "up")
        for k in range(self.ranks if ok else 0):
            ok = ok and call("ip", "netns", "add", f"{self.name}-{k}")
            ok = ok and call("ip", "netns", "exec", bridge, "ip", "link", "add", f"v{k}", "type", "veth", "peer", "name",
                             "eth0", "netns", f"{self.name}-{k}")
            ok = ok and call("ip", "netns", "exec", bridge, "ip", "link", "set", f"v{k}", "master", "br0", "up")
            ok = ok and inside(k, "ip", "addr", "add", f"10.77.0.{k + 1}/24", "dev", "eth0")
            ok = ok and inside(k, "ip", "link", "set", "lo", "up") and inside(k, "ip", "link", "set", "eth0", "up")
            ok = ok and inside(k, "sh", "-c", "echo reno >/proc/sys/net/ipv4/tcp_congestion_control")
            # One core handles what goes to and from a rank: two would overtake each other, and TCP takes what comes late for lost.
            cores = sorted(os.sched_getaffinity(0))
            core = cores[k % len(cores)]
            mask = f"{1 << core % 32:x}" + ",00000000" * (core // 32)
            inside(k, "sh", "-c", f"echo {mask} >/sys/class/net/eth0/queues/rx-0/rps_cpus")
            call("ip", "netns", "exec", bridge, "sh", "-c", f"echo {mask} >/sys/class/net/v{k}/queues/rx-0/rps_cpus")
        return ok

    def limit(self, rate):
        """Mbit/s that each rank can send; 0 for no limit. Whether that was possible."""
        for k in range(self.ranks):
            inside = ("ip", "netns", "exec", f"{self.name}-{k}", "tc", "qdisc")
            call(*inside, "del", "dev", "eth0", "root")
            if rate and not call(*inside, "add", "dev", "eth0", "root", "tbf", "rate", f"{rate}mbit", "burst", "256kb",
                                 "latency", "50ms"):
                return False
        return True

    def prefix(self, rank):
        return ["ip", "netns", "exec", f"{self.name}-{rank}"] if self.allowed else []

    def close(self):
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout if shutil.which("ip") else ""
        for line in listed.splitlines():
            if line.split()[0].startswith(self.name + "-"):
                call("ip", "netns", "del", line.split()[0])


def train(runs, network):
    """All ranks of some runs; whether none of them failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "runs.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(runs, out)
        interface = "eth0" if network.allowed else "lo"
        environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME=interface)
        ranks = [subprocess.Popen(network.prefix(k) + [sys.executable, str(HERE / "train.py"), file, str(k),
                                                       str(network.ranks), os.path.join(folder, "store")], env=environment)
                 for k in range(network.ranks)]
        try:
            while all(rank.poll() is None for rank in ranks):
                try:
                    ranks[0].wait(0.5)
                except subprocess.TimeoutExpired:
                    pass
            if any(rank.poll() for rank in ranks):
                return False  # the others would wait for it
            return all([rank.wait(60) == 0 for rank in ranks])
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="three codecs, one seed, few steps, two ranks: a minute or two")
    parser.add_argument("--tasks", nargs="+", default=None, choices=list(TASKS))
    parser.add_argument("--codecs", nargs="+", default=None,
                        help=f"presets, {', '.join(MOMENTA)}, torch_fp16, torch_powersgd; fp16 is always there")
    parser.add_argument("--seeds", type=int, default=None, help="5")
    parser.add_argument("--ranks", type=int, default=None, help="4")
    parser.add_argument("--mbit", type=int, nargs="+", default=None, help="what a rank can send: 100 1000 10000; 0: no limit")
    parser.add_argument("--steps", type=int, default=None, help="of training, at most")
    parser.add_argument("--patience", type=int, default=10, help="validations without a gain after which a training ends")
    parser.add_argument("--rolling", type=int, default=5, help="validations of the rolling mean")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/time_to_accuracy"))
    given = parser.parse_args()
    quick = given.quick
    tasks = given.tasks or ["transformer", "cnn", "recommender"]
    codecs = given.codecs or (["fp16", "rotated_sat4", "two_shot_2"] if quick else CODECS)
    if "fp16" not in codecs:
        codecs = ["fp16"] + codecs
    network = Network(given.ranks or (2 if quick else 4))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = given.out / ("quick" if quick else "runs")
    folder.mkdir(parents=True, exist_ok=True)
    complete = True
    try:
        rates = given.mbit or ([100] if quick else [100, 1000, 10000])
        if not network.allowed or not all(network.limit(rate) for rate in rates):
            print("network namespaces of limited bandwidth are not allowed here: no rate is limited", file=sys.stderr)
            rates = [0]
        for rate in rates:
            runs = []
            for task in tasks:
                steps, every = (40, 10) if quick else LENGTHS[task]
                for seed in range(given.seeds or (1 if quick else 5)):
                    for codec in codecs:
                        runs.append({"task": task, "codec": codec, "seed": seed, "mbit": rate, "every": every,
                                     "steps": given.steps or steps, "rolling": 2 if quick else given.rolling,
                                     "patience": given.patience, "least_gain": 1e-4, "quick": quick,
                                     "file": str(folder / f"{task}-{rate}-{network.ranks}-{codec}-{seed}.json")})
            runs = [run for run in runs if not pathlib.Path(run["file"]).exists()]
            if runs and network.allowed:
                network.limit(rate)
            if runs:
                print(f"{len(runs)} trainings, {network.ranks} ranks, {rate or 'no limit of'} Mbit/s", file=sys.stderr)
                complete = train(runs, network) and complete
    finally:
        network.close()
    report(read(*sorted(folder.glob("*.json"))), given.out / ("quick.svg" if quick else "time_to_accuracy.svg"))
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
