"""Statistics of device times, without numpy."""

from __future__ import annotations

import math
import statistics
from typing import Iterable, Sequence


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def calls_for(bytes_moved: int) -> int:
    """How many calls of each kind are timed."""
    return 10 if bytes_moved > 1_000_000_000 else 25
