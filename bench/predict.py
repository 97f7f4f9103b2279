#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""Predicts how long the kernels of exchanges take on GPUs, from counts that tests hold.

    bench/predict.py            fails where bench/gpu_predictions.json is not what the counts give
    bench/predict.py --write    writes it
    bench/predict.py --table    prints it as a page

tests/codegen/budgets*.json have the instructions and registers of kernels, tests/codegen/traffic_budgets.json the sectors and launches of
an exchange of two ranks, of each preset of presets.hpp. A kernel that has no budget takes that of the nearest codec. bench/README.md has the
formula; its constants are below. Nothing here was measured.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUT = ROOT / "bench/gpu_predictions.json"
CODEGEN = ROOT / "tests/codegen"
PRESETS = ROOT / "include/tersum/presets.hpp"

# Data sheets: architecture, multiprocessors, GHz under load, TB/s of memory.
DEVICES = {
    "H100": ("sm_90", 132, 1.755, 3.35),
    "H200": ("sm_90", 132, 1.755, 4.8),
    "A100": ("sm_80", 108, 1.41, 2.04),
    "B200": ("sm_100", 148, 1.85, 8.0),
}
COPY = 0.9  # share of the memory's bandwidth that a copy reaches
ISSUE = 0.8  # share of issue slots that a kernel fills at most
SCHEDULERS, LANES, REGISTERS, MOST_WARPS = 4, 32, 65536, 64  # of a multiprocessor
SECTORS_A_CLOCK = 4  # of its L1 cache: 128 bytes
LAUNCH_US = 2.0  # from the end of a kernel to that of an empty one behind it
SIZE = 2**28

# What a name in a symbol has where the sources leave it to a default, and what they abbreviate.
SPELLED = [
    (r"\btersum::", ""),
    (r"\w+<(\d+)>::bits", r"\1"),
    (r"\bstochastic_quantizer<(\d+)>", r"stochastic_quantizer<\1, stratified_dither<7>>"),
    (r"\brms_range<(\w+)>", r"rms_range<\1, float>"),
    (r"\btop_chunks<(\d+)>", r"top_chunks<\1, bfloat16>"),
    (r"\bkept_diagonal\b", "kept_diagonal_in<float>"),
    (r"\blow_rank_codec<low_rank<(\d+)>>", r"low_rank_codec<low_rank<\1>, cast<float>, low_rank_schedule::paired>"),
    (r"\blow_rank<(\d+)>", r"low_rank<\1, robust_cholesky_qr2>"),
    (r"\blow_rank_schedule::(\w+)>", lambda match: f"(low_rank_schedule){int(match[1] == 'alternating')}, error_feedback>"),
    (r", >", ", no_feedback>"),
]
# Where a kernel of a preset has no budget, that of the codec from which fewest of these changes lead to one that has: the same kernel for
# codes of another width, for other chunks, in another form of exchange, with feedback or without.
CHANGES = [
    (r"\bcast<(float|bfloat16)>", "cast<half>"),
    (r"\b(nearest_quantizer|saturating_sum)<2>", r"\1<4>"),
    (r"\bnearest_quantizer<(\d)>", r"stochastic_quantizer<\1, stratified_dither<7>>"),
    (r"\blloyd_max<[1238]>", "lloyd_max<4>"),
    (r"\btwo_shot_to<scaled_codes<lloyd_max<8>>>", "two_shot"),
    (r"\blow_rank<1,", "low_rank<4,"),
    (r"\blow_rank<16,", "low_rank<64,"),
    (r"\(low_rank_schedule\)1", "(low_rank_schedule)0"),
    (r"\b(top_chunks<128|random_chunks<64)(, bfloat16)?>", "top_chunks<64, bfloat16>"),
    (r"\ballocated_chunks<512, .*, two_shot,", "allocated_chunks<256, 2, 4, 8>, partial_hadamard<256>, summed_codes<"
     "rms_range<tracked_correlation, bfloat16>, stochastic_quantizer<8, stratified_dither<7>>, saturating_sum<8>>, in_wire,"),
    (r"(lloyd_max.*), (shard|gather|publish),", r"\1, two_shot,"),
    (r"(lloyd_max.*), publish,", r"\1, shard,"),
    (r"(summed_codes.*), shard,", r"\1, in_wire,"),
    (r"\berror_feedback\b", "no_feedback"),
    (r"\bno_feedback\b", "error_feedback"),
    (r"\blloyd_max<[34]>(.*kept_diagonal)", r"lloyd_max<2>\1"),
    (r", kept_diagonal_in<float>", ""),
]
# Above 2^20 coordinates steps have a kernel of their own, as with feedback.
LATER = {"derive_and_encode_kernel": "encode_kernel<false>"}
WITH_STEPS = "^pair/rotated_sat4_ef/float/.*n:32768/"
# Kernels that move fewer bytes a coordinate have a launch and their bytes. So have those of which the work of a thread does not follow from
# the number of coordinates.
LEAST_BYTES = 0.1
BEFORE = ("initialize", "write_matrices")  # of a first exchange
UNCOUNTED = ("select_kernel", "finish_kernel", "start_warm", "add_all", "orthonormalize_all", "receive_all", "keep_all_warm")
OF_CHUNKS = ("steps_kernel", "inspect_parts_kernel")  # of a thread a chunk
OF_OWNERS = ("recompress_kernel", "keep_owner_residual_kernel", "add_shard_kernel", "publish_kernel")
OF_TRAVELLERS = ("cast_kernel<true>", "encode_kernel")  # of those that are chosen, unless the rest is kept
# The benchmarks that measure kernels together, by what kernels' names begin with.
OPERATIONS = {
    "norms": ("norms_kernel",),
    "encode": ("select_kernel", "steps_kernel", "encode", "cast_kernel<true>"),
    "reduce": ("reduce_",),
    "decode": ("inspect", "decode", "cast_kernel<false>", "finish"),
}


