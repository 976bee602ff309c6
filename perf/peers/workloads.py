"""What is measured: the workloads of perf/workloads.json, and how many bytes each can't avoid to move."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BYTES = {"f16": 2, "bf16": 2, "f32": 4}

# The tensors that an operation writes, each as large as x. Operations that are not here can't be compared yet.
OUTPUTS = {
    "RMSNormFwd": ("y",),
    "FusedAddRMSNormFwd": ("y", "residual_out"),
    "LayerNormFwd": ("y",),
    "FusedAddLayerNormFwd": ("y", "residual_out"),
    "AdaLayerNormFwd": ("y",),
    "AdaLayerNormZeroFwd": ("y",),
}
CONDITIONING = ("scale", "shift", "gate")


class BadInput(Exception):
    """One sentence about what is wrong with a file or an argument."""


@dataclass(frozen=True)
class Workload:
    id: str
    op: str
    dtype: str
    shapes: dict[str, tuple[int, ...]]  # of the inputs
    dtypes: dict[str, str]
    eps: float
    published_us: float | None

    @property
    def n(self) -> int:
        return self.shapes["x"][-1]

    @property
    def rows(self) -> int:
        return math.prod(self.shapes["x"]) // self.n

    @property
    def is_layer_norm(self) -> bool:
        return "LayerNorm" in self.op

    @property
    def is_adaptive(self) -> bool:
        return self.op.startswith("Ada")

    @property
    def rows_per_cond(self) -> int:
        """Rows of x that share a row of conditioning."""
        return next((self.rows * self.n // math.prod(shape) for name, shape in self.shapes.items()
                     if name in CONDITIONING), 1)

    @property
    def outputs(self) -> tuple[str, ...]:
        return OUTPUTS[self.op]

    @property
    def bytes(self) -> int:
        """Each input read once, each output written once."""
        inputs = sum(math.prod(shape) * BYTES[self.dtypes[name]] for name, shape in self.shapes.items())
        return inputs + len(self.outputs) * math.prod(self.shapes["x"]) * BYTES[self.dtype]


def workload_of(entry: dict[str, Any]) -> Workload:
    tensors = entry["tensors"]
    workload = Workload(
        id=entry["id"], op=entry["op"], dtype=entry["dtype"],
        shapes={name: tuple(tensor["shape"]) for name, tensor in tensors.items()},
        dtypes={name: tensor["dtype"] for name, tensor in tensors.items()},
        eps=(entry.get("params") or {}).get("eps", 1e-6 if "RMS" in entry["op"] else 1e-5),
        published_us=entry.get("published", {}).get("time_us"))
    for name in CONDITIONING:
        if name in workload.shapes and math.prod(workload.shapes[name]) * workload.rows_per_cond != math.prod(
                workload.shapes["x"]):
            raise BadInput(f"workload {workload.id}: tensors.{name} has the shape {list(workload.shapes[name])}, "
                           f"expected one row for each {workload.rows_per_cond} of x.")
    return workload


def load(path: Path, match: str = "", ops: set[str] | None = None) -> list[Workload]:
    """The workloads whose id contains `match`, of the operations `ops` (None: all that can be compared)."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["workloads"]
        return [workload_of(entry) for entry in entries
                if match in entry["id"] and entry["op"] in OUTPUTS and (ops is None or entry["op"] in ops)]
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON ({error}).") from error
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: a workload lacks {error}.") from error


def part_of(workloads: list[Workload], part: str) -> list[Workload]:
    """Part I of N, given as "I/N". Long and short workloads are spread evenly."""
    try:
        number, count = (int(piece) for piece in part.split("/"))
    except ValueError:
        number = count = 0
    if not 1 <= number <= count:
        raise BadInput(f"--part {part}: expected I/N with 1 <= I <= N.")
    return workloads[number - 1::count]
