"""Questions about a model and about what is on disk: check and explain."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from .emit import rows_text
from .model import Choice, Model, Row
from .rules import Cell, Config, Hole
from .spec import ANY, bucket_name, listed, names


def check(files: dict[str, str], out: Path) -> list[str]:
    """How the files under `out` differ from `files`, a sentence each."""
    wrong: list[str] = []
    for name, text in files.items():
        path = out / name
        if not path.is_file():
            wrong.append(f"{name}: missing.")
        elif path.read_bytes() != text.encode():
            wrong.append(f"{name}: {_first_difference(path.read_bytes().decode('utf-8', 'replace'), text)}.")
    found = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    wrong.extend(f"{name}: extra, nothing prints it." for name in sorted(found - set(files)))
    return wrong


def _first_difference(found: str, expected: str) -> str:
    lines = zip_longest(found.splitlines(keepends=True), expected.splitlines(keepends=True))
    for number, (a, b) in enumerate(lines, start=1):
        if a != b:
            return f"line {number} is {_line(a)}, expected {_line(b)}"
    return "differs"


def _line(text: str | None) -> str:
    return "missing" if text is None else repr(text)


def explain(model: Model, name: str) -> tuple[str, bool]:
    """What the model says of a cell's name; false where there is no such cell."""
    row = next((row for row in model.rows if row.cell.name == name), None)
    if row is None:
        return _no_such_cell(model, name), False
    lines = [name, "", _item("index", row.index)]
    for axis, value in zip(model.rows_space.axes, model.rows_space.coordinates(row.index)):
        lines.append(_item(axis.name, f"{value} ({axis.choices.index(value)} of {axis.radix}, stride {axis.stride})"))
    lines.append("")
    if isinstance(row.outcome, Hole):
        lines.append(_item("hole", row.outcome.reason))
    else:
        lines.extend(_config_lines(row.cell, row.outcome))
    lines += ["", "chosen for"]
    lines += [f"  {line}" for choice in model.choices for line in _uses(model, choice, row)] or ["  nothing"]
    return "\n".join(lines), True


def _item(name: str, value: object) -> str:
    return f"{name.ljust(15)} {value}"


def _config_lines(cell: Cell, config: Config) -> list[str]:
    of_row = f"; {cell.vectors} in a row" if cell.bucket != ANY else ""
    return [
        _item("threads", config.threads),
        _item("lanes", f"{config.lanes} (threads of a block that share a row)"),
        _item("vectors", f"{config.vectors} (of 16 bytes, that a thread holds{of_row})"),
        _item("cluster", f"{config.cluster} (blocks that share a row)"),
        _item("rows_per_block", config.rows_per_block),
        _item("blocks_per_sm", config.blocks_per_sm or "not limited"),
        _item("slots", config.slots or "none"),
        _item("smem", f"{config.smem} bytes"),
        _item("launch bounds", f"({config.threads}, {config.min_blocks})"),
        _item("hint", config.hint.lower()),
    ]


def _uses(model: Model, choice: Choice, row: Row) -> list[str]:
    """The ranges of a choice that lead to the row."""
    lines: list[str] = []
    low = 1
    for step in choice.steps:
        if step.cell == row.cell:
            time = "" if step.time_us is None else f", {step.time_us:g} us"
            lines.append(f"{choice.arch.name} {_length(model, choice)}, {choice.access}: "
                         f"{rows_text(low, step.rows_up_to)} ({choice.source.lower()}{time})")
        low = step.rows_up_to + 1
    return lines


def _length(model: Model, choice: Choice) -> str:
    """The row lengths that a choice is for."""
    if choice.access == "exact" and choice.bucket != ANY:
        return f"n = {choice.bucket}"
    place = model.spec.buckets.index(choice.bucket)
    low = model.spec.buckets[place - 1] + 1 if place else 1
    return f"n from {low}" if choice.bucket == ANY else f"n {low} to {choice.bucket}"


def _no_such_cell(model: Model, name: str) -> str:
    spec = model.spec
    return (f"{name}: no such cell; a name is nst_<op>_<types>_n<bucket>_<strategy>_<access> with\n"
            f"  op        {listed(names(spec.ops))}\n"
            f"  types     {listed(names(spec.types))}\n"
            f"  bucket    {listed(bucket_name(bucket) for bucket in spec.buckets)}\n"
            f"  strategy  {listed(names(spec.strategies))}\n"
            f"  access    {listed(names(spec.accesses))}")