class Stale(Exception):
    """Counts and presets do not go together."""


def split(text):
    """Arguments between commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def codecs():
    """The type of every preset of the core, as symbols spell it, and its numbers."""
    text = PRESETS.read_text(encoding="utf-8")
    aliases = {}
    for parameters, name, of in re.findall(r"^template <([^\n]*)>\nusing (\w+) = ([^;]*);", text, re.MULTILINE):
        given = [re.match(r"(?:\w+ )+?(\w+)(?: = (\w+))?$", one).groups() for one in split(parameters)]
        aliases[name] = (given, of)
    found = {}
    for kind, name, numbers in re.findall(r"^inline constexpr (\w+<.*>) +(\w+)\{(.*?)\};", text, re.MULTILINE):
        head, _, rest = kind.partition("<")
        if head in aliases:
            given, of = aliases[head]
            values = split(rest[:-1])
            values += [default for _, default in given[len(values):]]
            named = dict(zip((parameter for parameter, _ in given), values, strict=True))
            # A name of the library behind `tersum::` or before a bracket is no parameter.
            kind = re.sub(r"(?<!::)\b(\w+)\b", lambda match: named.get(match[1], match[1]), of)
        for pattern, spelled in SPELLED:
            kind = re.sub(pattern, spelled, kind)
        if kind.startswith("codec<") and len(split(kind[len("codec<"):-1])) == 4:
            kind = kind[:-1] + ", no_feedback>"
        found[name] = (kind, numbers)
    return found


def budgets():
    """Lines of all budgets."""
    return [line for path in sorted(CODEGEN.glob("budgets*.json")) for line in json.loads(path.read_text(encoding="utf-8"))]


def on(value, architecture):
    """A number of an architecture; a plain one is that of all."""
    return value.get(architecture) if isinstance(value, dict) else value


def nearest(codec):
    """The codec, then others by the number of changes that lead to them."""
    found = [codec]
    for one in found:  # which grows
        yield one
        changed = (re.sub(pattern, other, one) for pattern, other in CHANGES)
        found += [other for other in dict.fromkeys(changed) if other not in found]


def counted(lines, kernel, codec, element, architecture):
    """Instructions and registers of a kernel, by the budget of its codec, or of the nearest."""
    lines = [line for line in lines if kernel.partition("<")[0] in line["kernel"]]
    for one in nearest(codec):
        for of in dict.fromkeys((element, "float")):
            if found := budget_of(lines, symbol_of(kernel, one, of), architecture):
                return found
    raise Stale(f"no budget on {architecture} for {symbol_of(kernel, codec, element)}")


def budget_of(lines, symbol, architecture):
    """Instructions and registers of the kernel of a symbol, the least of several budgets: of a coordinate, or of a thread where the budget
    does not divide. None where it has none."""
    found = []
    for line in lines:
        if architecture not in (line.get("arch") or [architecture]) or not re.search(line["kernel"], symbol):
            continue
        instructions = on(line["max_instructions_per_coordinate"], architecture)
        if instructions is not None:
            found.append((instructions, on(line["max_registers"], architecture)))
    return min(found, default=None)


def symbol_of(kernel, codec, element):
    """A kernel's name as a symbol has it."""
    if kernel.startswith("reduce_"):
        return f"block_kernel<{kernel.replace('segments<2>', 'segments<2, 4, 8>')}>"
    of = "chunk_kernel" if kernel.endswith("<false>") and not kernel.startswith(("cast", "multiply", "bypass", *OF_OWNERS)) else "exchange_kernel"
    return f"{of}<{kernel}, {codec}, {element}>"


