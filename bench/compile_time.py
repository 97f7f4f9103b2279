#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Measures what the library costs to compile: each public header alone, and a program for each preset.

    bench/compile_time.py [--compilers g++,clang++,nvcc] [--what headers,presets] [--filter REGEX] [--repeat 3] [--json FILE]
    bench/compile_time.py --show FILE...

A program plans, encodes, reduces and decodes with one preset and gradients of float. Seconds are processor seconds (user and
system) of the compiler and its children, optimizing (-O3), without ccache: the median of the repetitions. Compilers that are
not installed are left out. The Markdown tables go to the standard output; --show makes them of JSON files.
"""

import argparse
import json
import pathlib
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRESET = re.compile(r"^inline constexpr [^\n]*? (\w+)\{[.}]", re.M)
OF_SHARDS = ("sharded_", "summed_shards_", "values_")  # which all_reduce_mean does not take
COMMANDS = {
    "g++": ["g++", "-std=c++20", "-O3", "-DNDEBUG", "-c"],
    "clang++": ["clang++", "-std=c++20", "-O3", "-DNDEBUG", "-c"],
    "nvcc": ["nvcc", "-std=c++20", "-O3", "-DNDEBUG", "-arch=sm_90", "-c", "-x", "cu"],
}
PROGRAM = """#include <{presets}.hpp>
#include <{header}>
#include <cstddef>
#include <span>

tersum::status exchange(tersum::{executor} const& exec, std::span<float> gradient, std::span<std::byte> state,
                        std::span<std::byte> workspace)
{{
  tersum::tensor const matrix{{.rows = gradient.size() / 1024, .columns = 1024}};
  auto const plan = tersum::presets::{preset}.plan({{gradient.size(), {{&matrix, 1}}}}, {{}});
  if (auto const s = initialize(exec, plan, state, 1); !s.ok()) {{ return s; }}
  return all_reduce_mean(exec, plan, gradient, state, workspace, [](auto) {{}});
}}
"""


def public_headers(include):
    """Headers to include: not those of a detail folder, nor adapters, which need their transport."""
    names = [p.relative_to(include).as_posix() for p in include.rglob("*") if p.suffix in (".hpp", ".cuh")]
    hidden = re.compile(r"/(detail|interop)/")
    return sorted(name for name in names if not hidden.search(name))


def preset_names(text):
    """Names of the presets, in the order of the header."""
    return PRESET.findall(text)


def sources(what, compiler):
    """What to compile: name and text."""
    if "headers" in what:
        for header in public_headers(ROOT / "include"):
            if compiler == "nvcc" or header.endswith(".hpp"):
                yield header, f"#include <{header}>\n"
    if "presets" in what:
        cuda = compiler == "nvcc"
        for presets in ("tersum/presets", "tersum_baselines/presets"):
            for preset in preset_names((ROOT / f"include/{presets}.hpp").read_text(encoding="utf-8")):
                if preset.startswith(OF_SHARDS):
                    continue
                yield preset, PROGRAM.format(header="tersum/tersum.cuh" if cuda else "tersum/tersum.hpp",
                                             presets=presets, preset=preset,
                                             executor="cuda_executor" if cuda else "cpu_executor")


def seconds_of(command):
    """Processor seconds of a command and its children; None when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(f"failed: {' '.join(command)}\n{done.stderr[:2000]}", file=sys.stderr)
        return None
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(compilers, what, pattern, repeat):
    """Results: compiler, name, kind and seconds; and how many did not compile."""
    results, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder, "source.cpp"), pathlib.Path(folder, "source.o")
        for compiler in compilers:
            if not shutil.which(COMMANDS[compiler][0]):
                print(f"skipped: {compiler} is not installed", file=sys.stderr)
                continue
            for name, text in sources(what, compiler):
                if not re.search(pattern, name):
                    continue
                source.write_text(text, encoding="utf-8")
                command = [*COMMANDS[compiler], f"-I{ROOT / 'include'}", "-o", str(output), str(source)]
                taken = [seconds_of(command) for _ in range(repeat)]
                if None in taken:
                    failed += 1
                    continue
                results.append({"compiler": compiler, "name": name, "seconds": statistics.median(taken), "runs": taken,
                                "kind": "headers" if name.startswith("tersum") else "presets"})
    return results, failed


def version_of(compiler):
    """The last number that looks like a version in what the compiler says of itself."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return (re.findall(r"\d+\.\d+(?:\.\d+)?", said.splitlines()[-2 if compiler == "nvcc" else 0]) or ["unknown"])[0]


def markdown(results):
    """A table for headers and one for presets, a column for each compiler, the slowest first."""
    out = []
    for kind, head in (("headers", "header"), ("presets", "preset")):
        here = [r for r in results if r["kind"] == kind]
        if not here:
            continue
        compilers = list(dict.fromkeys(r["compiler"] for r in here))
        seconds = {}
        for r in here:
            seconds.setdefault(r["name"], {})[r["compiler"]] = r["seconds"]
        out += [f"| {head} | " + " | ".join(f"{c}, s" for c in compilers) + " |",
                "|---|" + "---:|" * len(compilers)]
        for name, line in sorted(seconds.items(), key=lambda item: -max(item[1].values())):
            cells = [f"{line[c]:.2f}" if c in line else "-" for c in compilers]
            out.append(f"| `{name}` | " + " | ".join(cells) + " |")
        out.append("")
    return "\n".join(out)


def page(document):
    """The tables under what they were measured with."""
    versions = ", ".join(f"{compiler} {version}" for compiler, version in document["versions"].items())
    return (f"# Compile times\n\nProcessor seconds with -O3, commit {document['commit']}, {versions}, median of "
            f"{document['repeat']}: `{document['command']}`\n\n{markdown(document['results'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compilers", default=",".join(COMMANDS), help="with commas between")
    parser.add_argument("--what", default="headers,presets", help="headers, presets or both")
    parser.add_argument("--filter", default="", help="only names that this regular expression finds")
    parser.add_argument("--repeat", type=int, default=3, help="the median of so many counts")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--show", nargs="+", metavar="FILE", help="only tables of such files")
    options = parser.parse_args()
    if options.show:
        for path in options.show:
            print(page(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))))
        return 0
    compilers = options.compilers.split(",")
    if unknown := set(compilers) - set(COMMANDS):
        parser.error(f"unknown compiler: {', '.join(sorted(unknown))}")
    try:
        named = re.compile(options.filter)
    except re.error as error:
        parser.error(f"--filter {options.filter} is no regular expression: {error}")
    if not any(named.search(name) for what in options.what.split(",") for compiler in compilers
               for name, _ in sources(what, compiler)):
        print(f"compile_time.py: no name matches --filter {options.filter}", file=sys.stderr)
        return 1
    results, failed = measure(compilers, options.what.split(","), options.filter, options.repeat)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    document = {"command": shlex.join(["bench/compile_time.py", *sys.argv[1:]]), "commit": commit or "unknown",
                "versions": {c: version_of(c) for c in dict.fromkeys(r["compiler"] for r in results)},
                "repeat": options.repeat, "results": results}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(page(document))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
