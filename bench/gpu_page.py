#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the page of bench/gpu_check.sh: what was measured on a GPU beside what was predicted.

    bench/gpu_page.py [FILE.json]... [--ncu ncu.PRESET.csv...] [--size N] [--predictions FILE]

The files are those that the benchmarks wrote. A CSV file holds the kernels of one exchange of two ranks, as
`ncu --import FILE --page raw --csv --print-units base` prints them. Predictions are compared with results of N coordinates, which
that exchange has, too. What was not measured is named.
"""

import argparse
import csv
import json
import math
import pathlib
import re
import statistics
import sys

import report

PREDICTIONS = pathlib.Path(__file__).with_name("gpu_predictions.json")
LARGEST_GAPS = 3
LEAST_SHARE = 20  # percent: below that it is the time of a kernel that is compared, most of which is its launch
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)(_per_issue_active)?\.ratio$")
PIPE = re.compile(r"sm__inst_executed_pipe_(\w+?)\.\w+\.pct_of_peak_sustained_active$")
IDENTIFIER = re.compile(r"(?:(?:\w+|\(anonymous namespace\)|<unnamed>)::)*(\w+)\s*(.*)", re.DOTALL)


def first_argument(text):
    """The first of the template arguments of which `text` begins with the bracket."""
    depth = 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if depth == 0 or (depth == 1 and letter == ","):
            return text[1:at].strip()
    return ""


def short_name(kernel):
    """The name by which the sources know a kernel, such as `norms_kernel<false>`, of a demangled one."""
    kernel = re.sub(r"\(bool\)([01])", lambda match: "true" if match[1] == "1" else "false", kernel.removeprefix("void "))
    return shortened(re.sub(r"\((unsigned )?(char|short|int|long)\)", "", kernel))


def shortened(text):
    """A template's name without namespaces, and the first of its arguments likewise."""
    match = IDENTIFIER.match(text)
    if not match:
        return ""
    name, rest = match.groups()
    argument = shortened(first_argument(rest)) if rest.startswith("<") else ""
    if argument and name in ("exchange_kernel", "chunk_kernel", "block_kernel"):
        return argument  # They say how a kernel is launched, their argument what it does.
    return f"{name}<{argument}>" if argument else name


def number(text):
    """A value of ncu's, or None."""
    try:
        return float(text.replace(",", ""))
    except (AttributeError, ValueError):
        return None


