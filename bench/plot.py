#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what codecs cost on a machine: bars of time over that of a copy, from JSON files of the benchmarks.

    bench/plot.py FILE... --out plot.svg [--out plot.png]

Needs matplotlib (Debian: python3-matplotlib). Shown are four operations of the presets of README.md (or, where none of
them was measured, of the first presets there are), of floats, on one thread: of the widest executor, and of the size
and compiler with most results. A bar is the median of all runs' times over that of the copy before each, and a stroke the best
time over the best copy; a hollow bar is the latter where no median was kept. A bar that would dwarf the others is cut, and its
number says how long it is.
"""

import argparse
import collections
import statistics
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as pyplot
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import report

SHOWN = ("fp16", "two_shot_4", "metric_3", "metric_2", "gathered_2", "two_shot_1_ef", "topkc_b2_ef", "rotated_sat4", "sharded_4")
EXECUTORS = ("cuda", "cpu-avx512", "cpu-avx2", "cpu-baseline", "cpu")
# The operation, what it is in plain words, and what is copied beside it.
OPERATIONS = (
    ("local", "Compress", "copies of the gradient"),
    ("reduce", "Add two payloads", "copies of a payload"),
    ("decode", "Decompress", "copies of the gradient"),
    ("exchange", "Whole exchange of four ranks", "copies of all four gradients"),
)
MOST_BARS = 10
LONGEST = 5.0  # Copies; a longer bar is cut here.
BAR, BEST = "#7fb2d6", "#0b3c5d"
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": "DejaVu Sans",
    "font.size": 11,
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.edgecolor": "#888888",
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tersum",  # The same picture in the same bytes.
}


def choose(results):
    """The results to draw by preset and operation, and the words that say which they are."""
    names = [name for name, *_ in OPERATIONS]
    results = [r for r in results if r["operation"] in names and r["element"] == "float"]
    if not results:
        return {}, ""
    few = [r for r in results if r["preset"] in SHOWN] or results
    threads = min(int(r["threads"]) for r in few)
    few = [r for r in few if int(r["threads"]) == threads]
    executor = min((r["executor"] for r in few),
                   key=lambda name: EXECUTORS.index(name) if name in EXECUTORS else len(EXECUTORS))
    few = [r for r in few if r["executor"] == executor]

    def most(key):
        counts = collections.Counter(r[key] for r in few)
        medians = collections.Counter(r[key] for r in few if r["medians"])
        return max(counts, key=lambda value: (counts[value], medians[value], int(value) if value.isdigit() else 0))

    size = most("n")
    few = [r for r in few if r["n"] == size]
    compiler = most("compiler")
    few = [r for r in few if r["compiler"] == compiler]
    presets = list(dict.fromkeys(r["preset"] for r in few))
    if presets[0] in SHOWN:
        presets.sort(key=SHOWN.index)
    chosen = {preset: {r["operation"]: r for r in few if r["preset"] == preset} for preset in presets[:MOST_BARS]}
    where = "one device" if executor == "cuda" else "1 thread" if threads == 1 else f"{threads} threads"
    return chosen, f"Shorter is faster. {int(size):,} floats, {where}, {executor}, {compiler}"


def draw_bar(axes, row, result):
    """The median, or else the best time, in copies."""
    best = report.best_over_best(result)
    medians = result["medians"]
    length = statistics.median(medians) if medians else best
    cut = length > LONGEST
    axes.barh(row, min(length, LONGEST), height=0.62, facecolor=BAR if medians else "white", edgecolor=BAR, linewidth=1.5)
    if medians and best <= LONGEST:
        axes.plot([best, best], [row - 0.31, row + 0.31], color=BEST, linewidth=2)
    end = LONGEST if cut else max(length, best)
    axes.annotate(f"{length:.1f} →" if cut else f"{length:.2f}", (end, row), (-5, 0) if cut else (5, 0),
                  textcoords="offset points", ha="right" if cut else "left", va="center",
                  fontweight="bold" if cut else "normal", zorder=4,
                  bbox=None if cut else {"facecolor": "white", "edgecolor": "none", "pad": 1})


def draw(results):
    """A figure with a panel for each operation, or None where there is nothing to draw."""
    chosen, words = choose(results)
    shown = [operation for operation in OPERATIONS if any(operation[0] in row for row in chosen.values())]
    if not shown:
        return None
    width, height = 14, 2.3 + 0.48 * len(chosen)  # Inches of 100 pixels.
    figure = pyplot.figure(figsize=(width, height), dpi=100)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(left=1.6 / width, right=1 - 0.25 / width, bottom=1.05 / height, top=1 - 1.2 / height, wspace=0.06)
    figure.text(0.25 / width, 1 - 0.35 / height, "Time that codecs take, in copies of the same data", fontsize=16,
                fontweight="bold", va="center")
    figure.text(0.25 / width, 1 - 0.65 / height, words, color="#555555", va="center")
    for axes, (operation, title, unit) in zip(panels, shown):
        axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
        axes.set_xlim(0, LONGEST + 0.5)
        axes.set_xticks(range(int(LONGEST) + 1))
        axes.set_xlabel(unit)
        axes.grid(axis="x", color="#e8e8e8")
        axes.tick_params(length=0)
        axes.axvline(1, color="#d9480f", linewidth=1.5, zorder=3)
        for row, operations in enumerate(chosen.values()):
            if operation in operations:
                draw_bar(axes, row, operations[operation])
            else:
                axes.annotate("none", (0, row), (5, 0), textcoords="offset points", va="center", color="#888888")
    panels[0].set_yticks(range(len(chosen)), list(chosen))
    panels[0].set_ylim(len(chosen) - 0.5, -0.5)
    kept = {bool(r["medians"]) for row in chosen.values() for r in row.values()}
    handles = [Line2D([], [], color="#d9480f", linewidth=1.5, label="one copy")]
    if True in kept:
        handles += [Patch(facecolor=BAR, edgecolor=BAR, label="median"),
                    Line2D([], [], color=BEST, linewidth=2, linestyle="", marker="|", markersize=14, markeredgewidth=2,
                           label="best time over best copy")]
    if False in kept:
        handles.append(Patch(facecolor="white", edgecolor=BAR, linewidth=1.5, label="best time over best copy, no median kept"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--out", action="append", required=True, metavar="PICTURE", help="where to draw, .svg or .png")
    options = parser.parse_args()
    for path in options.out:
        if not path.endswith((".svg", ".png")):
            parser.error(f"{path} ends neither with .svg nor with .png")
    with matplotlib.rc_context(STYLE):
        try:
            figure = draw(report.read(options.files, "")[0])
        except report.Unreadable as error:
            print(f"plot.py: {error}", file=sys.stderr)
            return 1
        if not figure:
            print("plot.py: none of " + ", ".join(name for name, *_ in OPERATIONS) + " was measured", file=sys.stderr)
            return 1
        for path in options.out:
            figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
