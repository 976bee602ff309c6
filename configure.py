#!/usr/bin/env python3
"""Writes build.ninja and CTestTestfile.cmake into a build folder; then `ninja -C build` builds everything.

The rules (how a kind of file is made) stand in build.ninja.in, the edges (what is made from what) are written here.
Ninja runs this script again, with the arguments it was first given, when something that it reads has changed.
"""

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FAKE_CUPTI = ROOT / "tests" / "perf" / "fake_cupti.c"  # a shared object, not a part of the test programs beside it
VENV = ROOT / "build" / "venv"  # what comes from PyPI, shared by all build folders
NVCC_RELEASE = (13, 0)
CUDA_WHEELS = [f"nvidia-{part}==13.0.*" for part in ("cuda-nvcc", "nvvm", "cuda-crt", "cuda-runtime", "cuda-cccl")]
CUPTI_WHEEL = "nvidia-cuda-cupti==13.0.*"
SANITIZERS = ("address", "undefined", "thread", "leak")
PARTS = {"device.walk": 8}  # long test programs that take --part I/N, as so many tests
TYPE_FLAGS = {"release": ("-O2", ""), "debug": ("-O0 -g", "-lineinfo")}  # of the host's compiler, of nvcc


def fail(sentence: str) -> None:
    sys.exit(f"configure: {sentence}")


def note(sentence: str) -> None:
    print(f"configure: {sentence}")


# ---- Options -----------------------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def absolute(text: str) -> Path:
    return Path(os.path.abspath(text))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Writes the build files of normstatic.")
    parser.add_argument("--build-dir", type=absolute, default=ROOT / "build", metavar="DIR", help="default: build")
    parser.add_argument("--archs", type=names, metavar="A,B", help="compute capabilities, such as 90; default: all")
    parser.add_argument("--nvcc", type=absolute, metavar="FILE", help="default: from PATH, CUDA_HOME, /usr/local/cuda, "
                        "or NVIDIA's wheels, which are then installed into build/venv")
    parser.add_argument("--prefix", type=absolute, default=Path("/usr/local"), metavar="DIR",
                        help="where `ninja install` puts things; default: %(default)s")
    parser.add_argument("--type", choices=TYPE_FLAGS, default="release", help="default: %(default)s")
    parser.add_argument("--sanitizers", type=names, default=[], metavar="A,B",
                        help=f"for the host's code, of {', '.join(SANITIZERS)}")
    parser.add_argument("--ops", metavar="A,B", help="a reduced library: only these operations")
    parser.add_argument("--dtypes", metavar="A,B", help="a reduced library: only these data types")
    parser.add_argument("--image", type=absolute, metavar="FILE",
                        help="a normstatic.fatbin of the same sources, taken instead of compiling the kernels")
    options = parser.parse_args()
    for name in options.sanitizers:
        if name not in SANITIZERS:
            fail(f"--sanitizers: {name} is none of {', '.join(SANITIZERS)}.")
    if options.image and not options.image.is_file():
        fail(f"--image: {options.image} is no file; expected a normstatic.fatbin.")
    for folder in (ROOT, options.build_dir):
        if re.search(r"[\s$:'\"]", str(folder)):
            fail(f"the folder '{folder}' has white space, quotes, $ or : in its name, which the build's commands can't "
                 "take.")
    return options


# ---- What comes from outside --------------------------------------------------------------------------------------


def install_wheels(packages: Iterable[str], *flags: str) -> bool:
    """Installs packages from PyPI into VENV."""
    note(f"installing {' '.join(packages)} into {VENV}")
    if not (VENV / "bin" / "python").exists():
        if subprocess.run([sys.executable, "-m", "venv", VENV]).returncode:
            fail(f"python3 can't make a virtual environment in {VENV}; on Debian that takes the package python3-venv.")
    pip = [VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*pip, *flags, *packages]).returncode == 0


def find_python() -> Path:
    """A Python that has Jinja2, which the generator needs."""
    if importlib.util.find_spec("jinja2"):
        return Path(sys.executable)
    if not any(VENV.glob("lib/python3*/site-packages/jinja2")) and not install_wheels(["jinja2"]):
        fail("Jinja2 is not installed and PyPI can't be reached; on Debian the package python3-jinja2 has it.")
    return VENV / "bin" / "python"


