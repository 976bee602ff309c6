#!/usr/bin/env python3
"""Times the library beside other libraries on one card, on identical tensors, interleaved call by call.

    python3 perf/compare.py --library build/libcompare.so --jobs 12 --out perf/results/compare.json

The record is written after each workload. perf/report.py makes the page and the pictures from it; perf/fetch_peers.sh
downloads the other libraries. One that is missing or fails is a cell with the reason.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import shlex
import site
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import prepare, records_file, shared  # noqa: E402
from peers.alternatives import ALTERNATIVES, versions  # noqa: E402
from peers.measure import Bench, Broken, one_line  # noqa: E402
from peers.workloads import BadInput, Workload, load, part_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
REFUSED = "refused.json"  # in the cache: what could not be compiled, and why
SMOKE = tuple(f"{op}/llama-8b-decode/bf16" for op in shared.OPERATIONS)


def read_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", type=Path, default=ROOT / "perf" / "workloads.json", metavar="FILE",
                        help="default: perf/workloads.json")
    parser.add_argument("--match", default="", metavar="TEXT", help="only workloads whose id contains TEXT")
    parser.add_argument("--only", default="", metavar="NAME,..",
                        help=f"only these alternatives, of {', '.join(ALTERNATIVES)}")
    parser.add_argument("--all-operations", action="store_true", help="also operations that the library doesn't have")
    parser.add_argument("--part", default="", metavar="I/N", help="only the I-th of N parts of the workloads")
    parser.add_argument("--smoke", action="store_true", help="a small workload of each operation, to see what works")
    parser.add_argument("--library", type=Path, default=ROOT / "build" / "libcompare.so", metavar="FILE",
                        help="the shared object of the build; default: build/libcompare.so")
    parser.add_argument("--cupti", metavar="FILE", help="libcupti.so.13; default: searched")
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help="before anything is timed, let N processes compile what the alternatives compile")
    parser.add_argument("--prepare-seconds", type=float, default=280, metavar="S", help="for all that compiling")
    parser.add_argument("--task-seconds", type=float, default=180, metavar="S",
                        help="for compiling one alternative of one workload")
    parser.add_argument("--seconds", type=float, default=0, metavar="S", help="begin no workload after S seconds")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="for compiled code; default: a temporary folder")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results" / "compare.json", metavar="FILE",
                        help="default: perf/results/compare.json")
    parser.add_argument("--resume", action="store_true",
                        help="keep what --out has of this card, and add the rest with what --cache has compiled")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE",
                        help="measure nothing: write the parts of one comparison into --out")
    parser.add_argument("--prepare-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.names = [name for name in options.only.split(",") if name] or list(ALTERNATIVES)
    if unknown := [name for name in options.names if name not in ALTERNATIVES]:
        parser.error(f"--only: {unknown[0]} is none of {', '.join(ALTERNATIVES)}")
    return options


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen_workloads(options: argparse.Namespace) -> list[Workload]:
    ops = None if options.all_operations else set(shared.OPERATIONS)
    workloads = load(options.workloads, options.match, ops)
    if options.smoke:
        workloads = [workload for workload in workloads if workload.id in SMOKE]
    if options.part:
        workloads = part_of(workloads, options.part)
    if not workloads:
        raise BadInput(f"no workload of {options.workloads} is asked for.")
    return workloads


def site_folders() -> None:
    """Libraries found through PYTHONPATH may have .pth files there, which Python reads in its own folders only."""
    for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if folder:
            site.addsitedir(folder)


def driver_facts() -> dict[str, str]:
    keys = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm")
    command = ["nvidia-smi", f"--query-gpu={','.join(keys)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        return dict(zip(keys, (value.strip() for value in answer.split(","))))
    except (OSError, subprocess.SubprocessError, IndexError):
        return {}


def command_line(arguments: list[str]) -> str:
    """The command for the record. Of an absolute path the last part stays: where it lay says nothing elsewhere."""
    def shown(argument: str) -> str:
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        return option + equals + (Path(value).name if value.startswith("/") else value)

    return shlex.join(["perf/compare.py", *map(shown, arguments)])


def head(torch: Any, library: shared.Library, records: shared.Records, arguments: list[str]) -> dict[str, Any]:
    facts = driver_facts()
    device, date = torch.cuda.get_device_name(), datetime.datetime.now(datetime.timezone.utc).strftime("%F %T UTC")
    run = {"device": device, "date": date, "command": command_line(arguments),
           "clocks": {key: facts[key] for key in facts if key != "driver_version"}, "cupti": records.version}
    return {"device": device, "driver": facts.get("driver_version", "not told"), "date": date,
            "build_id": library.build_id(), "versions": versions(torch), "runs": [run], "workloads": []}


def keep_from(path: Path, record: dict[str, Any]) -> None:
    """Adds what an earlier run with the same build and versions measured."""
    if path.exists():
        merged = records_file.merge([records_file.load(path), record])
        record["runs"], record["workloads"] = merged["runs"], merged["workloads"]


def failed_record(workload: Workload, names: list[str], reason: str) -> dict[str, Any]:
    cell = {"reason": reason}
    return {"id": workload.id, "bytes": workload.bytes, "rows": workload.rows, "n": workload.n, "copy_us": None,
            "published_us": workload.published_us, "ours": cell, "alternatives": {name: cell for name in names}}


def measure_all(options: argparse.Namespace, arguments: list[str], workloads: list[Workload],
                refused: dict[tuple[str, str], str], began: float) -> int:
    import torch

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    parts = shared.Shared(options.library)
    library, records = shared.Library(parts), shared.Records(parts, options.cupti)
    library.preload()
    bench = Bench(torch, records, shared.release_lines)
    bench.warm_up(1.0)
    record = head(torch, library, records, arguments)
    if options.resume:
        keep_from(options.out, record)
    present = {workload["id"] for workload in record["workloads"]}
    left = [workload for workload in workloads if workload.id not in present]
    order = [workload.id for workload in load(options.workloads)]
    progress(f"{record['device']}, driver {record['driver']}, build {record['build_id']}: {len(left)} workloads, "
             f"{', '.join(f'{name} {version}' for name, version in record['versions'].items())}")
    for number, workload in enumerate(left, 1):
        if options.seconds and time.monotonic() - began > options.seconds:
            progress(f"the {options.seconds:.0f} s are over: {len(left) - number + 1} workloads are left; "
                     "--resume continues.")
            return 1
        reasons = {name: reason for (name_of, name), reason in refused.items() if name_of == workload.id}
        try:
            torch._dynamo.reset()
            ours = library if workload.op in shared.OPERATIONS else None
            result = bench.measure(workload, ours, options.names, reasons, progress)
        except Broken as error:
            progress(f"{workload.id}: the device failed ({error}); --resume continues behind it.")
            record["workloads"].append(failed_record(workload, options.names, f"the device failed: {error}"))
            records_file.write(options.out, records_file.merge([record], order))
            return 1
        except Exception as error:
            result = failed_record(workload, options.names, one_line(error))
        record["workloads"].append(result)
        records_file.write(options.out, records_file.merge([record], order))
        progress(f"[{number}/{len(left)}, {time.monotonic() - began:.0f} s] {line_of(result)}")
        gc.collect()
        torch.cuda.empty_cache()
    return 0


def line_of(result: dict[str, Any]) -> str:
    def cell(name: str, value: dict[str, Any]) -> str:
        return f"{name} {value['cold_us']:.2f}" if "cold_us" in value else f"{name}: {value['reason'][:60]}"

    copy = result["copy_us"]
    cells = [f"copy {copy:.2f}" if copy else "no copy", cell("ours", result["ours"])]
    return f"{result['id']}: " + "; ".join(
        cells + [cell(name, value) for name, value in result["alternatives"].items()])


def prepare_all(options: argparse.Namespace, arguments: list[str], workloads: list[Workload],
                cache: Path) -> dict[tuple[str, str], str]:
    command = [sys.executable, str(Path(__file__).resolve()), *arguments, "--prepare-worker"]
    # The workers are many already; and what a tuner measures while others use the card is not to be kept.
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "FLAGGEMS_CACHE_DIR": str(cache / "flaggems")}
    progress(f"compiling for {len(workloads)} workloads, {options.jobs} processes")
    began = time.monotonic()
    refused = prepare.prepare(workloads, options.names, command, options.jobs, options.prepare_seconds,
                              options.task_seconds, environment, cache / "workers.log", progress)
    prepare.forget_choices(cache)
    (cache / REFUSED).write_text(json.dumps([[*key, reason] for key, reason in refused.items()]), encoding="utf-8")
    progress(f"compiled in {time.monotonic() - began:.0f} s; {len(refused)} cells are left out")
    return refused


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    options = read_options(arguments)
    try:
        if options.merge:
            order = [workload.id for workload in load(options.workloads)]
            records = [records_file.load(path) for path in options.merge]
            records_file.write(options.out, records_file.merge(records, order))
            return 0
        workloads = chosen_workloads(options)
        site_folders()
        if options.prepare_worker:
            import torch

            prepare.worker_main(torch, workloads)
            return 0
        shared.Shared(options.library)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        cache = options.cache or Path(tempfile.gettempdir()) / "normstatic-compare"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(cache / "triton")
        cache.mkdir(parents=True, exist_ok=True)
        refused: dict[tuple[str, str], str] = {}
        if options.jobs > 0:
            refused = prepare_all(options, arguments, workloads, cache)
        elif options.resume and (cache / REFUSED).exists():
            refused = {(workload, name): reason for workload, name, reason in
                       json.loads((cache / REFUSED).read_text(encoding="utf-8"))}
        return measure_all(options, arguments, workloads, refused, began)
    except (BadInput, RuntimeError) as problem:
        progress(f"compare.py: {problem}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
