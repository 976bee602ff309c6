"""What the generator prints: the tiny golden, the committed files, byte for byte from run to run."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from codegen import audit

from .support import REPOSITORY, TINY, build, render, run, tiny_options, tree


class Output(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)

    def test_tiny_golden(self) -> None:
        """If a change is meant: python3 -m codegen all --spec tests/golden/tiny/spec --sources tests/golden/tiny/src
        --out tests/golden/tiny/expected"""
        wrong = audit.check(render(build()), TINY / "expected")
        self.assertEqual([], wrong, Output.test_tiny_golden.__doc__)

    def test_committed_files_are_as_printed(self) -> None:
        result = run("check")
        self.assertEqual((0, ""), (result.returncode, result.stderr))

    def test_same_bytes_from_any_folder_and_hash_seed(self) -> None:
        trees = []
        for name, seed, cwd in (("a", "1", REPOSITORY), ("b", "4242", self.out)):
            result = run("all", "--out", self.out / name, cwd=cwd, hash_seed=seed)
            self.assertEqual(0, result.returncode, result.stderr)
            trees.append(tree(self.out / name))
        self.assertEqual(trees[0], trees[1])
        for name, content in trees[0].items():
            with self.subTest(name):
                self.assertNotIn(b"\r", content)
                self.assertNotIn(str(REPOSITORY).encode(), content)
                self.assertTrue(content.endswith(b"\n") and not content.endswith(b"\n\n"))
                self.assertNotRegex(content.decode(), r"(?m)[ \t]$")

    def test_only_changed_files_are_written(self) -> None:
        first = run("all", *tiny_options(self.out))
        self.assertIn("13 of 13 files changed", first.stdout)
        kept = {path: path.stat().st_mtime_ns for path in self.out.rglob("*")}
        self.assertIn("0 of 13 files changed", run("all", *tiny_options(self.out)).stdout)
        self.assertEqual(kept, {path: path.stat().st_mtime_ns for path in self.out.rglob("*")})
        (self.out / "rows.inc").write_text("edited\n", encoding="utf-8")
        self.assertEqual("wrote rows.inc\ncodegen: 48 rows, 12 kernels; 1 of 13 files changed.\n",
                         run("all", *tiny_options(self.out)).stdout)

    def test_kernel_files_that_are_no_longer_printed_go(self) -> None:
        run("all", *tiny_options(self.out))
        mine = self.out / "kernels" / "mine.cu"
        mine.write_text("/* not the generator's */\n", encoding="utf-8")
        result = run("all", "--ops", "rms_norm_fwd", *tiny_options(self.out))
        self.assertIn("removed kernels/fused_add_rms_norm_fwd_bf16.cu", result.stdout)
        self.assertEqual({"build_id.cu", "mine.cu", "rms_norm_fwd_bf16.cu", "rms_norm_fwd_bf16w32.cu"},
                         {path.name for path in mine.parent.iterdir()})

    def test_build_id_depends_on_device_sources(self) -> None:
        source = self.out / "src"
        (source / "device").mkdir(parents=True)
        ids = set()
        for params, device in (("a", "b"), ("a", "c"), ("ab", "")):
            (source / "params.h").write_text(params, encoding="utf-8")
            (source / "device" / "cell.cuh").write_text(device, encoding="utf-8")
            run("all", "--spec", TINY / "spec", "--sources", source, "--out", self.out / "out")
            build_id = (self.out / "out" / "BUILD_ID").read_text(encoding="utf-8").strip()
            self.assertRegex(build_id, r"^[0-9a-f]{16}$")
            self.assertIn(f'"{build_id}"', (self.out / "out" / "build_id.h").read_text(encoding="utf-8"))
            self.assertIn(f"void nst_build_id_{build_id}(void)",
                          (self.out / "out" / "kernels" / "build_id.cu").read_text(encoding="utf-8"))
            ids.add(build_id)
        self.assertEqual(3, len(ids))


class Check(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        run("all", *tiny_options(self.out))

    def check(self) -> tuple[int, list[str]]:
        before = tree(self.out)
        result = run("check", *tiny_options(self.out))
        self.assertEqual(before, tree(self.out), "check must not write")
        return result.returncode, result.stderr.splitlines()

    def test_nothing_differs(self) -> None:
        self.assertEqual((0, []), self.check())

    def test_differing_missing_and_extra_files(self) -> None:
        (self.out / "kernels.inc").unlink()
        (self.out / "kernels" / "old.cu").write_text("\n", encoding="utf-8")
        rows = self.out / "rows.inc"
        lines = rows.read_text(encoding="utf-8").splitlines(keepends=True)
        rows.write_text("".join(lines[:15] + [lines[15].replace(" 128,", " 256,", 1)] + lines[16:]), encoding="utf-8")
        build_id = self.out / "BUILD_ID"
        build_id.write_text("", encoding="utf-8")
        golden_id = (TINY / "expected" / "BUILD_ID").read_text(encoding="utf-8")
        status, wrong = self.check()
        self.assertEqual(1, status)
        self.assertEqual([
            f"BUILD_ID: line 1 is missing, expected {golden_id!r}.",
            "kernels.inc: missing.",
            f"rows.inc: line 16 is {lines[15].replace(' 128,', ' 256,', 1)!r}, expected {lines[15]!r}.",
            "kernels/old.cu: extra, nothing prints it.",
        ], wrong)

    def test_line_ends_count(self) -> None:
        path = self.out / "axes.h"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        status, wrong = self.check()
        self.assertEqual((1, 1), (status, len(wrong)))
        self.assertTrue(wrong[0].startswith(r"axes.h: line 1 is '/*\r\n', expected '/*\n'"), wrong[0])


if __name__ == "__main__":
    unittest.main()
