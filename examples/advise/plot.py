#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Draws predicted step time against bandwidth, of fp16 and the best codecs, from what advise --json wrote.

    examples/advise/plot.py advice.json advice.svg advice.png

Needs matplotlib (Debian: python3-matplotlib). The best codecs are those with the shortest step at the given bandwidth, which a
vertical line marks, and the one with the shortest step at a tenth of it.
"""

import argparse
import json
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as pyplot

MOST = 5
COLORS = ("#0072b2", "#009e73", "#dd8800", "#8c510a", "#cc3377", "#56b4e9")  # near Okabe and Ito's
STYLE = {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none",
         "svg.hashsalt": "tersum", "text.parse_math": False}


def shown(advice):
    """fp16 and at most MOST others, the best first."""
    codecs = advice["codecs"]

    def step_at(codec, bandwidth):
        return min(codec["steps"], key=lambda point: abs(point[0] - bandwidth))[1]

    others = [c for c in codecs if c["codec"] != "fp16"]
    best = sorted(others, key=lambda c: c["overlapped_step"])[:MOST - 1]
    slow = min(others, key=lambda c: step_at(c, advice["bandwidth"] / 10), default=None)
    if slow is not None and slow not in best:
        best.append(slow)
    return [c for c in codecs if c["codec"] == "fp16"] + best


def draw(advice):
    figure, axes = pyplot.subplots(figsize=(9, 6), dpi=100)
    colors = iter(COLORS)
    for codec in shown(advice):
        reference = codec["codec"] == "fp16"
        axes.plot([8e-9 * bandwidth for bandwidth, _ in codec["steps"]], [1e3 * step for _, step in codec["steps"]],
                  color="black" if reference else next(colors), linewidth=2.5 if reference else 1.5,
                  linestyle="--" if reference else "-", label=codec["codec"])
    if advice["bandwidth"] is not None:
        axes.axvline(8e-9 * advice["bandwidth"], color="#999999", linewidth=1)
    if advice["computing"] > 0:
        axes.axhline(1e3 * advice["computing"], color="#999999", linewidth=1, linestyle=":")
        axes.annotate("computing alone", (0.99, 1e3 * advice["computing"]), xycoords=("axes fraction", "data"), ha="right",
                      va="bottom", color="#666666", fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="bandwidth of a rank, Gbit/s", ylabel="predicted step, ms")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title(f"{advice['ranks']} ranks, {advice['coordinates']} coordinates", loc="left")
    axes.grid(color="#e8e8e8")
    axes.legend(frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("advice", metavar="JSON", help="what advise --json wrote")
    parser.add_argument("pictures", nargs="+", metavar="PICTURE", help="where to draw, .svg or .png")
    options = parser.parse_args()
    for path in options.pictures:
        if not path.endswith((".svg", ".png")):
            parser.error(f"{path} ends neither with .svg nor with .png")
    with open(options.advice, encoding="utf-8") as file:
        advice = json.load(file)
    with matplotlib.rc_context(STYLE):
        figure = draw(advice)
        for path in options.pictures:
            figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
