# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""The table and the picture of what run.py trained, of one number of ranks at one rate: that of docs by

    report.py docs/time_to_accuracy.svg 2 1000 examples/time_to_accuracy/results/{transformer,cnn}_large.json

A seed's target is fp16's last rolling mean with that seed and 1 % of it. "Times as fast" is fp16's time to the target over the
codec's, the median over the seeds that reach it. "Above fp16's" is the mean of the paired differences over the seeds, with its
standard error. Time is that of forward, backward, exchange and optimizer: drawing batches and validating stop the clock.
"""

import collections
import json
import math
import pathlib
import statistics
import sys

SLACK = 0.01  # the target is the baseline's final loss and so much of it


def rolling(curve, window):
    """Steps, seconds and the mean of the last `window` losses."""
    out = []
    for k, (step, seconds, _) in enumerate(curve):
        recent = [loss for _, _, loss in curve[max(0, k + 1 - window):k + 1]]
        out.append((step, seconds, sum(recent) / len(recent)))
    return out


def time_to(curve, target):
    """Seconds until the rolling mean first is at the target, between two validations in proportion; None for never."""
    before = None
    for step, seconds, loss in curve:
        if loss <= target:
            if before is None or before[1] == loss:
                return seconds
            return before[0] + (seconds - before[0]) * (before[1] - target) / (before[1] - loss)
        before = (seconds, loss)
    return None


def mean_and_error(values):
    """The mean and its standard error, which one value does not have."""
    mean = sum(values) / len(values)
    return mean, statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def read(*paths):
    """The runs of files, each of which has one or a list."""
    found = [json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in paths]
    runs = [run for of_file in found for run in (of_file if isinstance(of_file, list) else [of_file])]
    for run in runs:
        run["smooth"] = rolling(run["curve"], run["rolling"])
        run["final"] = run["smooth"][-1][2]
    return runs


def summaries(runs):
    """One line for each task, rate, number of ranks and codec: differences and ratios to fp16 of the same seed."""
    groups = collections.defaultdict(dict)
    for run in runs:
        groups[run["task"], run["mbit"], run["ranks"]][run["codec"], run["seed"]] = run
    lines = []
    for (task, rate, ranks), group in sorted(groups.items()):
        for codec in dict.fromkeys(codec for codec, _ in sorted(group, key=lambda key: (key[0] != "fp16", key))):
            seeds = [seed for other, seed in group if other == codec and ("fp16", seed) in group]
            if not seeds:
                continue
            differences, ratios, own = [], [], []
            for seed in seeds:
                base, run = group["fp16", seed], group[codec, seed]
                target = base["final"] + SLACK * abs(base["final"])
                differences.append(run["final"] - base["final"])
                reference, reached = time_to(base["smooth"], target), time_to(run["smooth"], target)
                own.append(reached)
                ratios.append(None if reached is None else 1.0 if reached == reference else reference / max(reached, 1e-9))
            reached = [ratio for ratio in ratios if ratio is not None]
            first = group[codec, seeds[0]]
            lines.append({"task": task, "mbit": rate, "ranks": ranks, "codec": codec, "bits": first["bits"],
                          "seeds": len(seeds), "loss": mean_and_error([group[codec, s]["final"] for s in seeds])[0],
                          "difference": mean_and_error(differences), "reached": len(reached),
                          "speed": statistics.median(reached) if reached else None,
                          "milliseconds": statistics.median(1e3 * group[codec, s]["curve"][-1][1] /
                                                            max(group[codec, s]["curve"][-1][0], 1) for s in seeds)})
    return lines


def table(lines):
    out = []
    for key in dict.fromkeys((line["task"], line["mbit"], line["ranks"]) for line in lines):
        out.append(f"\n{key[0]}, {key[2]} ranks, {f'{key[1]} Mbit/s' if key[1] else 'no limit of bandwidth'}\n")
        out.append("| codec | bits | final loss | above fp16's | ms a step | reached fp16's target | times as fast as fp16 |")
        out.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for line in lines:
            if (line["task"], line["mbit"], line["ranks"]) != key:
                continue
            mean, error = line["difference"]
            above = f"{mean:+.4f}" + ("" if math.isnan(error) else f" +- {error:.4f}")
            speed = "-" if line["speed"] is None else f"{line['speed']:.2f}"
            out.append(f"| `{line['codec']}` | {line['bits']:.2f} | {line['loss']:.4f} | {above} | {line['milliseconds']:.1f} | "
                       f"{line['reached']} of {line['seeds']} | {speed} |")
    return "\n".join(out)


def draw(runs, lines, picture):
    """A row for each task: validation loss against time for each rate, and how much sooner the target is reached."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    tasks = list(dict.fromkeys(line["task"] for line in lines))
    rates = sorted({line["mbit"] for line in lines})
    codecs = list(dict.fromkeys(line["codec"] for line in lines))
    color = {codec: "black" if codec == "fp16" else pyplot.get_cmap("tab20")(k % 20) for k, codec in enumerate(codecs)}
    # Text is text, and the same picture has the same bytes.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tersum"})
    figure, axes = pyplot.subplots(len(tasks), len(rates) + 1, squeeze=False, layout="constrained",
                                   figsize=(4.2 * (len(rates) + 1), 3.2 * len(tasks)))
    for row, task in zip(axes, tasks):
        for axis, rate in zip(row, rates):
            for run in runs:
                if (run["task"], run["mbit"]) == (task, rate):
                    _, seconds, losses = zip(*run["smooth"])
                    axis.plot(seconds, losses, color=color[run["codec"]], linewidth=2 if run["codec"] == "fp16" else 1,
                              label=run["codec"] if run["seed"] == 0 else None)
            axis.set(title=f"{task}, {f'{rate} Mbit/s' if rate else 'no limit'}", xlabel="seconds", ylabel="validation loss")
            axis.legend(fontsize=6)
        shown = [line for line in lines if line["task"] == task and line["mbit"] == rates[0]]
        row[-1].barh([line["codec"] for line in shown], [line["speed"] or 0 for line in shown],
                     color=[color[line["codec"]] for line in shown])
        for place, line in enumerate(shown):
            speed = "does not reach it" if line["speed"] is None else f"{line['speed']:.2f}"
            row[-1].text((line["speed"] or 0) + 0.02, place, speed, va="center", fontsize=7, gid=f"speed-{task}-{place}")
        row[-1].margins(x=0.12)
        row[-1].axvline(1, color="black", linewidth=0.8)
        row[-1].invert_yaxis()
        row[-1].set_title(f"times as fast as fp16 to its loss, {rates[0] or 'no limit of'} Mbit/s", fontsize=9)
        row[-1].tick_params(labelsize=7)
    figure.savefig(picture, metadata={"Date": None} if str(picture).endswith(".svg") else None)
    pyplot.close(figure)


def report(runs, picture):
    """Prints the table, writes it beside the picture, and draws."""
    lines = summaries(runs)
    text = table(lines)
    print(text)
    target = pathlib.Path(picture)
    target.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    try:
        draw(runs, lines, target)
    except ImportError:
        print("\nnot drawn, as there is no matplotlib (Debian's python3-matplotlib)")
        return
    print(f"\nwritten: {target}, {target.with_suffix('.md')}")


def main(picture, ranks, rate, *paths):
    runs = [run for run in read(*paths) if (run["ranks"], run["mbit"]) == (int(ranks), int(rate))]
    draw(runs, summaries(runs), picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
