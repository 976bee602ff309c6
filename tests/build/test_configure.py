"""configure.py: what it refuses, what it finds, what it leaves in a build folder."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ["NST_BUILD"])  # a configured build folder


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def configure(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
        command = [sys.executable, ROOT / "configure.py", "--build-dir", self.folder, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              env={**os.environ, **environment})

    def variable(self, name: str) -> str:
        text = (self.folder / "build.ninja").read_text()
        return re.search(rf"(?m)^{name} = (.*)$", text)[1]


class Refused(Case):
    def refuse(self, expected: str, *arguments: object) -> None:
        result = self.configure(*arguments)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr.splitlines()[-1], expected)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_archs(self) -> None:
        self.refuse(r"^configure: --archs: 80 is none of 90, 100\.$", "--archs", "90,80")

    def test_sanitizers(self) -> None:
        self.refuse(r"^configure: --sanitizers: memory is none of address, ", "--sanitizers", "memory")

    def test_type(self) -> None:
        self.refuse("invalid choice: 'fast'", "--type", "fast")

    def test_image(self) -> None:
        self.refuse(r"^configure: --image: /none/normstatic\.fatbin is no file", "--image", "/none/normstatic.fatbin")

    def test_nvcc(self) -> None:
        self.refuse(r"^configure: --nvcc: /none/nvcc won't do: it can't be run: No such file or directory\.$", "--nvcc",
                    "/none/nvcc")
        self.refuse(r"won't do: it does not tell its release\.$", "--nvcc", "/bin/true")

    def test_old_nvcc(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            nvcc = Path(folder) / "nvcc"
            nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
            nvcc.chmod(0o755)
            self.refuse(r"won't do: its release is 11\.8, expected 13\.0 or newer\.$", "--nvcc", nvcc)

    def test_folder_name(self) -> None:
        self.refuse(r"has white space", "--build-dir", self.folder / "with blank")

    def test_operations(self) -> None:
        result = self.configure("--ops", "softmax_fwd")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("softmax_fwd", result.stderr)
        self.assertFalse((self.folder / "build.ninja").exists())


class Written(Case):
    def test_options_are_recorded(self) -> None:
        result = self.configure("--archs", "90", "--type", "debug", "--sanitizers", "address,undefined", "--prefix",
                                "/opt/x")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        recorded = self.variable("configure_arguments")
        self.assertEqual(self.variable("prefix"), "/opt/x")
        self.assertIn("-fsanitize=address,undefined", self.variable("sanitizer_flags"))
        first = (self.folder / "build.ninja").read_text()
        self.assertNotIn("sm_100.cubin", first)
        # A rerun, as ninja makes it, writes the same.
        command = [sys.executable, self.variable("root") + "/configure.py", *recorded.split()]
        self.assertEqual(subprocess.run(command, cwd=self.folder, capture_output=True).returncode, 0)
        self.assertEqual((self.folder / "build.ninja").read_text(), first)

    def test_unusable_compiler_is_passed_over(self) -> None:
        fake = self.folder / "bin" / "nvcc"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
        fake.chmod(0o755)
        result = self.configure(PATH=f"{fake.parent}:{os.environ['PATH']}")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"{fake} won't do: its release is 11.8", result.stdout)
        self.assertNotEqual(self.variable("nvcc"), str(fake))

    def test_cuda_home(self) -> None:
        """A compiler in CUDA_HOME is taken where there is none on PATH."""
        nvcc = Path(re.search(r"(?m)^nvcc = (.*)$", (BUILD / "build.ninja").read_text())[1])
        path = ":".join(place for place in os.environ["PATH"].split(":") if not (Path(place) / "nvcc").exists())
        result = self.configure(PATH=path, CUDA_HOME=str(nvcc.parent.parent))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.variable("nvcc"), str(nvcc.parent.parent / "bin" / "nvcc"))

    def test_reduced(self) -> None:
        result = self.configure("--ops", "rms_norm_fwd", "--dtypes", "bf16")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        kernels = sorted(path.name for path in (self.folder / "generated" / "kernels").iterdir())
        self.assertEqual(kernels, ["build_id.cu", "rms_norm_fwd_bf16.cu", "rms_norm_fwd_bf16w32.cu"])
        self.assertEqual(self.variable("generated"), "generated")

    def test_every_test_program_is_run(self) -> None:
        self.assertEqual(self.configure().returncode, 0)
        registered = (self.folder / "CTestTestfile.cmake").read_text()
        for folder in ("unit", "device", "softgpu", "tools"):
            for path in (ROOT / "tests" / folder).glob("test_*.c*"):
                self.assertIn(f'"{self.folder}/tests/{folder}/{path.stem}"', registered)
        for path in (ROOT / "tests").glob("*/test_*.py"):
            self.assertIn(f'"{path.relative_to(ROOT)}"', registered)


class Rebuild(unittest.TestCase):
    def test_a_cubin_depends_on_its_own_source(self) -> None:
        """A change of one kernel file rebuilds that file's cubins alone; a change of a device header all."""
        text = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True).stdout
        found = {}
        for block in text.split("\n\n"):
            target, *reads = block.split("\n")
            if match := re.match(r"kernels/(\w+)\.sm_\w+\.cubin: #deps \d+, .* \(VALID\)", target):
                if match[1] != "build_id":
                    found[target.split(":")[0]] = (match[1], [line.strip() for line in reads])
        self.assertGreater(len(found), 0, "expected a folder in which the kernels were compiled")
        for cubin, (name, reads) in found.items():
            sources = [Path(path).name for path in reads if path.endswith(".cu")]
            self.assertEqual(sources, [f"{name}.cu"], cubin)
            self.assertTrue(any(path.endswith("src/device/simt.cuh") for path in reads), cubin)
            self.assertTrue(any(path.endswith("src/params.h") for path in reads), cubin)

    def test_nothing_to_do(self) -> None:
        """After a build a second one does nothing: every edge's outputs and inputs are told truly."""
        result = subprocess.run(["ninja", "-C", BUILD, "-n"], capture_output=True, text=True)
        self.assertIn("no work to do", result.stdout)


class Install(unittest.TestCase):
    def test_what_is_installed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = ["ninja", "-C", BUILD, "install"]
            result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "DESTDIR": folder})
            self.assertEqual(result.returncode, 0, result.stdout)
            prefix = Path(folder + re.search(r"(?m)^prefix = (.*)$", (BUILD / "build.ninja").read_text())[1])
            found = sorted(str(path.relative_to(prefix)) for path in Path(folder).rglob("*") if path.is_file())
            self.assertEqual(found, ["bin/nst-run", "include/normstatic.h", "lib/libnormstatic.a",
                                     "share/normstatic/normstatic.fatbin"])
            archive = prefix / "lib" / "libnormstatic.a"
            self.assertEqual(archive.read_bytes(), (BUILD / "libnormstatic.a").read_bytes())


if __name__ == "__main__":
    unittest.main()
