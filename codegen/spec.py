"""Reads and validates codegen/spec/*.json. Every problem is one sentence with file and place; all are collected."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AXES_FILE = "axes.json"
ROWS_MAX = 2**31 - 1
RANGES_MAX = 4
VECTOR_BYTES = 16
ANY = 0  # the bucket without limit

# What a row's statistic consists of: the sum of squares; the sum, and the squares around the mean.
STATISTICS = {"squares": 1, "moments": 2}
# The tensors that the device code knows, each list in the order in which an operation takes them.
INPUTS = ("x", "residual")
PARAMETERS = ("weight", "bias")
CONDITIONING = ("scale", "shift", "gate")


@dataclass(frozen=True)
class Dtype:
    name: str
    bytes: int


@dataclass(frozen=True)
class Op:
    name: str
    statistic: str  # a key of STATISTICS
    inputs: tuple[str, ...]  # read row by row and summed: x, residual
    parameters: tuple[str, ...]  # one row for all: weight, bias
    conditioning: tuple[str, ...]  # a row for each row, or for some neighbours: scale, shift, gate

    @property
    def words(self) -> int:
        """Numbers that the reduction carries."""
        return STATISTICS[self.statistic]


@dataclass(frozen=True)
class Types:
    name: str
    data: Dtype
    weight: Dtype


@dataclass(frozen=True)
class Described:
    name: str
    description: str


@dataclass(frozen=True)
class Arch:
    name: str
    capability: int
    modelled_from: str | None  # the measured arch whose choices are taken; None: has a tuning file


@dataclass(frozen=True)
class Range:
    """A tuned choice: up to so many rows, this strategy."""

    rows_up_to: int
    strategy: str
    bucket: int | None  # of the served cell; None: where the strategy serves the entry's bucket
    access: str | None
    time_us: float
    place: str


@dataclass(frozen=True)
class Entry:
    op: str
    types: str
    bucket: int
    access: str
    ranges: tuple[Range, ...]
    place: str


@dataclass(frozen=True)
class Spec:
    dtypes: tuple[Dtype, ...]
    ops: tuple[Op, ...]
    types: tuple[Types, ...]
    buckets: tuple[int, ...]  # ascending, ANY last
    strategies: tuple[Described, ...]
    accesses: tuple[Described, ...]  # narrow to general
    archs: tuple[Arch, ...]
    tuning: dict[str, tuple[Entry, ...]] = field(default_factory=dict)  # by arch name


def bucket_name(bucket: int) -> str:
    return "any" if bucket == ANY else str(bucket)


def names(things: Sequence[Any]) -> tuple[str, ...]:
    return tuple(thing.name for thing in things)


def listed(choices: Collection[Any]) -> str:
    return ", ".join(str(choice) for choice in choices) or "nothing"


class _Reader:
    """Checks the values of one file and keeps the problems."""

    def __init__(self, file: str, problems: list[str]) -> None:
        self.file = file
        self.problems = problems

    def problem(self, place: str, text: str) -> None:
        self.problems.append(f"{self.file}: {place}: {text}." if place else f"{self.file}: {text}.")

    def load(self, path: Path) -> Any:
        """The file's JSON value, None after a problem."""

        def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
            seen: dict[str, Any] = {}
            for key, value in items:
                if key in seen:
                    self.problem("", f'the key "{key}" stands twice in one object')
                seen[key] = value
            return seen

        try:
            return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=pairs)
        except OSError as error:
            self.problem("", f"can't be read ({error.strerror})")
        except UnicodeDecodeError as error:
            self.problem(f"byte {error.start}", "is not UTF-8")
        except json.JSONDecodeError as error:
            self.problem(f"line {error.lineno}, column {error.colno}", f"is not JSON ({error.msg})")
        return None

    def keys(self, place: str, value: Any, required: Sequence[str],
             optional: Sequence[str] = ()) -> dict[str, Any] | None:
        """value if it is an object with these keys."""
        if not isinstance(value, dict):
            self.problem(place, f"is {_shown(value)}, expected an object with {listed(required)}")
            return None
        known = [*required, *optional]
        for key in value:
            if key not in known:
                self.problem(place, f'the key "{key}" is unknown, expected {listed(known)}')
        missing = [key for key in required if key not in value]
        for key in missing:
            self.problem(place, f'the key "{key}" is missing')
        return None if missing else value

    def array(self, place: str, value: Any) -> list[Any]:
        """The items of a list that must not be empty."""
        if not isinstance(value, list) or not value:
            self.problem(place, f"is {_shown(value)}, expected a list that is not empty")
            return []
        return value

    def objects(self, place: str, value: Any, keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a list, each with its place."""
        for i, item in enumerate(self.array(place, value)):
            if (found := self.keys(f"{place}[{i}]", item, keys)) is not None:
                yield f"{place}[{i}]", found

    def described(self, place: str, value: Any, known: Collection[str]) -> list[Described]:
        """A list of known names, each with its description."""
        found: list[Described] = []
        for at, o in self.objects(place, value, ("name", "description")):
            name = self.one_of(f"{at}.name", o["name"], known)
            found.append(Described(name, self.text(f"{at}.description", o["description"])))
        self.distinct(place, found)
        return found

    def name(self, place: str, value: Any) -> str:
        if isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_]*", value):
            return value
        self.problem(place, f"is {_shown(value)}, expected a name of a-z, 0-9 and _ that starts with a letter")
        return ""

    def one_of(self, place: str, value: Any, choices: Collection[str]) -> str:
        if isinstance(value, str) and value in choices:
            return value
        self.problem(place, f"is {_shown(value)}, expected one of {listed(choices)}")
        return ""

    def leading(self, place: str, value: Any, known: Sequence[str], counts: Sequence[int]) -> tuple[str, ...]:
        """The first few of the known names."""
        choices = [list(known[:count]) for count in counts]
        if value in choices:
            return tuple(value)
        self.problem(place, f"is {_shown(value)}, expected {' or '.join(map(json.dumps, choices))}")
        return tuple(choices[0])

    def whole(self, place: str, value: Any, low: int, high: int) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.problem(place, f"is {_shown(value)}, expected a whole number from {low} to {high}")
        return None

    def text(self, place: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        self.problem(place, f"is {_shown(value)}, expected text")
        return ""

    def distinct(self, place: str, things: Sequence[Any]) -> None:
        found = names(things)
        for i, name in enumerate(found):
            if name and name in found[:i]:
                self.problem(place, f"{_shown(name)} stands twice")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read(directory: Path, strategies: Collection[str], accesses: Sequence[str]) -> tuple[Spec | None, list[str]]:
    """The spec and all its problems; None where the axes themselves are not sound.

    `strategies` and `accesses` are the names that the rules know; accesses from narrow to general."""
    problems: list[str] = []
    spec = _read_axes(directory / AXES_FILE, strategies, accesses, problems)
    if spec is None or problems:
        return None, problems
    for arch in spec.archs:
        if arch.modelled_from is None:
            spec.tuning[arch.name] = _read_tuning(directory / f"tuning-{arch.name}.json", spec, problems)
    return spec, problems


def _read_axes(path: Path, known_strategies: Collection[str], known_accesses: Sequence[str],
               problems: list[str]) -> Spec | None:
    r = _Reader(path.name, problems)
    value = r.load(path)
    if problems:
        return None
    top = r.keys("", value, ("dtypes", "ops", "types", "buckets", "strategies", "accesses", "archs"))
    if top is None:
        return None

    # Where a value is wrong, a stand-in takes its place, so that what refers to it is not reported too.
    dtypes: list[Dtype] = []
    for at, o in r.objects("dtypes", top["dtypes"], ("name", "bytes")):
        name, size = r.name(f"{at}.name", o["name"]), o["bytes"]
        if isinstance(size, bool) or size not in (1, 2, 4, 8):
            r.problem(f"{at}.bytes", f"is {_shown(size)}, expected 1, 2, 4 or 8")
            size = VECTOR_BYTES
        dtypes.append(Dtype(name, size))
    r.distinct("dtypes", dtypes)
    by_name = {dtype.name: dtype for dtype in dtypes}

    ops: list[Op] = []
    for at, o in r.objects("ops", top["ops"], ("name", "statistic", "inputs", "parameters", "conditioning")):
        ops.append(Op(r.name(f"{at}.name", o["name"]),
                      r.one_of(f"{at}.statistic", o["statistic"], STATISTICS) or "squares",
                      r.leading(f"{at}.inputs", o["inputs"], INPUTS, (1, 2)),
                      r.leading(f"{at}.parameters", o["parameters"], PARAMETERS, (0, 1, 2)),
                      r.leading(f"{at}.conditioning", o["conditioning"], CONDITIONING, (0, 2, 3))))
    r.distinct("ops", ops)

    types: list[Types] = []
    for at, o in r.objects("types", top["types"], ("name", "data", "weight")):
        name = r.name(f"{at}.name", o["name"])
        data = by_name.get(r.one_of(f"{at}.data", o["data"], by_name))
        weight = by_name.get(r.one_of(f"{at}.weight", o["weight"], by_name))
        if data and weight:
            types.append(Types(name, data, weight))
    r.distinct("types", types)

    strategies = r.described("strategies", top["strategies"], known_strategies)
    accesses = r.described("accesses", top["accesses"], known_accesses)
    order = [known_accesses.index(access.name) for access in accesses if access.name]
    if order != sorted(order):
        r.problem("accesses", f"are not in the order from narrow to general: {listed(known_accesses)}")

    archs: list[Arch] = []
    for at, o in r.objects("archs", top["archs"], ("name", "capability", "modelled_from")):
        name = r.name(f"{at}.name", o["name"])
        archs.append(Arch(name, r.whole(f"{at}.capability", o["capability"], 90, 999) or 90, o["modelled_from"]))
    r.distinct("archs", archs)
    measured = [arch.name for arch in archs if arch.modelled_from is None]
    for i, arch in enumerate(archs):
        if arch.modelled_from is not None:
            r.one_of(f"archs[{i}].modelled_from", arch.modelled_from, measured)

    return Spec(tuple(dtypes), tuple(ops), tuple(types), tuple(_read_buckets(r, top["buckets"], dtypes)),
                tuple(strategies), tuple(accesses), tuple(archs))


def _read_buckets(r: _Reader, value: Any, dtypes: Sequence[Dtype]) -> list[int]:
    buckets: list[int] = []
    items = r.array("buckets", value)
    step = VECTOR_BYTES // min((dtype.bytes for dtype in dtypes), default=VECTOR_BYTES)
    for i, item in enumerate(items):
        at = f"buckets[{i}]"
        if item == "any":
            if i != len(items) - 1:
                r.problem(at, '"any" must be the last bucket')
            continue
        size = r.whole(at, item, 1, ROWS_MAX)
        if size is None:
            continue
        if size % step:
            r.problem(at, f"is {size}, expected a multiple of {step}, so that rows end on a 16-byte vector")
        if buckets and size <= buckets[-1]:
            r.problem(at, f"is {size} after {buckets[-1]}, expected ascending buckets")
        buckets.append(size)
    if items and items[-1] != "any":
        r.problem("buckets", 'the last bucket must be "any", so that no length is left out')
    return [*buckets, ANY]


def _read_tuning(path: Path, spec: Spec, problems: list[str]) -> tuple[Entry, ...]:
    r = _Reader(path.name, problems)
    before = len(problems)
    value = r.load(path)
    if len(problems) > before:
        return ()
    head = ("device", "driver", "date", "command")
    top = r.keys("", value, (*head, "entries"))
    if top is None:
        return ()
    for key in head:
        r.text(key, top[key])
        if top[key] == "" and top["entries"]:
            r.problem(key, "is empty, but measured entries must say where they come from")
    if not isinstance(top["entries"], list):
        r.problem("entries", f"is {_shown(top['entries'])}, expected a list")
        return ()

    entries: list[Entry] = []
    seen: dict[tuple[Any, ...], str] = {}
    bucket_names = [bucket_name(bucket) for bucket in spec.buckets]
    for i, item in enumerate(top["entries"]):
        at = f"entries[{i}]"
        if (o := r.keys(at, item, ("op", "types", "bucket", "access", "ranges"))) is None:
            continue
        op = r.one_of(f"{at}.op", o["op"], names(spec.ops))
        types = r.one_of(f"{at}.types", o["types"], names(spec.types))
        bucket = _read_bucket(r, f"{at}.bucket", o["bucket"], bucket_names)
        access = r.one_of(f"{at}.access", o["access"], names(spec.accesses))
        ranges = _read_ranges(r, f"{at}.ranges", o["ranges"], spec, bucket_names)
        if op and types and bucket is not None and access:
            key = (op, types, bucket, access)
            if key in seen:
                r.problem(at, f"{op} {types} {bucket_name(bucket)} {access} stands in {seen[key]} already")
            seen.setdefault(key, at)
            entries.append(Entry(op, types, bucket, access, tuple(ranges), f"{path.name}: {at}"))
    return tuple(entries)


def _read_bucket(r: _Reader, place: str, value: Any, bucket_names: Sequence[str]) -> int | None:
    if not isinstance(value, bool) and str(value) in bucket_names:
        return ANY if value == "any" else int(value)
    r.problem(place, f"is {_shown(value)}, expected one of {listed(bucket_names)}")
    return None


def _read_ranges(r: _Reader, place: str, value: Any, spec: Spec, bucket_names: Sequence[str]) -> list[Range]:
    items = r.array(place, value)
    if len(items) > RANGES_MAX:
        r.problem(place, f"has {len(items)} ranges, expected at most {RANGES_MAX}")
    ranges: list[Range] = []
    last = 0
    for i, item in enumerate(items):
        at, before = f"{place}[{i}]", len(r.problems)
        if (o := r.keys(at, item, ("rows_up_to", "strategy", "time_us"), ("bucket", "access"))) is None:
            continue
        rows: int | None = ROWS_MAX
        if o["rows_up_to"] is not None:  # null: without limit
            rows = r.whole(f"{at}.rows_up_to", o["rows_up_to"], 1, ROWS_MAX)
        strategy = r.one_of(f"{at}.strategy", o["strategy"], names(spec.strategies))
        bucket = _read_bucket(r, f"{at}.bucket", o["bucket"], bucket_names) if "bucket" in o else None
        access = r.one_of(f"{at}.access", o["access"], names(spec.accesses)) if "access" in o else None
        time = o["time_us"]
        if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 < time < 1e9:
            r.problem(f"{at}.time_us", f"is {_shown(time)}, expected the measured time in microseconds")
        if rows is not None:
            if rows <= last:
                r.problem(f"{at}.rows_up_to", f"is {rows} after {last}, expected ascending numbers of rows")
            if i == len(items) - 1 and rows != ROWS_MAX:
                r.problem(f"{at}.rows_up_to", f"is {rows}, expected null in the last range, which has no limit")
            last = rows
            if len(r.problems) == before:
                ranges.append(Range(rows, strategy, bucket, access, float(time), f"{r.file}: {at}"))
    return ranges
