"""perf/compare.py and its parts in perf/peers, with a stand-in for torch and for the records of a card."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import io
import itertools
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))

import compare  # noqa: E402
from peers import measure, prepare, records_file, shared, stats, workloads  # noqa: E402
from peers.alternatives import ALTERNATIVES, Missing, Variant, plausible  # noqa: E402
from peers.measure import Bench, Candidate  # noqa: E402
from peers.shared import Record  # noqa: E402
from peers.workloads import BadInput, Workload  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

BUILD = Path(os.environ.get("NST_BUILD", ROOT / "build"))
MARK, FILL = "the mark", "the flush"


def workload(op: str = "RMSNormFwd", rows: int = 2, n: int = 64, dtype: str = "bf16", name: str = "w",
             rows_per_cond: int = 1) -> Workload:
    shapes: dict[str, tuple[int, ...]] = {"x": (rows, n)}
    if "Ada" in op:
        names = ("scale", "shift", "gate") if "Zero" in op else ("scale", "shift")
        shapes |= dict.fromkeys(names, (rows // rows_per_cond, n))
    else:
        shapes["weight"] = (n,)
        if "Layer" in op:
            shapes["bias"] = (n,)
    if "Add" in op:
        shapes["residual"] = (rows, n)
    return Workload(name, op, dtype, shapes, dict.fromkeys(shapes, dtype), 1e-6, 1.5)


class Device:
    """A card's clock and the records of what was launched on it; also stands in for torch and its tensors."""

    int32 = uint8 = float32 = None

    def __init__(self) -> None:
        self.now, self.log, self.cuda, self.kept = 0, [], self, True

    def run(self, name: str, duration: int, kind: str = "kernel") -> None:
        self.log.append(Record(kind, name, self.now, self.now + duration))
        self.now += duration + 10

    def synchronize(self) -> None:
        pass

    def clear(self) -> None:
        self.log = []

    def take(self, expected: int) -> list[Record]:
        taken, self.log = self.log, []
        if len(taken) < expected:
            raise RuntimeError(f"CUPTI gave {len(taken)} records, expected at least {expected}.")
        return taken

    def empty(self, *_: Any, **__: Any) -> Device:
        return self

    zeros = empty

    def release(self) -> None:
        self.kept = False

    def fill_(self, _: int) -> None:
        self.run(FILL if not self.kept else "a flush that lines outlast", 60_000)

    def erfinv_(self) -> None:
        self.run(MARK, 1000)


def launching(device: Device, *durations: int, warm: int = 0) -> Any:
    """A call of so many kernels; every second call is shorter by `warm`."""
    calls = [0]

    def call() -> dict[str, Any]:
        calls[0] += 1
        for i, duration in enumerate(durations):
            device.run(f"kernel{i}", duration - (warm if calls[0] % 2 == 0 else 0))
        return {}

    return call


