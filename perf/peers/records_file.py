"""The record of a comparison: one JSON file, written after each workload, and the merging of partial ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from peers.workloads import BadInput

SAME = ("device", "driver", "build_id", "versions")  # what the parts of one record have in common
KEYS = (*SAME, "date", "runs", "workloads")


def load(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON ({error}).") from error
    if not isinstance(record, dict) or (lacking := [key for key in KEYS if key not in record]):
        raise BadInput(f"{path}: is not a record of compare.py: it lacks "
                       f"{', '.join(lacking) if isinstance(record, dict) else 'everything'}.")
    return record


def write(path: Path, record: dict[str, Any]) -> None:
    """Whole or not at all, so that a run that is stopped leaves what it had."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


def merge(records: list[dict[str, Any]], order: list[str] | None = None) -> dict[str, Any]:
    """One record of several of one kind of card, with all their runs. A workload that stands in two keeps the later
    run's figures. `order`: ids as they shall follow each other."""
    first = records[0]
    for other in records[1:]:
        for key in SAME:
            if other[key] != first[key]:
                raise BadInput(f'the records differ in "{key}": {first[key]} and {other[key]}; they are no parts of '
                               "one comparison.")
    runs: list[dict[str, Any]] = []
    workloads: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=lambda one: one["date"]):
        for run in record["runs"]:
            if run not in runs:
                runs.append(run)
        workloads |= {workload["id"]: workload for workload in record["workloads"]}
    place = {name: number for number, name in enumerate(order or [])}
    merged = {key: first[key] for key in SAME}
    return {**merged, "date": max(record["date"] for record in records), "runs": runs,
            "workloads": sorted(workloads.values(), key=lambda one: place.get(one["id"], len(place)))}
