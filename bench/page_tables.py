#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of pages that are made of committed results, and says where the picture of time to accuracy has other numbers.

    python3 bench/page_tables.py            ends with status 1 if a page has another table than the results give
    python3 bench/page_tables.py --write    writes the tables

A table stands between the lines "<!-- table NAME -->" and "<!-- end -->". The results are docs/all_codecs.csv, bench/results/ and
examples/time_to_accuracy/results/.
"""

import argparse
import csv
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRAININGS = ROOT / "examples" / "time_to_accuracy"
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "examples" / "compare_codecs"), str(TRAININGS)]

import report as benchmarks  # noqa: E402

del sys.modules["report"]  # examples/time_to_accuracy has a module of the same name
sys.path.remove(str(ROOT / "bench"))

import report as trainings  # noqa: E402
import table  # noqa: E402

# What the presets of README.md are for, and the results of the training that tells their loss.
PRESETS = {
    "fp16": ("the baseline", None),
    "two_shot_4": ("any optimizer: start here", "advised_transformer"),
    "metric_3": ("AdamW, fewer bits", "advised_transformer"),
    "metric_2": ("AdamW, short trainings", "advised_transformer"),
    "gathered_2": ("two or three ranks", "advised_transformer"),
    "two_shot_1_ef": ("SGD with momentum", "advised_cnn"),
    "topkc_b2_ef": ("embeddings", "recommender"),
    "rotated_sat4": ("a transport that adds", "advised_transformer"),
    "sharded_4": ("FSDP, ZeRO", "advised_transformer"),
}
CODECS = """fp16 rotated_sat8 thc_wide4 thc_wide4_partial thc_lookup4 two_shot_4 allocated_4 sharded_4 served_4 rotated_sat4 thc_sat4
qsgd_4 metric_3 metric_2 two_shot_2 allocated_2 gathered_2 topkc_b2 topkc_b2_ef topk_b2 randomk_b2 powersgd_r4 acp_r4 onebit_ef
two_shot_1_ef""".split()
MORE_RANKS = ("two_shot_4", "sharded_4", "allocated_4", "rotated_sat4")
SPEED = ("norms", "encode", "encode_feedback", "recompress", "decode", "exchange")
SETS = ("step20", "step300", "step100", "step200")


# The trainings whose time is shown.
TASKS = {"transformer_large": "transformer", "cnn_large": "CNN"}


def results():
    """The lines of docs/all_codecs.csv by set, codec and ranks."""
    with (ROOT / "docs/all_codecs.csv").open(encoding="utf-8", newline="") as file:
        return {(line["set"], line["codec"], int(line["ranks"])): line for line in csv.DictReader(file)}


def payload_bits(line):
    """Bits a coordinate of one payload: what leaves a rank, over how often it is sent."""
    return f"{float(line['bits']) / table.sends_of(line['codec'], int(line['ranks'])):.2f}"


def markdown(header, lines):
    """The first column is text; the rest are numbers unless the header says so by a leading '<'."""
    left = [name.startswith("<") for name in header]
    rule = ["---" if where or not k else "---:" for k, where in enumerate(left)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in ([name.lstrip("<") for name in header], rule, *lines)) + "\n"


def short(value, digits):
    """A number with its sign and without a zero before the point."""
    return f"{value:+.{digits}f}".replace("+0.", "+.").replace("-0.", "-.")


# How a training names a codec of which it sends something else back.
TRAINED = {"sharded_4": "sharded_4,fp16"}


def loss_above(name, codec):
    """The difference of the final loss to fp16's: its mean, and its standard error over the seeds, or .001 if that is less."""
    runs = json.loads((TRAININGS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    finals = {(run["codec"], run["seed"]): trainings.rolling(run["curve"], run.get("rolling", 4))[-1][2] for run in runs}
    mean, error = trainings.mean_and_error(
        [loss - finals["fp16", seed] for (other, seed), loss in sorted(finals.items()) if other == codec])
    return f"{short(mean, 3)} ± {max(error, .001):.3f}".replace("± 0.", "± .")


def presets_table(found):
    lines = []
    for codec, (what_for, training) in PRESETS.items():
        of_sets = [found[name, codec, 4] for name in ("step20", "step300")]
        errors = [line["error"] for line in of_sets]
        loss = loss_above(training, TRAINED.get(codec, codec)) if training else "0"
        lines.append([f"`{codec}`", what_for, payload_bits(of_sets[0]), *errors, loss])
    return markdown(["preset", "<for", "bits", "error, early", "late", "loss above fp16"], lines)


def codecs_table(found):
    lines = []
    for codec in CODECS:
        of_sets = [found[name, codec, 4] for name in SETS]
        lines.append([f"`{codec}`", payload_bits(of_sets[0]), *(line["error"] for line in of_sets), of_sets[1]["time"]])
    return markdown(["codec", "bits", "transformer, early", "late", "CNN", "recommender", "time"], lines)


def ranks_table(found):
    lines = [[f"`{codec}`", *(found[name, codec, ranks]["error"] for name in SETS[:2] for ranks in (2, 4, 8, 16))]
             for codec in MORE_RANKS]
    return markdown(["codec", "early: 2 ranks", "4", "8", "16", "late: 2 ranks", "4", "8", "16"], lines)


def speed_table(_):
    files = sorted((ROOT / "bench/results/amd-epyc").glob("*.json"))
    measured, _ = benchmarks.read(files, "^(" + "|".join(SPEED) + ")/.*/n:16777216/threads:1$")
    medians = {}
    for one in measured:
        if one["preset"] not in (*PRESETS, "rotated_sat4_ef"):
            continue
        name = f"`{one['preset']}`" + ("" if one["element"] == "float" else f", {one['element']}")
        operation = "encode" if one["operation"] == "encode_feedback" else one["operation"]
        medians.setdefault(name, {})[operation] = benchmarks.median(one)
    header = [name for name in SPEED if name != "encode_feedback"]
    order = sorted(medians, key=lambda name: ("," in name, name))
    return markdown(["codec", *header], [[name, *(medians[name].get(operation, "") for operation in header)] for name in order])


def times_of_training():
    """Summaries of the trainings on a network of 1 Gbit/s, task by task."""
    paths = [TRAININGS / "results" / f"{task}.json" for task in TASKS]
    runs = [run for run in trainings.read(*paths) if (run["ranks"], run["mbit"]) == (2, 1000)]
    return sorted(trainings.summaries(runs), key=lambda line: list(TASKS).index(line["task"]))


def times_table(_):
    lines, last = [], None
    for line in times_of_training():
        mean, error = (short(value, 4) for value in line["difference"])
        lines.append(["" if line["task"] == last else TASKS[line["task"]], f"`{line['codec']}`", f"{line['bits']:.2f}",
                      f"{line['loss']:.4f}" if line["codec"] == "fp16" else f"{mean} ± {error.lstrip('+')}",
                      f"{line['milliseconds']:.1f}", f"{line['speed']:.2f}"])
        last = line["task"]
    return markdown(["task", "<codec", "bits", "above fp16's", "ms a step", "times as fast to fp16's loss"], lines)


def where_pictures_differ():
    drawn = dict(re.findall(r'<g id="speed-([^"]*)">.*?>([^<>]*)</text>',
                            (ROOT / "docs/time_to_accuracy.svg").read_text(encoding="utf-8"), re.S))
    lines = times_of_training()
    wanted = {f"{task}-{k}": f"{line['speed']:.2f}" for task in TASKS
              for k, line in enumerate(line for line in lines if line["task"] == task)}
    if drawn != wanted:
        yield f"docs/time_to_accuracy.svg shows {drawn}, the results say {wanted}: examples/time_to_accuracy/report.py draws it"


PAGES = {
    "README.md": {"presets": presets_table},
    "docs/results.md": {"codecs": codecs_table, "ranks": ranks_table, "speed": speed_table},
    "docs/utility.md": {"times": times_table},
}


def where_others_come_first():
    """Faults: what leads with other codecs than the table of presets, in examples/run.sh in other order."""
    run, tuning = ((ROOT / name).read_text(encoding="utf-8") for name in ("examples/run.sh", "docs/tuning.md"))
    if not re.search(rf"--codecs {','.join(PRESETS)}$", run, re.M):
        yield "examples/run.sh does not compare the codecs of the table of presets first"
    advice = tuning.partition("## Choose a codec")[2].partition("Least error does not")[0]
    yield from (f"docs/tuning.md does not say when to choose {codec}" for codec in PRESETS if codec != "fp16" and f"`{codec}`" not in advice)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    found, faults = results(), 0
    for name, tables in PAGES.items():
        path = ROOT / name
        before = text = path.read_text(encoding="utf-8")
        for table_name, make in tables.items():
            marked = re.compile(rf"(?<=<!-- table {table_name} -->\n).*?(?=<!-- end -->\n)", re.S)
            if not marked.search(text):
                print(f"{name} has no place for the table {table_name}")
                faults += 1
            made = make(found)
            text = marked.sub(lambda _: made, text, count=1)
        if write:
            path.write_text(text, encoding="utf-8")
        elif text != before:
            print(f"{name} has another table than the results give: python3 bench/page_tables.py --write")
            faults += 1
    for fault in [*where_others_come_first(), *where_pictures_differ()]:
        print(fault)
        faults += 1
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