def predicted_ns(device, moved, conflicts, memory, instructions, registers):
    """Nanoseconds a coordinate."""
    _, multiprocessors, ghz, bandwidth = DEVICES[device]
    limits = sorted((memory / (COPY * bandwidth * 1e3),
                     (moved / 32 / SECTORS_A_CLOCK + conflicts / 1000) / (multiprocessors * ghz),
                     instructions / LANES / (ISSUE * SCHEDULERS * multiprocessors * ghz)))
    warps = min(MOST_WARPS, REGISTERS // (-(-registers // 8) * 8 * LANES)) / SCHEDULERS
    return limits[2] + (limits[0] + limits[1]) / warps


def share_of_work(kernel, codec, numbers, ranks, memory):
    """The threads of a kernel for each that its instructions are counted for: fewer where it has only what travels, or what a rank owns.
    A sum reads two elements and writes one."""
    if added := re.match(r"reduce_\w+<\w+<(?:(\d+)|float|(\w+))>>", kernel):
        bits = added[1] or (16 if added[2] else 32)
        return 1 / ranks if "segments" in kernel else memory / (3 * int(bits) / 8)
    if kernel.startswith(OF_CHUNKS):
        return 1 / int(re.search(r"_chunks<(\d+)", codec)[1])
    if kernel.startswith(OF_OWNERS):
        return 1 / ranks
    if kernel.startswith(OF_TRAVELLERS) and re.search(r"\b(top|random)_chunks", codec):
        if "error_feedback" not in codec:
            return float(re.search(r"\.bits = ([\d.]+)", numbers)[1]) / (16 if "cast<" in codec else 4)
    return 1


def kernels_of(preset, element, budget, presets, lines):
    """The kernels of an exchange: name, bytes of memory a coordinate, and for each device nanoseconds a coordinate."""
    codec, numbers = presets[preset]
    for name, (*_, moved, conflicts, memory) in budget["kernels"].items():
        if name.startswith(BEFORE):
            continue
        kernel, times = LATER.get(name, name), []
        for device, (architecture, *_) in DEVICES.items():
            instructions, registers = 0, 32
            if memory >= LEAST_BYTES and not kernel.startswith(UNCOUNTED):
                instructions, registers = counted(lines, kernel, codec, element, architecture)
                instructions *= share_of_work(kernel, codec, numbers, budget["ranks"], memory)
            times.append(predicted_ns(device, moved, conflicts, memory, instructions, registers))
        yield kernel, memory, times


def total(kernels):
    """Bytes and times of several kernels."""
    return sum(size for _, size, _ in kernels), [sum(each) for each in zip(*(times for *_, times in kernels))]


def predictions():
    """The table."""
    lines, presets = budgets(), codecs()
    traffic = json.loads((CODEGEN / "traffic_budgets.json").read_text(encoding="utf-8"))
    rows = []

    def row(preset, what, launches, size, times, n=SIZE, **more):
        """Appends a line; an exchange has no share."""
        us = [time * n * 1e-3 + launches * LAUNCH_US for time in times]
        line = {"what": what, "preset": preset, **more, "us": [float(f"{one:.3g}") for one in us]}
        if size is not None:
            line["bytes"] = round(size, 3)
            line["percent"] = [round(size * n * 1e-3 / (COPY * DEVICES[device][3] * 1e3) / one * 100)
                               for device, one in zip(DEVICES, us, strict=True)]
        rows.append(line)

    for benchmark, budget in traffic.items():
        operation, preset, element = re.match(r"\^(\w+)/(\w+)/(\w*)", benchmark).groups()
        element = element or "float"
        if operation == "pair_misaligned":
            continue
        early = list(kernels_of(preset, element, budget, presets, lines))
        steps = {"steps_kernel": traffic[WITH_STEPS]["kernels"]["steps_kernel"]} if LATER.keys() & budget["kernels"].keys() else {}
        kernels = early + list(kernels_of(preset, element, {**budget, "kernels": steps}, presets, lines))
        for kernel, size, times in kernels:
            # The profiler sees exchanges of floats.
            profiled = {"profiled": preset, "kernel": kernel} if element == "float" else {}
            row(preset, f"{preset}, {element}: {kernel}", 1, size, times, **profiled)
        if operation != "pair":
            continue
        for name, begins in OPERATIONS.items():
            of = [one for one in kernels if one[0].startswith(begins)]
            if name == "reduce":  # the payload's, behind that of norms
                of = [] if "recompress_kernel<false>" in budget["kernels"] else of[-1:]
            if of:
                row(preset, f"{name}, {preset}, {element}", len(of), *total(of), result=f"{name}/{preset}/{element}")
        for k in (12, 20, 28):
            of, more = (early, 0) if k <= 20 else (kernels, len(steps))
            times = [budget["ranks"] * time for time in total(of)[1]]
            row(preset, f"exchange of two ranks, {preset}, {element}, 2^{k}", budget["launches"] + more * budget["ranks"], None, times,
                n=2**k, result=f"pair/{preset}/{element}")
            rows[-1]["n"] = 2**k
    return {"what": "Times in us and shares of a copy's bandwidth in percent, at 2^28 coordinates where nothing else is said. bench/predict.py "
                    "derives them from counts that tests hold. Arithmetic, not measurements.",
            "devices": list(DEVICES), "rows": rows}


def as_text(table):
    """The file."""
    rows = ",\n".join("    " + json.dumps(row) for row in table["rows"])
    return (f'{{\n  "what": {json.dumps(table["what"])},\n  "devices": {json.dumps(table["devices"])},\n  "rows": [\n{rows}\n  ]\n}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    try:
        table = predictions()
    except Stale as error:
        sys.exit(f"predict.py: {error}")
    if options.table:
        print(f"| us, share of copy | {' | '.join(table['devices'])} |\n|---|{'---|' * len(table['devices'])}")
        for row in table["rows"]:
            shares = [f", {percent} %" for percent in row.get("percent", [])] or [""] * len(DEVICES)
            print(f"| {row['what']} | {' | '.join(f'{us:g}{share}' for us, share in zip(row['us'], shares, strict=True))} |")
    elif options.write:
        OUT.write_text(as_text(table), encoding="utf-8")
    elif OUT.read_text(encoding="utf-8") != as_text(table):
        sys.exit("predict.py: bench/gpu_predictions.json is not what the counts give: bench/predict.py --write")


if __name__ == "__main__":
    main()