class WorkloadsTest(unittest.TestCase):
    def test_all_bytes_are_counted(self) -> None:
        self.assertEqual(workload(rows=2048, n=4096).bytes, 33562624)
        self.assertEqual(workload("FusedAddRMSNormFwd", 2048, 4096).bytes, 67117056)
        self.assertEqual(workload("LayerNormFwd", 2048, 4096, "f16").bytes, 33570816)
        self.assertEqual(workload(rows=1, n=4096, dtype="f32").bytes, 3 * 4 * 4096)
        self.assertEqual(workload("AdaLayerNormFwd", 1024, 1152, "f16").bytes, 9437184)
        self.assertEqual(workload("AdaLayerNormZeroFwd", 1024, 1152).bytes, 11796480)
        self.assertEqual(workload("AdaLayerNormZeroFwd", 8, 64, rows_per_cond=4).bytes, (2 * 8 + 3 * 2) * 64 * 2)

    def test_bytes_of_the_file(self) -> None:
        sizes = {one.id: one.bytes for one in workloads.load(ROOT / "perf" / "workloads.json")}
        self.assertEqual(len(sizes), 74)
        self.assertEqual(sizes["LayerNormFwd/dit-xl-2/bf16"], 4718592)
        self.assertEqual(sizes["FusedAddLayerNormFwd/llama-13b-prefill/f32"], 167813120)
        self.assertEqual(sizes["AdaLayerNormZeroFwd/llama-8b-decode/bf16"], 40960)

    def test_rows_that_share_conditioning(self) -> None:
        entry = {"id": "a", "op": "AdaLayerNormFwd", "dtype": "f16", "tensors": {
            "x": {"shape": [2, 3, 8], "dtype": "f16"}, "shift": {"shape": [2, 1, 8], "dtype": "f16"}}}
        one = workloads.workload_of(entry)
        self.assertEqual((one.rows, one.rows_per_cond, one.eps), (6, 3, 1e-5))
        self.assertEqual(workload().rows_per_cond, 1)
        for params, eps in ((None, 1e-5), ({}, 1e-5), ({"eps": 0.5}, 0.5)):
            self.assertEqual(workloads.workload_of({**entry, "params": params}).eps, eps)
        for scale, shift in ([4, 8], [4, 8]), ([2, 8], [6, 8]):
            tensors = {**entry["tensors"], "scale": {"shape": scale, "dtype": "f16"},
                       "shift": {"shape": shift, "dtype": "f16"}}
            with self.assertRaisesRegex(BadInput, "workload a: tensors.s.* has the shape .*, expected one row for"):
                workloads.workload_of({**entry, "tensors": tensors})

    def test_the_file_has_what_the_library_has(self) -> None:
        found = workloads.load(ROOT / "perf" / "workloads.json", ops=set(shared.OPERATIONS))
        self.assertEqual({one.op for one in found}, set(shared.OPERATIONS))
        self.assertEqual({one.id for one in found} & set(compare.SMOKE), set(compare.SMOKE))
        heads = [one for one in found if one.id == "RMSNormFwd/qk-norm-head/bf16"][0]
        self.assertEqual((heads.rows, heads.n, heads.eps, heads.published_us), (8192, 128, 1e-6, 2.85))

    def test_match(self) -> None:
        found = workloads.load(ROOT / "perf" / "workloads.json", "qk-norm", {"RMSNormFwd"})
        self.assertTrue(found)
        self.assertTrue(all("qk-norm" in one.id and one.op == "RMSNormFwd" for one in found))

    def test_parts_cover_everything_once(self) -> None:
        every = [workload(name=str(i)) for i in range(7)]
        parts = [workloads.part_of(every, f"{i}/3") for i in (1, 2, 3)]
        self.assertEqual(sorted(one.id for part in parts for one in part), [one.id for one in every])
        for bad in ("0/3", "4/3", "1", "a/b", "1/2/3"):
            with self.assertRaisesRegex(BadInput, f"--part {bad}: expected I/N"):
                workloads.part_of(every, bad)

    def test_bad_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "w.json"
            for text, words in (("{", "is not JSON"), ('{"workloads": [{"id": "a", "op": "RMSNormFwd"}]}', "lacks"),
                                ("{}", "lacks 'workloads'")):
                path.write_text(text, encoding="utf-8")
                with self.assertRaisesRegex(BadInput, words):
                    workloads.load(path)
        with self.assertRaisesRegex(BadInput, "can't be read"):
            workloads.load(Path("no-such-file"))


class StatsTest(unittest.TestCase):
    def test_figures(self) -> None:
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertAlmostEqual(stats.geometric_mean([1, 4]) or 0, 2)
        self.assertIsNone(stats.geometric_mean([]))
        self.assertEqual([stats.calls_for(size) for size in (1000, 10**9, 10**9 + 1)], [25, 25, 10])


