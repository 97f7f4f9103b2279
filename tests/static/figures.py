#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""The project does not grow: each figure of its size is at most what figures.json beside this file says.

    python3 tests/static/figures.py            the figures, their limits and goals; exits with 1 where one is above its limit
    python3 tests/static/figures.py --lower    lowers the limits in figures.json to what is there now

A change that makes a figure smaller lowers the limit with it. No limit is ever raised.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMITS = pathlib.Path(__file__).with_name("figures.json")
# Folders of include/tersum whose policies other folders should not have to know.
ROLES = ("chunk", "rotate", "range", "quantize", "reduce", "feedback", "metric", "lowrank")
# Headers that exist to name policies: umbrellas and presets.
NAMING = re.compile(r"(^|/)(tersum\.(hpp|cuh)|[a-z_]*presets\.hpp)$")


def files_of(folder, pattern="*"):
    return [path for path in sorted(folder.rglob(pattern)) if path.is_file() and "__pycache__" not in path.parts]


def lines_of(paths):
    return sum(path.read_bytes().count(b"\n") for path in paths)


def code_of(text):
    """C++ without its comments."""
    return re.sub(r"//[^\n]*", "", text)


def declared_in(text):
    """Names of types, concepts and traits that a header declares outside of `detail`, but for pieces of kernels, which are no policies."""
    outside = re.split(r"namespace [\w:]*\bdetail\b", code_of(text))[0]
    return set(re.findall(r"^(?:template <[^\n]*>\s*)?(?:struct|class|concept|enum class|inline constexpr bool) (?!block_|thread_)(\w+)",
                          outside, re.MULTILINE))


def conditions(text):
    """What each `if constexpr` asks."""
    found = []
    for match in re.finditer(r"if constexpr \(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.end() : end - 1])
    return found


def preset_count(headers):
    return sum(len(re.findall(r"^inline constexpr [^=;]*?\b\w+\{", path.read_text(), re.MULTILINE)) for path in headers)


def outside_of_role(role, sources):
    """How many files of include/tersum beside a role's folder name its policies or traits."""
    folder = ROOT / "include/tersum" / role
    names = set().union(*(declared_in(path.read_text()) for path in folder.glob("*.hpp")))
    named = re.compile(r"\b(" + "|".join(sorted(names)) + r")\b") if names else re.compile(r"(?!)")
    return sum(
        bool(named.search(code_of(text)))
        for path, text in sources.items()
        if not path.is_relative_to(folder) and not NAMING.search(path.as_posix())
    )


def measure():
    """Every figure of the project, by its name."""
    include = ROOT / "include"
    core = files_of(include / "tersum")
    siblings = [path for path in files_of(include) if path not in set(core)]
    sources = {path: path.read_text() for path in core}
    asked = [asks for path in core + siblings for asks in conditions(path.read_text())]
    traits = set().union(*(declared_in((include / "tersum" / name).read_text())
                           for name in ("codec_kinds.hpp", "concepts.hpp", "detail/policy_kinds.hpp")
                           if (include / "tersum" / name).exists()))
    of_policies = re.compile(r"\b(" + "|".join(sorted(traits)) + r")\b|::enabled\b|::scaled\b")
    pages = files_of(ROOT / "docs", "*.md") + [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    headers = [path for path in core + siblings if path.suffix in (".hpp", ".cuh")]
    numbered = [path for path in files_of(ROOT / "examples") if re.match(r"\d\d_", path.name)]
    in_detail = [path for path in core + siblings if "detail" in path.parts]
    presets = [path for path in headers if path.name.endswith("presets.hpp")]
    figures = {
        "lines of include/tersum": lines_of(core),
        "lines of headers beside it": lines_of(siblings),
        "lines of tests": lines_of(files_of(ROOT / "tests")),
        "words of pages": sum(len(path.read_text().split()) for path in pages),
        "if constexpr": len(asked),
        "if constexpr that ask what a policy is": sum(bool(of_policies.search(asks)) for asks in asked),
        "presets of the core": preset_count(path for path in presets if path in set(core) and "baseline" not in path.parts),
        "presets of baselines": preset_count(path for path in headers if "baseline" in path.as_posix()),
        "lines of the longest header": max(lines_of([path]) for path in headers if path not in set(in_detail)),
        "lines of the longest file in detail": max(lines_of([path]) for path in in_detail),
        "numbered examples": len(numbered),
        "lines of the longest numbered example": max(lines_of([path]) for path in numbered),
    }
    for role in ROLES:
        figures[f"files that name policies of {role}/"] = outside_of_role(role, sources)
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lower", action="store_true")
    lower = parser.parse_args().lower
    held = json.loads(LIMITS.read_text())
    figures = measure()
    above = 0
    for name in sorted(set(held) | set(figures)):
        now, most = figures.get(name), held.get(name, {}).get("most")
        if now is None or most is None:
            print(f"{name}: in figures.json or measured, not both")
            above += 1
            continue
        above += now > most
        print(f"{name}: {now} (at most {most}, goal {held[name]['goal']})" + (" ROSE" if now > most else ""))
        held[name]["most"] = min(now, most)
    if lower and not above:
        LIMITS.write_text("{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(held[name])}" for name in held) + "\n}\n")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
