"""Link-time promises: the header's dialects, plain linking, and what lies in the archive."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONSUMER = HERE / "consumer.c"
INCLUDE = HERE.parents[1] / "include"
ARCHIVE = Path(os.environ["NST_BUILD"]) / "libnormstatic.a"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LARGEST_ARCHIVE = 64 << 20


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def symbols(*flags: str) -> list[tuple[str, str]]:
    """(kind, name) of the archive's symbols, as nm prints them."""
    listing = run("nm", *flags, ARCHIVE).stdout
    return [(found[1], found[2]) for found in re.finditer(r"^(?:[0-9a-f]+)? +(\w) (\S+)$", listing, re.MULTILINE)]


def sections() -> list[tuple[str, int, str]]:
    """(name, size, flags) of every section of every member."""
    listing = run("readelf", "--sections", "--wide", ARCHIVE).stdout
    row = re.compile(r"^ +\[ *\d+\] (\S+) +\S+ +[0-9a-f]{16} [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([A-Za-z]*) +\d+",
                     re.MULTILINE)
    return [(found[1], int(found[2], 16), found[3]) for found in row.finditer(listing)]


def functions_of_the_header() -> set[str]:
    """The names of the public functions."""
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / "normstatic.h").read_text(), flags=re.DOTALL)
    return set(re.findall(r"^\w[\w \*]*?\b(nst_\w+)\([^)]*\);", text, re.MULTILINE))


