#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the errors of the presets in README.md against their bits, one panel for each set of gradients.

    examples/compare_codecs/plot.py docs/all_codecs.csv docs/errors.svg step20 step300

The lines are those of table.py, of four ranks where there are four, and the sets that are named, or all. The presets have their names; the
baselines are pale, and in the SVG they say what they are where a pointer rests on them. Nothing else is drawn. Bits are those of an
all-reduce, for shards of a reduce-scatter, that sends as much. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import csv
import io
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as pyplot

from table import sends_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PRESETS = re.findall(r"^\| `(\w+)`", README.partition("<!-- table presets -->")[2].partition("<!-- end -->")[0], re.M)
BASELINES = re.findall(r"^inline constexpr [^=;]*?\b(\w+)\{", (ROOT / "include/tersum_baselines/presets.hpp").read_text(), re.M)
DARK, PALE = "#0072b2", "#bbbbbb"
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": "DejaVu Sans",
    "font.size": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "text.parse_math": False,  # Names of sets are foreign text.
    "svg.fonttype": "none",
    "svg.hashsalt": "tersum",  # The same picture in the same bytes.
}
SVG = "http://www.w3.org/2000/svg"
# Where a name may stand beside its point: points to the right and up, and the part of the name that is there.
PLACES = [((x, y), {8: "left", -8: "right", 0: "center"}[x], {0: "center", 6: "bottom", -6: "top"}[y])
          for x, y in ((8, 0), (-8, 0), (8, 6), (8, -6), (-8, 6), (-8, -6), (0, 6), (0, -6))]


def points(lines, names):
    """(codec, bits, error) of the lines of a set that can be drawn."""
    ranks = {int(line["ranks"]) for line in lines}
    chosen = 4 if 4 in ranks else max(ranks)
    for line in lines:
        if line["codec"] not in names or int(line["ranks"]) != chosen or not line["error"] or float(line["bits"]) <= 0:
            continue
        bits = float(line["bits"]) / min(sends_of(line["codec"], chosen), 2 * (chosen - 1) / chosen)
        yield line["codec"], bits, float(line["error"])


def describe(codec, bits, error):
    """What a pointer on the codec is told."""
    return f"{codec}: {bits:.2f} bits, error {error:.2g}"


def name_points(axes, of_presets):
    """Names each point where it covers no other point or name of a preset."""
    renderer = axes.figure.canvas.get_renderer()
    taken = [matplotlib.transforms.Bbox.from_bounds(x - 5, y - 5, 10, 10)
             for x, y in (axes.transData.transform(point[1:]) for point in of_presets)]
    for codec, bits, error in of_presets:
        for offset, horizontal, vertical in PLACES:
            name = axes.annotate(codec, (bits, error), offset, textcoords="offset points", ha=horizontal, va=vertical, color="black")
            box = name.get_window_extent(renderer)
            if not any(box.overlaps(other) for other in taken):
                break
            name.remove()
        else:
            raise ValueError(f"there is no room for the name of {codec}")
        taken.append(box)


def draw(lines):
    """A figure of all lines, and what pointers are told, by the names of SVG elements."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    columns = min(len(sets), 2)
    figure, grid = pyplot.subplots(-(-len(sets) // columns), columns, squeeze=False, sharex=True, sharey=True, dpi=100,
                                   figsize=(7 * columns, 6 * -(-len(sets) // columns)), layout="constrained")
    grid[0, 0].set(xscale="log", yscale="log")
    grid[0, 0].set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    grid[0, 0].minorticks_off()
    grid[0, 0].yaxis.set_major_formatter(lambda value, _: f"{value:g}" if value >= 0.01 else f"{value:.0e}")
    grid[0, 0].margins(0.2, 0.1)
    told, drawn = {}, []
    for number, axes in enumerate(grid.flat):
        if number >= len(sets):
            axes.remove()
            continue
        of_set = [line for line in lines if line["set"] == sets[number]]
        axes.set_title("".join(c if c.isprintable() else "?" for c in sets[number]), loc="left")
        axes.set_xlabel("bits for each coordinate")
        axes.set_ylabel("|mean − estimate|² / |mean|²")
        found = list(points(of_set, PRESETS))
        for k, (codec, bits, error) in enumerate([*points(of_set, BASELINES), *found]):
            color = DARK if codec in PRESETS else PALE
            told[f"codec-{number}-{k}"] = describe(codec, bits, error)
            axes.plot(bits, error, gid=f"codec-{number}-{k}", marker="o", markersize=8, markeredgecolor=color, linestyle="",
                      markerfacecolor="white" if codec.endswith("_ef") else color, clip_on=False)
        drawn.append((axes, found))
    marks = [pyplot.Line2D([], [], linestyle="", marker="o", markersize=8, color=color, markerfacecolor=inside, label=words)
             for color, inside, words in ((DARK, DARK, "presets"), (PALE, PALE, "baselines"),
                                          (DARK, "white", "with error feedback, which sends the rest later"))]
    grid[0, 0].legend(handles=marks, loc="lower left", frameon=False)
    figure.draw_without_rendering()
    for axes, found in drawn:
        name_points(axes, found)
    return figure, told


def with_tooltips(svg, told):
    """The SVG with a title in each named element, and without matplotlib's description of itself."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        if element.get("id") in told:
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = told[element.get("id")]
            element.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", metavar="CSV", type=pathlib.Path, help="what table.py wrote")
    parser.add_argument("picture", metavar="SVG", type=pathlib.Path)
    parser.add_argument("sets", nargs="*", metavar="SET")
    options = parser.parse_args()
    with options.table.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["set"] in options.sets or not options.sets]
    if not any(line["codec"] in PRESETS + BASELINES for line in lines):
        sys.exit(f"{options.table} has nothing to draw")
    with matplotlib.rc_context(STYLE):
        figure, told = draw(lines)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    options.picture.write_text(with_tooltips(svg.getvalue(), told), encoding="utf-8")


if __name__ == "__main__":
    main()