def read_kernels(path):
    """The launches in a CSV file, in their order."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    launches = []
    for row in csv.DictReader(lines[start:]):
        time = number(row.get("gpu__time_duration.sum"))
        if not (row.get("ID") or "").isdigit() or not time:
            continue  # the row of units
        largest = {}
        for kind, pattern in (("stall", STALL), ("pipe", PIPE)):
            found = [(number(value), match[1]) for key, value in row.items()
                     if (match := pattern.match(key or "")) and number(value) is not None]
            largest[kind] = max(found, default=None)
        traffic = [number(row.get(f"dram__bytes_{way}.sum")) for way in ("read", "write")]
        launches.append({
            "name": short_name(row["Kernel Name"]), "ns": time, **largest,
            "bytes": None if None in traffic else sum(traffic),
            "issue": number(row.get("smsp__issue_active.avg.pct_of_peak_sustained_active")),
            "occupancy": number(row.get("sm__warps_active.avg.pct_of_peak_sustained_active")),
            "registers": number(row.get("launch__registers_per_thread"))})
    return launches


def by_name(launches):
    """The launches of each kernel, in the order of their first."""
    groups = {}
    for launch in launches:
        groups.setdefault(launch["name"], []).append(launch)
    return groups


def median(launches, key):
    """The median over launches that have the value, or None."""
    values = [launch[key] for launch in launches if launch[key] is not None]
    return statistics.median(values) if values else None


def cell(value, digits=0, unit=""):
    """A number, or a dash."""
    return "-" if value is None else f"{value:.{digits}f}{unit}"


def terabytes(size, ns):
    """Bytes in nanoseconds as TB/s."""
    return None if size is None else size / ns * 1e-3


def line(*cells):
    return "| " + " | ".join(cells) + " |"


def copy_rate(results):
    """Bytes a nanosecond, read and written, of the copy of the largest arrays; of the benchmark of ceilings where it is there."""
    sizes = [(r["operation"] == "ceiling", int(r["n"]) * r["copied_bytes"], r["copy_ns"]) for r in results]
    _, size, ns = max(sizes, default=(False, 0, 1))
    return 2 * size / ns or None


def ceilings(results, rate):
    """Part of the page: what the memory does at most."""
    here = [r for r in results if r["operation"] == "ceiling"]
    if not here:
        return "Not measured."
    rows = [line("device-to-device copy", cell(rate * 1e-3, 3), "100 %")]
    rows += [line(f"kernel: {r['preset'].replace('_', ' ')}", cell(terabytes(int(r["n"]) * r["bytes"], r["best_ns"]), 3),
                  cell(100 * report.share_of_copy(r), 0, " %")) for r in here]
    return report.table(["what", "TB/s", "of copy"], 1, rows)


def compared(predictions, column, results, kernels, rate, size):
    """What is predicted of presets that were run, as (what, predicted, measured or None, unit): shares of a copy in percent, or times in
    us of exchanges and of kernels with a small share; and the other presets."""
    run = {r["preset"] for r in results} | set(kernels)
    others = dict.fromkeys(one["preset"] for one in predictions["rows"] if one["preset"] not in run)
    found = {(f"{r['operation']}/{r['preset']}/{r['element']}", int(r["n"])): r for r in results}
    rows = []
    for one in predictions["rows"]:
        if one["preset"] in others:
            continue
        result = found.get((one.get("result"), one.get("n", size)))
        if "percent" not in one:
            rows.append((one["what"], one["us"][column], result and result["best_ns"] * 1e-3, "us"))
            continue
        share = result and 100 * report.share_of_copy(result)
        if "profiled" in one:
            ns = median(by_name(kernels.get(one["profiled"], [])).get(one["kernel"], []), "ns")
            if one["percent"][column] < LEAST_SHARE:
                rows.append((one["what"], one["us"][column], ns and ns * 1e-3, "us"))
                continue
            share = 100 * one["bytes"] * size / ns / rate if ns and rate else None
        rows.append((one["what"], one["percent"][column], share, "%"))
    return rows, list(others)


def gap(row):
    """How far apart the two are, whichever is larger."""
    return abs(math.log(row[2] / row[1]))


def comparison(rows, others, device):
    """Part of the page: predictions against measurements, and the three largest gaps."""
    measured = sorted((row for row in rows if row[2]), key=gap, reverse=True)
    text = report.table(["what", f"predicted for {device}", "measured", "measured / predicted"], 1, [
        line(what, cell(wanted, 0, f" {unit}"), cell(got, 0, f" {unit}"), cell(got / wanted if got else None, 2))
        for what, wanted, got, unit in rows])
    text += "\n\n### The three largest gaps\n\n"
    if not measured:
        return text + "Nothing that was predicted was measured."
    of = {"%": "% of copy", "us": "us"}
    text += "\n".join(f"{i}. {what}: {got:.0f} {of[unit]} where {wanted:.0f} {unit} were predicted, {got / wanted:.2f} times that."
                      for i, (what, wanted, got, unit) in enumerate(measured[:LARGEST_GAPS], 1))
    missing = [what for what, _, got, _ in rows if not got]
    text += f"\n\nNot measured: {'; '.join(missing)}." if missing else ""
    return text + (f"\n\nPresets that were not run: {', '.join(others)}." if others else "")


def profile(kernels, rate):
    """Part of the page: the kernels of an exchange."""
    rows = []
    for preset, launches in kernels.items():
        for name, group in by_name(launches).items():
            ns, size = median(group, "ns"), median(group, "bytes")
            speed = terabytes(size, ns)
            best = {kind: max((g[kind] for g in group if g[kind]), default=None) for kind in ("stall", "pipe")}
            share = 100 * speed * 1e3 / rate if speed and rate else None
            rows.append(line(preset, f"`{name}`", str(len(group)), cell(ns * 1e-3, 1), cell(speed, 2), cell(share, 0, " %"),
                             cell(median(group, "issue"), 0, " %"), cell(median(group, "occupancy"), 0, " %"),
                             cell(median(group, "registers")),
                             *(f"{best[kind][1]} ({best[kind][0]:.1f})" if best[kind] else "-" for kind in ("pipe", "stall"))))
    if not rows:
        return "Not profiled."
    return report.table(["preset", "kernel", "launches", "us", "TB/s of memory", "of copy", "issue slots", "warps", "registers",
                         "busiest pipe (%)", "first stall (warps)"], 2, rows)


def times(results, operations, heads):
    """Part of the page: a line for each preset and type, a column for each size, the times of the operations in a cell."""
    found = {}
    for r in results:
        if r["operation"] in operations:
            found.setdefault((r["preset"], r["element"]), {}).setdefault(int(r["n"]), {})[r["operation"]] = r["best_ns"] * 1e-3
    if not found:
        return "Not measured."
    sizes = sorted({n for of_sizes in found.values() for n in of_sizes})
    return f"us: {heads}.\n\n" + report.table(["preset", "gradient", *(power(n) for n in sizes)], 2, [
        line(*key, *(" / ".join(cell(of_sizes.get(n, {}).get(operation), 1) for operation in operations) for n in sizes))
        for key, of_sizes in found.items()])


def power(n):
    """2^k where n is a power of two."""
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else str(n)


def page(results, failed, kernels, predictions, device, size):
    """The whole page."""
    rate = copy_rate(results)
    devices = predictions["devices"]
    column = next((i for i, name in enumerate(devices) if name in device), 0)
    intro = f"# {device or 'Unknown device'}\n\n"
    intro += "By `bash bench/gpu_check.sh`. Best times; `of copy` is the share of the bandwidth of a device-to-device copy."
    if devices[column] not in device:
        intro += f" Nothing was predicted for this device: the predictions are those for {devices[column]}."
    parts = [
        intro,
        "## Ceilings\n\n" + ceilings(results, rate),
        "## Predictions\n\n" + predictions["what"] + "\n\n" +
        comparison(*compared(predictions, column, results, kernels, rate, size), devices[column]),
        "## Kernels of one exchange of two ranks\n\n" +
        (f"n = {power(size)}, by ncu, medians of the launches. Caches are empty before each.\n\n" if kernels else "") +
        profile(kernels, rate),
        "## Exchanges of two ranks\n\n" + times(results, ("pair", "pair_replayed"), "launched / replayed from a graph"),
        "## Layouts of an exchange of two ranks\n\n" +
        times([r for r in results if r["operation"] != "pair" or any(
            o["operation"].startswith("pair_") and o["operation"] != "pair_replayed" and o["n"] == r["n"] for o in results)],
              ("pair", "pair_tensors", "pair_misaligned"), "one vector / matrices / matrices between biases of ten coordinates"),
    ]
    if failed:
        parts.append("## Failed\n\n" + "\n".join(f"- {name}" for name in failed))
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--ncu", nargs="*", default=[], metavar="CSV", help="kernels of an exchange")
    parser.add_argument("--size", type=int, default=2**28, metavar="N", help="coordinates of what was predicted")
    parser.add_argument("--predictions", default=PREDICTIONS, metavar="FILE")
    options = parser.parse_args()
    try:
        results, failed = report.read(options.files, "")
        devices = [report.load(path)["context"].get("device") for path in options.files]
        device = next(filter(None, devices), "")
        kernels = {pathlib.Path(path).stem.split(".")[-1]: read_kernels(path) for path in options.ncu}
        predictions = json.loads(pathlib.Path(options.predictions).read_text(encoding="utf-8"))
    except (report.Unreadable, OSError) as error:
        print(f"gpu_page.py: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(page(results, failed, kernels, predictions, device, options.size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
