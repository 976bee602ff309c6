"""Device times of all alternatives of one workload, interleaved call by call.

Each call is preceded by a kernel that overwrites 256 MiB (so that L2 holds other, dirty lines: the cold time) and
followed by the same call again (the warm time). Before the kernel the driver lets go of lines that earlier reads asked
L2 to keep: they outlast 256 MiB, and would make the next one's input warm. A small kernel that no library launches marks where calls begin and
end in the stream of kernel records; a call's time is the sum of the durations between two marks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable

from peers import stats
from peers.alternatives import ALTERNATIVES, Builder, Missing
from peers.shared import Library, Record, Records
from peers.tensors import Case, Wrong
from peers.workloads import Workload

FLUSH_BYTES = 256 << 20
COPY_ROUNDING, COPY_SLACK = 64 << 10, 0.02
SEARCH_ABOVE, SEARCH_KEEPS, SEARCH_CALLS = 3, 2, 5  # of many variants only the best few are timed with the others
UNTIMED_ROUNDS = 2


class Broken(Exception):
    """The device no longer works in this process."""


@dataclass
class Candidate:
    """One function whose calls are timed, and what came out."""

    owner: str  # "ours", the alternative's name, or "copy"
    name: str
    call: Callable[[], Any]
    errors: dict[str, float] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)  # us
    warm: list[float] = field(default_factory=list)
    reason: str | None = None

    @property
    def cold_us(self) -> float:
        return stats.median(self.cold)


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def reason_of(error: BaseException) -> str:
    return str(error) if isinstance(error, (Missing, Wrong)) else one_line(error)


def segments(records: list[Record], marker: str) -> list[list[Record]]:
    """What ran before, between and after the marks."""
    pieces: list[list[Record]] = [[]]
    for record in records:
        if record.name == marker:
            pieces.append([])
        else:
            pieces[-1].append(record)
    return pieces


def duration_us(records: list[Record]) -> float:
    return sum(record.end - record.start for record in records) / 1000


class Bench:
    def __init__(self, torch: Any, records: Records, release_lines: Callable[[], None], device: str = "cuda") -> None:
        self.torch, self.records, self.release_lines, self.device = torch, records, release_lines, device
        self.buffer = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device=device)
        self.spot = torch.zeros(1, device=device)
        self.flushes = 0
        self.synchronize()
        self.records.clear()
        self.mark()
        self.synchronize()
        self.marker = self.records.take(1)[0].name

    def synchronize(self) -> None:
        try:
            self.torch.cuda.synchronize()
        except RuntimeError as error:
            raise Broken(one_line(error)) from error

    def flush(self) -> None:
        self.synchronize()
        self.release_lines()
        self.overwrite()

    def overwrite(self) -> None:
        self.flushes = (self.flushes + 1) % 127
        self.buffer.fill_(self.flushes)

    def mark(self) -> None:
        self.spot.erfinv_()

    def warm_up(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(50):
                self.overwrite()
            self.synchronize()
            self.records.clear()

    # ---- Rounds --------------------------------------------------------------------------------------------------

    def round(self, candidates: list[Candidate]) -> list[tuple[list[Record], list[Record]]]:
        """A cold and a warm call of each; what each ran. A candidate that fails gets its reason, and the round is
        void: the result is empty."""
        self.synchronize()
        self.records.clear()
        for candidate in candidates:
            self.flush()
            self.mark()
            try:
                candidate.call()
                self.mark()
                candidate.call()
            except Exception as error:
                candidate.reason = reason_of(error)
                self.synchronize()
                return []
            self.mark()
        self.synchronize()
        pieces = segments(self.records.take(4 * len(candidates)), self.marker)
        if len(pieces) != 3 * len(candidates) + 1:
            raise RuntimeError(f"CUPTI gave {len(pieces) - 1} marks, expected {3 * len(candidates)}")
        return [(pieces[3 * i + 1], pieces[3 * i + 2]) for i in range(len(candidates))]

    def time(self, candidates: list[Candidate], calls: int, untimed: int = UNTIMED_ROUNDS) -> None:
        """Times those that have no reason not to be timed."""
        timed = -untimed
        while timed < calls:
            active = [candidate for candidate in candidates if candidate.reason is None]
            if not active:
                return
            # Each round starts with another one, so that nobody always follows the same neighbour.
            turn = timed % len(active)
            order = active[turn:] + active[:turn]
            results = self.round(order)
            if not results:
                continue
            if timed >= 0:
                for candidate, (cold, warm) in zip(order, results):
                    candidate.kernels = [record.name or record.kind for record in cold]
                    candidate.cold.append(duration_us(cold))
                    candidate.warm.append(duration_us(warm))
            timed += 1

    # ---- One workload --------------------------------------------------------------------------------------------

    def probe(self, case: Case, candidate: Candidate, outputs: Callable[[], dict[str, Any]]) -> None:
        """The first call, whose result is checked."""
        try:
            case.restore()
            results = outputs()
            self.synchronize()
            candidate.errors = case.errors(results)
        except Broken:
            raise
        except Exception as error:
            candidate.reason = reason_of(error)

    def candidates_of(self, case: Case, name: str, build: Builder) -> list[Candidate]:
        """The checked variants of an alternative; of many the fastest few. One with its reason where none works."""
        found: list[Candidate] = []
        try:
            for variant in build(case):
                candidate = Candidate(name, variant.name, variant.call)
                self.probe(case, candidate, variant.call)
                found.append(candidate)
        except Broken:
            raise
        except Exception as error:
            found.append(Candidate(name, "", lambda: None, reason=reason_of(error)))
        working = [candidate for candidate in found if candidate.reason is None]
        if len(working) <= SEARCH_ABOVE:
            return working or found[:1]
        self.time(working, SEARCH_CALLS, untimed=1)
        working = sorted((one for one in working if one.reason is None), key=lambda one: one.cold_us)[:SEARCH_KEEPS]
        for candidate in working:
            candidate.cold, candidate.warm = [], []
        return working

    def copies(self, workload: Workload) -> list[Candidate]:
        """The driver's copy of half the bytes (it reads and writes each), of the exact and of a rounder size."""
        exact = workload.bytes // 2
        rounded = -(-exact // COPY_ROUNDING) * COPY_ROUNDING
        sizes = [exact] + ([rounded] if exact < rounded <= exact * (1 + COPY_SLACK) else [])
        source, target = (self.torch.zeros(sizes[-1], dtype=self.torch.uint8, device=self.device) for _ in range(2))
        return [Candidate("copy", f"{size} bytes", copier(source[:size], target[:size])) for size in sizes]

    def measure(self, workload: Workload, library: Library | None, names: list[str], refused: dict[str, str],
                progress: Callable[[str], None]) -> dict[str, Any]:
        """The record of one workload. `refused`: alternatives that are not to be tried, and why."""
        case = Case(self.torch, workload, self.device)
        candidates = self.copies(workload)
        if library is not None:
            candidates.append(self.ours(case, library))
        for name in names:
            began = time.monotonic()
            if name in refused:
                candidates.append(Candidate(name, "", lambda: None, reason=refused[name]))
            else:
                candidates += self.candidates_of(case, name, ALTERNATIVES[name])
            seconds = time.monotonic() - began
            if seconds > 5:
                progress(f"  {name}: prepared in {seconds:.0f} s")
        self.warm_up(0.1)
        self.time(candidates, stats.calls_for(workload.bytes))
        return record_of(workload, candidates, names)

    def ours(self, case: Case, library: Library) -> Candidate:
        pointers = {name: tensor.data_ptr() for name, tensor in case.inputs.items()}
        pointers |= {name: case.output(name).data_ptr() for name in case.workload.outputs}
        stream = self.torch.cuda.current_stream().cuda_stream
        try:
            launch = library.launcher(case.workload, pointers, stream)
        except Exception as error:
            return Candidate("ours", "", lambda: None, reason=one_line(error))

        def outputs() -> dict[str, Any]:
            launch()
            return {name: case.output(name) for name in case.workload.outputs}

        candidate = Candidate("ours", "", launch)
        self.probe(case, candidate, outputs)
        return candidate


def copier(source: Any, target: Any) -> Callable[[], None]:
    def copy() -> None:
        target.copy_(source)

    return copy


# ---- The record --------------------------------------------------------------------------------------------------


def best_of(candidates: list[Candidate]) -> Candidate | None:
    return min((one for one in candidates if one.reason is None and one.cold), key=lambda one: one.cold_us,
               default=None)


def cell_of(candidates: list[Candidate]) -> dict[str, Any]:
    """Of several variants the fastest one, or why there is none."""
    best = best_of(candidates)
    if best is None:
        return {"reason": next((one.reason for one in candidates if one.reason), "not measured")}
    cell: dict[str, Any] = {"cold_us": round(best.cold_us, 3), "warm_us": round(stats.median(best.warm), 3),
                            **best.errors, "kernels": len(best.kernels)}
    if best.name:
        cell["variant"] = best.name
    return cell


def record_of(workload: Workload, candidates: list[Candidate], names: list[str]) -> dict[str, Any]:
    def of(owner: str) -> list[Candidate]:
        return [candidate for candidate in candidates if candidate.owner == owner]

    copy, ours = best_of(of("copy")), best_of(of("ours"))
    ours_cell = cell_of(of("ours"))
    if ours is not None:
        ours_cell["kernel"] = ", ".join(ours.kernels)
        del ours_cell["kernels"]
    return {"id": workload.id, "bytes": workload.bytes, "rows": workload.rows, "n": workload.n,
            "copy_us": None if copy is None else round(copy.cold_us, 3), "published_us": workload.published_us,
            "ours": ours_cell, "alternatives": {name: cell_of(of(name)) for name in names}}
