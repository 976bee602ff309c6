"""The generated C compiles in strict dialects, and its assertions catch a table that was tampered with."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from .support import REPOSITORY

HERE = Path(__file__).resolve().parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def compile_with(generated: Path, source: str, *command: str) -> str:
    """What the compiler says; empty if it accepts the file."""
    result = subprocess.run([*command, *WARNINGS, "-fsyntax-only", f"-I{generated}", f"-I{REPOSITORY / 'include'}",
                             str(HERE / source)], text=True, capture_output=True, check=False,
                            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"})
    return result.stdout + result.stderr


def compile_tables(generated: Path) -> str:
    return compile_with(generated, "tables.c", "gcc", "-std=c11", "-Woverride-init")


class Compile(unittest.TestCase):
    def test_tables_in_c(self) -> None:
        self.assertEqual("", compile_tables(REPOSITORY / "generated"))

    def test_axes_in_cpp(self) -> None:
        for standard in ("c++11", "c++20"):
            with self.subTest(standard):
                source = "axes.cpp" if standard == "c++20" else "../../generated/axes.h"
                extra = ("-x", "c++") if standard == "c++11" else ()
                self.assertEqual("", compile_with(REPOSITORY / "generated", source, "g++", f"-std={standard}", *extra))


class Tampered(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.generated = Path(folder.name)
        for name in ("axes.h", "rows.inc", "choices.inc", "kernels.inc"):
            shutil.copy(REPOSITORY / "generated" / name, self.generated)

    def edit(self, name: str, pattern: str, replacement: str) -> None:
        path = self.generated / name
        text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
        self.assertEqual(1, count)
        path.write_text(text, encoding="utf-8")

    def test_row_with_a_wrong_index(self) -> None:
        self.edit("rows.inc", r"^NST_KERNEL\( *0,", "NST_KERNEL(1,")
        self.assertIn("a row is out of its place", compile_tables(self.generated))

    def test_missing_row(self) -> None:
        self.edit("rows.inc", r"^NST_HOLE.*\n", "")
        self.assertIn("the number of rows", compile_tables(self.generated))

    def test_doubled_row(self) -> None:
        self.edit("rows.inc", r"^(NST_HOLE.*\n)", r"\1\1")
        self.assertIn("override-init", compile_tables(self.generated))

    def test_doubled_choice(self) -> None:
        self.edit("choices.inc", r"^(NST_CHOICE.*\n)", r"\1\1")
        self.assertIn("override-init", compile_tables(self.generated))

    def test_choice_with_a_wrong_index(self) -> None:
        self.edit("choices.inc", r"^NST_CHOICE\( *0,", "NST_CHOICE(1,")
        self.assertIn("a choice is out of its place or order", compile_tables(self.generated))

    def test_list_that_lacks_an_operation(self) -> None:
        self.edit("axes.h", r"(#define NST_OP_CONDITIONING \{)0, ", r"\1")
        self.assertIn("conditioning", compile_tables(self.generated))

    def test_public_enum_in_another_order(self) -> None:
        self.edit("axes.h", r"NST_STRATEGY_RING == 5", "NST_STRATEGY_RING == 6")
        self.assertIn("the public header and the tables differ in order", compile_tables(self.generated))


if __name__ == "__main__":
    unittest.main()