@dataclass
class Toolkit:
    nvcc: Path

    @property
    def include(self) -> Path:
        """The folder of cuda.h."""
        places = [self.nvcc.parent.parent / "include", self.nvcc.resolve().parent.parent / "include",
                  Path("/usr/include")]
        for folder in places:
            if (folder / "cuda.h").exists():
                return folder
        fail(f"{self.nvcc} has no cuda.h beside it; expected it in {places[0]}.")

    @property
    def cupti_include(self) -> Path | None:
        """The folder of cupti.h; None where it can't be had."""
        wheel = next(iter(VENV.glob("lib/python3*/site-packages/nvidia/cu13/include")), None)
        for folder in (self.include, self.include.parent / "extras" / "CUPTI" / "include", wheel):
            if folder and (folder / "cupti.h").exists():
                return folder
        if install_wheels([CUPTI_WHEEL], "--no-deps"):
            return next(VENV.glob("lib/python3*/site-packages/nvidia/cu13/include"))
        note("there is no cupti.h and PyPI can't be reached: nst-bench and its tests are left out.")
        return None

    def problem(self) -> str | None:
        """Why this compiler won't do."""
        try:
            text = subprocess.run([self.nvcc, "--version"], capture_output=True, text=True).stdout
        except OSError as error:
            return f"it can't be run: {error.strerror}"
        release = re.search(r"release (\d+)\.(\d+)", text)
        if not release:
            return "it does not tell its release"
        if (int(release[1]), int(release[2])) < NVCC_RELEASE:
            return f"its release is {release[1]}.{release[2]}, expected {NVCC_RELEASE[0]}.{NVCC_RELEASE[1]} or newer"
        if not (self.nvcc.parent / "fatbinary").exists():
            return "there is no fatbinary beside it"
        return None


def find_toolkit(chosen: Path | None) -> Toolkit:
    if chosen:
        if problem := Toolkit(chosen).problem():
            fail(f"--nvcc: {chosen} won't do: {problem}.")
        return Toolkit(chosen)
    places = [shutil.which("nvcc"), os.environ.get("CUDA_HOME") and os.environ["CUDA_HOME"] + "/bin/nvcc",
              "/usr/local/cuda/bin/nvcc"]
    for place in places:
        if place and Path(place).exists():
            toolkit = Toolkit(absolute(place))
            if not (problem := toolkit.problem()):
                return toolkit
            note(f"{place} won't do: {problem}.")
    wheel = "lib/python3*/site-packages/nvidia/cu13/bin/nvcc"
    if not any(VENV.glob(wheel)):
        note("there is no CUDA compiler on PATH, in CUDA_HOME or in /usr/local/cuda: NVIDIA's wheels are taken.")
        if not install_wheels(CUDA_WHEELS):
            fail("no CUDA compiler was found and PyPI can't be reached; name one with --nvcc.")
    toolkit = Toolkit(next(VENV.glob(wheel)))
    if problem := toolkit.problem():
        fail(f"{toolkit.nvcc} won't do: {problem}.")
    return toolkit


# ---- build.ninja -------------------------------------------------------------------------------------------------


