# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""tersum_c.h in Python."""

import ctypes
import os
import pathlib
from ctypes import c_char_p, c_double, c_float, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Dict

INTERFACE = 1  # TERSUM_C_VERSION

FLOAT, HALF, BFLOAT16, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BLOCK = range(12)
HOST, CUDA = range(2)
CALL, REDUCE, SCATTER, GATHER, SHARDS = range(5)
SUM, MAX, OTHER = range(3)


class TersumError(RuntimeError):
    """A call of the library failed; its sentence names the argument at fault."""


class Tensor(ctypes.Structure):
    _fields_ = [("rows", c_uint64), ("columns", c_uint64), ("offset", c_uint64), ("weight", c_float),
                ("reserved", c_float)]


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", c_size_t), ("preset", c_char_p), ("coordinates", c_uint64),
                ("tensors", ctypes.POINTER(Tensor)), ("tensor_count", c_size_t), ("bypass_below", c_uint64),
                ("bypass_vectors", c_int), ("boundaries", ctypes.POINTER(c_uint64)), ("element", c_int),
                ("world", c_int), ("rank", c_int), ("device", c_int), ("threads", c_int), ("bits", c_float), ("weighting", c_float), ("clip", c_float)]


class Step(ctypes.Structure):
    _fields_ = [("kind", c_int), ("element", c_int), ("operation", c_int), ("associative", c_int),
                ("element_bytes", c_size_t), ("count", c_size_t), ("offset", c_size_t), ("received_offset", c_size_t),
                ("name", c_char_p)]


# Results and arguments; those that return a result class come last.
_functions = {
    "tersum_version": (c_char_p, []),
    "tersum_c_version": (c_int, []),
    "tersum_has_cuda": (c_int, []),
    "tersum_preset_count": (c_size_t, []),
    "tersum_preset_name": (c_char_p, [c_size_t]),
    "tersum_preset_summary": (c_char_p, [c_size_t]),
    "tersum_last_error": (c_char_p, []),
    "tersum_default_options": (None, [ctypes.POINTER(Options)]),
    "tersum_close": (None, [c_void_p]),
    "tersum_state_bytes": (c_size_t, [c_void_p]),
    "tersum_workspace_bytes": (c_size_t, [c_void_p]),
    "tersum_bits_per_coordinate": (c_double, [c_void_p]),
    "tersum_travels": (c_int, [c_void_p]),
    "tersum_fingerprint": (c_uint64, [c_void_p, c_uint64]),
    "tersum_step_count": (c_size_t, [c_void_p]),
    "tersum_shard_begin": (c_uint64, [c_void_p]),
    "tersum_shard_size": (c_uint64, [c_void_p]),
    "tersum_saved_bytes": (c_size_t, [c_void_p]),
    "tersum_residual_offset": (c_size_t, [c_void_p]),
    "tersum_steps_done": (c_uint64, [c_void_p, c_void_p]),
    "tersum_was_non_finite": (c_int, [c_void_p, c_void_p]),
}
_checked = {
    "tersum_open": [ctypes.POINTER(Options), ctypes.POINTER(c_void_p)],
    "tersum_get_step": [c_void_p, c_size_t, ctypes.POINTER(Step)],
    "tersum_get_part": [c_void_p, c_size_t, c_int, ctypes.POINTER(c_size_t), ctypes.POINTER(c_size_t)],
    "tersum_initialize": [c_void_p, c_void_p, c_uint64, c_void_p],
    "tersum_run": [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p],
    "tersum_add": [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p],
    "tersum_save": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p],
    "tersum_load": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p],
    "tersum_check_saved": [c_void_p, c_void_p, c_size_t],
    "tersum_check_state": [c_void_p, c_void_p, c_void_p, c_void_p],
}


def _raise_on_error(result: int, function: Any, arguments: Any) -> int:
    if result != 0:
        raise TersumError(f"{function.__name__}: {lib.tersum_last_error().decode()}")
    return result


def _load() -> Any:
    path = os.environ.get("TERSUM_C_LIBRARY") or pathlib.Path(__file__).with_name("libtersum_c.so")
    loaded = ctypes.CDLL(str(path))
    loaded.tersum_c_version.restype = c_int
    if loaded.tersum_c_version() != INTERFACE:
        raise ImportError(f"{path} has version {loaded.tersum_c_version()} of tersum_c.h; this package needs {INTERFACE}")
    for name, (result, arguments) in _functions.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    for name, arguments in _checked.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes, function.errcheck = c_int, arguments, _raise_on_error
    return loaded


lib = _load()


def version() -> str:
    """Of the library, such as "0.2.0"."""
    return str(lib.tersum_version().decode())


def presets() -> Dict[str, str]:
    """All presets, in the library's order, and in one line what each is for."""
    return {lib.tersum_preset_name(i).decode(): lib.tersum_preset_summary(i).decode()
            for i in range(lib.tersum_preset_count())}
