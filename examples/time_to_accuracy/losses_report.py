# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""The table and the picture of what losses.py trained."""

import math
import statistics

from report import SLACK, mean_and_error, rolling, time_to

ROLLING = 4  # validations in a mean of the loss
BASELINE = "fp16"


def summaries(runs):
    """One line for each codec; differences are to the baseline of the same seed."""
    smooth = {(run["codec"], run["seed"]): rolling(run["curve"], ROLLING) for run in runs}
    lines = []
    for codec in dict.fromkeys(run["codec"] for run in runs):
        own = [run for run in runs if run["codec"] == codec and (BASELINE, run["seed"]) in smooth]
        if not own:
            continue
        differences, sooner = [], []
        for run in own:
            base = smooth[BASELINE, run["seed"]]
            differences.append(smooth[codec, run["seed"]][-1][2] - base[-1][2])
            target = base[-1][2] + SLACK * abs(base[-1][2])
            reference, reached = time_to(base, target), time_to(smooth[codec, run["seed"]], target)
            sooner.append(None if reached is None else 1.0 if reached == reference else reached / max(reference, 1))
        reached = [ratio for ratio in sooner if ratio is not None]
        lines.append({"codec": codec, "bits": own[0]["bits"], "seeds": len(own), "difference": mean_and_error(differences),
                      "loss": statistics.fmean(smooth[codec, run["seed"]][-1][2] for run in own), "reached": len(reached),
                      "steps": statistics.median(reached) if reached else None,
                      **{key: statistics.fmean(statistics.fmean(run[key]) for run in own)
                         for key in ("error", "update_error", "zeros")}})
    return lines


def rank_correlation(first, second):
    """Spearman's, of values without ties."""
    place = lambda values: [sorted(values).index(value) for value in values]
    return statistics.correlation(place(first), place(second)) if len(first) > 2 else math.nan


def table(lines):
    out = [f"| codec | bits | last loss | above {BASELINE}'s | reached its loss | in so many of its steps | error of the mean | of the "
           "update | zeros |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for line in lines:
        mean, error = line["difference"]
        above = f"{mean:+.4f}" + ("" if math.isnan(error) else f" +- {error:.4f}")
        steps = "-" if line["steps"] is None else f"{line['steps']:.2f}"
        out.append(f"| `{line['codec']}` | {line['bits']:.2f} | {line['loss']:.4f} | {above} | {line['reached']} of {line['seeds']} | "
                   f"{steps} | {line['error']:.2g} | {line['update_error']:.2g} | {100 * line['zeros']:.0f} % |")
    coded = [line for line in lines if line["codec"] != BASELINE]
    if len(coded) > 2:
        above = [line["difference"][0] for line in coded]
        out.append("\nRank correlation with the loss: " + ", ".join(
            f"{name} {rank_correlation([line[key] for line in coded], above):.2f}"
            for name, key in (("error of the mean", "error"), ("error of the update", "update_error"))))
    return "\n".join(out)


def draw(lines, picture):
    """What each codec costs in loss against what may predict it: a point for each codec."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    coded = [line for line in lines if line["codec"] != BASELINE]
    figure, axes = pyplot.subplots(1, 2, sharey=True, layout="constrained", figsize=(10, 5.2))
    above = [line["difference"][0] for line in coded]
    for axis, key, name in zip(axes, ("error", "update_error"), ("error of the mean", "error of the optimizer's update")):
        values = [line[key] for line in coded]
        axis.errorbar(values, above, yerr=[0 if math.isnan(line["difference"][1]) else line["difference"][1] for line in coded],
                      fmt="o", color="#3366aa", ecolor="#99aacc")
        for number, line in enumerate(sorted(coded, key=lambda line: line["difference"][0])):
            place, side = (((6, 4), "left"), ((6, -10), "left"), ((-6, 4), "right"))[number % 3]
            axis.annotate(line["codec"], (line[key], line["difference"][0]), xytext=place, ha=side, textcoords="offset points",
                          fontsize=8)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(xscale="log", xlabel=name)
        axis.margins(x=0.25)
        axis.set_title(f"rank correlation {rank_correlation(values, above):.2f}", fontsize=10)
    axes[0].set_ylabel(f"last loss above {BASELINE}'s")
    figure.savefig(picture)
    pyplot.close(figure)
