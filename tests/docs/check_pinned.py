#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Whether README.md and docs/ describe the release that they pin: it compiles all C++ code in them. Whether all names of a version are that
of include/tersum/version.hpp.

    check_pinned.py COMPILER             ends with 77, skipped, where the commit is not in the clone
    check_pinned.py --write [COMMIT]     pins a commit, or else the last one of main
"""

import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import check_code

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = "include/tersum/version.hpp"
PAGES = ("README.md", "docs/your_own.md", "examples/consumer/CMakeLists.txt")
PIN = re.compile(r"(?<=_TAG )([0-9a-f]{40})(.* release )(\d+\.\d+\.\d+)")
FOUND = r"find_package\(tersum (\d+\.\d+) REQUIRED\)"
NAMED = {"CHANGELOG.md": r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", "README.md": FOUND,
         "tests/package/find_package/CMakeLists.txt": FOUND}


def git(*arguments):
    """What git writes; None where it fails."""
    done = shutil.which("git") and subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True)
    return done.stdout if done and done.returncode == 0 else None


def version_of(commit=None):
    header = (git("show", f"{commit}:{VERSION}") or b"").decode() if commit else (ROOT / VERSION).read_text()
    return ".".join(re.findall(r"^#define TERSUM_VERSION_[A-Z]+ (\d+)", header, re.M))


def write(name):
    commit = (git("rev-parse", "--verify", f"{name}^{{commit}}") or b"").decode().strip()
    for page in PAGES if commit else sys.exit(f"no such commit: {name}"):
        path = ROOT / page
        path.write_text(PIN.sub(rf"{commit}\g<2>{version_of(commit)}", path.read_text()))


def pinned():
    """The commit that all pages pin, whose version they name; ends where there is none."""
    found = {page: [(commit, named) for commit, _, named in PIN.findall((ROOT / page).read_text())] for page in PAGES}
    if any(pins != found[PAGES[0]] or len(pins) != 1 for pins in found.values()):
        sys.exit(f"the pages do not pin one commit: {found}")
    (commit, named), = found[PAGES[0]]
    if git("cat-file", "-e", f"{commit}^{{commit}}") is None:
        print(f"skipped: the commit {commit} is not in this clone")
        sys.exit(77)
    if version_of(commit) != named:
        sys.exit(f"the commit {commit} has version {version_of(commit)}, not {named}")
    if git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        sys.exit(f"the commit {commit} is on another branch")
    return commit


def misnamed():
    for name, pattern in NAMED.items():
        if not f"{version_of()}.".startswith("".join(re.findall(pattern, (ROOT / name).read_text(), re.M)[:1]) or "none"):
            yield f"{name} does not name version {version_of()}"


def not_compiled(compiler, commit):
    with tempfile.TemporaryDirectory() as folder:
        release = git("archive", commit, "include", "bench", "tests", "examples/your_own")
        tarfile.open(fileobj=io.BytesIO(release)).extractall(folder)
        shutil.copy(ROOT / "tests/docs/page.hpp", f"{folder}/tests/docs")  # what surrounds the code is of today
        flags = ["-std=c++20", "-Wno-unused", *(f"-I{folder}/{name}" for name in ("include", "tests", "bench"))]
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            around = ROOT / f"tests/docs/{page.stem}.cpp"
            if around.exists() and page.stem != "transports":  # which needs MPI
                lines, _ = check_code.program(page, around)
                if check_code.compiled([compiler, *flags], lines, "-fsyntax-only"):
                    yield f"{page.name} does not describe the release that it pins, {commit}, which does not compile its code"


def main():
    if sys.argv[1] == "--write":
        write(*(sys.argv[2:] or ["main"]))
        return pinned() and 0
    found = list(misnamed()) or list(not_compiled(sys.argv[1], pinned()))
    print(*found, f"{len(found)} faults", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
