"""Turns the JSON of nst-bench into the Markdown page that is kept in perf/results/.

    python3 perf/table.py bench.json > perf/results/NAME.md

Each workload has one line for each kernel that was timed. Ratios are our cold time over another: below 1 is faster.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, Iterable

WORST = 5
TITLES = ("workload", "rows x n", "cold us", "p10 to p90", "warm us", "MB", "TB/s", "copy us", "of copy",
          "published us", "of published", "ulp", "launch", "kernel")
LEFT = {"workload", "launch", "kernel"}


class BadInput(Exception):
    """One sentence about what is wrong with the file."""


def load(path: Path) -> dict[str, Any]:
    try:
        bench = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON ({error}).") from error
    if not isinstance(bench, dict) or not isinstance(bench.get("workloads"), list):
        raise BadInput(f'{path}: is not the JSON of nst-bench: it has no list "workloads".')
    return bench


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def chosen(workload: dict[str, Any]) -> dict[str, Any] | None:
    """What the library's user gets: the first result, where it was timed."""
    first = workload["results"][0]
    return first if first["state"] == "timed" else None


def of_copy(workload: dict[str, Any], result: dict[str, Any]) -> float | None:
    copy = workload.get("copy_us", 0)
    return result["cold_us"]["median"] / copy if copy else None


def of_published(workload: dict[str, Any], result: dict[str, Any]) -> float | None:
    published = workload.get("published_us", 0)
    return result["cold_us"]["median"] / published if published else None


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def line(workload: dict[str, Any], result: dict[str, Any]) -> list[str]:
    megabytes = workload["bytes"] / 1e6
    cells = [workload["id"], f"{workload['rows']}x{workload['n']}", "", "", "", f"{megabytes:.3f}", "",
             number(workload.get("copy_us")), "", number(workload.get("published_us")), "", "", "",
             f"{result['state']}: {result.get('reason', '')}"]
    if result["state"] != "timed":
        return cells
    cold = result["cold_us"]
    cells[2], cells[3] = number(cold["median"]), f"{number(cold['p10'])} to {number(cold['p90'])}"
    cells[4] = number(result["warm_us"]["median"]) if "warm_us" in result else ""
    cells[6] = number(workload["bytes"] / cold["median"] / 1e6)
    cells[8] = number(of_copy(workload, result), 3)
    cells[10] = number(of_published(workload, result), 3)
    cells[11] = number(result["max_ulp"])
    cluster = f", clusters of {result['cluster']}" if result["cluster"] > 1 else ""
    cells[12] = f"{result['grid']} x {result['block']}{cluster}"
    cells[13] = f"`{result['kernel']}`"
    return cells


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(bench: dict[str, Any]) -> list[str]:
    lines = [row(TITLES), row("---" if title in LEFT else "---:" for title in TITLES)]
    lines += [row(line(workload, result)) for workload in bench["workloads"] for result in workload["results"]]
    return lines


def head(bench: dict[str, Any]) -> list[str]:
    cuda = bench["cuda"]
    lines = [
        f"{bench['device']}, driver {bench['driver'] or 'not told'} (CUDA {cuda // 1000}.{cuda % 1000 // 10}), "
        f"{bench['multiprocessors']} multiprocessors, clock {bench['clock_mhz']} MHz, memory "
        f"{bench['memory_clock_mhz']} MHz; {bench['date']}; build `{bench['build_id']}`; CUPTI {bench['cupti']}.",
        "", f"Command: `{bench['command']}`",
    ]
    host = bench.get("host")
    if host:
        lines += [
            "",
            f"Host: `nst_open` {host['nst_open_us'] / 1e3:.2f} ms beyond the driver's own start (cuInit "
            f"{host['cuinit_us'] / 1e3:.1f} ms, context {host['context_us'] / 1e3:.1f} ms); first call "
            f"{host['first_call_us'] / 1e3:.2f} ms, after `nst_preload` ({host['preload_us'] / 1e3:.1f} ms) "
            f"{host['first_call_after_preload_us'] / 1e3:.3f} ms; a call {host['call_us']['median']:.2f} us.",
        ]
        if "chain" in host:
            one, dependent = host["chain"], host["chain_dependent_launch"]
            lines[-1] += (f" In a graph, each call depending on the one before, 1 x 4096 bf16 takes "
                          f"{one['device_us']:.2f} us a call on the card and {one['host_us']:.2f} on the host, with "
                          f"programmatic dependent launch {dependent['device_us']:.2f} and {dependent['host_us']:.2f}.")
        if "archive_bytes" in host:
            lines[-1] += f" Archive: {host['archive_bytes'] / 1e6:.1f} MB."
    return lines


def means(bench: dict[str, Any]) -> list[str]:
    """Geometric means of the chosen kernels' ratios, by operation and in all."""
    lines = [row(("operation", "timed", "of copy", "of published")), row(("---", "---:", "---:", "---:"))]
    by_op: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for workload in bench["workloads"]:
        if (result := chosen(workload)) is not None:
            by_op.setdefault(workload["op"], []).append((workload, result))
    groups = [*by_op.items(), ("all", [pair for pairs in by_op.values() for pair in pairs])]
    for name, pairs in groups:
        copy = geometric_mean(ratio for pair in pairs if (ratio := of_copy(*pair)) is not None)
        published = geometric_mean(ratio for pair in pairs if (ratio := of_published(*pair)) is not None)
        lines.append(row((name, str(len(pairs)), number(copy, 3), number(published, 3))))
    return lines


def worst(bench: dict[str, Any]) -> list[str]:
    """The workloads that stand worst beside the published times."""
    ratios = [(ratio, workload["id"]) for workload in bench["workloads"]
              if (result := chosen(workload)) is not None and (ratio := of_published(workload, result)) is not None]
    return [f"- {name}: {ratio:.3f}" for ratio, name in sorted(ratios, key=lambda pair: (-pair[0], pair[1]))[:WORST]]


def page(bench: dict[str, Any]) -> str:
    parts = ["# nst-bench", "", *head(bench), "", "## Geometric means of our cold time over the driver's copy of the "
             "same bytes, and over the published time", "", *means(bench), ""]
    if lines := worst(bench):
        parts += [f"## The worst {len(lines)}, over the published time", "", *lines, ""]
    return "\n".join([*parts, "## Workloads", "", *table(bench), ""])


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python3 perf/table.py BENCH.json > PAGE.md", file=sys.stderr)
        return 2
    try:
        print(page(load(Path(arguments[0]))), end="")
    except BadInput as problem:
        print(f"table.py: {problem}", file=sys.stderr)
        return 2
    except (KeyError, IndexError, TypeError) as problem:
        print(f"table.py: {arguments[0]}: lacks {problem} where nst-bench writes it.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
