#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that what comments and pages name is there.

    check_names.py ROOT

In headers: names in `backticks` are names of the code, @param and @tparam are parameters of what follows, a status has its errors said.
In headers and pages: files and `folders/` that are named exist. In pages: links and their anchors lead somewhere.
Prints a line for each fault, and ends with status 1 if there is one.
"""

import pathlib
import re
import sys

CODE = {".hpp", ".cuh", ".ipp", ".inl", ".cpp", ".cu"}
FILE = re.compile(r"(?<![\w./<>*-])\w[\w./]*\.(?:hpp|cuh|ipp|inl|cpp|cu|py|sh|md|json)\b(?![*>(])")


def words_of(text):
    return set(re.findall(r"[A-Za-z_]\w*", text))


def code_words(root):
    """All names in the code, its strings and its folders, but not those of comments alone."""
    words = set()
    for folder in ("include", "tests", "examples", "bench"):
        for path in (root / folder).rglob("*"):
            if path.suffix in CODE:
                words |= words_of(str(path)) | words_of(re.sub(r"//.*", "", path.read_text()))
    return words


def comments(lines):
    """(number of the line after it, lines) of each block of comment lines."""
    block = []
    for number, line in enumerate([*lines, ""]):
        if line.strip().startswith("//"):
            block.append(line.strip().lstrip("/!< "))
        elif block:
            yield number, block
            block = []


def declaration(lines):
    """The names up to the end of the declaration that the lines begin with."""
    names = set()
    for line in lines:
        names |= words_of(line)
        if not line.strip() or line.rstrip().endswith((";", "{", "}")):
            break
    return names


def is_affix(word, words):
    """Whether names begin with `word_`, or end with `_word`."""
    begins, ends = word.endswith("_"), word.startswith("_")
    return any((begins and other.startswith(word)) or (ends and other.endswith(word)) for other in words)


def header_faults(text, words):
    """(line, fault) of names that comments of a header use."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if "//" in line:
            for quoted in re.findall(r"`([^`]+)`", line[line.index("//") :]):
                unknown = sorted(w for w in words_of(quoted) - words if not is_affix(w, words))
                yield from ((number, f"`{quoted}`: no such name: {w}") for w in unknown)
    for number, block in comments(lines):
        for line in block:
            if tag := re.match(r"@t?param\s+(\w+(?:, \w+)*)", line):
                missing = set(tag[1].split(", ")) - declaration(lines[number:])
                yield from ((number, f"no parameter {name}") for name in sorted(missing))


def contract_faults(text):
    """(line, fault) of functions of a public header that return a status, and do not say in which case it is an error."""
    hidden = r"^namespace [\w: ]*\bdetail\b.*?^}  // namespace"
    lines = re.sub(hidden, lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M).splitlines()
    result = re.compile(r"(?:template <.*?> )?(?:requires.*?\) )?(?:\[\[nodiscard\]\] )?(?:constexpr |inline )*status (\w+)\(")
    said = {}
    for number, block in comments(lines):
        if found := result.match(" ".join(lines[number : number + 8]).partition(";")[0]):
            said.setdefault(found[1], []).append((number + 1, re.search(r"[Ee]rror|@return", " ".join(block))))
    for number, line in enumerate(lines, 1):
        if (found := result.match(line)) and found[1] not in said:
            said[found[1]] = [(number, None)]
    yield from ((number, f"{name} returns a status: say in which case it is an error")
                for name, places in said.items() for number, says in places if not says)
    if any(line.startswith("  ") and result.match(line[2:]) for line in lines) and not re.search(r"//.*[Ee]rror", text):
        yield 1, "members return a status: say in which case it is an error"


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def page_faults(page):
    """(line, fault) of links that lead nowhere."""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            to = page.parent / name if name else page
            if not to.exists():
                yield number, f"no such file: {target}"
            elif anchor and anchor not in anchors(to):
                yield number, f"no such heading: {target}"


def file_faults(text, files):
    """(line, fault) of files that are named and do not exist; a file may be named by the end of its path."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in FILE.findall(line) + re.findall(r"`((?:\w+/)+)`", line):
            end = "/" + name.removeprefix("../").removeprefix("./").rstrip("/")
            if not name.startswith("build/") and not any(file.endswith(end) for file in files):
                yield number, f"no such file: {name}"


def faults(root):
    words = code_words(root)
    inside = (p.relative_to(root) for p in root.rglob("*"))
    files = {"/" + p.as_posix() for p in inside if not p.parts[0].startswith((".git", "build"))}
    for path in sorted((root / "include").rglob("*")):
        if path.suffix in CODE:
            text = path.read_text()
            said = "\n".join(line[line.index("//") :] if "//" in line else "" for line in text.splitlines())
            calls = [] if "detail" in path.parts else contract_faults(text)
            for number, fault in [*header_faults(text, words), *file_faults(said, files), *calls]:
                yield path, number, fault
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "bench").glob("*.md")]):
        if page.name != "CHANGELOG.md":  # which tells of what was
            text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), page.read_text(), flags=re.S | re.M)
            for number, fault in [*page_faults(page), *file_faults(text, files)]:
                yield page, number, fault


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = [f"{path.relative_to(root)}:{number}: {fault}" for path, number, fault in faults(root)]
    print(*found, f"{len(found)} faults", sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
