#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Turns JSON files of the benchmarks into Markdown tables, one for each size, and into a plot.

    bench/report.py FILE... [--filter REGEX] [--brief | --ratios | --runs | --slowest N | --merge] [--svg FILE]

Of repetitions, and of files with the same compiler, the best time of the operation and the best time of the copy count, and
the median of their medians. --ratios makes a column of over_copy for each number of threads, with the median in parentheses.
--svg draws over_copy against the bytes that an operation has to move, with the line on which the bandwidth of the copy is all
that counts: what lies above it computes.
"""

import argparse
import collections
import html
import json
import math
import re
import statistics
import sys

NAME = re.compile(
    r"(?P<operation>[^/]+)/(?P<preset>[^/]+)/(?P<element>[^/]+)/(?P<executor>[^/]+)"
    r"/n:(?P<n>\d+)/threads:(?P<threads>\d+)")
COUNTERS = ("best_ns", "copy_ns", "bytes", "copied_bytes", "bits")


def read(paths, pattern):
    """Best results by name and compiler, the compilers and the names that failed."""
    best, failed = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        compiler = document["context"].get("compiler", "unknown compiler").strip()
        for run in document["benchmarks"]:
            match = NAME.match(run["name"])
            if not match or run.get("run_type") == "aggregate" or not re.search(pattern, match[0]):
                continue
            if run.get("error_occurred"):
                failed.append(f"{match[0]} ({compiler}): {run.get('error_message', '')}")
                continue
            if any(name not in run for name in COUNTERS):
                continue
            key = (match[0], compiler)
            result = best.setdefault(key, {**match.groupdict(), "compiler": compiler, **{
                k: run[k] for k in COUNTERS}})
            for time in ("best_ns", "copy_ns"):
                result[time] = min(result[time], run[time])
            result.setdefault("medians", []).extend([run["median"]] if "median" in run else [])
    return list(best.values()), failed


def run_table(paths):
    """A line for all files of one day, commit and compiler."""
    runs = collections.defaultdict(list)
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        context = document["context"]
        operations = {match["operation"] for run in document["benchmarks"] if (match := NAME.match(run["name"]))}
        key = (context.get("date", "-")[:10], context.get("commit", "-"), context.get("compiler", "-").strip())
        runs[key] += operations
    return table(["date", "commit", "compiler", "operations"], 4, [
        "| " + " | ".join([*key, ", ".join(sorted(runs[key]))]) + " |" for key in sorted(runs, reverse=True)])


def merged(paths):
    """The runs of all files, and the context of the first without the machine's name, as JSON."""
    documents = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            documents.append(json.load(file))
    context = {key: value for key, value in documents[0]["context"].items()
               if key not in ("host_name", "caches", "cpu_scaling_enabled", "load_avg", "library_build_type")}
    kept = ("name", "run_type", "error_occurred", "error_message", *COUNTERS, "median", "runs")
    runs = [json.dumps({key: run[key] for key in kept if run.get(key, "iteration") != "iteration"})
            for document in documents for run in document["benchmarks"]]
    return f'{{"context": {json.dumps(context)},\n "benchmarks": [\n' + ",\n".join(runs) + "\n]}"


def share_of_copy(result):
    """Its bytes a second over those of a copy, which reads and writes."""
    return result["bytes"] / (2 * result["copied_bytes"]) * result["copy_ns"] / result["best_ns"]


def over_copy(result):
    """Time over that of the copy."""
    return result["best_ns"] / result["copy_ns"]


def median(result):
    """The median as a table shows it."""
    return f"{statistics.median(result['medians']):.2f}" if result["medians"] else "-"


def row(result, brief):
    """One line of the table."""
    work, over, share = result["best_ns"], over_copy(result), share_of_copy(result)
    cells = [result["operation"], result["preset"], result["element"]]
    if not brief:
        cells += [result["executor"], result["threads"], result["compiler"]]
    scale, digits = (1e-6, 2) if work >= 1e6 else (1e-3, 1)
    cells += [f"{result['bits']:.2f}" if result["bits"] else "-",
              f"{work * scale:.{digits}f} {'ms' if scale == 1e-6 else 'us'}", f"{result['bytes']:.2f}",
              f"{over:.2f}", median(result), f"{100 * share:.0f} %"]
    return "| " + " | ".join(cells) + " |"


def table(heads, texts, rows):
    """A Markdown table whose first `texts` columns are aligned to the left."""
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * texts + "---:|" * (len(heads) - texts), *rows])