class TimingTest(unittest.TestCase):
    def setUp(self) -> None:
        self.device = Device()
        self.bench = Bench(self.device, self.device, self.device.release)

    def test_the_mark_is_learnt(self) -> None:
        self.assertEqual(self.bench.marker, MARK)

    def test_segments(self) -> None:
        records = [Record("kernel", name, 0, 1) for name in ("a", "m", "b", "c", "m", "m", "d")]
        pieces = measure.segments(records, "m")
        self.assertEqual([[one.name for one in piece] for piece in pieces], [["a"], ["b", "c"], [], ["d"]])
        self.assertEqual(measure.duration_us([Record("kernel", "", 5, 1005), Record("memcpy", "", 2000, 2500)]), 1.5)

    def test_all_kernels_of_a_call_count_and_nothing_else(self) -> None:
        one = Candidate("one", "", launching(self.device, 3000, 2000, warm=500))
        two = Candidate("two", "", launching(self.device, 7000))
        self.bench.time([one, two], 4)
        self.assertEqual((one.cold, one.warm), ([5.0] * 4, [4.0] * 4))
        self.assertEqual((two.cold, two.warm), ([7.0] * 4, [7.0] * 4))
        self.assertEqual(one.kernels, ["kernel0", "kernel1"])

    def test_lines_kept_in_l2_are_released_before_each_flush(self) -> None:
        def call() -> None:
            self.device.run("k", 1000)
            self.device.kept = True

        names: set[str] = set()
        take = self.device.take
        self.device.take = lambda expected: [names.add(one.name) or one for one in take(expected)]  # type: ignore
        self.bench.time([Candidate("one", "", call), Candidate("two", "", call)], 3)
        self.assertEqual(names, {MARK, FILL, "k"})

    def test_a_call_may_launch_more_at_times(self) -> None:
        calls = [0]

        def call() -> None:
            calls[0] += 1
            for _ in range(1 + (calls[0] % 4 == 1)):
                self.device.run("k", 1000)

        one = Candidate("one", "", call)
        self.bench.time([one], 4, untimed=0)
        self.assertEqual(one.cold, [2.0, 1.0, 2.0, 1.0])

    def test_one_that_fails_late_does_not_disturb_the_others(self) -> None:
        calls = [0]

        def failing() -> None:
            calls[0] += 1
            if calls[0] == 8:
                raise RuntimeError("out of\n luck")
            self.device.run("bad", 1000)

        good, bad = Candidate("good", "", launching(self.device, 2000)), Candidate("bad", "", failing)
        self.bench.time([bad, good], 5)
        self.assertEqual(good.cold, [2.0] * 5)
        self.assertEqual(bad.reason, "RuntimeError: out of luck")

    def test_lost_marks_are_noticed(self) -> None:
        def swallowing() -> None:
            self.device.log = [one for one in self.device.log if one.name != MARK]
            for _ in range(6):
                self.device.run("k", 1000)

        with self.assertRaisesRegex(RuntimeError, "marks, expected 3"):
            self.bench.time([Candidate("one", "", swallowing)], 1)

    def test_a_broken_device_ends_it(self) -> None:
        def broken() -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        self.device.synchronize = broken  # type: ignore[method-assign]
        with self.assertRaisesRegex(measure.Broken, "illegal memory access"):
            self.bench.round([])


class FakeCase:
    """A case whose outputs say themselves whether they are right."""

    def __init__(self) -> None:
        self.workload = workload()

    def restore(self) -> None:
        pass

    def errors(self, outputs: dict[str, Any]) -> dict[str, float]:
        if outputs.get("wrong"):
            raise measure.Wrong("wrong result: y is off")
        return {"max_err": 0.25, "max_ulp": 0.5}


class VariantsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.device = Device()
        self.bench = Bench(self.device, self.device, self.device.release)

    def found(self, build: Any) -> list[Candidate]:
        return self.bench.candidates_of(FakeCase(), "name", build)  # type: ignore[arg-type]

    def test_of_many_the_fastest_are_kept(self) -> None:
        found = self.found(lambda case: (Variant(str(time), launching(self.device, time))
                                         for time in (5000, 3000, 4000, 9000, 2000)))
        self.assertEqual([one.name for one in found], ["2000", "3000"])
        self.assertEqual([one.cold for one in found], [[], []])

    def test_few_are_all_kept_and_wrong_ones_dropped(self) -> None:
        def build(_: Any) -> Any:
            yield Variant("right", launching(self.device, 1000))
            yield Variant("wrong", lambda: {"wrong": True})

        self.assertEqual([one.name for one in self.found(build)], ["right"])

    def test_reasons(self) -> None:
        def missing(_: Any) -> Any:
            raise Missing("not installed: x")
            yield

        def failing(_: Any) -> Any:
            yield Variant("", lambda: 1 // 0)

        def wrong(_: Any) -> Any:
            yield Variant("", lambda: {"wrong": True})

        reasons = [[one.reason for one in self.found(build)] for build in (missing, failing, wrong)]
        self.assertEqual(reasons, [["not installed: x"],
                                   ["ZeroDivisionError: integer division or modulo by zero"],
                                   ["wrong result: y is off"]])

    def test_a_failure_behind_a_working_variant_costs_nothing(self) -> None:
        def build(_: Any) -> Any:
            yield Variant("works", launching(self.device, 1000))
            raise RuntimeError("the other backend is not there")

        self.assertEqual([one.name for one in self.found(build)], ["works"])

    def test_record(self) -> None:
        def candidate(owner: str, name: str, time: float, **more: Any) -> Candidate:
            return Candidate(owner, name, lambda: None, errors={"max_err": 0.5, "max_ulp": 1.0}, kernels=["k", "l"],
                             cold=[time] * 3, warm=[time / 2] * 3, **more)

        record = measure.record_of(workload(), [
            candidate("copy", "exact", 4), candidate("copy", "rounded", 3), candidate("ours", "", 2),
            candidate("a", "slow", 9), candidate("a", "fast", 8),
            Candidate("b", "", lambda: None, reason="not installed")], ["a", "b", "c"])
        self.assertEqual(record, {
            "id": "w", "bytes": workload().bytes, "rows": 2, "n": 64, "copy_us": 3, "published_us": 1.5,
            "ours": {"cold_us": 2, "warm_us": 1, "max_err": 0.5, "max_ulp": 1.0, "kernel": "k, l"},
            "alternatives": {"a": {"cold_us": 8, "warm_us": 4, "max_err": 0.5, "max_ulp": 1.0, "kernels": 2,
                                   "variant": "fast"},
                             "b": {"reason": "not installed"}, "c": {"reason": "not measured"}}})

    def test_configurations_that_fit_a_row(self) -> None:
        class Config:
            def __init__(self, threads_per_row: int, cluster_n: int, reload_from: str | None) -> None:
                self.threads_per_row, self.cluster_n, self.reload_from = threads_per_row, cluster_n, reload_from

        self.assertTrue(plausible(Config(64, 1, None), 4096))
        self.assertFalse(plausible(Config(256, 4, None), 4096))  # less than a vector a thread
        self.assertFalse(plausible(Config(64, 1, None), 65536))  # more than registers hold
        self.assertFalse(plausible(Config(256, 1, "smem"), 4096))  # nothing worth reading again
        self.assertTrue(plausible(Config(64, 1, "smem"), 4096))


class PlanTest(unittest.TestCase):
    def test_a_library_is_alone_until_it_was_seen_at_work(self) -> None:
        tasks = [prepare.Task(workload(name=name), library) for name in "12" for library in "ab"]
        plan = prepare.Plan(tasks)
        first, second = plan.next(), plan.next()
        self.assertEqual((first, second), (tasks[0], tasks[1]))
        self.assertIsNone(plan.next())
        tasks[1].state = "done"
        self.assertIs(plan.next(), tasks[3])
        self.assertIsNone(plan.next())
        tasks[0].state = "refused"
        self.assertIs(plan.next(), tasks[2])
        self.assertFalse(plan.finished())

    def test_memory_is_shared(self) -> None:
        large = [prepare.Task(workload(rows=1 << 20, n=4096, name=str(i)), "a") for i in range(3)]
        seen = prepare.Task(workload(), "a", state="done")
        plan = prepare.Plan([seen, *large], memory=2 * large[0].memory)
        self.assertEqual([plan.next(), plan.next(), plan.next()], [large[0], large[1], None])

    def test_what_is_larger_than_the_memory_runs_alone(self) -> None:
        task = prepare.Task(workload(), "a")
        self.assertIs(prepare.Plan([task], memory=1).next(), task)


WORKER = """
import json, sys, time
print("a library greets")
for line in sys.stdin:
    workload, name = json.loads(line)
    if name == "dies":
        sys.exit(7)
    if name == "sleeps":
        time.sleep(60)
    print(json.dumps({"reason": "broken" if name == "fails" else ""}), flush=True)
"""


class PoolTest(unittest.TestCase):
    def prepared(self, names: list[str], seconds: float = 30, task_seconds: float = 20) -> dict[Any, str]:
        return prepare.prepare([workload(name="1"), workload(name="2", n=128)], names, [sys.executable, "-c", WORKER],
                               2, seconds, task_seconds, dict(os.environ), Path(os.devnull), lambda text: None)

    def test_reasons_and_new_processes(self) -> None:
        self.assertEqual(self.prepared(["works", "fails", "dies"]), {
            ("1", "fails"): "broken", ("2", "fails"): "broken",
            ("1", "dies"): "its preparation ended the process with code 7",
            ("2", "dies"): "its preparation ended the process with code 7"})

    def test_what_takes_too_long(self) -> None:
        began = time.monotonic()
        found = self.prepared(["sleeps", "works"], task_seconds=1)
        self.assertEqual(set(found.values()), {"its preparation (compiling) took more than 1 s"})
        self.assertEqual(set(found), {("1", "sleeps"), ("2", "sleeps")})
        self.assertLess(time.monotonic() - began, 25)

    def test_when_the_time_is_over(self) -> None:
        found = self.prepared(["sleeps"], seconds=1)
        self.assertEqual(len(found), 2)
        self.assertTrue(any(reason.startswith("not prepared: the 1 s") for reason in found.values()), found)

    def test_choices_are_forgotten_and_code_is_kept(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            inner = Path(folder) / "inductor" / "ab"
            inner.mkdir(parents=True)
            for name in ("kernel.best_config", "kernel.py"):
                (inner / name).write_text("x", encoding="utf-8")
            prepare.forget_choices(Path(folder))
            self.assertEqual([path.name for path in inner.iterdir()], ["kernel.py"])


def partial(date: str, *ids: str, **more: Any) -> dict[str, Any]:
    return {"device": "card", "driver": "1", "build_id": "b", "versions": {}, "date": date,
            "runs": [{"date": date, "device": "card"}], "workloads": [{"id": name, "from": date} for name in ids],
            **more}


class RecordFileTest(unittest.TestCase):
    def test_merge(self) -> None:
        merged = records_file.merge([partial("2", "c", "b"), partial("1", "a", "b")], ["a", "b", "c"])
        self.assertEqual(merged["date"], "2")
        self.assertEqual([run["date"] for run in merged["runs"]], ["1", "2"])
        origins = [(one["id"], one["from"]) for one in merged["workloads"]]
        self.assertEqual(origins, [("a", "1"), ("b", "2"), ("c", "2")])

    def test_a_run_is_listed_once(self) -> None:
        self.assertEqual(len(records_file.merge([partial("1", "a"), partial("1", "b")])["runs"]), 1)

    def test_parts_of_different_comparisons(self) -> None:
        with self.assertRaisesRegex(BadInput, 'differ in "build_id": b and other'):
            records_file.merge([partial("1"), partial("2", build_id="other")])

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            records_file.write(path, partial("1", "a"))
            self.assertEqual(records_file.load(path), partial("1", "a"))
            self.assertEqual([one.name for one in Path(folder).iterdir()], ["r.json"])
            for text, words in (("{", "is not JSON"), ("[]", "lacks everything"), ('{"device": 1}', "lacks driver")):
                path.write_text(text, encoding="utf-8")
                with self.assertRaisesRegex(BadInput, words):
                    records_file.load(path)


class ProgramTest(unittest.TestCase):
    def run_main(self, *arguments: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                code = compare.main(list(arguments))
            except SystemExit as end:
                code = int(end.code or 0)
        return code, said.getvalue()

    def test_bad_arguments(self) -> None:
        for arguments, words in ((["--only", "torch,nobody"], "nobody is none of torch"),
                                 (["--match", "no such"], "no workload of"),
                                 (["--part", "3/2"], "expected I/N"),
                                 (["--library", "no-such-file.so"], "no-such-file.so: is not the shared object"),
                                 (["--merge", "no-such-file.json"], "no-such-file.json: can't be read")):
            code, said = self.run_main(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, said)

    def test_the_recorded_command_holds_no_folders(self) -> None:
        command = compare.command_line(["--out", "/a/b/c.json", "--library=/a/lib.so", "--only", "torch,quack",
                                        "--match", "a/b", "--cache=relative/folder"])
        self.assertEqual(command, "perf/compare.py --out c.json --library=lib.so --only torch,quack --match a/b "
                                  "--cache=relative/folder")

    def test_merging_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(Path(folder) / name) for name in ("a.json", "b.json")]
            records_file.write(Path(paths[0]), partial("1", "a"))
            records_file.write(Path(paths[1]), partial("2", "b"))
            out = Path(folder) / "c.json"
            self.assertEqual(self.run_main("--merge", *paths, "--out", str(out)), (0, ""))
            self.assertEqual([one["id"] for one in json.loads(out.read_text())["workloads"]], ["a", "b"])

    def test_a_line_of_progress(self) -> None:
        line = compare.line_of({"id": "w", "copy_us": 1.0, "ours": {"cold_us": 2.0},
                                "alternatives": {"a": {"cold_us": 3.0}, "b": {"reason": "not installed"}}})
        self.assertEqual(line, "w: copy 1.00; ours 2.00; a 3.00; b: not installed")

    def test_a_workload_that_fails_is_in_the_record(self) -> None:
        record = compare.failed_record(workload(), list(ALTERNATIVES), "no room")
        self.assertEqual(set(record["alternatives"]), set(ALTERNATIVES))
        self.assertEqual(record["ours"], {"reason": "no room"})


class KernelInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("index", ctypes.c_size_t), ("op", ctypes.c_int), ("dtype", ctypes.c_int),
                ("weight_dtype", ctypes.c_int), ("bucket", ctypes.c_int64), ("strategy", ctypes.c_int),
                ("access", ctypes.c_int), ("symbol", ctypes.c_char_p), ("hole", ctypes.c_char_p),
                ("numbers", ctypes.c_uint32 * 6)]


class LaunchInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kernel", KernelInfo), ("grid", ctypes.c_uint32),
                ("choice", ctypes.c_char_p)]