class Ninja:
    """The text of a build.ninja as it grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.defaults: list[str] = []

    def comment(self, text: str) -> None:
        self.lines += ["", f"# {text}"]

    def variables(self, values: dict[str, object]) -> None:
        self.lines += [f"{name} = {value}" for name, value in values.items()]

    def build(self, output: str, rule: str, inputs: Iterable[object], *, implicit: Iterable[object] = (),
              validations: Iterable[object] = (), also: str = "", default: bool = False, **variables: object) -> str:
        """One edge; `also` names further outputs. Returns the output."""
        line = " ".join(["build", output, *([f"| {also}"] if also else [])]) + f": {rule}"
        line += "".join(f" {name}" for name in inputs)
        for mark, group in (("|", list(implicit)), ("|@", list(validations))):
            line += f" {mark} {' '.join(map(str, group))}" if group else ""
        self.lines += [line, *(f"  {name} = {value}" for name, value in variables.items())]
        if default:
            self.defaults.append(output)
        return output


@dataclass
class Test:
    name: str
    command: list[object]
    folder: Path | None = None  # where it runs; None: the build folder
    minutes: int = 5
    alone: bool = False  # not beside other tests, since it takes times


class Build:
    """The edges of one build folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.dir: Path = options.build_dir
        self.root = os.path.relpath(ROOT, self.dir)
        self.python = find_python()
        self.toolkit = find_toolkit(options.nvcc)
        self.generated = self.find_generated()
        self.ninja = Ninja()
        self.cupti = self.toolkit.cupti_include
        self.tests: list[Test] = []
        self.tests_on_device: list[Test] = []

    def source(self, path: Path) -> str:
        """A source file's name as the build folder sees it."""
        return f"$root/{path.relative_to(ROOT)}"

    def sources(self, pattern: str) -> list[Path]:
        return sorted(path for path in ROOT.glob(pattern) if path.is_file())

    def find_generated(self) -> Path:
        """The folder of the printed files: the repository's, or a reduced one in the build folder."""
        if self.options.ops is None and self.options.dtypes is None:
            return ROOT / "generated"
        folder = self.dir / "generated"
        command = [self.python, "-m", "codegen", "all", "--out", folder]
        for name in ("ops", "dtypes"):
            if (value := getattr(self.options, name)) is not None:
                command += [f"--{name}", value]
        if subprocess.run(command, cwd=ROOT).returncode:
            fail("the generator refused --ops or --dtypes; it says why above.")
        return folder

    def cubins(self) -> dict[str, list[str]]:
        """The cubins of each arch, from the edges that the generator printed."""
        found: dict[str, list[str]] = {}
        for line in (self.generated / "kernels.ninja").read_text().splitlines():
            if match := re.match(r"build \$builddir/(kernels/\w+\.sm_(\w+)\.cubin):", line):
                found.setdefault(match[2], []).append(match[1])
        for arch in self.options.archs or found:
            if arch not in found:
                fail(f"--archs: {arch} is none of {', '.join(found)}.")
        return {arch: found[arch] for arch in self.options.archs or found}

    # ---- Parts ----

    def head(self) -> None:
        # Recorded with their values, so that a rerun does not depend on where it runs.
        options = self.options
        arguments = ["--build-dir", ".", "--type", options.type, "--prefix", options.prefix]
        for name, value in (("archs", options.archs), ("sanitizers", options.sanitizers)):
            arguments += [f"--{name}", ",".join(value)] if value else []
        for name in ("nvcc", "ops", "dtypes", "image"):
            value = getattr(options, name)
            arguments += [f"--{name}", value] if value is not None else []
        sanitizers, soft_optimisation = "", "-O1"
        if options.sanitizers:
            # As long to compile as to run: with -O1, or with every check, compiling takes twice as long, with -O0
            # or checks out of line running. A null pointer, too, ends at the address checks.
            soft_optimisation = "-Og -fno-sanitize=null,pointer-overflow,object-size,vptr"
            sanitizers = f"-fsanitize={','.join(options.sanitizers)} -fno-sanitize-recover=all "
            sanitizers += "-fno-omit-frame-pointer -g"
        generated = self.root + "/generated" if self.generated.parent == ROOT else "generated"
        nvcc = self.toolkit.nvcc
        self.ninja.lines.append("# Written by configure.py; not to be edited.")
        self.ninja.variables({
            "root": self.root, "generated": generated, "python": self.python, "prefix": options.prefix,
            "nvcc": nvcc, "fatbinary": nvcc.parent / "fatbinary",
            "cuda_include": self.toolkit.include, "type_flags": TYPE_FLAGS[options.type][0],
            "nvcc_type_flags": TYPE_FLAGS[options.type][1], "sanitizer_flags": sanitizers,
            "soft_optimisation": soft_optimisation,
            "configure_arguments": shlex.join(map(str, arguments)),
        })
        self.ninja.lines += ["", (ROOT / "build.ninja.in").read_text()]

    def image(self) -> None:
        """normstatic.fatbin."""
        ninja = self.ninja
        ninja.comment("The kernel image")
        if self.options.image:
            ninja.build("normstatic.fatbin", "copy", [self.options.image], default=True)
            return
        ninja.lines.append("include $generated/kernels.ninja")
        images, every = [], []
        for arch, cubins in self.cubins().items():
            images += [f"--image3=kind=elf,sm={arch},file={cubin}" for cubin in cubins]
            every += cubins
        ninja.build("resources.txt", "resources", every, default=True,
                    implicit=["$root/tools/resources.py", "$root/tools/data/spills.json"])
        ninja.build("normstatic.fatbin", "fatbinary", every, validations=["resources.txt"], default=True,
                    images=" ".join(images))

    def object(self, path: Path, flags: str = "", suffix: str = "") -> str:
        output = f"{path.relative_to(ROOT).with_suffix('')}{suffix}.o"
        rule = "cxx" if path.suffix == ".cpp" else "cc"
        return self.ninja.build(output, rule, [self.source(path)], **({"flags": flags} if flags else {}))

    def library(self) -> None:
        self.ninja.comment("The library")
        objects = [self.object(path, "-I$root/src -I$generated $cuda_headers") for path in self.sources("src/*.c")]
        objects.append(self.ninja.build("src/embed.o", "embed", ["$root/src/embed.S"], implicit=["normstatic.fatbin"]))
        self.ninja.build("libnormstatic.a", "ar", objects, default=True)

    def soft_device(self) -> None:
        self.ninja.comment("The software device")
        parts = [path for path in self.sources("tests/softgpu/*.cpp") if not path.name.startswith("test_")]
        objects = [self.object(path, "$cuda_headers") for path in parts]
        for path in sorted((self.generated / "kernels").glob("*.cu")):
            if path.name != "build_id.cu":
                objects.append(self.ninja.build(f"tests/softgpu/{path.stem}.o", "softkernels",
                                                [f"$generated/kernels/{path.name}"]))
        self.ninja.build("libsoftgpu.a", "ar", objects)

    def tools(self) -> None:
        """What the programs share, and nst-run."""
        self.ninja.comment("Programs")
        shared = [path for path in self.sources("tools/*.c") if path.name != "run.c"]
        objects = [self.object(path) for path in shared]
        self.ninja.build("libtools.a", "ar", objects)
        soft = self.object(ROOT / "tools" / "gpu.c", "-DNST_WITH_SOFTGPU", "_soft")
        self.ninja.build("libtools_soft.a", "ar", [soft, *(name for name in objects if name != "tools/gpu.o")])
        self.program("nst-run", [self.object(ROOT / "tools" / "run.c")], soft=True)
        self.ninja.build("sample/x.npy", "sample", ["$root/tools/data/gettysburg.txt"],
                         implicit=["$root/tools/hidden_states.py"], also="sample/weight.npy sample/residual.npy")
        self.ninja.build("demo", "demo", [], implicit=["nst-run", "sample/x.npy"])

    def program(self, name: str, inputs: list[str], libraries: str = "", soft: bool = False,
                implicit: Iterable[str] = ()) -> str:
        archives = ["libtools_soft.a", "libsoftgpu.a"] if soft else ["libtools.a"]
        return self.ninja.build(name, "link_soft" if soft else "link", [*inputs, *archives, "libnormstatic.a"],
                                implicit=implicit, default=True, libraries=f"{libraries} -lm -ldl -lpthread".strip())

    def bench(self) -> None:
        """nst-bench, and the archive of its parts for their tests."""
        flags = f"-I$root/tools -isystem {self.cupti} $cuda_headers"
        objects = [self.object(path, flags) for path in self.sources("perf/*.c")]
        main = objects.pop(objects.index("perf/bench.o"))
        archive = self.ninja.build("libbench.a", "ar", objects)
        # The archive form of jansson, so that the program can be carried to a machine with a card.
        self.program("nst-bench", [main, archive], libraries="-l:libjansson.a")
        # The library and the reader of CUPTI's records, for perf/compare.py.
        if not self.options.sanitizers:
            self.ninja.build("libcompare.so", "shared_library", ["perf/records.o", "perf/problem.o"],
                             implicit=["libnormstatic.a"], default=True)

    def c_tests(self, folder: str, flags: str = "", inputs: Iterable[str] = (), libraries: str = "",
                implicit: Iterable[str] = ()) -> list[Test]:
        """A program for each tests/FOLDER/test_* and bench_*; other C files there are shared by all of them."""
        flags = f"-DNST_WITH_SOFTGPU -I$root/tools -I$root/tests/softgpu -I$root/src -I$generated {flags} $cuda_headers"
        sources = self.sources(f"tests/{folder}/*.c") + self.sources(f"tests/{folder}/test_*.cpp")
        mains = [path for path in sources if path.name.startswith(("test_", "bench_"))]
        shared = [self.object(path, flags) for path in sources if path not in mains and path != FAKE_CUPTI]
        tests = []
        for path in mains:
            program = str(path.relative_to(ROOT).with_suffix(""))
            self.program(program, [self.object(path, flags), *shared, *inputs], f"-lcmocka {libraries}".strip(),
                         soft=True, implicit=implicit)
            name = f"{folder}.{path.stem.removeprefix('test_')}"
            test = Test(name, [self.dir / program], folder=ROOT, minutes=15, alone=path.name.startswith("bench_"))
            parts = PARTS.get(name, 1)
            tests += [test] if parts == 1 else [
                replace(test, name=f"{name}.{part}", command=[*test.command, "--part", f"{part}/{parts}"])
                for part in range(1, parts + 1)]
        return tests

    def perf_tests(self) -> list[Test]:
        fake = self.ninja.build("tests/perf/libfake_cupti.so", "shared_object", [self.source(FAKE_CUPTI)],
                                flags=f"-I$root/perf -isystem {self.cupti} $cuda_headers")
        return self.c_tests("perf", f"-I$root/perf -isystem {self.cupti}", ["libbench.a"], "-l:libjansson.a", [fake])

    def python_tests(self, folder: str) -> list[Test]:
        return [Test(f"{folder}.{path.stem.removeprefix('test_')}",
                     [self.python, "-m", "unittest", path.relative_to(ROOT)], folder=ROOT)
                for path in self.sources(f"tests/{folder}/test_*.py")]

    def all_tests(self) -> None:
        self.ninja.comment("Tests")
        self.tests += self.c_tests("unit")
        for folder in ("softgpu", "device", "tools"):
            self.tests_on_device += self.c_tests(folder)
        if self.cupti:
            self.tests_on_device += self.perf_tests()
        self.tests_on_device += self.python_tests("tools")
        if not self.options.sanitizers:
            self.tests.append(Test("codegen.check", [self.python, "-m", "codegen", "check"], folder=ROOT))
            for folder in ("build", "golden", "link", "perf", "unit"):
                self.tests += self.python_tests(folder)

    def tail(self) -> None:
        ninja = self.ninja
        ninja.comment("Targets")
        ninja.build("all", "phony", ninja.defaults)
        ninja.build("test", "test", [], implicit=["all"])
        ninja.build("install", "install", [], implicit=["libnormstatic.a", "normstatic.fatbin", "nst-run"])
        # A folder counts because a new file in it may be a new edge.
        reads = [ROOT / "configure.py", ROOT / "build.ninja.in", self.generated / "kernels.ninja"]
        reads += [ROOT / name for name in ("src", "tools", "perf")] + sorted((ROOT / "tests").iterdir())
        if self.generated.parent != ROOT:
            reads += [path for pattern in ("codegen/*.py", "codegen/*/*", "src/params.h", "src/device/*")
                      for path in self.sources(pattern)]
        ninja.comment("This file")
        ninja.build("build.ninja", "configure", [], also="CTestTestfile.cmake",
                    implicit=[os.path.relpath(path, self.dir) for path in reads])
        ninja.lines += ["", "default all", ""]

    def ctest(self) -> str:
        """CTestTestfile.cmake. With a build with sanitizers below this folder, one run of ctest covers both."""
        every = [test.name for test in self.tests + self.tests_on_device]
        if twice := {name for name in every if every.count(name) > 1}:
            fail(f"two tests have the name {', '.join(sorted(twice))}: a C file and a Python file in one folder.")
        here = [line for test in self.tests for line in self.ctest_lines(test)]
        on_device = [line for test in self.tests_on_device for line in self.ctest_lines(test)]
        if not self.options.sanitizers:
            on_device = ["", "# What runs on the software device runs with sanitizers where they are built.",
                         f'if(EXISTS "{self.dir}/sanitized/CTestTestfile.cmake")', "  subdirs(sanitized)",
                         "else()", *(f"  {line}" for line in on_device), "endif()"]
        return "\n".join(["# Written by configure.py; not to be edited.", *here, *on_device, ""])

    def ctest_lines(self, test: Test) -> list[str]:
        name = f"{test.name}.sanitized" if self.options.sanitizers else test.name
        command = " ".join(f'"{part}"' for part in test.command)
        # Without byte code files, whose folders would look like changed folders of sources.
        environment = f"NST_BUILD={self.dir};NST_DEVICE=soft;PYTHONDONTWRITEBYTECODE=1"
        return [f'add_test("{name}" {command})',
                f'set_tests_properties("{name}" PROPERTIES TIMEOUT {60 * test.minutes} RUN_SERIAL {test.alone} '
                f'WORKING_DIRECTORY "{test.folder or self.dir}" ENVIRONMENT "{environment}")']

    def write(self) -> None:
        self.head()
        self.image()
        self.library()
        self.soft_device()
        self.tools()
        if self.cupti:
            self.bench()
        self.all_tests()
        self.tail()
        (self.dir / "CTestTestfile.cmake").write_text(self.ctest())
        (self.dir / "build.ninja").write_text("\n".join(self.ninja.lines))


def main() -> None:
    options = read_options()
    options.build_dir.mkdir(parents=True, exist_ok=True)
    build = Build(options)
    build.write()
    note(f"the build files are in {os.path.relpath(options.build_dir)}, kernels by {build.toolkit.nvcc}.")


if __name__ == "__main__":
    main()
