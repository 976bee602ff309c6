"""All rows and choices of a spec, with the proof that they are sound. Knows nothing of how they are printed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from . import rules
from .axes import Space, choices_space, rows_space
from .rules import Cell, Config, Hole
from .spec import ANY, RANGES_MAX, ROWS_MAX, Arch, Entry, Op, Range, Spec, Types, bucket_name, listed, names


@dataclass(frozen=True)
class Filter:
    """What a reduced build keeps; None: everything."""

    ops: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None

    def left_out(self, op: Op, types: Types) -> str | None:
        """Why the cells of these have no kernel in this build."""
        if self.ops is not None and op.name not in self.ops:
            return f"left out of this build by --ops {','.join(self.ops)}"
        if self.dtypes is not None and types.data.name not in self.dtypes:
            return f"left out of this build by --dtypes {','.join(self.dtypes)}"
        return None


@dataclass(frozen=True)
class Row:
    index: int
    cell: Cell
    outcome: Config | Hole

    @property
    def config(self) -> Config | None:
        return self.outcome if isinstance(self.outcome, Config) else None


@dataclass(frozen=True)
class Step:
    """Calls of up to so many rows get this cell."""

    rows_up_to: int
    cell: Cell
    time_us: float | None = None


@dataclass(frozen=True)
class Choice:
    index: int
    arch: Arch
    op: Op
    types: Types
    bucket: int
    access: str
    steps: tuple[Step, ...]
    source: str  # MEASURED, MODELLED or DEFAULT


@dataclass(frozen=True)
class Model:
    spec: Spec
    filter: Filter
    rows_space: Space
    choices_space: Space
    rows: tuple[Row, ...]
    full_rows: tuple[Row, ...]  # as without the filter
    choices: tuple[Choice, ...]

    @property
    def kernels(self) -> list[Row]:
        return [row for row in self.rows if row.config]

    @property
    def holes(self) -> list[Row]:
        return [row for row in self.rows if not row.config]


def build(spec: Spec, kept: Filter = Filter()) -> tuple[Model, list[str]]:
    """The model, to be proved, and what of the tuning and the filter does not fit."""
    problems = [*_filter_problems("--ops", kept.ops, names(spec.ops)),
                *_filter_problems("--dtypes", kept.dtypes, names(spec.dtypes))]
    bucket_names = [bucket_name(bucket) for bucket in spec.buckets]
    rows_in = rows_space(names(spec.ops), names(spec.types), bucket_names, names(spec.strategies), names(spec.accesses))
    choices_in = choices_space(names(spec.archs), names(spec.ops), names(spec.types), bucket_names,
                               names(spec.accesses))

    full = tuple(Row(index, c, rules.cell(spec, c)) for index, c in enumerate(_cells(spec)))
    config_of = {row.cell: row.config for row in full}
    choices: list[Choice] = []
    for arch in spec.archs:
        source = arch.modelled_from or arch.name
        tuned = {(e.op, e.types, e.bucket, e.access): e for e in spec.tuning.get(source, ())}
        for op in spec.ops:
            for types in spec.types:
                for bucket in spec.buckets:
                    for access in names(spec.accesses):
                        entry = tuned.get((op.name, types.name, bucket, access))
                        if not rules.occurs(op, types):
                            steps = [Step(ROWS_MAX, Cell(op, types, bucket, "loop", access))]
                        elif entry:
                            steps = _tuned_steps(spec, op, types, entry, config_of,
                                                 problems if arch.name == source else [])
                        else:
                            steps = _default_steps(spec, op, types, bucket, access, config_of)
                        mark = "MODELLED" if arch.modelled_from else "MEASURED" if entry else "DEFAULT"
                        choices.append(Choice(len(choices), arch, op, types, bucket, access, tuple(steps), mark))

    rows = tuple(
        Row(row.index, row.cell, Hole(reason)) if (reason := kept.left_out(row.cell.op, row.cell.types)) else row
        for row in full)
    return Model(spec, kept, rows_in, choices_in, rows, full, tuple(choices)), problems


def _filter_problems(option: str, given: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    if given is not None and not given:
        return [f"{option}: is empty, expected some of {listed(known)}."]
    return [f'{option}: "{name}" is unknown, expected some of {listed(known)}.' for name in given or ()
            if name not in known]


def _cells(spec: Spec) -> list[Cell]:
    return [
        Cell(op, types, bucket, strategy, access)
        for op in spec.ops
        for types in spec.types
        for bucket in spec.buckets
        for strategy in names(spec.strategies)
        for access in names(spec.accesses)
    ]


# ---- Choices ---------------------------------------------------------------------------------------------------


def _default_steps(spec: Spec, op: Op, types: Types, bucket: int, access: str,
                   config_of: dict[Cell, Config | None]) -> list[Step]:
    served = rules.served_bucket(spec, types, bucket, access)
    v = Cell(op, types, served, "", access).vectors
    steps: list[Step] = []
    for rows_up_to, strategies in rules.default_choice(op, v, access):
        options = [c for s in strategies for c in rules.serving_cells(spec, op, types, bucket, access, s)]
        found = next((c for c in options if config_of.get(c)), None)
        if found is None:
            continue  # the proof reports calls that nothing serves
        if steps and steps[-1].cell == found:
            steps.pop()
        steps.append(Step(rows_up_to, found))
    return steps


def _tuned_steps(spec: Spec, op: Op, types: Types, entry: Entry, config_of: dict[Cell, Config | None],
                 problems: list[str]) -> list[Step]:
    steps: list[Step] = []
    for tuned in entry.ranges:
        cells = _named_cells(spec, op, types, entry, tuned)
        found = next((c for c in cells if config_of.get(c)), None)
        if found:
            steps.append(Step(tuned.rows_up_to, found, tuned.time_us))
        else:
            problems.append(f"{tuned.place}: {tuned.strategy} has no kernel for {op.name} {types.name} "
                            f"{bucket_name(entry.bucket)} {entry.access}{_why(spec, cells)}.")
    return steps


def _named_cells(spec: Spec, op: Op, types: Types, entry: Entry, tuned: Range) -> Sequence[Cell]:
    """The cells a tuned range may mean: those that serve the entry, narrowed by the bucket and access it names."""
    if tuned.bucket is None and tuned.access is None:
        return rules.serving_cells(spec, op, types, entry.bucket, entry.access, tuned.strategy)
    bucket = entry.bucket if tuned.bucket is None else tuned.bucket
    access = entry.access if tuned.access is None else tuned.access
    named = Cell(op, types, bucket, tuned.strategy, access)
    return [named] if _serves(spec, named, entry.bucket, entry.access) else []


def _why(spec: Spec, cells: Sequence[Cell]) -> str:
    if not cells:
        return " (the bucket or access that it names is too narrow)"
    outcome = rules.cell(spec, cells[0])
    return f" ({cells[0].name}: {outcome.reason})" if isinstance(outcome, Hole) else ""


def _serves(spec: Spec, c: Cell, bucket: int, access: str) -> bool:
    """Whether a cell's kernel is right for every call of this bucket and access."""
    long_enough = c.bucket == ANY or (bucket != ANY and c.bucket >= bucket)
    general_enough = rules.ACCESSES.index(c.access) >= rules.ACCESSES.index(access)
    return long_enough and general_enough and (c.access != "exact" or c.bucket == bucket)


