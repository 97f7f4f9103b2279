#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Exchanges over networks of limited bandwidth, beside what the performance model (tersum/model/) predicts.

    bench/network/validate.py [--quick] [--build build/cpu] [--repeats 3] [--json FILE] [--picture FILE]

Every setup is a codec, 2 to 4 ranks in network namespaces (run.sh), a limit, a size, whole or in pieces, over Gloo or MPI. Before
it exchanges, each run measures: latency and bandwidth, by a fit to a probe; what pieces and messages cost while others are under way,
by pieces of nothing; the bytes that a core carries through the transport, by a probe without limit; and the processor time of
encoding, adding and decoding. How many cores the ranks share is an input: each rank stays on one. The prediction is made of these
alone. The file is written after every run, and runs that it has already are left out: an interrupted validation goes on where it
was. Everything is run three times, one after the other, and of each setup the medians of measurements and of predictions count.
A run beside which other processes worked is repeated; how much they did is in the file. --quick is 20 setups, once. Ends with 77
where namespaces are not allowed or the programs are not built.

--picture draws what is in the file (matplotlib), and does not measure with --draw-only.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRANSPORTS = ("gloo", "mpi")
CODECS = ("fp16", "rotated_sat8", "rotated_sat4", "two_shot_4", "allocated_2", "topkc_b2")
# Codecs that cost so much that fp16 overtakes them on these networks, and the limits between which that happens.
CROSSING = ("topk_b2", "powersgd_r64", "thc_wide4")
CROSSING_RATES = (300, 400, 500, 600, 700, 850, 1000, 1200, 1400, 1700, 2000, 2400, 2800)
# Mbit/s, and how many coordinates an exchange has that takes at most about a second.
SIZES = {
    100: (100_000, 1_000_000),
    300: (100_000, 1_000_000),
    1000: (100_000, 1_000_000, 5_000_000),
    2000: (1_000_000, 5_000_000),
    4000: (1_000_000, 25_000_000),
    8000: (1_000_000, 25_000_000),
}
PIECES = 8


def burst(rate):
    """Bytes of the token bucket: half a millisecond, or a segment. A large bucket lets a small exchange pass as if there were no
    limit; from a small one tokens are lost when the kernel comes late, and with them bandwidth that no probe foretells."""
    return max(16384, int(rate * 1e6 / 8 * 500e-6))


def runs(quick, cores):
    """Calls of run.sh: transport, ranks, Mbit/s, sizes, codecs, pieces, steps. The first of each transport and number of ranks has
    no limit."""
    if quick:
        yield "gloo", 2, 0, (100_000,), ("fp16",), 1, 1
        yield "gloo", 2, 300, (100_000, 300_000), ("fp16", "rotated_sat4", "two_shot_4"), PIECES, 3
        yield "gloo", 2, 1000, (100_000, 300_000), ("fp16", "rotated_sat4"), PIECES, 3
        return
    for ranks in (2, 3, 4):
        for transport in TRANSPORTS:
            # Open MPI waits in loops: ranks that share a core wait for the scheduler's tick, and a message takes milliseconds.
            if transport == "mpi" and ranks > cores:
                continue
            yield transport, ranks, 0, (100_000,), ("fp16",), 1, 1
            for rate, sizes in SIZES.items():
                if transport == "mpi" and rate in (300, 2000, 8000):
                    continue
                yield transport, ranks, rate, sizes, CODECS, PIECES, 5
    for rate in CROSSING_RATES:
        yield "gloo", 2, rate, (5_000_000,), ("fp16", *CROSSING), 1, 5


def used_by_processes():
    """Ticks of processor time of all processes that are no kernel threads and not this one, with those of their ended children."""
    ticks = 0
    for name in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = name.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if words[1] not in ("0", "2") and int(name.parent.name) != os.getpid():
            ticks += sum(map(int, words[11:15]))
    return ticks


def alone(measure, attempts):
    """The result of measure(), and how much of a core other processes used meanwhile: of the attempts the one with the least, and the
    first one with less than 5 %. Who was interrupted by others did not take the time that the model could know."""
    best = None
    for _ in range(attempts):
        before, begin = used_by_processes(), time.monotonic()
        result = measure()
        seconds = time.monotonic() - begin
        others = max(0, used_by_processes() - before) / os.sysconf("SC_CLK_TCK") / seconds
        if best is None or others < best[1]:
            best = result, others
        if others < .05:
            break
        print(f"  other processes used {100 * others:.0f} % of a core", file=sys.stderr)
    return best


def key_of(run):
    transport, ranks, rate, sizes, codecs, pieces, _ = run
    return f"{transport} {ranks} ranks {rate} Mbit/s {','.join(map(str, sizes))} x{pieces} {','.join(codecs)}"


