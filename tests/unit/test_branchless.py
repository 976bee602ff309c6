"""The selection compiles to no conditional jump: the object code in the archive is disassembled and read."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ARCHIVE = Path(os.environ["NST_BUILD"]) / "libnormstatic.a"
FUNCTION = "nst_select"

# Whatever leaves the straight line, calls included, which could hide a jump: x86-64 and AArch64.
DEPARTURES = re.compile(r"j\w+|loop\w*|call\w*|b|b\.\w+|bl|blr|br|cbn?z|tbn?z|xbegin")
PREFIXES = {"bnd", "notrack", "repz", "rep"}

# Functions in the place of nst_select that must be found out.
BRANCHY = {
    "a test": "void other(void); unsigned nst_select(unsigned n) { if (n > 64) other(); return n; }",
    "a loop": "unsigned nst_select(unsigned n) { while (n > 9) { __asm__ volatile(\"\"); n /= 2; } return n; }",
    "a switch": "void a(void); void b(void); void c(void); unsigned nst_select(unsigned n)"
                " { switch (n) { case 1: a(); break; case 2: b(); break; case 7: c(); } return n; }",
    "a short circuit": "int other(void); unsigned nst_select(unsigned n) { return n > 64 && other(); }",
    "a call": "unsigned other(unsigned n); unsigned nst_select(unsigned n) { return other(n) + 1; }",
}


def instructions(path: Path) -> list[str]:
    """The instructions of the function, from an object file or an archive."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True,
                             text=True).stdout
    found: list[str] = []
    inside = False
    for line in listing.splitlines():
        head = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if head:
            inside = head[1] == FUNCTION or head[1].startswith(FUNCTION + ".")
        elif inside and re.match(r"\s+[0-9a-f]+:\t", line):
            found.append(line.split("\t", 1)[1].strip())
    return found


def departures(code: list[str]) -> list[str]:
    """The instructions that jump, branch or call."""
    result = []
    for instruction in code:
        words = [word for word in instruction.split() if word not in PREFIXES]
        if words and DEPARTURES.fullmatch(words[0]):
            result.append(instruction)
    return result


def setUpModule() -> None:
    names = subprocess.run(["nm", ARCHIVE], check=True, capture_output=True, text=True).stdout
    if re.search(r" U __(asan|ubsan|tsan|msan)_", names):
        raise unittest.SkipTest("the archive is built with sanitizers, which bring jumps of their own")


class Selection(unittest.TestCase):
    def test_is_straight_code(self) -> None:
        code = instructions(ARCHIVE)
        self.assertGreater(len(code), 20, f"{FUNCTION} is not in {ARCHIVE}, or is nothing like a selection")
        self.assertTrue(any(line.split()[0].startswith("ret") for line in code), f"{FUNCTION} does not return")
        self.assertEqual(departures(code), [], f"{FUNCTION} leaves the straight line")

    def test_would_be_found_out(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, source in BRANCHY.items():
                with self.subTest(name):
                    unit = Path(folder, "branchy.c")
                    unit.write_text(source + "\n")
                    subprocess.run(["cc", "-O2", "-c", unit, "-o", Path(folder, "branchy.o")], check=True)
                    code = instructions(Path(folder, "branchy.o"))
                    self.assertNotEqual(departures(code), [], "this form would pass for straight code")
