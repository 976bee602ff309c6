"""The shared object build/libcompare.so: the library, and the reader of CUPTI's kernel records that nst-bench uses.

CUPTI hands its buffers over on threads of its own, while the launching thread may hold Python's lock; so the callbacks
are C (perf/records.c), and Python only takes the finished records.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.workloads import BadInput, Workload


class _Problem(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 512)]


class _Record(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("start", ctypes.c_uint64), ("end", ctypes.c_uint64),
                ("name", ctypes.c_char_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
                ("cluster", ctypes.c_uint32), ("registers", ctypes.c_uint32), ("shared_bytes", ctypes.c_uint32)]


KINDS = ("kernel", "memset", "memcpy")


@dataclass(frozen=True)
class Record:
    """One kernel, memory set or copy that the device ran."""

    kind: str
    name: str
    start: int  # ns
    end: int


class Shared:
    def __init__(self, path: Path) -> None:
        try:
            self.library = ctypes.CDLL(str(path))
            self.library.records_open  # noqa: B018: is it there?
            self.library.nst_open
        except (OSError, AttributeError) as error:
            raise BadInput(f"{path}: is not the shared object of the build ({error}).") from error
        self.library.nst_last_error.restype = ctypes.c_char_p
        self.library.nst_status_name.restype = ctypes.c_char_p
        self.library.nst_build_id.restype = ctypes.c_char_p


class Records:
    """What the device ran, from CUPTI. A process has one set of records."""

    def __init__(self, shared: Shared, cupti: str | None = None) -> None:
        self.library = shared.library
        self._call(self.library.records_open, cupti.encode() if cupti else None)
        self.version = int(self.library.records_version())

    def _call(self, function: Any, *arguments: Any) -> None:
        problem = _Problem()
        if function(*arguments, ctypes.byref(problem)) != 0:
            raise RuntimeError(problem.text.decode(errors="replace"))

    def clear(self) -> None:
        self._call(self.library.records_clear)

    def take(self, expected: int) -> list[Record]:
        """Everything since the last take or clear, by start; the device must be idle."""
        array, count = ctypes.POINTER(_Record)(), ctypes.c_size_t()
        self._call(self.library.records_take, ctypes.c_size_t(expected), ctypes.byref(array), ctypes.byref(count))
        return [Record(KINDS[one.kind], (one.name or b"").decode(errors="replace"), one.start, one.end)
                for one in array[:count.value]]


# ---- The library -------------------------------------------------------------------------------------------------

DTYPES = {"f16": 1, "bf16": 2, "f32": 3}
_pointer, _i64, _int = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_HEAD = [("size", ctypes.c_size_t), ("dtype", _int), ("weight_dtype", _int), ("rows", _i64), ("n", _i64),
         ("x", _pointer), ("x_stride", _i64)]
_TAIL = [("rstd", _pointer), ("eps", ctypes.c_float), ("weight_offset", ctypes.c_float), ("flags", ctypes.c_uint32)]


class _RmsNormFwd(ctypes.Structure):
    _fields_ = [*_HEAD, ("weight", _pointer), ("y", _pointer), ("y_stride", _i64), *_TAIL]


class _FusedAddRmsNormFwd(ctypes.Structure):
    _fields_ = [*_HEAD, ("residual", _pointer), ("residual_stride", _i64), ("weight", _pointer), ("y", _pointer),
                ("y_stride", _i64), ("residual_out", _pointer), ("residual_out_stride", _i64), *_TAIL]


# The operations that the library has: function and argument struct.
OPERATIONS = {
    "RMSNormFwd": ("nst_rms_norm_fwd", _RmsNormFwd),
    "FusedAddRMSNormFwd": ("nst_fused_add_rms_norm_fwd", _FusedAddRmsNormFwd),
}


class Library:
    """normstatic through its C API."""

    def __init__(self, shared: Shared) -> None:
        self.library = shared.library
        self.handle = ctypes.c_void_p()
        self._check(self.library.nst_open(ctypes.byref(self.handle), None))

    def _check(self, status: int) -> None:
        if status != 0:
            raise RuntimeError(f"{self.library.nst_status_name(status).decode()}: "
                               f"{self.library.nst_last_error().decode(errors='replace')}")

    def build_id(self) -> str:
        return self.library.nst_build_id().decode()

    def preload(self) -> None:
        self._check(self.library.nst_preload(self.handle))

    def launcher(self, workload: Workload, pointers: dict[str, int], stream: int) -> Any:
        """A function that launches the operation; `pointers`: of the tensors, by their names in the args struct."""
        name, arguments = OPERATIONS[workload.op]
        args = arguments(size=ctypes.sizeof(arguments), dtype=DTYPES[workload.dtype], rows=workload.rows, n=workload.n,
                         eps=workload.eps, **pointers)
        if "weight" in workload.dtypes:
            args.weight_dtype = DTYPES[workload.dtypes["weight"]]
        function, by_reference = getattr(self.library, name), ctypes.byref(args)
        handle, on_stream = self.handle, ctypes.c_void_p(stream)

        def launch() -> None:
            status = function(handle, by_reference, on_stream)
            if status:
                self._check(status)

        return launch
