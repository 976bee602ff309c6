#!/usr/bin/env python3
"""From the record of perf/compare.py to the page and the pictures that are kept in perf/results/.

    python3 perf/report.py perf/results/compare.json [--anchors FILE] [--tune-log FILE] [--pictures] [--readme FILE]

writes compare.md beside the record, with --pictures compare-*.png (which takes matplotlib), and with --readme the table
of means between two marks of that file. Ratios are our cold time over another: below 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Iterable

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers.records_file import load  # noqa: E402
from peers.stats import geometric_mean  # noqa: E402
from peers.workloads import BadInput  # noqa: E402

WORST = 5
PICTURES = ("ratio", "floor", "by-n", "by-rows")  # in the order of the page
README_BEGIN, README_END = "<!-- compare: begin -->", "<!-- compare: end -->"
WIDTH = 120
ANCHOR_SLACK, ANCHOR_ABOVE_US = 0.15, 5.0
NEAR, CHANGES_ABOVE = 1.2, 1.02  # a strategy within 20 % of the fastest is drawn; one 2 % faster takes over
Record = dict[str, Any]


# ---- Figures -----------------------------------------------------------------------------------------------------


def cold(cell: Record) -> float | None:
    return cell.get("cold_us")


def best(workload: Record) -> tuple[str, float] | None:
    """The fastest alternative."""
    times = [(time, name) for name, cell in workload["alternatives"].items() if (time := cold(cell)) is not None]
    return (min(times)[1], min(times)[0]) if times else None


def ratio(ours: float | None, other: float | None) -> float | None:
    return ours / other if ours is not None and other else None


def of_best(workload: Record) -> float | None:
    found = best(workload)
    return ratio(cold(workload["ours"]), found[1]) if found else None


def of_published(workload: Record) -> float | None:
    return ratio(cold(workload["ours"]), workload["published_us"])


def of_copy(workload: Record) -> float | None:
    return ratio(cold(workload["ours"]), workload["copy_us"])


RATIOS = {"of best alternative": of_best, "of published": of_published, "of copy": of_copy}


def operation(workload: Record) -> str:
    return workload["id"].split("/")[0]


def known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def anchor_differences(record: Record, anchors: Record) -> list[tuple[str, str, float, float]]:
    """(workload, what, here, anchor) where a time is further from the anchor than it should be."""
    there = {workload["id"]: workload for workload in anchors["workloads"]}
    found = []
    for workload in record["workloads"]:
        anchor = there.get(workload["id"])
        if anchor is None:
            continue
        pairs = [("copy", workload["copy_us"], anchor["copy_us"])]
        for name, times in anchor["alternatives_us"].items():
            if isinstance(times, list):
                pairs.append((name, cold(workload["alternatives"].get(name, {})), times[0]))
        found += [(workload["id"], what, here, time) for what, here, time in pairs
                  if here is not None and time > ANCHOR_ABOVE_US and abs(here / time - 1) > ANCHOR_SLACK]
    return found


# ---- The page ----------------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(titles: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    """The first `left` columns hold words, the others numbers."""
    titles = list(titles)
    return [row(titles), row("---" if i < left else "---:" for i in range(len(titles))), *map(row, rows)]


def head(record: Record) -> list[str]:
    runs = [f"- {run['date']}, {run['device']}, CUPTI {run.get('cupti', 'not told')}"
            + "".join(f", {key} {value}" for key, value in run.get("clocks", {}).items())
            + f": `{run.get('command', '')}`" for run in record["runs"]]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return [f"{record['device']}, driver {record['driver']}; {record['date']}; build `{record['build_id']}`.", "",
            f"Versions: {versions}.", "", *runs]


METHOD = """\
Device times in microseconds: the durations of all kernels and copies of one call, from CUPTI's records; median of 25
calls (10 above 1 GB), all columns of a line interleaved call by call in one process on identical tensors. Cold: 256 MiB
are overwritten before each call; warm: the same call again straight after. Copy: the driver's copy of half the bytes,
in the same run. Of several forms of an alternative (torch.compile of F.* and of the formula, flashinfer's CuTe and CUDA
kernels, quack's launch configurations) the fastest counts. Every output was compared with a float64 reference before it
was timed. Host time is in none of the figures."""


def means(record: Record) -> list[str]:
    groups: dict[str, list[Record]] = {}
    for workload in record["workloads"]:
        groups.setdefault(operation(workload), []).append(workload)
    if len(groups) > 1:
        groups["all"] = list(record["workloads"])
    rows = []
    for name, workloads in groups.items():
        against_best = known(map(of_best, workloads))
        wins = sum(value <= 1 for value in against_best)
        rows.append([name, str(len(workloads)), f"{wins} of {len(against_best)}",
                     *(number(geometric_mean(known(map(one, workloads))), 3) for one in RATIOS.values())])
    return table(["operation", "workloads", "ours fastest", *RATIOS], rows)


def worst(record: Record) -> list[str]:
    found = [(value, workload) for workload in record["workloads"] if (value := of_best(workload)) is not None]
    found.sort(key=lambda pair: (-pair[0], pair[1]["id"]))
    lines = []
    for value, workload in found[:WORST]:
        name, time = best(workload) or ("", None)
        lines.append(f"- {workload['id']}: {value:.3f} ({number(cold(workload['ours']))} us; {name} {number(time)} us)")
    return lines


def ours_table(record: Record) -> list[str]:
    rows = []
    for workload in record["workloads"]:
        ours, (name, time) = workload["ours"], best(workload) or ("none", None)
        rows.append([workload["id"], f"`{ours['kernel']}`" if "kernel" in ours else ours.get("reason", ""),
                     number(cold(ours)), number(ours.get("warm_us")), name, number(time), number(of_best(workload), 3),
                     number(workload["published_us"]), number(of_published(workload), 3), number(workload["copy_us"]),
                     number(of_copy(workload), 3)])
    return table(["workload", "kernel", "cold", "warm", "best alternative", "cold", "ratio", "published", "ratio",
                  "copy", "ratio"], rows, left=2)


def names_of(record: Record) -> list[str]:
    names: dict[str, None] = {}
    for workload in record["workloads"]:
        names |= dict.fromkeys(workload["alternatives"])
    return list(names)


class Reasons:
    """Numbers the reasons of empty cells."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, reason: str) -> str:
        return f"({self.numbers.setdefault(reason, len(self.numbers) + 1)})"

    def lines(self) -> list[str]:
        return [f"{value}. {reason}" for reason, value in self.numbers.items()]


def alternatives_table(record: Record) -> list[str]:
    """Cold and warm time of each; where there is none, the number of the reason below."""
    names, reasons, rows = names_of(record), Reasons(), []

    def shown(cell: Record) -> str:
        if cold(cell) is None:
            return reasons.mark(cell.get("reason", "not measured"))
        return f"{number(cold(cell))} ({number(cell['warm_us'])})"

    for workload in record["workloads"]:
        rows.append([workload["id"], shown(workload["ours"]),
                     *(shown(workload["alternatives"].get(name, {})) for name in names)])
    lines = table(["workload: cold (warm)", "ours", *names], rows)
    return lines + (["", "Where there is no time:", "", *reasons.lines()] if reasons.numbers else [])


def errors_table(record: Record) -> list[str]:
    """The largest distance from the reference, in units in the last place."""
    names = names_of(record)
    rows = [[workload["id"], number(workload["ours"].get("max_ulp")),
             *(number(workload["alternatives"].get(name, {}).get("max_ulp")) for name in names)]
            for workload in record["workloads"]]
    return table(["workload", "ours", *names], rows)


def variants_table(record: Record) -> list[str]:
    """Which form of an alternative was the fastest."""
    names = [name for name in names_of(record)
             if len({workload["alternatives"].get(name, {}).get("variant") for workload in record["workloads"]}
                    - {None}) > 1]
    rows = [[workload["id"], *(workload["alternatives"].get(name, {}).get("variant", "") for name in names)]
            for workload in record["workloads"]]
    return table(["workload", *names], rows, left=1 + len(names)) if names else []


def anchors_part(record: Record, anchors: Record | None) -> list[str]:
    if anchors is None:
        return []
    found = anchor_differences(record, anchors)
    title = ["## Beside earlier measurements of the alternatives", ""]
    if not found:
        return [*title, f"No time above {ANCHOR_ABOVE_US:g} us is more than {ANCHOR_SLACK:.0%} away.", ""]
    rows = [[workload, what, number(here), number(there), number(here / there, 3)]
            for workload, what, here, there in found]
    return [*title, f"More than {ANCHOR_SLACK:.0%} away, above {ANCHOR_ABOVE_US:g} us; each needs an explanation:", "",
            *table(["workload", "alternative", "here", "earlier", "ratio"], rows, left=2), ""]


def page(record: Record, anchors: Record | None = None, pictures: Iterable[str] = ()) -> str:
    parts = ["# The library beside others", "", *head(record), "", METHOD, "",
             "## Geometric means of our cold time over others'", "", *means(record), ""]
    if lines := worst(record):
        parts += [f"## The worst {len(lines)}, over the best alternative", "", *lines, ""]
    for picture in pictures:
        parts += [f"![{picture.removesuffix('.png')}]({picture})", ""]
    parts += ["## Ours", "", *ours_table(record), "", "## All", "", *alternatives_table(record), "",
              "## Largest distance of y from a float64 reference, in units in the last place", "",
              *errors_table(record), ""]
    if lines := variants_table(record):
        parts += ["## Forms that were the fastest", "", *lines, ""]
    return "\n".join([*parts, *anchors_part(record, anchors)])


# ---- The README ---------------------------------------------------------------------------------------------------


def readme_block(record: Record, folder: str, stem: str) -> str:
    """The table of means, what was measured and how to repeat it; `folder`: of the page, as the README sees it."""
    commands = " and ".join(f"`{command}`" for command in dict.fromkeys(run["command"] for run in record["runs"]))
    text = (f"Our cold time over others' (geometric means) on one {record['device']}, driver {record['driver']}, "
            f"{record['date']}, build `{record['build_id']}`, by {commands}. Every workload and alternative: "
            f"[{stem}.md]({folder}{stem}.md).")
    wrapped = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    picture = f"![Our cold time over the best alternative's]({folder}{stem}-ratio.png)"
    return "\n".join([*means(record), "", *wrapped, "", picture])


def with_block(text: str, block: str) -> str:
    """The text with the block between its marks."""
    parts = re.split(f"^({re.escape(README_BEGIN)}|{re.escape(README_END)})$", text, flags=re.MULTILINE)
    if parts[1::2] != [README_BEGIN, README_END]:
        raise BadInput(f'has not the two lines "{README_BEGIN}" and "{README_END}", once and in this order.')
    return f"{parts[0]}{README_BEGIN}\n{block}\n{README_END}{parts[4]}"


def write_readme(path: Path, record: Record, out: Path) -> None:
    folder = os.path.relpath(out.parent, path.parent) + "/"
    try:
        text = with_block(path.read_text(encoding="utf-8"), readme_block(record, folder.removeprefix("./"), out.stem))
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: can't be rewritten ({error.strerror}).") from error
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from problem


# ---- Series for the pictures -------------------------------------------------------------------------------------


def by_n(record: Record, op: str, dtype: str, rows: int) -> dict[str, list[tuple[int, float]]]:
    """Times over the copy's against n, at one number of rows."""
    series: dict[str, list[tuple[int, float]]] = {"ours": [], "best alternative": [], "published": []}
    for workload in sorted(record["workloads"], key=lambda one: one["n"]):
        if shape_of(workload) != (op, dtype, rows):
            continue
        found = best(workload)
        times = (cold(workload["ours"]), found[1] if found else None, workload["published_us"])
        for points, time in zip(series.values(), times):
            if (value := ratio(time, workload["copy_us"])) is not None:
                points.append((workload["n"], value))
    return {name: points for name, points in series.items() if points}


def shape_of(workload: Record) -> tuple[str, str, int]:
    return operation(workload), workload["id"].rsplit("/", 1)[1], workload["rows"]


def by_rows(tune_log: Record, prefix: str, n: int) -> dict[str, list[tuple[int, float]]]:
    """Time against rows at one n, for each strategy: its fastest kernel of those whose names begin with `prefix`."""
    strategies: dict[str, dict[int, float]] = {}
    for measured in tune_log["measured"]:
        if measured["n"] != n:
            continue
        for kernel, time in measured["cold_us"].items():
            if kernel.startswith(prefix):
                times = strategies.setdefault(kernel.split("_")[-2], {})
                times[measured["rows"]] = min(time, times.get(measured["rows"], time))
    return {strategy: sorted(times.items()) for strategy, times in strategies.items()}


def contenders(series: dict[str, list[tuple[int, float]]]) -> dict[str, list[tuple[int, float]]]:
    """Those that come near the fastest somewhere."""
    fastest: dict[int, float] = {}
    for points in series.values():
        for rows, time in points:
            fastest[rows] = min(time, fastest.get(rows, time))
    return {name: points for name, points in series.items()
            if any(time <= NEAR * fastest[rows] for rows, time in points)}


def crossovers(series: dict[str, list[tuple[int, float]]]) -> list[tuple[int, str]]:
    """(rows, strategy) where another strategy becomes the fastest by more than measurements vary; the first one is at
    the front."""
    changes: list[tuple[int, str]] = []
    for count in sorted({rows for points in series.values() for rows, _ in points}):
        times = {name: time for name, points in series.items() for rows, time in points if rows == count}
        fastest = min(times, key=lambda name: times[name])
        if not changes or times.get(changes[-1][1], float("inf")) > CHANGES_ABOVE * times[fastest]:
            changes.append((count, fastest))
    return changes


# ---- Pictures ----------------------------------------------------------------------------------------------------


def draw(record: Record, tune_log: Record | None, folder: Path, stem: str) -> list[str]:
    """Writes the pictures and returns their names."""
    try:
        import matplotlib
    except ImportError as error:
        raise BadInput(f"--pictures takes matplotlib, which python3 does not find ({error}).") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot

    names = []

    def save(figure: Any, what: str) -> None:
        name = f"{stem}-{what}.png"
        figure.savefig(folder / name, dpi=100, bbox_inches="tight", metadata={"Software": None})
        plot.close(figure)
        names.append(name)

    draw_bars(plot, record, of_best, "our time / best alternative's (below 1: ours is faster)", save, "ratio")
    draw_bars(plot, record, lambda one: ratio(1.0, of_copy(one)), "driver's copy's time / our time", save, "floor")
    draw_by_n(plot, record, save)
    if tune_log is not None:
        draw_by_rows(plot, tune_log, save)
    return names


def draw_bars(plot: Any, record: Record, figure_of: Any, title: str, save: Any, what: str) -> None:
    pairs = [(workload["id"], value) for workload in record["workloads"] if (value := figure_of(workload)) is not None]
    if not pairs:
        return
    figure, axes = plot.subplots(figsize=(9, 1 + 0.19 * len(pairs)))
    labels, values = [name for name, _ in reversed(pairs)], [value for _, value in reversed(pairs)]
    colours = ["tab:green" if (value <= 1) == (what == "ratio") else "tab:orange" for value in values]
    axes.barh(labels, values, color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_title(title)
    axes.tick_params(axis="y", labelsize=7)
    axes.margins(y=0.01)
    save(figure, what)


def panels_for(plot: Any, count: int) -> tuple[Any, list[Any]]:
    across = min(count, 3)
    down = -(-count // across)
    size = (4.4 * across, 3.4 * down)
    figure, panels = plot.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    every = [axes for line in panels for axes in line]
    for axes in every[count:]:
        axes.set_visible(False)
    return figure, every[:count]


def draw_series(axes: Any, series: dict[str, list[tuple[int, float]]]) -> None:
    for name, points in series.items():
        axes.plot(*zip(*points), marker="o", markersize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7)


def draw_by_n(plot: Any, record: Record, save: Any) -> None:
    lengths: dict[tuple[str, str, int], set[int]] = {}
    for workload in record["workloads"]:
        lengths.setdefault(shape_of(workload), set()).add(workload["n"])
    chosen = [shape for shape in lengths if len(lengths[shape]) >= 3 and shape[1] == "bf16"]
    if not chosen:
        return
    figure, panels = panels_for(plot, len(chosen))
    for axes, (op, dtype, rows) in zip(panels, chosen):
        draw_series(axes, by_n(record, op, dtype, rows))
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_title(f"{op} {dtype}, {rows} row{'s' if rows > 1 else ''}", fontsize=9)
        axes.set_xlabel("n", fontsize=8)
        axes.set_ylabel("cold time / driver's copy's", fontsize=8)
    save(figure, "by-n")


def draw_by_rows(plot: Any, tune_log: Record, save: Any) -> None:
    prefix = "nst_rms_norm_fwd_bf16_"
    lengths = [n for n in (256, 1024, 4096, 8192, 16384, 65536) if len(by_rows(tune_log, prefix, n)) > 1]
    if not lengths:
        return
    figure, panels = panels_for(plot, len(lengths))
    for axes, n in zip(panels, lengths):
        series = contenders(by_rows(tune_log, prefix, n))
        draw_series(axes, dict(sorted(series.items())))
        for rows, _ in crossovers(series)[1:]:
            axes.axvline(rows, color="grey", linewidth=0.8, linestyle=":")
        axes.set_yscale("log")
        axes.set_title(f"rms_norm_fwd bf16, n = {n}, by strategy", fontsize=9)
        axes.set_xlabel("rows (dotted: another strategy takes over)", fontsize=8)
        axes.set_ylabel("us, cold", fontsize=8)
    save(figure, "by-rows")


# ---- The program -------------------------------------------------------------------------------------------------


def load_with(path: Path, key: str) -> Record:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror}).") from error
    except ValueError as error:
        raise BadInput(f"{path}: is not JSON ({error}).") from error
    if not isinstance(content, dict) or not isinstance(content.get(key), list):
        raise BadInput(f'{path}: has no list "{key}".')
    return content


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Writes the page and the pictures of a comparison.")
    parser.add_argument("record", type=Path, metavar="COMPARE.json")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page; default: beside the record, as .md")
    parser.add_argument("--anchors", type=Path, metavar="FILE",
                        help="earlier times of the alternatives: list what is more than 15 %% away from them")
    parser.add_argument("--tune-log", type=Path, metavar="FILE",
                        help="what nst-bench --tune --json FILE wrote: for the picture of strategies against rows")
    parser.add_argument("--pictures", action="store_true", help="draw the pictures, too (takes matplotlib)")
    parser.add_argument("--readme", type=Path, metavar="FILE",
                        help=f"replace what stands between its lines {README_BEGIN} and {README_END}")
    options = parser.parse_args(arguments)
    out = options.out or options.record.with_suffix(".md")
    try:
        record = load(options.record)
        anchors = load_with(options.anchors, "workloads") if options.anchors else None
        tune_log = load_with(options.tune_log, "measured") if options.tune_log else None
        if options.pictures:
            pictures = draw(record, tune_log, out.parent, out.stem)
        else:
            pictures = [name for what in PICTURES if (out.parent / (name := f"{out.stem}-{what}.png")).exists()]
        out.write_text(page(record, anchors, pictures), encoding="utf-8")
        if options.readme:
            write_readme(options.readme, record, out)
    except BadInput as problem:
        print(f"report.py: {problem}", file=sys.stderr)
        return 2
    except (KeyError, TypeError) as problem:
        print(f"report.py: {options.record}: lacks {problem} where compare.py writes it.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