def full_table(results, brief):
    """A line for each result."""
    heads = ["operation", "preset", "gradient"] + ([] if brief else ["executor", "threads", "compiler"])
    texts = len(heads)
    heads += ["bits", "best time", "bytes a coordinate", "over_copy", "median", "of_copy"]
    return table(heads, texts, [row(r, brief) for r in results])


def ratio_table(results):
    """A line for all numbers of threads."""
    threads = sorted({int(r["threads"]) for r in results})
    lines = {}
    for r in results:
        key = (r["operation"], r["preset"], r["element"], r["executor"], r["compiler"])
        cell = f"{over_copy(r):.2f}" + (f" ({median(r)})" if r["medians"] else "")
        lines.setdefault(key, {"bits": r["bits"]})[int(r["threads"])] = cell
    heads = ["operation", "preset", "gradient", "executor", "compiler", "bits"]
    heads += [f"{t} thread{'s' if t > 1 else ''}" for t in threads]
    return table(heads, 5, [
        "| " + " | ".join([*key, f"{line['bits']:.2f}" if line["bits"] else "-",
                           *(line.get(t, "-") for t in threads)]) + " |"
        for key, line in lines.items()])


COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#8c564b", "#111111")
PANEL, MARGIN, LEFT = 420, 70, 70


def log_ticks(low, high):
    """Powers of ten times 1, 2 and 5 between two values."""
    ticks = [m * 10.0 ** e for e in range(-6, 7) for m in (1, 2, 5)]
    return [t for t in ticks if low * 0.999 <= t <= high * 1.001]


