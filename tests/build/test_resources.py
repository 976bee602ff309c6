"""tools/resources.py: kernels are listed, spills found, explanations held to what they say."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'nst_good' for 'sm_90'
ptxas info    : Function properties for nst_good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 1024 bytes smem
ptxas info    : Compile time = 9.332 ms
ptxas info    : Compiling entry function 'nst_spilling' for 'sm_90'
ptxas info    : Function properties for nst_spilling
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
"""


class Resources(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_tool(self, log: str, explained: dict) -> subprocess.CompletedProcess:
        (self.folder / "a.cubin.log").write_text(log)
        (self.folder / "spills.json").write_text(json.dumps(explained))
        command = [sys.executable, ROOT / "tools" / "resources.py", "--explained", "spills.json", "--report",
                   "report.txt", "a.cubin"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def refuse(self, sentence: str, log: str, explained: dict) -> None:
        result = self.run_tool(log, explained)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"resources: {sentence}\n", result.stderr)
        self.assertFalse((self.folder / "report.txt").exists())

    def test_listed(self) -> None:
        result = self.run_tool(LOG, {"sm_90 nst_spilling": {"bytes": 20, "reason": "once a call"}})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("2 kernels, at most 255 registers", result.stdout)
        lines = [line.split() for line in (self.folder / "report.txt").read_text().splitlines()]
        self.assertEqual(lines, [["arch", "registers", "shared", "stack", "stores", "loads", "kernel"],
                                 ["sm_90", "48", "1024", "0", "0", "0", "nst_good"],
                                 ["sm_90", "255", "0", "16", "12", "8", "nst_spilling"]])

    def test_unexplained(self) -> None:
        self.refuse("sm_90 nst_spilling: 12 bytes of spill stores and 8 of loads; explained: 0", LOG, {})
        self.assertIn("nst_spilling", (self.folder / "report.txt.failed").read_text())

    def test_more_than_explained(self) -> None:
        self.refuse("sm_90 nst_spilling: 12 bytes of spill stores and 8 of loads; explained: 19", LOG,
                    {"sm_90 nst_spilling": {"bytes": 19, "reason": "once a call"}})

    def test_other_arch_is_not_explained(self) -> None:
        self.refuse("sm_90 nst_spilling: 12 bytes of spill stores and 8 of loads; explained: 0", LOG,
                    {"sm_100 nst_spilling": {"bytes": 20, "reason": "once a call"}})

    def test_explanation_without_reason(self) -> None:
        self.refuse("sm_90 nst_spilling: its explanation has no reason", LOG, {"sm_90 nst_spilling": {"bytes": 20}})

    def test_explanation_without_spill(self) -> None:
        explained = {name: {"bytes": 20, "reason": "once a call"} for name in ("sm_90 nst_spilling", "sm_90 nst_good")}
        self.refuse("sm_90 nst_good: its spill is explained, but it has none", LOG, explained)

    def test_cut_log(self) -> None:
        cut = LOG[: LOG.index("ptxas info    : Used 255")]
        self.refuse("sm_90 nst_spilling: the compiler's log ends before its number of registers", cut, {})
        self.refuse("a.cubin.log names no kernel; expected the output of ptxas -v", "", {})


if __name__ == "__main__":
    unittest.main()
