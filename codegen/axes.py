"""Axes, and the mixed-radix numbers that turn coordinates into table indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence


@dataclass(frozen=True)
class Axis:
    """One coordinate of a table."""

    name: str
    choices: tuple[str, ...]
    stride: int  # table rows from one choice to the next
    why: str  # why the axis has this place in the order

    @property
    def radix(self) -> int:
        return len(self.choices)


@dataclass(frozen=True)
class Space:
    """The product of axes in their order: the first varies slowest, the last has stride 1."""

    axes: tuple[Axis, ...]

    @property
    def count(self) -> int:
        return self.axes[0].stride * self.axes[0].radix

    def index(self, coordinates: Sequence[str]) -> int:
        return sum(axis.choices.index(c) * axis.stride for axis, c in zip(self.axes, coordinates, strict=True))

    def coordinates(self, index: int) -> tuple[str, ...]:
        return tuple(axis.choices[index // axis.stride % axis.radix] for axis in self.axes)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self.coordinates(index) for index in range(self.count))


def space(*axes: tuple[str, Sequence[str], str]) -> Space:
    """A space from (name, choices, why), first axis slowest."""
    result: list[Axis] = []
    stride = 1
    for name, choices, why in reversed(axes):
        result.append(Axis(name, tuple(choices), stride, why))
        stride *= len(choices)
    return Space(tuple(reversed(result)))


def rows_space(ops: Sequence[str], types: Sequence[str], buckets: Sequence[str], strategies: Sequence[str],
               accesses: Sequence[str]) -> Space:
    """The dispatch table: a row for each cell."""
    return space(
        ("op", ops, "slowest: a new operation is appended and moves no other row"),
        ("types", types, "with the operation it names a source file, so a file's kernels are neighbours"),
        ("bucket", buckets, "all that serves a row length stands together when the table is read"),
        ("strategy", strategies, "the alternatives that a choice picks from are neighbours"),
        ("access", accesses, "fastest: the forms of one strategy, narrow to general"),
    )


def choices_space(archs: Sequence[str], ops: Sequence[str], types: Sequence[str], buckets: Sequence[str],
                  accesses: Sequence[str]) -> Space:
    """The choice table: a line for each kind of call."""
    return space(
        ("arch", archs, "slowest: a device reads one part of the table"),
        ("op", ops, "then as in the dispatch table, without the strategy, which is what the table gives"),
        ("types", types, "as in the dispatch table"),
        ("bucket", buckets, "as in the dispatch table"),
        ("access", accesses, "as in the dispatch table"),
    )