class Header(unittest.TestCase):
    def compile_everywhere(self, source: Path) -> list[tuple[str, int, str]]:
        """(standard, exit status, messages) of each dialect."""
        dialects = [("cc", "c", standard) for standard in ("c99", "c11", "c17")]
        dialects += [("c++", "c++", standard) for standard in ("c++11", "c++17", "c++20")]
        results = []
        for compiler, language, standard in dialects:
            result = run(compiler, f"-std={standard}", *STRICT, "-fsyntax-only", f"-I{INCLUDE}", "-x", language,
                         source)
            results.append((standard, result.returncode, result.stderr))
        return results

    def test_dialects(self) -> None:
        for standard, status, messages in self.compile_everywhere(CONSUMER):
            with self.subTest(standard):
                self.assertEqual((status, messages), (0, ""))

    def test_would_be_found_out(self) -> None:
        """What is not in a standard fails under the same commands."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "extension.c")
            source.write_text("#include \"normstatic.h\"\n__int128 wide;\n")
            for standard, status, _ in self.compile_everywhere(source):
                with self.subTest(standard):
                    self.assertNotEqual(status, 0)

    def test_includes_the_c_library_alone(self) -> None:
        listing = run("cc", "-std=c99", "-M", f"-I{INCLUDE}", "-include", "normstatic.h", "-x", "c",
                      "/dev/null").stdout
        self.assertIn("stdint.h", listing)
        self.assertIsNone(re.search(r"cuda|nvidia", listing, re.IGNORECASE))


class Linking(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name, "program")

    def link(self, *command: object) -> None:
        result = run(*command, "-o", self.program)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_plain_c(self) -> None:
        self.link("cc", "-std=c99", f"-I{INCLUDE}", CONSUMER, ARCHIVE)
        result = run(self.program)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"^nst_rms_norm_fwd_f32_n64_\w+: \w+, success$")
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", self.program).stdout)
        self.assertTrue(needed and all(name.startswith(("libc.so", "ld-linux")) for name in needed), needed)

    def test_plain_cxx(self) -> None:
        self.link("c++", "-std=c++11", f"-I{INCLUDE}", "-x", "c++", CONSUMER, "-x", "none",
                  ARCHIVE)
        result = run(self.program)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_shared_object_exports_the_api_alone(self) -> None:
        self.link("cc", "-shared", "-Wl,--whole-archive", ARCHIVE, "-Wl,--no-whole-archive",
                  "-Wl,--no-undefined")
        listing = run("nm", "-D", "--defined-only", self.program).stdout
        exported = {line.split()[-1] for line in listing.splitlines()}
        self.assertGreater(len(exported), 10)
        self.assertEqual(exported, functions_of_the_header())

    def test_dynamic_process(self) -> None:
        """Whatever nst_open finds on this machine, it does not take a usual process for a static one."""
        self.link("cc", f"-I{INCLUDE}", CONSUMER, ARCHIVE)
        for command in ([self.program, "open"], *self.by_loader("open")):
            result = run(*command)
            self.assertEqual(result.returncode, 0)
            self.assertNotEqual(result.stdout.splitlines()[0], "NST_ERROR_STATIC_EXECUTABLE")

    def by_loader(self, argument: str) -> list[list[object]]:
        """The same process started through the dynamic linker by hand."""
        loader = re.search(r"interpreter: (\S+)\]", run("readelf", "-l", self.program).stdout)
        self.assertIsNotNone(loader)
        return [[loader[1], self.program, argument]] if loader else []

    def test_static_process(self) -> None:
        """A fully static executable gets a clear status."""
        if not Path(run("cc", "-print-file-name=libc.a").stdout.strip()).is_absolute():
            self.skipTest("there is no static C library here")
        for kind in ("-static", "-static-pie"):
            with self.subTest(kind):
                self.link("cc", kind, f"-I{INCLUDE}", CONSUMER, ARCHIVE)
                result = run(self.program)
                self.assertEqual(result.returncode, 0, result.stdout)
                result = run(self.program, "open")
                self.assertEqual(result.returncode, 0, result.stdout)
                status, sentence = result.stdout.splitlines()
                self.assertEqual(status, "NST_ERROR_STATIC_EXECUTABLE")
                self.assertIn("fully static executable", sentence)


class Archive(unittest.TestCase):
    def test_asks_for_the_c_library_alone(self) -> None:
        text = (HERE / "undefined_symbols.txt").read_text()
        allowed = {line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("#")}
        defined = {name for kind, name in symbols() if kind not in "Uwv"}
        undefined = {name for kind, name in symbols() if kind in "Uwv"} - defined
        self.assertIn("dlopen", undefined)
        self.assertEqual(undefined - allowed, set(), "not in tests/link/undefined_symbols.txt")

    def test_defines_its_own_names_alone(self) -> None:
        names = {name for kind, name in symbols() if kind in "TDBRVWC"}
        self.assertTrue(functions_of_the_header() <= names, functions_of_the_header() - names)
        self.assertEqual({name for name in names if not name.startswith("nst_")}, set())

    def test_has_no_state(self) -> None:
        """Writable memory is the threads' own, or turned read-only by the dynamic linker."""
        found = sections()
        self.assertTrue(any(name.startswith(".text") for name, _, _ in found))
        thread_local = [name for name, size, flags in found if "T" in flags and size]
        self.assertEqual(len(thread_local), 1, "the error sentence, and nothing else")
        writable = [(name, size) for name, size, flags in found
                    if "W" in flags and "A" in flags and "T" not in flags and size and
                    not name.startswith(".data.rel.ro")]
        self.assertEqual(writable, [])

    def test_has_no_constructors(self) -> None:
        names = {name for name, _, _ in sections()}
        self.assertEqual({name for name in names if re.match(r"\.(pre)?init_array|\.fini_array|\.[cd]tors", name)},
                         set())

    def test_wants_no_executable_stack(self) -> None:
        members = run("ar", "t", ARCHIVE).stdout.split()
        notes = [flags for name, _, flags in sections() if name == ".note.GNU-stack"]
        self.assertEqual(len(notes), len(members), "a member without the note asks for an executable stack")
        self.assertFalse(any("X" in flags for flags in notes))

    def test_holds_the_image_read_only(self) -> None:
        image = [(size, flags) for name, size, flags in sections() if name == ".rodata.nst_image"]
        self.assertEqual(len(image), 1)
        self.assertGreater(image[0][0], 64)
        self.assertEqual(image[0][1], "A")

    def test_is_not_too_large(self) -> None:
        self.assertLess(Path(ARCHIVE).stat().st_size, LARGEST_ARCHIVE)


def setUpModule() -> None:
    if any(re.match(r"__(asan|ubsan|tsan|msan)_", name) for _, name in symbols()):
        raise unittest.SkipTest("the archive is built with sanitizers, which bring symbols and state of their own")