# ---- Proof -----------------------------------------------------------------------------------------------------


def prove(model: Model) -> list[str]:
    """What does not hold of: indexes are a bijection, names are unique, shapes are possible, and every call (op,
    types, n, alignment, rows) ends at a kernel that can serve it. Choices for calls that do not occur end at a hole."""
    wrong: list[str] = []
    for space, count in ((model.rows_space, len(model.full_rows)), (model.choices_space, len(model.choices))):
        if space.count != count or [space.index(c) for c in space] != list(range(count)):
            wrong.append("The index is not a bijection onto the table.")
    for row in model.full_rows:
        c = row.cell
        if model.rows_space.coordinates(row.index) != (c.op.name, c.types.name, bucket_name(c.bucket), c.strategy,
                                                       c.access):
            wrong.append(f"{c.name}: stands at index {row.index}, which belongs to other coordinates.")
        if row.config:
            wrong.extend(f"{c.name}: {text}." for text in _shape_problems(c, row.config))
    if len({row.cell.name for row in model.full_rows}) != len(model.full_rows):
        wrong.append("Two cells have the same name.")

    kernels = {row.cell for row in model.full_rows if row.config}
    for choice in model.choices:
        if not rules.occurs(choice.op, choice.types):
            continue
        call = f"{choice.arch.name} {choice.op.name} {choice.types.name} {bucket_name(choice.bucket)} {choice.access}"
        wrong.extend(f"{call}: {text}." for text in _choice_problems(model.spec, choice, kernels))
    return wrong


def _shape_problems(c: Cell, config: Config) -> list[str]:
    wrong: list[str] = []
    if not (0 < config.threads <= rules.THREADS_MAX and config.threads % rules.WARP == 0):
        wrong.append(f"{config.threads} threads are not whole warps up to {rules.THREADS_MAX}")
    if config.smem > rules.SMEM_MAX:
        wrong.append(f"{config.smem} bytes of shared memory are more than {rules.SMEM_MAX}")
    if config.cluster > rules.CLUSTER_MAX:
        wrong.append(f"a cluster of {config.cluster} is larger than {rules.CLUSTER_MAX}")
    held = c.bucket != ANY and c.strategy != "reread"  # reread walks over a row, a part at a time
    if held and config.lanes * config.vectors * config.cluster < c.vectors:
        wrong.append(f"{config.cluster} x {config.lanes} x {config.vectors} vectors do not hold {c.vectors}")
    return wrong


def _choice_problems(spec: Spec, choice: Choice, kernels: Collection[Cell]) -> list[str]:
    if not choice.steps or choice.steps[-1].rows_up_to != ROWS_MAX:
        return ["no kernel serves such a call with any number of rows"]
    limits = [step.rows_up_to for step in choice.steps]
    wrong = [] if limits == sorted(set(limits)) and len(limits) <= RANGES_MAX else [f"the ranges {limits} are unsound"]
    for step in choice.steps:
        if step.cell not in kernels:
            wrong.append(f"{step.cell.name} is no kernel")
        if not _serves(spec, step.cell, choice.bucket, choice.access):
            wrong.append(f"{step.cell.name} can't serve it")
        if (step.cell.op, step.cell.types) != (choice.op, choice.types):
            wrong.append(f"{step.cell.name} is of another operation or type")
    return wrong
