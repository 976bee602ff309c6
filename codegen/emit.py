"""Prints a model: values and names here, layout in the templates. The result is text by file name, nothing else."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .model import Choice, Filter, Model, Row
from .rules import Cell, Config, Hole
from .spec import ANY, AXES_FILE, RANGES_MAX, ROWS_MAX, Op, Spec, Types, bucket_name

TEMPLATES = Path(__file__).resolve().parent / "templates"
COLUMNS = 120
MARK = "Printed by `python3 -m codegen"  # opens each file that may be replaced or removed


@dataclass(frozen=True)
class Group:
    """The rows of one (op, types): a section of the tables, a source file of kernels."""

    op: Op
    types: Types
    rows: tuple[Row, ...]

    @property
    def kernels(self) -> list[Row]:
        return [row for row in self.rows if row.config]

    @property
    def file(self) -> str:
        return f"{self.op.name}_{self.types.name}.cu"

    @property
    def headers(self) -> list[str]:
        return sorted({f"rows_{row.cell.strategy}.cuh" for row in self.kernels})


def render(model: Model, sources: Path) -> dict[str, str]:
    """Every output file. `sources` holds params.h and device/, which count for the build id too."""
    printer = _Printer(model)
    groups = [Group(op, types, tuple(rows)) for (op, types), rows in
              groupby(model.rows, key=lambda row: (row.cell.op, row.cell.types))]
    built = [group for group in groups if group.kernels]
    common = {"model": model, "spec": model.spec, "groups": groups, "built": built}

    files = {
        "axes.h": printer.text("axes.h.j2", **common, **_axes(model.spec)),
        "rows.inc": printer.text("rows.inc.j2", **common, blocks=_row_blocks),
        "choices.inc": printer.text("choices.inc.j2", sections=_choice_sections(model), tuning=_tuning_files(model)),
        "kernels.inc": printer.text("kernels.inc.j2", **common),
        "kernels.ninja": printer.text("kernels.ninja.j2", **common),
        "coverage.md": coverage(model),
    }
    for group in built:
        files[f"kernels/{group.file}"] = printer.text("rows_kernels.cu.j2", group=group, initialiser=_initialiser)
    build_id = digest(files, sources)
    files["BUILD_ID"] = printer.text("BUILD_ID.j2", build_id=build_id)
    files["build_id.h"] = printer.text("build_id.h.j2", build_id=build_id)
    files["kernels/build_id.cu"] = printer.text("build_id.cu.j2", build_id=build_id)
    return dict(sorted(files.items()))


def coverage(model: Model) -> str:
    """The coverage page."""
    return _Printer(model).text("coverage.md.j2", model=model, spec=model.spec, matrices=_matrices(model),
                                counts=_counts(model), holes=_hole_counts(model))


def digest(files: dict[str, str], sources: Path) -> str:
    """What the tables and the kernels depend on, as 16 hexadecimal digits."""
    parts = {f"generated/{name}": text.encode() for name, text in files.items()}
    for path in (sources / "params.h", *(sources / "device").glob("*.cuh"), *(sources / "device").glob("*.h")):
        parts[f"src/{path.relative_to(sources).as_posix()}"] = path.read_bytes()
    sha = hashlib.sha256()
    for name, content in sorted(parts.items()):
        sha.update(f"{name}\n{len(content)}\n".encode() + content)
    return sha.hexdigest()[:16]


def write(files: dict[str, str], out: Path) -> tuple[list[str], list[str]]:
    """Writes what changed and removes kernel files of ours that are no longer printed; both lists of names."""
    changed: list[str] = []
    for name, text in files.items():
        path = out / name
        if path.is_file() and path.read_bytes() == text.encode():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        changed.append(name)
    removed: list[str] = []
    for path in sorted((out / "kernels").glob("*.cu")):
        name = f"kernels/{path.name}"
        if name not in files and MARK in path.read_text(encoding="utf-8", errors="replace"):
            path.unlink()
            removed.append(name)
    return changed, removed


def aligned(lines: Sequence[Sequence[object]]) -> list[list[str]]:
    """The cells of a table padded to columns: numbers to the right, words to the left, the last one not at all. The
    comma that follows a cell stands before its padding."""
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
    return [[_pad(cell, width) for cell, width in zip(line[:-1], widths)] + [str(line[-1])] for line in lines]


def commas(items: Iterable[object]) -> list[str]:
    """Items as text, each but the last with its comma."""
    *first, last = map(str, items)
    return [f"{item}," for item in first] + [last]


def packed(items: Iterable[str], indent: int, room: int, end: str = "") -> str:
    """Items in lines of up to 120 columns that start at column `indent`; `room` columns are kept free, for what the
    template adds, and `end` closes each line but the last."""
    lines: list[str] = []
    for item in items:
        if lines and indent + len(lines[-1]) + 1 + len(item) + room <= COLUMNS:
            lines[-1] += f" {item}"
        else:
            lines.append(item)
    return f"{end}\n{' ' * indent}".join(lines)


def _pad(cell: object, width: int) -> str:
    text = str(cell)
    return f"{text},".rjust(width + 1) if text.isdigit() else f"{text},".ljust(width + 1)


class _Printer:
    """Jinja2 with this project's settings, and the head of each file."""

    def __init__(self, model: Model) -> None:
        self.environment = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, autoescape=False,
                                       trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
        self.environment.filters.update(commas=commas, packed=packed)
        self.command = f"{MARK} all{_options(model.filter)}`"

    def text(self, template: str, **values: object) -> str:
        head = f"{self.command} from spec {AXES_FILE} and template {template}; not to be edited."
        return self.environment.get_template(template).render(head=head, **values)


