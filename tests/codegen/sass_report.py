#!/usr/bin/env python3
# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0
"""What nvcc made of each kernel: instructions, registers, local memory, widths of global accesses.

Reads cubins (nvcc -cubin) of sm_80 and later with nothing but the standard library, so that code
generation can be checked on machines that have neither a GPU nor a disassembler.

Counts are static: an instruction in a loop counts once, and so does each path of a branch.
"""

import argparse
import collections
import dataclasses
import pathlib
import shutil
import struct
import subprocess
import sys

INSTRUCTION_BYTES = 16

# The operation is in the low nine bits; the three above say where the second operand comes from.
# One number changed its meaning, see mnemonic(). Names matter to readers alone: what is missing
# here is shown as its number.
MNEMONICS = {
    0x002: "MOV", 0x005: "CS2R", 0x006: "VOTE", 0x007: "SEL", 0x008: "FSEL", 0x009: "FMNMX",
    0x00B: "FSETP", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x013: "IABS",
    0x016: "PRMT", 0x017: "IMNMX", 0x019: "SHF", 0x01C: "PLOP3", 0x020: "FMUL", 0x021: "FADD",
    0x023: "FFMA", 0x024: "IMAD", 0x025: "IMAD.WIDE", 0x026: "IDP", 0x027: "IMAD.HI",
    0x028: "DMUL", 0x029: "DADD", 0x02A: "DSETP", 0x02B: "DFMA", 0x030: "HADD2", 0x031: "HFMA2",
    0x032: "HMUL2", 0x036: "VIADD", 0x03C: "HMMA", 0x03E: "F2FP", 0x040: "HMNMX2", 0x045: "I2FP",
    0x046: "VIADDMNMX", 0x048: "VIMNMX", 0x049: "FFMA2", 0x04A: "FMUL2", 0x04B: "FADD2",
    0x051: "UFSEL", 0x053: "UFSETP", 0x056: "UFMUL", 0x05E: "UI2FP", 0x076: "FMNMX3",
    0x082: "UMOV", 0x086: "VOTEU", 0x08C: "UISETP", 0x090: "UIADD3", 0x091: "ULEA",
    0x092: "ULOP3", 0x096: "UPRMT", 0x099: "USHF", 0x0A4: "UIMAD", 0x0A5: "UIMAD.WIDE",
    0x0B9: "ULDC", 0x0BD: "UFLO", 0x0CA: "R2UR", 0x0CC: "CREDUX", 0x100: "FLO", 0x101: "BREV",
    0x102: "FCHK", 0x104: "F2F", 0x105: "F2I", 0x106: "I2F", 0x107: "FRND", 0x108: "MUFU",
    0x109: "POPC", 0x110: "F2F.64", 0x111: "F2I.64", 0x112: "I2F.64", 0x118: "NOP", 0x119: "S2R",
    0x11A: "DEPBAR", 0x11C: "B2R", 0x11D: "BAR", 0x141: "BSYNC", 0x144: "CALL", 0x145: "BSSY",
    0x146: "YIELD", 0x147: "BRA", 0x148: "WARPSYNC", 0x14D: "EXIT", 0x150: "RET", 0x15C: "BPT",
    0x15D: "NANOSLEEP", 0x17E: "LDG", 0x17F: "STG", 0x180: "LD", 0x181: "LDG", 0x182: "LDC",
    0x183: "LDL", 0x184: "LDS", 0x185: "ST", 0x186: "STG", 0x187: "STL", 0x188: "STS",
    0x189: "SHFL", 0x18D: "ATOMS", 0x18E: "RED", 0x18F: "CCTL", 0x192: "MEMBAR", 0x1A1: "MATCH",
    0x1A3: "ATOMG", 0x1A8: "ATOMG", 0x1A9: "ATOMG", 0x1AB: "ERRBAR", 0x1AC: "LDCU",
    0x1AE: "LDGSTS", 0x1AF: "LDGDEPBAR", 0x1C2: "R2UR", 0x1C3: "S2UR", 0x1C4: "REDUX",
}

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
    opcodes: collections.Counter  # mnemonic -> instructions


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


def mnemonic(operation, architecture):
    if operation == 0x035:
        return "HFMA2" if architecture < 100 else "IADD"
    return MNEMONICS.get(operation, f"op_{operation:03x}")


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
                opcodes=collections.Counter(
                    mnemonic(operation, architecture) for operation, _ in operations
                ),
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cubins", nargs="+", type=pathlib.Path)
    parser.add_argument("--opcodes", action="store_true", help="also count each operation")
    options = parser.parse_args(arguments)
    try:
        kernels = [kernel for path in options.cubins for kernel in read_cubin(path)]
    except (CubinError, OSError) as error:
        sys.exit(f"sass_report: {error}")
    names = demangle([kernel.name for kernel in kernels])
    header = ["kernel", "arch", "instructions", "registers", "stack bytes", "local accesses"]
    header += ["global loads (bits)", "global stores (bits)"]
    rows = [
        [
            f"`{names[kernel.name]}`",
            kernel.architecture,
            kernel.instructions,
            kernel.registers,
            kernel.stack_bytes,
            kernel.local_accesses,
            widths(kernel.global_loads),
            widths(kernel.global_stores),
        ]
        for kernel in kernels
    ]
    print(markdown_table(header, rows))
    if options.opcodes:
        for kernel in kernels:
            print(f"\n`{names[kernel.name]}` ({kernel.architecture})\n")
            print(markdown_table(["operation", "count"], kernel.opcodes.most_common()))


if __name__ == "__main__":
    main()
