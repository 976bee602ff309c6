"""perf/table.py on a small stored result."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parents[2] / "perf" / "table.py"


def stats(median: float) -> dict[str, float]:
    return {"median": median, "min": median, "p10": median, "p90": median + 0.5, "count": 20}


def timed(kernel: str, cold: float, cluster: int = 1) -> dict[str, Any]:
    return {"state": "timed", "kernel": kernel, "grid": 64, "block": 256, "cluster": cluster, "registers": 40,
            "shared_bytes": 0, "max_ulp": 0.5, "checked_rows": 3, "cold_us": stats(cold), "warm_us": stats(cold / 2)}


def workload(name: str, op: str, published: float, *results: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "op": op, "dtype": "bf16", "weight_dtype": "bf16", "rows": 2, "n": 4, "bytes": 4_000_000,
            "copy_us": 2.0, "published_us": published, "results": list(results)}


REFUSED = {"state": "refused", "kernel": "", "reason": "n | too large"}
BENCH: dict[str, Any] = {
    "device": "card", "driver": "580.1", "date": "2025-01-01", "build_id": "0123", "cuda": 13000, "capability": 90,
    "multiprocessors": 132, "clock_mhz": 1980, "memory_clock_mhz": 3201, "cupti": 130001, "command": "nst-bench",
    "left_out": 0,
    "host": {"nst_open_us": 12000, "cuinit_us": 1e5, "context_us": 2e5, "first_call_us": 4000, "preload_us": 30000,
             "first_call_after_preload_us": 20, "call_us": stats(3), "archive_bytes": 34_000_000},
    "workloads": [
        workload("a", "one", 4.0, timed("k1", 2.0), timed("k2", 1.0, cluster=8)),
        workload("b", "one", 1.0, timed("k1", 8.0)),
        workload("c", "two", 10.0, timed("k3", 5.0), REFUSED),
    ],
}


def run(text: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        path.write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, SCRIPT, str(path)], capture_output=True, text=True, check=False)


class TableTest(unittest.TestCase):
    def page(self, bench: dict[str, Any]) -> list[str]:
        done = run(json.dumps(bench))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def refused(self, text: str, words: str) -> None:
        done = run(text)
        self.assertEqual(done.returncode, 2)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_workloads(self) -> None:
        page = self.page(BENCH)
        self.assertIn("| a | 2x4 | 2.00 | 2.00 to 2.50 | 1.00 | 4.000 | 2.00 | 2.00 | 1.000 | 4.00 | 0.500 | 0.50 "
                      "| 64 x 256 | `k1` |", page)
        self.assertTrue(any("64 x 256, clusters of 8 | `k2` |" in line for line in page))
        refused = [line for line in page if line.endswith("| refused: n \\| too large |")]
        self.assertEqual([line[:5] for line in refused], ["| c |"])

    def test_head(self) -> None:
        page = "\n".join(self.page(BENCH))
        for words in ("card, driver 580.1 (CUDA 13.0), 132 multiprocessors", "`nst_open` 12.00 ms",
                      "Archive: 34.0 MB."):
            self.assertIn(words, page)

    def test_means_are_of_what_the_library_chooses(self) -> None:
        page = self.page(BENCH)
        self.assertIn("| one | 2 | 2.000 | 2.000 |", page)  # sqrt(1 * 4), sqrt(0.5 * 8)
        self.assertIn("| two | 1 | 2.500 | 0.500 |", page)
        self.assertIn("| all | 3 | 2.154 | 1.260 |", page)

    def test_worst_first(self) -> None:
        page = self.page(BENCH)
        start = page.index("- b: 8.000")
        self.assertEqual(page[start + 1:start + 3], ["- a: 0.500", "- c: 0.500"])

    def test_without_published_times_and_host(self) -> None:
        bench = copy.deepcopy(BENCH)
        del bench["host"]
        for each in bench["workloads"]:
            del each["published_us"]
        page = self.page(bench)
        self.assertIn("| one | 2 | 2.000 |  |", page)
        self.assertFalse(any("worst" in line or "Host" in line for line in page))

    def test_bad_input(self) -> None:
        self.refused("{", "is not JSON")
        self.refused("[]", "it has no list")
        self.refused('{"workloads": []}', "lacks 'cuda'")
        missing = subprocess.run([sys.executable, SCRIPT, "no-such-file.json"], capture_output=True, text=True,
                                 check=False)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("no-such-file.json: can't be read", missing.stderr)
        usage = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(usage.returncode, 2)


if __name__ == "__main__":
    unittest.main()