def _options(kept: Filter) -> str:
    ops = f" --ops {','.join(kept.ops)}" if kept.ops is not None else ""
    dtypes = f" --dtypes {','.join(kept.dtypes)}" if kept.dtypes is not None else ""
    return ops + dtypes


def _tuning_files(model: Model) -> list[str]:
    return [f"tuning-{arch.name}.json" for arch in model.spec.archs if arch.modelled_from is None]


# ---- axes.h ----------------------------------------------------------------------------------------------------


def _axes(spec: Spec) -> dict[str, list[str] | list[tuple[str, int]]]:
    """The lists of names in axes.h."""
    steps = [f"((n) > {bucket})" for bucket in spec.buckets if bucket != ANY] or ["0"]
    public = (("OP", spec.ops), ("STRATEGY", spec.strategies), ("ACCESS", spec.accesses))
    return {
        "types_data": [f"NST_DTYPE_{types.data.name.upper()}" for types in spec.types],
        "types_weight": [f"NST_DTYPE_{types.weight.name.upper()}" for types in spec.types],
        "bucket_names": [bucket_name(bucket).upper() for bucket in spec.buckets],
        "bucket_steps": [f"{step} +" for step in steps[:-1]] + steps[-1:],
        "public_names": [(f"NST_{enum}_{choice.name.upper()}", i) for enum, choices in public
                         for i, choice in enumerate(choices)],
    }


# ---- rows.inc --------------------------------------------------------------------------------------------------


def _row_blocks(group: Group) -> list[list[str]]:
    """The lines of a group, in a block for each bucket."""
    kernels = iter(aligned([_kernel_columns(row, row.config) for row in group.rows if row.config] or [[""]]))
    coordinates = aligned([[*_coordinates(row), ""] for row in group.rows])
    blocks: list[list[str]] = []
    for _, rows in groupby(zip(group.rows, coordinates), key=lambda pair: pair[0].cell.bucket):
        lines: list[str] = []
        for row, place in rows:
            if isinstance(row.outcome, Hole):
                lines.append(f'NST_HOLE(  {" ".join(place[:-1])} "{row.outcome.reason}")')
            else:
                lines.append(f'NST_KERNEL({" ".join(place[:-1])} {" ".join(next(kernels))})')
        blocks.append(lines)
    return blocks


def _coordinates(row: Row) -> list[str]:
    c = row.cell
    return [str(row.index), c.op.name.upper(), c.types.name.upper(), bucket_name(c.bucket).upper(),
            c.strategy.upper(), c.access.upper()]


def _kernel_columns(row: Row, config: Config) -> list[object]:
    return [config.threads, config.lanes, config.vectors, config.cluster, config.rows_per_block, config.blocks_per_sm,
            config.slots, config.smem, row.cell.name]


# ---- choices.inc -----------------------------------------------------------------------------------------------


