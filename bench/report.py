#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Turns JSON files of the benchmarks into Markdown tables, one for each size. plot.py draws them.

    bench/report.py FILE... [--filter REGEX] [--brief | --ratios | --runs | --slowest N | --merge]

Medians lead: `over_copy` is the median over all runs of the operation's time over that of the copy before it; of repetitions,
and of files with the same compiler, it is the median of their medians. `best` is the best time over the best copy, which may
come from unlike moments; a dash stands for a median that was not kept. --ratios makes a column for each number of threads, with
the best in parentheses.
"""

import argparse
import collections
import json
import re
import statistics
import sys

NAME = re.compile(
    r"(?P<operation>[^/]+)/(?P<preset>[^/]+)/(?P<element>[^/]+)/(?P<executor>[^/]+)"
    r"/n:(?P<n>\d+)/threads:(?P<threads>\d+)")
COUNTERS = ("best_ns", "copy_ns", "bytes", "copied_bytes", "bits")


class Unreadable(Exception):
    """A sentence about a file that holds no results."""


def load(path):
    """What a benchmark wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Unreadable(f"{path} holds no results: no benchmark wrote it to its end, or none matched its filter") from None
    if not isinstance(document, dict) or not {"context", "benchmarks"} <= set(document):
        raise Unreadable(f"{path} is not what a benchmark writes with --benchmark_out")
    return document


def compiled(pattern):
    """A regular expression of the command line."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise Unreadable(f"--filter {pattern} is no regular expression: {error}") from None


def read(paths, pattern):
    """Best results by name and compiler, the compilers and the names that failed."""
    best, failed = {}, []
    pattern = compiled(pattern)
    for path in paths:
        document = load(path)
        compiler = document["context"].get("compiler", "unknown compiler").strip()
        for run in document["benchmarks"]:
            match = NAME.match(run["name"])
            if not match or run.get("run_type") == "aggregate" or not pattern.search(match[0]):
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
        document = load(path)
        context = document["context"]
        operations = {match["operation"] for run in document["benchmarks"] if (match := NAME.match(run["name"]))}
        key = (context.get("date", "-")[:10], context.get("commit", "-"), context.get("compiler", "-").strip())
        runs[key] += operations
    return table(["date", "commit", "compiler", "operations"], 4, [
        "| " + " | ".join([*key, ", ".join(sorted(runs[key]))]) + " |" for key in sorted(runs, reverse=True)])


def merged(paths):
    """The runs of all files, and the context of the first without the machine's name, as JSON."""
    documents = [load(path) for path in paths]
    context = {key: value for key, value in documents[0]["context"].items()
               if key not in ("host_name", "caches", "cpu_scaling_enabled", "load_avg", "library_build_type")}
    kept = ("name", "run_type", "error_occurred", "error_message", *COUNTERS, "median", "runs")
    runs = [json.dumps({key: run[key] for key in kept if run.get(key, "iteration") != "iteration"})
            for document in documents for run in document["benchmarks"]]
    return f'{{"context": {json.dumps(context)},\n "benchmarks": [\n' + ",\n".join(runs) + "\n]}"


def share_of_copy(result):
    """Its bytes a second over those of a copy, which reads and writes."""
    return result["bytes"] / (2 * result["copied_bytes"]) * result["copy_ns"] / result["best_ns"]


def best_over_best(result):
    """The best time over the best of the copy."""
    return result["best_ns"] / result["copy_ns"]


def median(result):
    """The median as a table shows it."""
    return f"{statistics.median(result['medians']):.2f}" if result["medians"] else "-"


def row(result, brief):
    """One line of the table."""
    work, over, share = result["best_ns"], best_over_best(result), share_of_copy(result)
    cells = [result["operation"], result["preset"], result["element"]]
    if not brief:
        cells += [result["executor"], result["threads"], result["compiler"]]
    scale, digits = (1e-6, 2) if work >= 1e6 else (1e-3, 1)
    cells += [f"{result['bits']:.2f}" if result["bits"] else "-", median(result), f"{over:.2f}",
              f"{work * scale:.{digits}f} {'ms' if scale == 1e-6 else 'us'}", f"{result['bytes']:.2f}",
              f"{100 * share:.0f} %"]
    return "| " + " | ".join(cells) + " |"


def table(heads, texts, rows):
    """A Markdown table whose first `texts` columns are aligned to the left."""
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * texts + "---:|" * (len(heads) - texts), *rows])


def full_table(results, brief):
    """A line for each result."""
    heads = ["operation", "preset", "gradient"] + ([] if brief else ["executor", "threads", "compiler"])
    texts = len(heads)
    heads += ["bits", "over_copy", "best", "best time", "bytes a coordinate", "of_copy"]
    return table(heads, texts, [row(r, brief) for r in results])


def ratio_table(results):
    """A line for all numbers of threads."""
    threads = sorted({int(r["threads"]) for r in results})
    lines = {}
    for r in results:
        key = (r["operation"], r["preset"], r["element"], r["executor"], r["compiler"])
        cell = f"{median(r)} ({best_over_best(r):.2f})"
        lines.setdefault(key, {"bits": r["bits"]})[int(r["threads"])] = cell
    heads = ["operation", "preset", "gradient", "executor", "compiler", "bits"]
    heads += [f"{t} thread{'s' if t > 1 else ''}" for t in threads]
    return table(heads, 5, [
        "| " + " | ".join([*key, f"{line['bits']:.2f}" if line["bits"] else "-",
                           *(line.get(t, "-") for t in threads)]) + " |"
        for key, line in lines.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--filter", default="", help="only names that this regular expression finds")
    parser.add_argument("--brief", action="store_true", help="no executor, threads and compiler")
    parser.add_argument("--slowest", type=int, metavar="N", help="the names alone of those with the least of_copy")
    parser.add_argument("--merge", action="store_true", help="JSON of what is read here of all files, a line for each run")
    parser.add_argument("--runs", action="store_true", help="when, of which commit and by which compiler")
    parser.add_argument("--ratios", action="store_true", help="a column of over_copy for each number of threads")
    options = parser.parse_args()
    try:
        return report(options)
    except Unreadable as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 1


def report(options):
    """Prints what was asked for."""
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
        if not results:
            print(f"report.py: no result's name matches --filter {options.filter}", file=sys.stderr)
        return 0 if results else 1
    for n in sorted({int(r["n"]) for r in results}):
        here = [r for r in results if int(r["n"]) == n]
        print(f"### n = {n}\n")
        print(ratio_table(here) if options.ratios else full_table(here, options.brief))
        print()
    for line in failed:
        print(f"failed: {line}")
    if not results:
        print(f"report.py: no result's name matches --filter {options.filter}" if options.filter else
              "report.py: the files hold no results", file=sys.stderr)
    return 0 if results and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
