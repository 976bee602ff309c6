"""perf/report.py on a small stored record."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "perf"))

import report  # noqa: E402

try:
    import matplotlib
except ImportError:
    matplotlib = None

STORED = Path(__file__).with_name("compare_record.json")
RECORD: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
TUNE_LOG = {"measured": [
    {"id": f"{rows}x4096", "rows": rows, "n": 4096, "cold_us": {
        "nst_rms_norm_fwd_bf16_n4096_block_exact": block, "nst_rms_norm_fwd_bf16_n4096_cluster_exact": cluster,
        "nst_rms_norm_fwd_bf16_n8192_cluster_masked": cluster + 1, "nst_rms_norm_fwd_bf16_any_loop_masked": 100,
        "nst_rms_norm_fwd_f16_n4096_block_exact": 0.1}}
    for rows, block, cluster in ((1, 2.0, 1.5), (16, 2.1, 2.09), (64, 2.2, 3.0), (4096, 20.0, 60.0))]}


class FiguresTest(unittest.TestCase):
    def test_best_alternative(self) -> None:
        found = [report.best(workload) for workload in RECORD["workloads"]]
        self.assertEqual(found, [("torch", 12.0), ("quack", 20.0), ("torch", 4.0), None])

    def test_ratios(self) -> None:
        values = [[one(workload) for one in report.RATIOS.values()] for workload in RECORD["workloads"]]
        self.assertEqual(values, [[10 / 12, 0.5, 1.25], [2.0, 2.0, 2.0], [None, None, None], [None, 1.0, 2.0]])

    def test_what_is_far_from_an_anchor(self) -> None:
        anchors = {"workloads": [
            {"id": "RMSNormFwd/a/bf16", "copy_us": 8.0, "alternatives_us": {
                "torch": [10.0, 9.0], "quack": [23.0, 1.0], "vllm": [9.0, 9.0], "liger": "not run"}},
            {"id": "RMSNormFwd/c/bf16", "copy_us": 4.9, "alternatives_us": {"torch": [5.0, 9.0]}},
            {"id": "RMSNormFwd/elsewhere", "copy_us": 50.0, "alternatives_us": {}}]}
        self.assertEqual(report.anchor_differences(RECORD, anchors), [("RMSNormFwd/a/bf16", "torch", 12.0, 10.0)])
        anchors["workloads"][0]["copy_us"] = 10.0
        anchors["workloads"][1]["alternatives_us"]["torch"] = [5.1, 9.0]
        self.assertEqual(report.anchor_differences(RECORD, anchors),
                         [("RMSNormFwd/a/bf16", "copy", 8.0, 10.0), ("RMSNormFwd/a/bf16", "torch", 12.0, 10.0),
                          ("RMSNormFwd/c/bf16", "torch", 4.0, 5.1)])


class PageTest(unittest.TestCase):
    def page(self, record: dict[str, Any] = RECORD, **more: Any) -> list[str]:
        return report.page(record, **more).splitlines()

    def test_head(self) -> None:
        page = self.page()
        self.assertIn("card, driver 580.1; 2025-01-02; build `0123`.", page)
        self.assertIn("Versions: torch 2.11, vllm not installed.", page)
        self.assertIn("- 2025-01-02, card, CUPTI 130001, clocks.sm 1980 MHz: `perf/compare.py`", page)

    def test_means(self) -> None:
        page = self.page()
        best, published, copied = math.sqrt(10 / 12 * 2), math.sqrt(0.5 * 2), math.sqrt(1.25 * 2)
        self.assertIn(f"| RMSNormFwd | 3 | 1 of 2 | {best:.3f} | {published:.3f} | {copied:.3f} |", page)
        self.assertIn("| FusedAddRMSNormFwd | 1 | 0 of 0 |  | 1.000 | 2.000 |", page)
        self.assertIn(f"| all | 4 | 1 of 2 | {best:.3f} | 1.000 | {(1.25 * 2 * 2) ** (1 / 3):.3f} |", page)

    def test_worst_first(self) -> None:
        page = self.page()
        start = page.index("- RMSNormFwd/b/bf16: 2.000 (40.00 us; quack 20.00 us)")
        self.assertEqual(page[start + 1], "- RMSNormFwd/a/bf16: 0.833 (10.00 us; torch 12.00 us)")

    def test_ours(self) -> None:
        page = self.page()
        self.assertIn("| RMSNormFwd/a/bf16 | `k1` | 10.00 | 9.00 | torch | 12.00 | 0.833 | 20.00 | 0.500 | 8.00 "
                      "| 1.250 |", page)
        self.assertIn("| RMSNormFwd/c/bf16 | no kernel |  |  | torch | 4.00 |  |  |  | 2.00 |  |", page)
        self.assertIn("| FusedAddRMSNormFwd/d/f16 | `k3` | 2.00 | 1.50 | none |  |  | 2.00 | 1.000 | 1.00 "
                      "| 2.000 |", page)

    def test_every_empty_cell_has_its_reason(self) -> None:
        page = self.page()
        self.assertIn("| RMSNormFwd/a/bf16 | 10.00 (9.00) | 12.00 (11.00) | 20.00 (19.00) | (1) |", page)
        self.assertIn("| RMSNormFwd/c/bf16 | (2) | 4.00 (3.00) | (3) | (1) |", page)
        self.assertIn("| FusedAddRMSNormFwd/d/f16 | 2.00 (1.50) | (4) | (3) | (1) |", page)
        start = page.index("Where there is no time:") + 2
        self.assertEqual(page[start:start + 4], ["1. not installed | vllm", "2. no kernel", "3. RuntimeError: too long",
                                                 "4. wrong result"])

    def test_an_alternative_that_a_workload_lacks(self) -> None:
        record = copy.deepcopy(RECORD)
        del record["workloads"][0]["alternatives"]["vllm"]
        self.assertTrue(any(line.endswith(". not measured") for line in self.page(record)))

    def test_errors_and_forms(self) -> None:
        page = self.page()
        self.assertIn("| RMSNormFwd/a/bf16 | 0.50 | 0.75 | 1.50 |  |", page)
        self.assertIn("| RMSNormFwd/b/bf16 | plain formula |", page)

    def test_anchors(self) -> None:
        anchors = {"workloads": [{"id": "RMSNormFwd/a/bf16", "copy_us": 10.0, "alternatives_us": {}}]}
        self.assertIn("| RMSNormFwd/a/bf16 | copy | 8.00 | 10.00 | 0.800 |", self.page(anchors=anchors))
        self.assertIn("No time above 5 us is more than 15% away.", self.page(anchors={"workloads": []}))
        self.assertFalse(any("earlier" in line for line in self.page()))

    def test_a_single_operation_has_no_line_for_all(self) -> None:
        record = {**RECORD, "workloads": RECORD["workloads"][:2]}
        self.assertFalse(any(line.startswith("| all |") for line in self.page(record)))


class SeriesTest(unittest.TestCase):
    def test_against_n(self) -> None:
        self.assertEqual(report.by_n(RECORD, "RMSNormFwd", "bf16", 2), {
            "ours": [(64, 1.25), (128, 2.0)], "best alternative": [(64, 1.5), (128, 1.0), (256, 2.0)],
            "published": [(64, 2.5), (128, 1.0)]})
        self.assertEqual(report.by_n(RECORD, "RMSNormFwd", "f16", 2), {})

    def test_against_rows(self) -> None:
        series = report.by_rows(TUNE_LOG, "nst_rms_norm_fwd_bf16_", 4096)
        self.assertEqual(series["cluster"], [(1, 1.5), (16, 2.09), (64, 3.0), (4096, 60.0)])
        self.assertEqual(set(series), {"block", "cluster", "loop"})
        self.assertEqual(report.by_rows(TUNE_LOG, "nst_rms_norm_fwd_bf16_", 8192), {})

    def test_crossovers(self) -> None:
        series = report.contenders(report.by_rows(TUNE_LOG, "nst_rms_norm_fwd_bf16_", 4096))
        self.assertEqual(set(series), {"block", "cluster"})
        self.assertEqual(report.crossovers(series), [(1, "cluster"), (64, "block")])
        self.assertEqual(report.crossovers({"a": [(1, 2.0), (2, 2.01)], "b": [(1, 2.01), (2, 2.0)]}), [(1, "a")])


class ProgramTest(unittest.TestCase):
    def run_main(self, *arguments: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = report.main(list(arguments))
        return code, said.getvalue()

    def test_page_beside_the_record(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "compare.json"
            path.write_text(STORED.read_text(encoding="utf-8"), encoding="utf-8")
            (Path(folder) / "compare-ratio.png").write_bytes(b"a picture from before")
            self.assertEqual(self.run_main(str(path)), (0, ""))
            page = (Path(folder) / "compare.md").read_text(encoding="utf-8")
            self.assertIn("![compare-ratio](compare-ratio.png)", page)
            self.assertTrue(page.endswith("\n"))

    def test_pictures_from_before_stand_in_order(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "compare.json"
            path.write_text(STORED.read_text(encoding="utf-8"), encoding="utf-8")
            for what in ("by-n", "floor", "ratio", "other"):
                (Path(folder) / f"compare-{what}.png").write_bytes(b"a picture")
            self.assertEqual(self.run_main(str(path)), (0, ""))
            shown = [line for line in (Path(folder) / "compare.md").read_text(encoding="utf-8").splitlines()
                     if line.startswith("![")]
            self.assertEqual(shown, [f"![compare-{what}](compare-{what}.png)" for what in ("ratio", "floor", "by-n")])

    def test_readme(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            readme, page = Path(folder) / "README.md", Path(folder) / "results" / "compare.md"
            page.parent.mkdir()
            old = "before\n<!-- compare: begin -->\nold\n\n<!-- compare: end -->\nafter\n"
            readme.write_text(old, encoding="utf-8")
            for _ in range(2):  # the second time what the first one wrote is replaced
                self.assertEqual(self.run_main(str(STORED), "--out", str(page), "--readme", str(readme)), (0, ""))
                lines = readme.read_text(encoding="utf-8").splitlines()
                self.assertEqual((lines[:2], lines[-2:]), (["before", "<!-- compare: begin -->"],
                                                           ["<!-- compare: end -->", "after"]))
                self.assertEqual(lines[2:7], report.means(RECORD))
                self.assertEqual(lines[7:-2], [
                    "", "Our cold time over others' (geometric means) on one card, driver 580.1, 2025-01-02, build "
                    "`0123`, by `perf/compare.py`.",
                    "Every workload and alternative: [compare.md](results/compare.md).",
                    "", "![Our cold time over the best alternative's](results/compare-ratio.png)"])

    def test_bad_readmes(self) -> None:
        begin, end = report.README_BEGIN, report.README_END
        with tempfile.TemporaryDirectory() as folder:
            readme = Path(folder) / "README.md"
            arguments = [str(STORED), "--out", str(Path(folder) / "page.md"), "--readme", str(readme)]
            self.assertIn("README.md: can't be rewritten (No such file", self.run_main(*arguments)[1])
            for text in ("", f"{begin}\n", f"{end}\n{begin}\n", f"{begin}\n{end}\n{begin}\n{end}\n",
                         f"a {begin}\n{end}\n"):
                readme.write_text(text, encoding="utf-8")
                code, said = self.run_main(*arguments)
                self.assertEqual(code, 2)
                self.assertIn(f'README.md: has not the two lines "{begin}" and "{end}", once and in this order', said)
                self.assertEqual(readme.read_text(encoding="utf-8"), text)

    def test_the_readme_shows_the_kept_record(self) -> None:
        record = json.loads((ROOT / "perf" / "results" / "compare.json").read_text(encoding="utf-8"))
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        block = report.readme_block(record, "perf/results/", "compare")
        self.assertEqual(readme.split(f"{report.README_BEGIN}\n")[1].split(f"\n{report.README_END}\n")[0], block)
        for name in ("compare.md", "compare-ratio.png"):
            self.assertIn(f"(perf/results/{name})", block)
            self.assertTrue((ROOT / "perf" / "results" / name).exists())

    def test_bad_input(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, good = Path(folder) / "x.json", str(STORED)
            for text, arguments, words in (
                    ("{", [str(path)], "is not JSON"), ("{}", [str(path)], "lacks device"),
                    ("{}", [good, "--anchors", str(path)], 'has no list "workloads"'),
                    ("[", [good, "--tune-log", str(path)], "is not JSON"),
                    (json.dumps({**RECORD, "workloads": [{"id": "a"}]}), [str(path)], "lacks")):
                path.write_text(text, encoding="utf-8")
                code, said = self.run_main(*arguments, "--out", str(Path(folder) / "page.md"))
                self.assertEqual(code, 2)
                self.assertIn(words, said)
        self.assertIn("can't be read", self.run_main("no-such-file.json")[1])

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_pictures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, log = Path(folder) / "compare.json", Path(folder) / "log.json"
            path.write_text(STORED.read_text(encoding="utf-8"), encoding="utf-8")
            log.write_text(json.dumps(TUNE_LOG), encoding="utf-8")
            self.assertEqual(self.run_main(str(path), "--pictures", "--tune-log", str(log)), (0, ""))
            names = [f"compare-{what}.png" for what in ("ratio", "floor", "by-n", "by-rows")]
            page = (Path(folder) / "compare.md").read_text(encoding="utf-8")
            for name in names:
                self.assertTrue((Path(folder) / name).read_bytes().startswith(b"\x89PNG"), name)
                self.assertIn(f"({name})", page)


if __name__ == "__main__":
    unittest.main()
