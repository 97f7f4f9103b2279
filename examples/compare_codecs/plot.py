#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Draws error against bits from what compare_codecs --json wrote, one panel for each set of gradients.

    examples/compare_codecs/plot.py compare.json compare.svg compare.png

Needs matplotlib (Debian: python3-matplotlib). The line joins the codecs that no other beats: none has less error for as few
bits, where up to 1 % more counts as as few. All others are pale. At most a dozen codecs are named; in the SVG every codec says
what it is where a pointer rests on it. Bits are those of a payload that is reduced on the way; what is gathered counts as often as it is sent. A codec without bits, or without a finite error, is not drawn, nor one that sends
a mean which is there already (values_*, differences_*), nor exchanges on two levels and by a parameter server, whose bits are of two
kinds. The error axis ends a decade below fp16, the reference; what is smaller stands on its edge.
"""

import argparse
import io
import json
import math
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as pyplot
from matplotlib.lines import Line2D

REFERENCE = "fp16"
MOST_LABELS = 12
AS_FEW = 1.01
FRONTIER = "#333333"
OTHER = ("other", "#777777")
# What a name starts with, the words in the legend, the colour (near Okabe and Ito's, which colour-blind people tell apart).
FAMILIES = (
    (r"(fp32|fp16|bf16)$", "plain floats", "#000000"),
    (r"(thc|rotated|summed_shards)_", "one width for all, summed on the way", "#0072b2"),
    (r"allocated_sat_", "a width for each chunk, summed on the way", "#009e73"),
    (r"(topk|topkc|randomk|randomkc)_", "some chunks or coordinates only", "#dd8800"),
    (r"(powersgd|acp)_", "low rank", "#8c510a"),
    (r"(two_shot|metric|allocated|blocks)_", "two shots: decoded, added in float", "#cc3377"),
    (r"(sharded|gathered|values|differences)_", "encoded once, added in float", "#e6ab02"),
    (r"(mxfp|nvfp|qsgd|natural_|terngrad|sign_|onebit)", "older codecs", "#9e9ac8"),
)
# One encoding of a mean that is there already; and forms whose bits are not those of one collective.
NOT_DRAWN = r"(values|differences|hosts\d+|served)_"
# Their payloads go to every other rank, that of an all-reduce 2 (n - 1) / n times.
GATHERS = r"(topk|gathered)_"
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": "DejaVu Sans",
    "font.size": 11,
    "axes.edgecolor": "#888888",
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.parse_math": False,  # Names of sets are foreign text.
    "svg.fonttype": "none",
    "svg.hashsalt": "tersum",  # The same picture in the same bytes.
}
SVG = "http://www.w3.org/2000/svg"


def family(codec):
    """Words and colour of the family that a codec belongs to."""
    return next((rest for pattern, *rest in FAMILIES if re.match(pattern, codec)), list(OTHER))


def of_all_reduce(result):
    """The result with the bits of an all-reduce with as much traffic."""
    times = max(result["ranks"] / 2, 1) if re.match(GATHERS, result["codec"]) else 1
    bits = result["bits_per_coordinate"]
    return result | {"bits_per_coordinate": bits and bits * times}


def is_drawable(result):
    if re.match(NOT_DRAWN, result["codec"]):
        return False
    bits, error = result["bits_per_coordinate"], result["nmse"]
    return bits is not None and bits > 0 and error is not None and error >= 0


def frontier(results):
    """The results that have less error than all others of as few bits, by rising bits."""
    chosen = []
    for result in sorted(results, key=lambda r: (r["bits_per_coordinate"], r["nmse"])):
        as_few = result["bits_per_coordinate"] * AS_FEW
        if result["nmse"] == min(r["nmse"] for r in results if r["bits_per_coordinate"] <= as_few) and (
                not chosen or result["nmse"] < chosen[-1]["nmse"]):
            chosen.append(result)
    return chosen


def limits(results):
    """The part of both axes to show: bits and errors."""
    bits = [r["bits_per_coordinate"] for r in results] or [1, 32]
    errors = [r["nmse"] for r in results if r["nmse"] > 0] or [1e-8, 1]
    marked = [r["nmse"] for r in results if r["codec"] == REFERENCE and r["nmse"] > 0]
    high = 10 ** math.ceil(math.log10(max(errors)) + 0.1)
    low = 10 ** (math.floor(math.log10(min(marked or errors)) + 0.05) - (1 if marked else 0))
    return (min(bits) / 2.8, max(bits) * 1.4), (max(min(low, high / 10), high * 1e-16), high)


def power_of_ten(value, _=None):
    """A number of the error axis."""
    exponent = round(math.log10(value))
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value:g}" if -3 <= exponent <= 1 else "10" + raised


def printable(text):
    """The text without what XML does not take."""
    return "".join(c if c.isprintable() else "?" for c in text)


def describe(result):
    """What a pointer on the codec is told."""
    text = f"{result['codec']}: {result['bits_per_coordinate']:.3f} bits, error {result['nmse']:.2g}"
    mean = result["nmse_of_mean"]
    return text + (f"; of the mean of all steps {mean:.2g}" if mean is not None else "")


def label_order(candidates, place):
    """The reference, the ends, and then always the candidate that is farthest from those before it."""
    rest = sorted(candidates, key=lambda r: r["codec"] != REFERENCE)
    order = rest[:1]
    rest = rest[1:]
    while rest:
        far = max(rest, key=lambda r: min(math.dist(place(r), place(o)) for o in order))
        order.append(far)
        rest.remove(far)
    return order


def add_labels(axes, candidates, number, most):
    """Names candidates, each in the empty corner below its left, as long as no name covers another."""
    renderer = axes.figure.canvas.get_renderer()

    def place(result):
        return axes.transData.transform((result["bits_per_coordinate"], result["nmse"]))

    taken, labels, inside = [], [], axes.get_window_extent(renderer)
    for result in label_order(candidates, place):
        if len(labels) == most:
            break
        reference = result["codec"] == REFERENCE
        text = REFERENCE + ", the reference" if reference else result["codec"]
        label = axes.annotate(
            text, (result["bits_per_coordinate"], result["nmse"]), (-7, -5), textcoords="offset points", ha="right",
            va="top", color=family(result["codec"])[1], fontweight="bold" if reference else "normal", zorder=5)
        box = label.get_window_extent(renderer).padded(2)
        if box.x0 < inside.x0 or box.y0 < inside.y0 or any(box.overlaps(other) for other in taken):
            label.remove()
            continue
        label.set_gid(f"label-{number}-{len(labels)}")
        taken.append(box)
        labels.append(label)


def draw_panel(axes, results, shown, number, most):
    """One set: all its codecs, and the line of those that none beats. Returns the tooltips by element."""
    bits, errors = shown
    axes.set(xscale="log", yscale="log", xlim=bits, ylim=errors)
    powers = range(math.ceil(math.log2(bits[0])), math.floor(math.log2(bits[1])) + 1)
    axes.set_xticks([2.0 ** p for p in powers], [f"{2.0 ** p:g}" for p in powers])
    decades = [10.0 ** p for p in range(round(math.log10(errors[0])), round(math.log10(errors[1])) + 1)]
    axes.set_yticks(decades[::-1][::-(-len(decades) // 12)], minor=False)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(power_of_ten)
    axes.grid(color="#e8e8e8")
    axes.tick_params(length=0)

    drawable = [r for r in results if is_drawable(r)]
    best = [r for r in frontier(drawable) if r["nmse"] >= errors[0]]
    axes.plot([r["bits_per_coordinate"] for r in best], [r["nmse"] for r in best], color=FRONTIER, linewidth=1.5, zorder=3)
    if errors[0] < 1 < errors[1]:
        axes.axhline(1, color="#999999", linestyle=(0, (4, 3)), linewidth=1, zorder=1)
        axes.annotate("as wrong as sending nothing", (bits[0], 1), (4, 3), textcoords="offset points", color="#666666",
                      fontsize=9)
    reference = next((r for r in drawable if r["codec"] == REFERENCE), None)
    if reference:
        width = reference["bits_per_coordinate"]
        axes.axvline(width, color="#999999", linestyle=(0, (4, 3)), linewidth=1, zorder=1)
        above = axes.secondary_xaxis("top")
        shares = range(math.floor(math.log2(width / bits[0])) + 1)
        above.set_xticks([width / 2.0 ** p for p in shares], [f"{2.0 ** p:g}×" for p in shares])
        above.minorticks_off()
        above.tick_params(length=0, labelcolor="#666666")
        above.set_xlabel("times fewer bits than fp16", color="#666666")

    tooltips = {}
    for i, result in enumerate(drawable):
        on_line, below = result in best, result["nmse"] < errors[0]
        color, codec = family(result["codec"])[1], result["codec"]
        hollow = codec.endswith("_ef")
        tooltips[f"codec-{number}-{i}"] = printable(describe(result))
        axes.plot(result["bits_per_coordinate"], max(result["nmse"], errors[0]), gid=f"codec-{number}-{i}",
                  linestyle="", marker="D" if codec == REFERENCE else "v" if below else "o",
                  markersize=9 if on_line else 7, markerfacecolor="white" if hollow else color, markeredgecolor=color,
                  markeredgewidth=1.4 if hollow else 0, alpha=1 if on_line or codec == REFERENCE else 0.35,
                  zorder=4 if on_line or codec == REFERENCE else 2, clip_on=False)
    marked = [reference] if reference and reference["nmse"] >= errors[0] else []
    add_labels(axes, marked + [r for r in best if r not in marked], number, most)
    first = results[0]
    ranks = "1 rank" if first["ranks"] == 1 else f"{first['ranks']} ranks"
    axes.set_title(f"{printable(first['set'])}: {ranks}, {first['coordinates']} coordinates", loc="left", fontsize=12,
                   pad=12)
    axes.set_xlabel("bits for each coordinate, of an all-reduce with as much traffic")
    return tooltips


def draw_legend(figure, results):
    """The families that there are, and what the marks mean."""
    present = {tuple(family(r["codec"])) for r in results if is_drawable(r)}
    known = [tuple(rest) for _, *rest in FAMILIES] + [OTHER]
    items = [Line2D([], [], linestyle="", marker="o", markersize=9, color=color, markeredgewidth=0, label=words)
             for words, color in known if (words, color) in present]
    items += [Line2D([], [], color=FRONTIER, marker="o", markersize=9, label="no codec has less error for as few bits"),
              Line2D([], [], linestyle="", marker="o", markersize=7, markerfacecolor="white", color="#777777",
                     label="ring: with error feedback"),
              Line2D([], [], linestyle="", marker="v", markersize=7, color="#777777", label="error below the axis")]
    figure.legend(handles=items, loc="lower center", ncols=4, frameon=False, fontsize=10.5, handletextpad=0.4)


def draw(results):
    """A figure of all results, and what pointers are told, by the names of SVG elements."""
    sets = list(dict.fromkeys(r["set"] for r in results))
    shown = limits([r for r in results if is_drawable(r)])
    columns = min(len(sets), 2)
    rows = -(-len(sets) // columns)
    width, height = 14, 6.6 * rows + 1.8  # Inches of 100 pixels.
    figure = pyplot.figure(figsize=(width, height), dpi=100)
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(left=0.95 / width, right=1 - 0.25 / width, bottom=1.6 / height, top=1 - 1.35 / height,
                           wspace=0.1, hspace=0.3)
    figure.text(0.95 / width, 1 - 0.35 / height, "Error of the averaged gradient against bits sent", fontsize=16,
                fontweight="bold", va="center")
    tooltips = {}
    for number, axes in enumerate(grid.flat):
        if number >= len(sets):
            axes.remove()
            continue
        tooltips |= draw_panel(axes, [r for r in results if r["set"] == sets[number]], shown, number,
                               MOST_LABELS // len(sets))
        if number % columns == 0:
            axes.set_ylabel("relative squared error, |mean − estimate|² / |mean|²")
    draw_legend(figure, results)
    return figure, tooltips


def with_tooltips(svg, tooltips):
    """The SVG with a title in each named element, and without matplotlib's description of itself."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        if element.get("id") in tooltips:
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = tooltips[element.get("id")]
            element.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", metavar="JSON", help="what compare_codecs --json wrote")
    parser.add_argument("pictures", nargs="+", metavar="PICTURE", help="where to draw, .svg or .png")
    options = parser.parse_args()
    for path in options.pictures:
        if not path.endswith((".svg", ".png")):
            parser.error(f"{path} ends neither with .svg nor with .png")
    places = [os.path.realpath(path) for path in options.pictures]
    if os.path.realpath(options.results) in places:
        parser.error(f"{options.results} is what is drawn, and would be overwritten")
    if len(set(places)) < len(places):
        parser.error("two pictures would be the same file")
    with open(options.results, encoding="utf-8") as file:
        results = [of_all_reduce(r) for r in json.load(file)["results"]]
    if not results:
        print(f"plot.py: {options.results} has no results", file=sys.stderr)
        return 1
    with matplotlib.rc_context(STYLE):
        figure, tooltips = draw(results)
        for path in options.pictures:
            if path.endswith(".png"):
                figure.savefig(path, format="png")
                continue
            svg = io.StringIO()
            figure.savefig(svg, format="svg", metadata={"Date": None})
            with open(path, "w", encoding="utf-8") as file:
                file.write(with_tooltips(svg.getvalue(), tooltips))
    return 0


if __name__ == "__main__":
    sys.exit(main())