def perform(run, cores, copy_rate, build):
    """The lines of JSON that one call of run.sh prints."""
    transport, ranks, rate, sizes, codecs, pieces, steps = run
    environment = dict(os.environ, TRANSPORT=transport, BUILD=str(build), CODEC=",".join(codecs), CORES=str(cores),
                       COPY_RATE=f"{copy_rate:.6g}", PIECES=str(pieces), BURST=str(burst(rate)))
    done = subprocess.run(
        ["bash", str(ROOT / "bench/network/run.sh"), str(ranks), ",".join(map(str, sizes)), str(steps), str(rate)],
        env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"validate.py: {key_of(run)} failed with status {done.returncode}\n{done.stdout}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    expected = 1 + len(sizes) * len(codecs) * len({1, pieces})
    if len(lines) != expected:
        sys.exit(f"validate.py: {key_of(run)} gave {len(lines)} lines instead of {expected}: does the build have these codecs?")
    return lines[0], [dict(line, transport=transport) for line in lines[1:]]


def text_of(measured):
    """JSON with a line for each setup."""
    head = json.dumps({k: v for k, v in measured.items() if k != "runs"})[:-1]
    runs = []
    for key, run in measured["runs"].items():
        probe = json.dumps({k: v for k, v in run.items() if k != "setups"})[:-1]
        setups = ",\n".join("  " + json.dumps(setup) for setup in run["setups"])
        runs.append(f" {json.dumps(key)}: {probe}, \"setups\": [\n{setups}]}}")
    return f'{head}, "runs": {{\n' + ",\n".join(runs) + "}}\n"


def setups_of(measured):
    """All setups with a limit, once each: the medians of their runs."""
    found = {}
    for key, run in measured["runs"].items():
        for setup in run["setups"]:
            if setup["megabits"] > 0:
                name = tuple(setup[k] for k in ("transport", "ranks", "megabits", "coordinates", "pieces", "codec"))
                # A crossing's run has setups of another one's, too, of which one is enough.
                of_one = found.setdefault(name, (key.partition(" #")[0], []))
                if of_one[0] == key.partition(" #")[0]:
                    of_one[1].append(setup)
    return [dict(same[0], **{k: statistics.median(s[k] for s in same) for k in ("measured", "predicted", "bandwidth", "break_even")})
            for _, same in found.values()]


def crossing(points):
    """Where a line through (bandwidth, logarithm of a ratio) crosses zero from below to above, between neighbours; or None."""
    points = sorted(points)
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if y0 < 0 <= y1:
            return math.exp(math.log(x0) + (math.log(x1) - math.log(x0)) * -y0 / (y1 - y0))
    return None


def break_evens(setups):
    """For each codec that fp16 overtakes: the bandwidth at which it does as measured, and as the model says beforehand. Both are in
    bytes a second as the probe finds them, and the model's is the mean of what it says at the two limits beside the crossing."""
    found = []
    for codec in CROSSING:
        some = {s["megabits"]: s for s in setups
                if s["codec"] == codec and s["pieces"] == 1 and s["transport"] == "gloo" and s["ranks"] == 2}
        plain = {s["megabits"]: s for s in setups
                 if s["codec"] == "fp16" and s["pieces"] == 1 and s["transport"] == "gloo" and s["ranks"] == 2
                 and s["coordinates"] == 5_000_000}
        both = sorted(set(some) & set(plain))
        at = crossing([(some[m]["bandwidth"], math.log(some[m]["measured"] / plain[m]["measured"])) for m in both])
        if at is None:
            continue
        near = sorted(both, key=lambda m: abs(math.log(some[m]["bandwidth"] / at)))[:2]
        model = sum(some[m]["break_even"] for m in near) / len(near)
        found.append({"codec": codec, "measured": at, "predicted": model, "ratio": model / at})
    return found


def summary(setups):
    """What share of the setups is within 10 %, and the worst."""
    ratios = sorted(s["predicted"] / s["measured"] for s in setups)
    if not ratios:
        return "no setups"
    off = sorted(abs(r - 1) for r in ratios)
    within = sum(o <= .1 for o in off) / len(off)
    return (f"{len(off)} setups: {100 * within:.0f} % within 10 %, median {100 * off[len(off) // 2]:.1f} % off, "
            f"90th percentile {100 * off[min(len(off) - 1, int(.9 * len(off)))]:.1f} %, "
            f"predicted/measured from {ratios[0]:.2f} to {ratios[-1]:.2f}")


def report(setups):
    print(summary(setups))
    for name in ("transport", "ranks", "megabits", "codec"):
        for value in sorted({s[name] for s in setups}, key=str):
            print(f"  {name} {value}: {summary([s for s in setups if s[name] == value])}")
    for transport in sorted({s["transport"] for s in setups}):
        for whole, words in ((True, "whole"), (False, "in pieces")):
            some = [s for s in setups if s["transport"] == transport and (s["pieces"] == 1) == whole]
            print(f"  {transport}, {words}: {summary(some)}")
    worst = sorted(setups, key=lambda s: -abs(math.log(s["predicted"] / s["measured"])))[:5]
    for s in worst:
        print(f"  worst: {s['codec']} {s['transport']} {s['ranks']} ranks {s['megabits']:g} Mbit/s {s['coordinates']} coordinates "
              f"{s['pieces']} pieces: predicted {1e3 * s['predicted']:.2f} ms, measured {1e3 * s['measured']:.2f} ms")
    for one in break_evens(setups):
        print(f"  break-even of {one['codec']} with fp16: predicted {8e-9 * one['predicted']:.2f} Gbit/s, measured "
              f"{8e-9 * one['measured']:.2f}, {100 * (one['ratio'] - 1):+.0f} %")


def draw(setups, path):
    """Predicted against measured time."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as pyplot

    style = {"font.size": 11, "svg.fonttype": "none", "svg.hashsalt": "tersum", "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(8, 7), dpi=100)
        times = [1e3 * s[k] for s in setups for k in ("measured", "predicted")]
        low, high = min(times) / 1.3, max(times) * 1.3
        axes.fill_between([low, high], [low * .9, high * .9], [low * 1.1, high * 1.1], color="#e8e8e8", label="within 10 %")
        axes.plot([low, high], [low, high], color="#888888", linewidth=1)
        for transport, color in (("gloo", "#0072b2"), ("mpi", "#dd8800")):
            for whole, marker in ((True, "o"), (False, "+")):
                some = [s for s in setups if s["transport"] == transport and (s["pieces"] == 1) == whole]
                if some:
                    axes.plot([1e3 * s["measured"] for s in some], [1e3 * s["predicted"] for s in some], linestyle="",
                              marker=marker, markersize=5, color=color, alpha=.6,
                              label=f"{transport}, {'whole' if whole else 'in pieces'}: {len(some)}")
        axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="measured, ms", ylabel="predicted, ms")
        axes.set_title("Time of an exchange, predicted and measured", loc="left")
        axes.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 setups")
    parser.add_argument("--build", default="build/cpu", help="where the programs are")
    parser.add_argument("--json", help="where to keep what was measured (nowhere)")
    parser.add_argument("--picture", help="where to draw, .svg or .png")
    parser.add_argument("--draw-only", action="store_true", help="report and draw what is in the file")
    parser.add_argument("--transport", choices=TRANSPORTS, help="only one of them (both)")
    parser.add_argument("--repeats", type=int, default=3, help="of everything, of which medians count (3; 1 with --quick)")
    parser.add_argument("--attempts", type=int, default=3, help="at a run beside which other processes worked (3; 1 with --quick)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing more after so many; go on with the next call")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="that all ranks share (those of this machine)")
    options = parser.parse_args()
    file = pathlib.Path(options.json) if options.json else None
    measured = {"version": 1, "cores": options.cores, "runs": {}}
    if file and file.exists():
        measured = json.loads(file.read_text(encoding="utf-8"))
    if not options.draw_only:
        copy_rates, begin = {}, time.monotonic()
        planned = [run for run in runs(options.quick, measured["cores"]) if options.transport in (None, run[0])]
        repeats = 1 if options.quick else options.repeats
        for number, (turn, run) in enumerate(((turn, run) for turn in range(repeats) for run in planned), 1):
            key, world = key_of(run) + (f" #{turn + 1}" if turn else ""), run[:2]
            if time.monotonic() - begin > options.seconds:
                print(f"stopped before {key}", file=sys.stderr)
                break
            if key not in measured["runs"]:
                print(f"[{number}/{repeats * len(planned)}, {time.monotonic() - begin:.0f} s] {key}", file=sys.stderr, flush=True)
                (probe, setups), others = alone(
                    lambda run=run, world=world: perform(run, measured["cores"], copy_rates.get(world, 0), options.build),
                    1 if options.quick else options.attempts)
                measured["runs"][key] = {"others": round(others, 3), "probe": probe, "setups": setups}
                if file:
                    part = file.with_suffix(".part")
                    part.write_text(text_of(measured), encoding="utf-8")
                    part.replace(file)
            if run[2] == 0:
                copy_rates[world] = measured["runs"][key]["probe"]["copy_rate"]
        print(f"took {time.monotonic() - begin:.0f} s", file=sys.stderr)
    setups = setups_of(measured)
    report(setups)
    if options.picture:
        draw(setups, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
