# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""What nvcc made of each kernel: instructions, registers, local memory, widths of global accesses.

Reads cubins (nvcc -cubin) of sm_80 and later with nothing but the standard library, so that code
generation can be checked on machines that have neither a GPU nor a disassembler.

Counts are static: an instruction in a loop counts once, and so does each path of a branch.
"""

import collections
import dataclasses
import pathlib
import shutil
import struct
import subprocess

INSTRUCTION_BYTES = 16

# The operation is in the low nine bits; the three above say where the second operand comes from.
NOP = 0x118
LOCAL_ACCESSES = {0x183, 0x187}
# LD and ST, whose address space is unknown at compile time, may well be global.
GLOBAL_LOADS = {0x17E, 0x180, 0x181}
GLOBAL_STORES = {0x17F, 0x185, 0x186}
# Bits 73 to 75: u8, s8, u16, s16, 32, 64 and 128 bits. The 256-bit accesses have their own numbers.
WIDTHS = (8, 8, 16, 16, 32, 64, 128)
WIDTHS_BY_OPERATION = {0x17E: 256, 0x17F: 256}

# A branch to itself, which ends every function: up to sm_8x, and from sm_90 on.
SELF_BRANCHES = {0xFFFFFFF000007947, 0xFFFFFFFC00FC7947}

SYMBOL_TABLE = 2
STO_CUDA_ENTRY = 0x10
EIATTR_REGCOUNT = 0x2F
EIATTR_FRAME_SIZE = 0x11
EIFMT_SIZED_VALUE = 4


class CubinError(Exception):
    """The file is not a cubin that this reader understands."""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The code of one __global__ function, with the functions that it calls."""

    name: str  # mangled
    architecture: str  # as in -arch: sm_90
    instructions: int  # without the padding at the end
    registers: int  # per thread
    stack_bytes: int  # of local memory, per thread
    local_accesses: int  # spills and arrays that are not in registers
    global_loads: collections.Counter  # bits -> instructions
    global_stores: collections.Counter  # bits -> instructions
    operations: collections.Counter  # number -> instructions


@dataclasses.dataclass(frozen=True)
class Section:
    name: str
    kind: int
    data: bytes


@dataclasses.dataclass(frozen=True)
class Symbol:
    name: str
    other: int
    section: int


def text_at(table, offset):
    return table[offset : table.index(b"\0", offset)].decode()


def read_sections(image):
    (table,) = struct.unpack_from("<Q", image, 0x28)
    entry_bytes, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", image, table + k * entry_bytes) for k in range(count)]
    _, _, _, _, names_offset, names_bytes = headers[names]
    strings = image[names_offset : names_offset + names_bytes]
    return [
        Section(text_at(strings, name), kind, image[offset : offset + size])
        for name, kind, _, _, offset, size in headers
    ]


def read_symbols(sections):
    strings = next(section.data for section in sections if section.name == ".strtab")
    table = next(section.data for section in sections if section.kind == SYMBOL_TABLE)
    return [
        Symbol(text_at(strings, name), other, section)
        for name, _, other, section, _, _ in struct.iter_unpack("<IBBHQQ", table)
    ]


def read_attributes(sections, wanted):
    """{symbol index: value} of one attribute of the whole file's .nv.info section."""
    values = {}
    data = next((section.data for section in sections if section.name == ".nv.info"), b"")
    offset = 0
    while offset < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, offset)
        offset += 4
        if form != EIFMT_SIZED_VALUE:
            continue  # the value stands in the place of the size
        if attribute == wanted:
            symbol, value = struct.unpack_from("<II", data, offset)
            values[symbol] = value
        offset += size
    return values


def architecture_of(image):
    abi_version = image[8]
    (flags,) = struct.unpack_from("<I", image, 0x30)
    return (flags >> 8 if abi_version >= 8 else flags) & 0xFF


def decode(code):
    """The instructions as (low, high) words, without the padding that follows the last one."""
    words = list(struct.iter_unpack("<QQ", code))
    while words and words[-1][0] & 0x1FF == NOP:
        words.pop()
    if words and words[-1][0] in SELF_BRANCHES:
        words.pop()
    return words


def access_width(operation, high):
    if operation in WIDTHS_BY_OPERATION:
        return WIDTHS_BY_OPERATION[operation]
    return WIDTHS[high >> 9 & 7]


def read_cubin(path):
    """All kernels of a cubin, in the order of their names."""
    image = pathlib.Path(path).read_bytes()
    if image[:5] != b"\x7fELF\x02":
        raise CubinError(f"{path} is not a cubin")
    architecture = architecture_of(image)
    if architecture < 80:
        raise CubinError(f"{path} is for sm_{architecture}, which is older than sm_80")
    sections = read_sections(image)
    registers = read_attributes(sections, EIATTR_REGCOUNT)
    frames = read_attributes(sections, EIATTR_FRAME_SIZE)
    kernels = []
    for index, symbol in enumerate(read_symbols(sections)):
        if not symbol.other & STO_CUDA_ENTRY:
            continue
        instructions = decode(sections[symbol.section].data)
        operations = [(low & 0x1FF, high) for low, high in instructions]
        kernels.append(
            Kernel(
                name=symbol.name,
                architecture=f"sm_{architecture}",
                instructions=len(instructions),
                registers=registers[index],
                stack_bytes=frames[index],
                local_accesses=sum(operation in LOCAL_ACCESSES for operation, _ in operations),
                global_loads=collections.Counter(
                    access_width(*each) for each in operations if each[0] in GLOBAL_LOADS
                ),
                global_stores=collections.Counter(
                    access_width(*each) for each in operations if each[0] in GLOBAL_STORES
                ),
                operations=collections.Counter(operation for operation, _ in operations),
            )
        )
    return sorted(kernels, key=lambda kernel: kernel.name)


def demangle(names):
    """{mangled: demangled, without return type and parameters}, if c++filt is there."""
    tool = shutil.which("c++filt")
    if tool is None or not names:
        return {name: name for name in names}
    lines = subprocess.run(
        [tool, "--no-params"], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return dict(zip(names, lines, strict=True))


def widths(counter):
    """Like "8 x 128, 1 x 32"."""
    parts = [f"{counter[bits]} x {bits}" for bits in sorted(counter, reverse=True)]
    return ", ".join(parts) or "none"


def markdown_table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
