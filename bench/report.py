#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Turns JSON files of the benchmarks into Markdown tables, one for each size.

    bench/report.py FILE... [--filter REGEX] [--brief | --slowest N | --merge]

Of repetitions, and of files with the same compiler, the best time of the operation and the best time of the copy count.
"""

import argparse
import json
import re
import sys

NAME = re.compile(
    r"(?P<operation>[^/]+)/(?P<preset>[^/]+)/(?P<element>[^/]+)/(?P<executor>[^/]+)"
    r"/n:(?P<n>\d+)/threads:(?P<threads>\d+)")


def read(paths, pattern):
    """Best results by name and compiler, the compilers and the names that failed."""
    best, failed = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        compiler = document["context"].get("compiler", "unknown compiler")
        for run in document["benchmarks"]:
            match = NAME.match(run["name"])
            if not match or run.get("run_type") == "aggregate" or not re.search(pattern, run["name"]):
                continue
            if run.get("error_occurred"):
                failed.append(f"{match[0]} ({compiler}): {run.get('error_message', '')}")
                continue
            key = (match[0], compiler)
            result = best.setdefault(key, {**match.groupdict(), "compiler": compiler, **{
                k: run[k] for k in ("best_ns", "copy_ns", "bytes", "copied_bytes", "bits")}})
            for time in ("best_ns", "copy_ns"):
                result[time] = min(result[time], run[time])
    return list(best.values()), failed


def share_of_copy(result):
    """Its bytes a second over those of a copy, which reads and writes."""
    return result["bytes"] / (2 * result["copied_bytes"]) * result["copy_ns"] / result["best_ns"]


def row(result, brief):
    """One line of the table."""
    work, copy = result["best_ns"], result["copy_ns"]
    over, share = work / copy, share_of_copy(result)
    cells = [result["operation"], result["preset"], result["element"]]
    if not brief:
        cells += [result["executor"], result["threads"], result["compiler"]]
    scale, digits = (1e-6, 2) if work >= 1e6 else (1e-3, 1)
    cells += [f"{work * scale:.{digits}f} {'ms' if scale == 1e-6 else 'us'}", f"{result['bytes']:.2f}",
              f"{over:.2f}", f"{100 * share:.0f} %"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--filter", default="", help="only names that this regular expression finds")
    parser.add_argument("--brief", action="store_true", help="no executor, threads and compiler")
    parser.add_argument("--slowest", type=int, metavar="N", help="the names alone of those with the least of_copy")
    parser.add_argument("--merge", action="store_true", help="one JSON file of the same runs, without --filter")
    options = parser.parse_args()
    if options.merge:
        documents = []
        for path in options.files:
            with open(path, encoding="utf-8") as file:
                documents.append(json.load(file))
        documents[0]["benchmarks"] = [run for document in documents for run in document["benchmarks"]]
        json.dump(documents[0], sys.stdout, indent=1)
        return 0
    results, failed = read(options.files, options.filter)
    if options.slowest:
        results.sort(key=share_of_copy)
        for result in results[:options.slowest]:
            print("{operation}/{preset}/{element}/{executor}/n:{n}/threads:{threads}".format(**result))
        return 0 if results else 1
    heads = ["operation", "preset", "gradient"] + ([] if options.brief else ["executor", "threads", "compiler"])
    texts = len(heads)
    heads += ["best time", "bytes a coordinate", "over_copy", "of_copy"]
    for n in sorted({int(r["n"]) for r in results}):
        print(f"### n = {n}\n")
        print("| " + " | ".join(heads) + " |")
        print("|" + "---|" * texts + "---:|" * (len(heads) - texts))
        for result in results:
            if int(result["n"]) == n:
                print(row(result, options.brief))
        print()
    for line in failed:
        print(f"failed: {line}")
    if not results:
        print("no results", file=sys.stderr)
    return 0 if results and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