def panel(results, title, x0, bounds, colors):
    """Axes, the line of the copy's bandwidth, and a point for each result."""
    (x_low, x_high), (y_low, y_high) = bounds

    def across(value):
        return x0 + PANEL * math.log(value / x_low) / math.log(x_high / x_low)

    def down(value):
        return MARGIN + PANEL * (1 - math.log(value / y_low) / math.log(y_high / y_low))

    out = [f'<text x="{x0}" y="{MARGIN - 14}" font-weight="bold">{html.escape(title)}</text>',
           f'<rect x="{x0}" y="{MARGIN}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#888"/>']
    for tick in log_ticks(x_low, x_high):
        x = across(tick)
        out += [f'<path d="M{x:.1f} {MARGIN}v{PANEL}" stroke="#eee"/>',
                f'<text x="{x:.1f}" y="{MARGIN + PANEL + 16}" text-anchor="middle">{tick:g}</text>']
    for tick in log_ticks(y_low, y_high):
        y = down(tick)
        out += [f'<path d="M{x0} {y:.1f}h{PANEL}" stroke="{"#bbb" if tick == 1 else "#eee"}"/>',
                f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>']
    out.append(f'<text x="{x0 + PANEL / 2}" y="{MARGIN + PANEL + 36}" text-anchor="middle">'
               "bytes to move / bytes that the copy moves</text>")
    y = MARGIN + PANEL / 2
    out.append(f'<text x="{x0 - 38}" y="{y}" text-anchor="middle" transform="rotate(-90 {x0 - 38} {y})">'
               "time / time of the copy</text>")
    # The copy moves what it copies twice: on the line an operation takes as long as a copy of as many bytes.
    low, high = max(x_low, y_low), min(x_high, y_high)
    if low < high:
        ends = across(low), down(low), across(high), down(high)
        slope = math.degrees(math.atan2(ends[3] - ends[1], ends[2] - ends[0]))
        out += ['<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="#444" stroke-dasharray="5 4"/>'.format(*ends),
                f'<text x="{ends[2]:.1f}" y="{ends[3]:.1f}" dx="-20" dy="16" text-anchor="end" fill="#444" '
                f'transform="rotate({slope:.1f} {ends[2]:.1f} {ends[3]:.1f})">bandwidth of the copy</text>']
    for result in results:
        x, y = across(result["bytes"] / (2 * result["copied_bytes"])), down(over_copy(result))
        color = colors[result["operation"]]
        label = html.escape(f"{result['operation']} {result['preset']} {result['element']}: "
                            f"{over_copy(result):.2f} x copy, {result['bytes']:.2f} bytes a coordinate")
        shape = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"' if result["element"] == "float" else
                 f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"')
        out.append(f'{shape} fill="{color}" fill-opacity=".8"><title>{label}</title></{shape[1:].split()[0]}>')
    # Names of the points that are highest above the line, one each 14 pixels at most.
    taken = []
    for result in sorted(results, key=over_copy, reverse=True):
        y = down(over_copy(result))
        if result["element"] == "float" and all(abs(y - other) >= 14 for other in taken):
            taken.append(y)
            x = across(result["bytes"] / (2 * result["copied_bytes"]))
            right = x > x0 + PANEL * 0.62
            out.append(f'<text x="{x + (-8 if right else 8):.1f}" y="{y + 4:.1f}" font-size="10" '
                       f'fill="{colors[result["operation"]]}" text-anchor="{"end" if right else "start"}">'
                       f'{html.escape(result["preset"])}</text>')
    return out


def svg(results):
    """A panel for each number of threads: of the widest executor, and the compiler and the size with most results."""
    counts = collections.Counter(int(r["n"]) for r in results)
    size = max(counts, key=lambda n: (counts[n], n))
    order = ("cuda", "cpu-avx512", "cpu-avx2", "cpu-baseline", "cpu")
    executor = min((r["executor"] for r in results if int(r["n"]) == size),
                   key=lambda name: order.index(name) if name in order else len(order))
    compilers = collections.Counter(
        r["compiler"] for r in results if int(r["n"]) == size and r["executor"] == executor)
    compiler = max(compilers, key=compilers.get)
    shown = [r for r in results
             if int(r["n"]) == size and r["executor"] == executor and r["compiler"] == compiler and r["bytes"] > 0]
    threads = sorted({int(r["threads"]) for r in shown})
    operations = list(dict.fromkeys(r["operation"] for r in shown))
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(operations)}

    def around(values):
        return min(values) / 1.25, max(values) * 1.25

    bounds = (around([r["bytes"] / (2 * r["copied_bytes"]) for r in shown]),
              around([over_copy(r) for r in shown] + [1.0]))
    width = LEFT + len(threads) * (PANEL + LEFT) + 150
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{PANEL + MARGIN + 50}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="18" font-size="14">Time over that of a copy of the input</text>',
           f'<text x="{LEFT}" y="36">{html.escape(executor)}, n = {size}, {html.escape(compiler)}</text>']
    for i, count in enumerate(threads):
        title = f"{count} thread{'s' if count > 1 else ''}" if executor != "cuda" else "device"
        out += panel([r for r in shown if int(r["threads"]) == count], title, LEFT + i * (PANEL + LEFT), bounds, colors)
    x = width - 150
    for i, name in enumerate(operations):
        y = MARGIN + 10 + 18 * i
        out += [f'<circle cx="{x}" cy="{y}" r="5" fill="{colors[name]}"/>',
                f'<text x="{x + 12}" y="{y + 4}">{html.escape(name)}</text>']
    y = MARGIN + 24 + 18 * len(operations)
    out += [f'<text x="{x - 5}" y="{y}">circle: float</text>', f'<text x="{x - 5}" y="{y + 16}">square: 16 bits</text>']
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--filter", default="", help="only names that this regular expression finds")
    parser.add_argument("--brief", action="store_true", help="no executor, threads and compiler")
    parser.add_argument("--slowest", type=int, metavar="N", help="the names alone of those with the least of_copy")
    parser.add_argument("--merge", action="store_true", help="JSON of what is read here of all files, a line for each run")
    parser.add_argument("--runs", action="store_true", help="when, of which commit and by which compiler")
    parser.add_argument("--ratios", action="store_true", help="a column of over_copy for each number of threads")
    parser.add_argument("--svg", metavar="FILE", help="draw time over copy against bytes over copy")
    options = parser.parse_args()
    if options.merge:
        print(merged(options.files))
        return 0
    if options.runs:
        print(run_table(options.files))
        return 0
    results, failed = read(options.files, options.filter)
    if options.slowest:
        results.sort(key=share_of_copy)
        for result in results[:options.slowest]:
            print("{operation}/{preset}/{element}/{executor}/n:{n}/threads:{threads}".format(**result))
        return 0 if results else 1
    for n in sorted({int(r["n"]) for r in results}):
        here = [r for r in results if int(r["n"]) == n]
        print(f"### n = {n}\n")
        print(ratio_table(here) if options.ratios else full_table(here, options.brief))
        print()
    if options.svg and results:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(svg(results))
    for line in failed:
        print(f"failed: {line}")
    if not results:
        print("no results", file=sys.stderr)
    return 0 if results and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
