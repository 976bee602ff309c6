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


def release_lines() -> None:
    """Lets go of the L2 lines that reads asked to keep; the device must be idle."""
    error = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
    if error:
        raise RuntimeError(f"the release of lines kept in L2 failed with driver error {error}")


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
_TYPES = {"size": ctypes.c_size_t, "dtype": ctypes.c_int, "weight_dtype": ctypes.c_int, "rows": ctypes.c_int64,
          "n": ctypes.c_int64, "rows_per_cond": ctypes.c_int64, "eps": ctypes.c_float,
          "weight_offset": ctypes.c_float, "flags": ctypes.c_uint32}


def _members(names: str) -> list[tuple[str, Any]]:
    """Members of an argument struct, as the header has them: what has no type of its own is a tensor."""
    return [(name, ctypes.c_int64 if name.endswith("_stride") else _TYPES.get(name, ctypes.c_void_p))
            for name in names.split()]


class _RmsNormFwd(ctypes.Structure):
    _fields_ = _members("size dtype weight_dtype rows n x x_stride weight y y_stride rstd eps weight_offset flags")


class _FusedAddRmsNormFwd(ctypes.Structure):
    _fields_ = _members("size dtype weight_dtype rows n x x_stride residual residual_stride weight y y_stride "
                        "residual_out residual_out_stride rstd eps weight_offset flags")


class _LayerNormFwd(ctypes.Structure):
    _fields_ = _members("size dtype weight_dtype rows n x x_stride weight bias y y_stride mean rstd eps flags")


class _FusedAddLayerNormFwd(ctypes.Structure):
    _fields_ = _members("size dtype weight_dtype rows n x x_stride residual residual_stride weight bias y y_stride "
                        "residual_out residual_out_stride mean rstd eps flags")


class _AdaLayerNormFwd(ctypes.Structure):
    _fields_ = _members("size dtype rows n rows_per_cond x x_stride scale scale_stride shift shift_stride y y_stride "
                        "mean rstd eps flags")


class _AdaLayerNormZeroFwd(ctypes.Structure):
    _fields_ = _members("size dtype rows n rows_per_cond x x_stride scale scale_stride shift shift_stride gate "
                        "gate_stride y y_stride mean rstd eps flags")


# The operations that the library has, in the order of nst_op: function and argument struct.
OPERATIONS: dict[str, tuple[str, type[ctypes.Structure]]] = {
    "RMSNormFwd": ("nst_rms_norm_fwd", _RmsNormFwd),
    "FusedAddRMSNormFwd": ("nst_fused_add_rms_norm_fwd", _FusedAddRmsNormFwd),
    "LayerNormFwd": ("nst_layer_norm_fwd", _LayerNormFwd),
    "FusedAddLayerNormFwd": ("nst_fused_add_layer_norm_fwd", _FusedAddLayerNormFwd),
    "AdaLayerNormFwd": ("nst_ada_layer_norm_fwd", _AdaLayerNormFwd),
    "AdaLayerNormZeroFwd": ("nst_ada_layer_norm_zero_fwd", _AdaLayerNormZeroFwd),
}


def arguments_of(workload: Workload, pointers: dict[str, int]) -> ctypes.Structure:
    """The operation's argument struct; `pointers`: of the tensors, by their names in it."""
    struct = OPERATIONS[workload.op][1]
    args = struct(size=ctypes.sizeof(struct), dtype=DTYPES[workload.dtype], rows=workload.rows, n=workload.n,
                  eps=workload.eps, **pointers)
    for name in ("weight", "bias"):
        if name in workload.dtypes:
            args.weight_dtype = DTYPES[workload.dtypes[name]]
    if workload.is_adaptive:
        args.rows_per_cond = workload.rows_per_cond
    return args


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
        """A function that launches the operation."""
        args = arguments_of(workload, pointers)
        function, by_reference = getattr(self.library, OPERATIONS[workload.op][0]), ctypes.byref(args)
        handle, on_stream = self.handle, ctypes.c_void_p(stream)

        def launch() -> None:
            status = function(handle, by_reference, on_stream)
            if status:
                self._check(status)

        return launch