class DeviceFacts(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("arch", ctypes.c_int), ("multiprocessors", ctypes.c_int)]


@unittest.skipUnless((BUILD / "libcompare.so").exists(), "the build has no libcompare.so")
class SharedObjectTest(unittest.TestCase):
    """The argument structs as Python writes them are the ones of the header; the library itself says so."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.shared = shared.Shared(BUILD / "libcompare.so")

    def explain(self, op: int, args: ctypes.Structure) -> tuple[int, str, str]:
        facts = DeviceFacts(ctypes.sizeof(DeviceFacts), 90, 132)
        info = LaunchInfo(ctypes.sizeof(LaunchInfo))
        info.kernel.size = ctypes.sizeof(KernelInfo)
        library = self.shared.library
        status = library.nst_explain(op, ctypes.byref(args), ctypes.byref(facts), ctypes.byref(info))
        return status, (info.kernel.symbol or b"").decode(), library.nst_last_error().decode()

    def arguments(self, op: str, **more: Any) -> ctypes.Structure:
        """As the comparison makes them, with tensors far from each other."""
        pointers = {name: 4096 << (8 + i) for i, (name, kind) in enumerate(shared.OPERATIONS[op][1]._fields_)
                    if kind is ctypes.c_void_p and name not in ("mean", "rstd")}
        args = shared.arguments_of(workload(op, 2, 4096), pointers)
        for name, value in more.items():
            setattr(args, name, value)
        return args

    def test_a_call_is_understood(self) -> None:
        for number, (op, (function, _)) in enumerate(shared.OPERATIONS.items()):
            status, symbol, said = self.explain(number, self.arguments(op))
            self.assertEqual(status, 0, said)
            self.assertTrue(symbol.startswith(f"{function}_bf16_n4096_"), symbol)

    def test_each_member_is_where_the_library_reads_it(self) -> None:
        for number, op in enumerate(shared.OPERATIONS):
            struct = shared.OPERATIONS[op][1]
            wrong = {"size": 1, "dtype": 9, "weight_dtype": 9, "rows": -1, "n": 0, "rows_per_cond": -3, "eps": -1.0,
                     "weight_offset": float("nan"), "flags": 1 << 30}
            wrong |= {name: 4097 for name, kind in struct._fields_ if kind is ctypes.c_void_p}
            wrong |= {name: -5 for name, _ in struct._fields_ if name.endswith("_stride")}
            self.assertLessEqual({name for name, _ in struct._fields_}, set(wrong))
            for name, _ in struct._fields_:
                status, _, said = self.explain(number, self.arguments(op, **{name: wrong[name]}))
                self.assertNotEqual(status, 0, f"{op}.{name}")
                self.assertRegex(said, rf"\b{name}\b")

    def test_types_and_conditioning_are_passed_on(self) -> None:
        one = workload("LayerNormFwd")
        bias_alone = dataclasses.replace(one, shapes={"x": (2, 64), "bias": (64,)}, dtypes={"x": "bf16", "bias": "f32"})
        self.assertEqual(shared.arguments_of(bias_alone, {}).weight_dtype, 3)
        args = shared.arguments_of(workload("AdaLayerNormFwd", 6, rows_per_cond=3), {"shift": 4096})
        self.assertEqual((args.rows, args.rows_per_cond, args.shift, args.scale), (6, 3, 4096, None))

    def test_records_come_from_cupti(self) -> None:
        fake_path = BUILD / "tests" / "perf" / "libfake_cupti.so"
        if not fake_path.exists():
            self.skipTest("the build has no stand-in for CUPTI")
        fake = ctypes.CDLL(str(fake_path))
        records = shared.Records(self.shared, str(fake_path))

        def add(kind: int, name: bytes, start: int, end: int) -> None:
            self.assertEqual(fake.fake_cupti_add(kind, name, ctypes.c_uint64(start), ctypes.c_uint64(end), 1, 32, 0), 1)

        records.clear()
        add(0, b"second", 300, 450)
        add(0, b"first", 100, 200)
        add(2, b"", 500, 600)
        self.assertEqual(records.take(3), [Record("kernel", "first", 100, 200), Record("kernel", "second", 300, 450),
                                           Record("memcpy", "", 500, 600)])
        fake.fake_cupti_drop(ctypes.c_size_t(2))
        add(0, b"third", 1, 2)
        with self.assertRaisesRegex(RuntimeError, "dropped 2 records"):
            records.take(1)


@unittest.skipIf(torch is None, "torch is not installed")
class TorchTest(unittest.TestCase):
    """Forms and checks on the processor."""

    def test_forms_equal_the_reference_and_errors_are_caught(self) -> None:
        from peers import alternatives
        from peers.tensors import Case, Wrong

        for op, dtype, shared_rows in itertools.product(workloads.OUTPUTS, ("f16", "bf16", "f32"), (1, 5)):
            if shared_rows > 1 and "Ada" not in op:
                continue
            case = Case(torch, workload(op, 10, 256, dtype, rows_per_cond=shared_rows), "cpu")
            variants = [alternatives.named(case, "", form(case), *alternatives.torch_arguments(case))
                        for form in (alternatives.functional_form, alternatives.plain_form)]
            # Step by step in 16 bits the functional form rounds more often than conditioning lets pass.
            for variant in variants[1 if "Ada" in op and dtype != "f32" else 0:]:
                self.assertLess(case.errors(variant.call())["max_ulp"], 8, f"{op} {dtype}")
            outputs = variants[1].call()
            for value in (50.0, float("nan")):
                outputs["y"].view(10, 256)[2, 7] = value
                with self.assertRaisesRegex(Wrong, "y is off by up to .*, 1 of 2560 numbers"):
                    case.errors(outputs)

    def test_each_parameter_may_be_absent(self) -> None:
        from peers import alternatives
        from peers.tensors import Case

        for op in workloads.OUTPUTS:
            full = workload(op, 3, 64, "f32")
            for absent in set(full.shapes) - {"x", "residual"}:
                shapes = {name: shape for name, shape in full.shapes.items() if name != absent}
                case = Case(torch, dataclasses.replace(full, shapes=shapes), "cpu")
                for form in (alternatives.functional_form, alternatives.plain_form):
                    variant = alternatives.named(case, "", form(case), *alternatives.torch_arguments(case))
                    self.assertLess(case.errors(variant.call())["max_ulp"], 100, f"{op} without {absent}")

    def test_who_has_no_kernel_says_so(self) -> None:
        from peers.tensors import Case

        for op in ("AdaLayerNormFwd", "AdaLayerNormZeroFwd"):
            case = Case(torch, workload(op), "cpu")
            for name, build in ALTERNATIVES.items():
                if not name.startswith("torch"):
                    with self.assertRaisesRegex(Missing, "library has no kernel for this operation"):
                        next(iter(build(case)))
        for op, names in (("LayerNormFwd", ["vllm"]), ("FusedAddLayerNormFwd", ["vllm", "flashinfer", "liger"])):
            for name in names:
                with self.assertRaisesRegex(Missing, "library has no kernel for this operation"):
                    next(iter(ALTERNATIVES[name](Case(torch, workload(op), "cpu"))))

    def test_overwritten_inputs_are_restored(self) -> None:
        from peers.tensors import Case

        case = Case(torch, workload("FusedAddRMSNormFwd"), "cpu")
        x = case.scratch("x")
        x.zero_()
        case.output("y").zero_()
        case.restore()
        self.assertTrue(torch.equal(x, case.x))
        self.assertTrue(case.output("y").isnan().all().item())
        self.assertIsNot(x, case.x)


if __name__ == "__main__":
    unittest.main()