def _choice_sections(model: Model) -> list[tuple[str, list[str]]]:
    """(title, lines) for each arch, op and types."""
    sections: list[tuple[str, list[str]]] = []
    for (arch, op, types), group in groupby(model.choices, key=lambda c: (c.arch, c.op, c.types)):
        lines = aligned([_choice_columns(choice) for choice in group])
        sections.append((f"{arch.name}, {op.name}, {types.name}", [f'NST_CHOICE({" ".join(line)})' for line in lines]))
    return sections


def _choice_columns(choice: Choice) -> list[object]:
    steps = [*choice.steps, *[choice.steps[-1]] * (RANGES_MAX - len(choice.steps))]
    columns: list[object] = [choice.index, choice.arch.name.upper(), choice.op.name.upper(), choice.types.name.upper(),
                             bucket_name(choice.bucket).upper(), choice.access.upper()]
    columns += [step.rows_up_to for step in steps[:-1]]
    for step in steps:
        columns += [bucket_name(step.cell.bucket).upper(), step.cell.strategy.upper(), step.cell.access.upper()]
    return [*columns, choice.source]


# ---- kernels ---------------------------------------------------------------------------------------------------


def _initialiser(c: Cell, config: Config) -> list[str]:
    """The members of a kernel's nst_cell."""
    return [
        f".op = NST_OP_{c.op.name.upper()}",
        f".types = NST_TYPES_{c.types.name.upper()}",
        f".access = NST_ACCESS_{c.access.upper()}",
        f".n = {c.bucket}",
        f".threads = {config.threads}",
        f".lanes = {config.lanes}",
        f".vectors = {config.vectors}",
        f".cluster = {config.cluster}",
        f".slots = {config.slots}",
        f".smem = {config.smem}",
        f".hint = NST_HINT_{config.hint}",
    ]


# ---- coverage.md -----------------------------------------------------------------------------------------------


def _matrices(model: Model) -> list[tuple[str, list[str]]]:
    """(title, table lines) for each op and types: bucket x strategy."""
    strategies = [strategy.name for strategy in model.spec.strategies]
    result: list[tuple[str, list[str]]] = []
    for (op, types), group in groupby(model.rows, key=lambda row: (row.cell.op, row.cell.types)):
        table = [["n", *strategies]]
        for bucket, rows in groupby(group, key=lambda row: row.cell.bucket):
            by_strategy = {strategy: list(cells) for strategy, cells in groupby(rows, key=lambda r: r.cell.strategy)}
            table.append([bucket_name(bucket), *(_coverage_cell(by_strategy[strategy]) for strategy in strategies)])
        result.append((f"{op.name}, {types.name}", _markdown(table)))
    return result


def _coverage_cell(rows: Iterable[Row]) -> str:
    """Accesses that have a kernel, and its shape."""
    found = [(row.cell.access, row.config) for row in rows if row.config]
    if not found:
        return "-"
    shapes = {_shape(config) for _, config in found}
    return f"{'/'.join(sorted(shapes))} {''.join(access[0].upper() for access, _ in found)}"


def _shape(config: Config) -> str:
    return (f"{config.cluster}x" if config.cluster > 1 else "") + f"{config.lanes}x{config.vectors}"


def _counts(model: Model) -> list[str]:
    """Table lines: kernels by op and strategy."""
    strategies = [strategy.name for strategy in model.spec.strategies]
    count = Counter((row.cell.op.name, row.cell.types.name, row.cell.strategy) for row in model.kernels)
    table = [["kernels", *strategies, "all"]]
    for op in model.spec.ops:
        for types in model.spec.types:
            line = [count[op.name, types.name, strategy] for strategy in strategies]
            table.append([f"{op.name}, {types.name}", *map(str, line), str(sum(line))])
    totals = [sum(int(line[i]) for line in table[1:]) for i in range(1, len(strategies) + 2)]
    return _markdown([*table, ["all", *map(str, totals)]])


def _hole_counts(model: Model) -> list[str]:
    """Table lines: each reason with its number of holes, in the order of the table."""
    count = Counter(row.outcome.reason for row in model.rows if isinstance(row.outcome, Hole))
    return _markdown([["holes", "reason"], *([str(number), reason] for reason, number in count.items())])


def _markdown(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(3, *(len(line[i]) for line in table)) for i in range(len(table[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in table]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return lines


def rows_text(low: int, high: int) -> str:
    """A range of row counts in words."""
    if high == ROWS_MAX:
        return "any rows" if low == 1 else f"rows {low} and more"
    return f"rows {low} to {high}" if low < high else f"rows {low}"
