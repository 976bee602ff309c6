"""nst-run on the software device: right results from good files, one sentence and no output for bad ones."""

import math
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.tools.arrays import Array, encode, header, read, round_to, write

RUN = Path(os.environ["NST_BUILD"]) / "nst-run"
ULP = {"f16": 2**-10, "bf16": 2**-7, "f32": 2**-20}  # a little more than one, relative


def sample(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Values without a pattern, exact in the type."""
    values = [round_to(dtype, 3 * math.sin(seed + 1.7 * i) + math.cos(i * i)) for i in range(math.prod(shape))]
    return Array(dtype, shape, values)


def rms_norm(x: list[float], n: int, weight: list[float], eps: float = 1e-6) -> tuple[list[float], list[float]]:
    y, rstd = [], []
    for start in range(0, len(x), n):
        row = x[start : start + n]
        rstd.append(1 / math.sqrt(math.fsum(v * v for v in row) / n + eps))
        y += [v * rstd[-1] * w for v, w in zip(row, weight)]
    return y, rstd


def layer_norm(x: list[float], n: int, factor: list[float], addend: list[float],
               eps: float = 1e-5) -> tuple[list[float], list[float], list[float]]:
    """y, mean and rstd; factor and addend have an element for each of x."""
    y, means, rstd = [], [], []
    for start in range(0, len(x), n):
        row = x[start : start + n]
        means.append(math.fsum(row) / n)
        rstd.append(1 / math.sqrt(math.fsum((v - means[-1]) ** 2 for v in row) / n + eps))
        y += [(v - means[-1]) * rstd[-1] * factor[start + i] + addend[start + i] for i, v in enumerate(row)]
    return y, means, rstd


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, array: Array, version: int = 1) -> Path:
        return write(self.folder / name, array, version)

    def run_tool(self, *arguments: object, device: str = "soft") -> subprocess.CompletedProcess:
        command = [RUN, *arguments, *(["--device", device] if device else [])]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=self.folder)

    def assert_close(self, got: Array, expected: list[float], absolute: float = 0) -> None:
        self.assertEqual(len(got.values), len(expected))
        for place, (a, b) in enumerate(zip(got.values, expected)):
            self.assertLessEqual(abs(a - b), ULP[got.dtype] * abs(b) + absolute, f"element {place}: {a}, expected {b}")


class Good(Case):
    def check_rms_norm(self, dtype: str, weight_dtype: str, shape: tuple[int, ...], version: int = 1) -> None:
        n = shape[-1]
        x, weight = sample(dtype, shape, 1), sample(weight_dtype, (n,), 2)
        result = self.run_tool("rms_norm_fwd", "--x", self.write("x.npy", x, version), "--weight",
                               self.write("w.npy", weight), "-o", "y.npy", "--rstd", "rstd.npy", "--dtype", dtype)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        y, rstd = rms_norm(x.values, n, weight.values)
        got = read(self.folder / "y.npy", dtype)
        self.assertEqual(got.shape, shape)
        self.assert_close(got, y)
        got = read(self.folder / "rstd.npy", "f32")
        self.assertEqual(got.shape, shape[:-1])
        self.assert_close(got, rstd)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["rstd.npy", "w.npy", "x.npy", "y.npy"])

    def test_types(self) -> None:
        for dtype, weight_dtype in (("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("f16", "f32"), ("bf16", "f32")):
            with self.subTest(dtype=dtype, weight_dtype=weight_dtype):
                self.check_rms_norm(dtype, weight_dtype, (3, 256))

    def test_shapes(self) -> None:
        for shape in ((7,), (1,), (1, 1), (2, 3, 5), (4, 1, 2, 64), (2, 1000)):
            with self.subTest(shape=shape):
                self.check_rms_norm("f32", "f32", shape)

    def test_format_versions(self) -> None:
        for version in (1, 2, 3):
            with self.subTest(version=version):
                self.check_rms_norm("f16", "f16", (2, 8), version)

    def test_fused_add(self) -> None:
        x, residual, weight = sample("f16", (5, 96), 1), sample("f16", (5, 96), 2), sample("f16", (96,), 3)
        result = self.run_tool("fused_add_rms_norm_fwd", "--x", self.write("x.npy", x), "--residual",
                               self.write("r.npy", residual), "--weight", self.write("w.npy", weight), "-o", "y.npy",
                               "--residual-out", "s.npy", "--eps", "0.5", "--weight-offset", "1")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        total = [a + b for a, b in zip(x.values, residual.values)]
        self.assertEqual(read(self.folder / "s.npy", "f16").values, [round_to("f16", value) for value in total])
        y, _ = rms_norm(total, 96, [value + 1 for value in weight.values], eps=0.5)
        self.assert_close(read(self.folder / "y.npy", "f16"), y)

    def check_layer_norm(self, dtype: str, weight_dtype: str, with_weight: bool, with_bias: bool) -> None:
        rows, n = 3, 200
        x = sample(dtype, (rows, n), 1)
        weight, bias = sample(weight_dtype, (n,), 2), sample(weight_dtype, (n,), 3)
        given = ["--weight", self.write("w.npy", weight)] if with_weight else []
        given += ["--bias", self.write("b.npy", bias)] if with_bias else []
        result = self.run_tool("layer_norm_fwd", "--x", self.write("x.npy", x), *given, "-o", "y.npy", "--mean",
                               "mean.npy", "--rstd", "rstd.npy", "--dtype", dtype)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        y, means, rstd = layer_norm(x.values, n, (weight.values if with_weight else [1.0] * n) * rows,
                                    (bias.values if with_bias else [0.0] * n) * rows)
        self.assert_close(read(self.folder / "y.npy", dtype), y, 1e-5)
        for name, expected in (("mean", means), ("rstd", rstd)):
            got = read(self.folder / f"{name}.npy", "f32")
            self.assertEqual(got.shape, (rows,))
            self.assert_close(got, expected, 1e-6)

    def test_layer_norm(self) -> None:
        for dtype, weight_dtype in (("f16", "f16"), ("bf16", "f32"), ("f32", "f32")):
            for with_weight, with_bias in ((True, True), (True, False), (False, True), (False, False)):
                with self.subTest(dtype=dtype, weight=with_weight, bias=with_bias):
                    self.check_layer_norm(dtype, weight_dtype, with_weight, with_bias)

    def test_fused_add_layer_norm(self) -> None:
        x, residual, weight, bias = (sample("f16", shape, seed) for seed, shape in
                                     enumerate(((5, 96), (5, 96), (96,), (96,)), 1))
        result = self.run_tool("fused_add_layer_norm_fwd", "--x", self.write("x.npy", x), "--residual",
                               self.write("r.npy", residual), "--weight", self.write("w.npy", weight), "--bias",
                               self.write("b.npy", bias), "-o", "y.npy", "--residual-out", "s.npy", "--mean", "m.npy",
                               "--eps", "0.5")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        total = [a + b for a, b in zip(x.values, residual.values)]
        self.assertEqual(read(self.folder / "s.npy", "f16").values, [round_to("f16", value) for value in total])
        y, means, _ = layer_norm(total, 96, weight.values * 5, bias.values * 5, eps=0.5)
        self.assert_close(read(self.folder / "y.npy", "f16"), y, 1e-5)
        self.assert_close(read(self.folder / "m.npy", "f32"), means, 1e-6)

    def check_ada_layer_norm(self, per: int, shape: tuple[int, ...], cond_shape: tuple[int, ...],
                             names: tuple[str, ...]) -> None:
        n, rows = shape[-1], math.prod(shape[:-1])
        x = sample("f32", shape, 1)
        conditions = {name: sample("f32", cond_shape, seed) for seed, name in enumerate(names, 2)}
        given = [part for name in names for part in (f"--{name}", self.write(f"{name}.npy", conditions[name]))]
        op = "ada_layer_norm_zero_fwd" if "gate" in names else "ada_layer_norm_fwd"
        result = self.run_tool(op, "--x", self.write("x.npy", x), *given, "--rows-per-cond", per, "-o", "y.npy")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

        def spread(name: str, absent: float) -> list[float]:
            values = conditions[name].values if name in names else [absent] * n * rows
            return [values[row // per * n + i] for row in range(rows) for i in range(n)]

        y, _, _ = layer_norm(x.values, n, [1 + v for v in spread("scale", 0)], spread("shift", 0))
        y = [value * gate for value, gate in zip(y, spread("gate", 1))]
        got = read(self.folder / "y.npy", "f32")
        self.assertEqual(got.shape, shape)
        self.assert_close(got, y, 2e-5)

    def test_ada_layer_norm(self) -> None:
        every = ("scale", "shift", "gate")
        for per, shape, cond_shape, names in (
            (1, (4, 64), (4, 64), every), (3, (2, 3, 64), (2, 64), every), (3, (2, 3, 64), (2, 1, 64), every[:2]),
            (4, (6, 40), (2, 40), every), (100, (6, 40), (40,), every), (2, (4, 33), (2, 33), ("gate",)),
            (1, (3, 8), (3, 8), ("shift",)), (2, (3, 8), (2, 8), ("scale",)),
        ):
            with self.subTest(per=per, shape=shape, names=names):
                self.check_ada_layer_norm(per, shape, cond_shape, names)

    def test_default_eps(self) -> None:
        self.write("x.npy", Array("f32", (1, 4), [1e-3, -1e-3, 1e-3, -1e-3]))
        for op, eps in (("rms_norm_fwd", 1e-6), ("layer_norm_fwd", 1e-5), ("ada_layer_norm_fwd", 1e-5)):
            self.assertEqual(self.run_tool(op, "--x", "x.npy", "-o", "y.npy", "--rstd", "q.npy").returncode, 0)
            self.assert_close(read(self.folder / "q.npy", "f32"), [1 / math.sqrt(1e-6 + eps)])

    def test_without_weight(self) -> None:
        x = sample("f32", (2, 40), 1)
        result = self.run_tool("rms_norm_fwd", "--x", self.write("x.npy", x), "-o", "y.npy")
        self.assertEqual(result.returncode, 0)
        self.assert_close(read(self.folder / "y.npy", "f32"), rms_norm(x.values, 40, [1.0] * 40)[0])

    def test_rounding_flags(self) -> None:
        x, residual, weight = sample("bf16", (4, 64), 1), sample("bf16", (4, 64), 2), sample("bf16", (64,), 3)
        for name, array in (("x.npy", x), ("r.npy", residual), ("w.npy", weight)):
            self.write(name, array)
        total = [round_to("bf16", a + b) for a, b in zip(x.values, residual.values)]
        normal, _ = rms_norm(total, 64, [1.0] * 64)
        result = self.run_tool("fused_add_rms_norm_fwd", "--x", "x.npy", "--residual", "r.npy", "--weight", "w.npy",
                               "-o", "y.npy", "--dtype", "bf16", "--flags", "round-residual,round-before-weight")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        y = [round_to("bf16", round_to("bf16", v) * w) for v, w in zip(normal, weight.values * 4)]
        self.assertEqual(read(self.folder / "y.npy", "bf16").values, y)

    def test_no_rows(self) -> None:
        result = self.run_tool("rms_norm_fwd", "--x", self.write("x.npy", Array("f16", (0, 64), [])), "-o", "y.npy",
                               "--rstd", "rstd.npy")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(read(self.folder / "y.npy", "f16").shape, (0, 64))
        self.assertEqual(read(self.folder / "rstd.npy", "f32").shape, (0,))

    def test_output_may_replace_input(self) -> None:
        x = sample("f32", (2, 16), 1)
        self.write("x.npy", x)
        self.assertEqual(self.run_tool("rms_norm_fwd", "--x", "x.npy", "-o", "x.npy").returncode, 0)
        self.assert_close(read(self.folder / "x.npy", "f32"), rms_norm(x.values, 16, [1.0] * 16)[0])

    def test_report(self) -> None:
        self.write("x.npy", sample("f16", (300, 4096), 1))
        result = self.run_tool("rms_norm_fwd", "--x", "x.npy", "-o", "y.npy")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^device .*software device")
        self.assertRegex(result.stdout, r"(?m)^kernel    nst_rms_norm_fwd_f16_n4096_\w+_exact$")
        self.assertRegex(result.stdout, r"(?m)^launch    \d+ blocks of \d+ threads")
        self.assertRegex(result.stdout, r"(?m)^accuracy  at most 0\.5\d* ulp of f16")
        self.assertNotRegex(result.stdout, r"(?m)^time")  # the software device's times mean nothing

    def test_help_and_version(self) -> None:
        result = self.run_tool("--help", device="")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("usage: nst-run", result.stdout)
        result = self.run_tool("--version", device="")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^normstatic \d+\.\d+\.\d+, build [0-9a-f]{16}\n$")

    def test_no_card(self) -> None:
        self.write("x.npy", sample("f16", (2, 8), 1))
        card = self.run_tool("rms_norm_fwd", "--x", "x.npy", "-o", "y.npy", device="card")
        if card.returncode == 0:
            self.skipTest("this machine has a card")
        self.assertEqual(card.returncode, 3)
        self.assertRegex(card.stderr, r"^nst-run: [^\n]+\.\n$")
        self.assertFalse((self.folder / "y.npy").exists())
        auto = self.run_tool("rms_norm_fwd", "--x", "x.npy", "-o", "y.npy", device="auto")
        self.assertEqual(auto.returncode, 0)
        self.assertRegex(auto.stderr, r"^nst-run: the software device is used: [^\n]+\.\n$")


class Bad(Case):
    """Each wrong file or command: exit status 2, one sentence that says what is wrong, and nothing written."""

    def setUp(self) -> None:
        super().setUp()
        self.write("x.npy", sample("f16", (3, 64), 1))
        self.write("r.npy", sample("f16", (3, 64), 2))
        self.write("w.npy", sample("f16", (64,), 3))

    def refuse(self, expected: str, *arguments: object, device: str = "soft") -> None:
        before = sorted(self.folder.iterdir())
        result = self.run_tool(*arguments, device=device)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"^nst-run: [^\n]*\n$")
        self.assertRegex(result.stderr, expected)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def refuse_file(self, expected: str, content: bytes) -> None:
        """The content as x, as the residual and as the weight."""
        (self.folder / "bad.npy").write_bytes(content)
        for option, others in (("--x", ["--residual", "r.npy"]), ("--residual", ["--x", "x.npy"]),
                               ("--weight", ["--x", "x.npy", "--residual", "r.npy"])):
            with self.subTest(option=option):
                self.refuse(f"{option}: bad.npy {expected}", "fused_add_rms_norm_fwd", option, "bad.npy", *others, "-o",
                            "y.npy", "--residual-out", "s.npy", "--rstd", "q.npy")

    def test_missing(self) -> None:
        self.refuse(r"--x: none\.npy can't be opened: No such file", "rms_norm_fwd", "--x", "none.npy", "-o", "y.npy")
        self.refuse(r"--weight: none\.npy can't be opened", "rms_norm_fwd", "--x", "x.npy", "--weight", "none.npy",
                    "-o", "y.npy")

    def test_no_file(self) -> None:
        self.refuse(r"--x: \. is not a regular file", "rms_norm_fwd", "--x", ".", "-o", "y.npy")

    def test_not_numpy(self) -> None:
        self.refuse_file("is not a NumPy file", b"")
        self.refuse_file("is not a NumPy file", b"row,column\n1,2\n")
        self.refuse_file("is not a NumPy file", b"PK\x03\x04" + bytes(100))

    def test_truncated(self) -> None:
        whole = header("<f2", (3, 64)) + encode("f16", [1.0] * 192)
        for length in range(10, len(whole), 7):
            self.refuse_file("is truncated", whole[:length])

    def test_too_long(self) -> None:
        self.refuse_file(r"is too long: its shape and type need 384 bytes of data, it has 385",
                         header("<f2", (3, 64)) + encode("f16", [1.0] * 192) + b"x")

    def test_version(self) -> None:
        self.refuse_file(r"has NumPy format version 4\.0", header("<f2", (1,), version=4) + bytes(2))

    def test_other_element_types(self) -> None:
        for descr in ("<f8", ">f2", "<i4", "|u1", "<c8", "|O"):
            self.refuse_file(rf"holds elements of NumPy type '{re.escape(descr)}'", header(descr, (2,)) + bytes(32))
        structured = header("<f2", (2,)).replace(b"'<f2'", b"[('a', '<f2')]")
        self.refuse_file("holds a structured or unknown element type", structured + bytes(4))

    def test_fortran_order(self) -> None:
        self.refuse_file("is in Fortran order", header("<f2", (3, 64), fortran=True) + bytes(384))

    def test_malformed_header(self) -> None:
        good = header("<f2", (3, 64))
        for old, new in ((b"descr", b"descs"), (b"{", b"["), (b"(3, 64)", b"(3 64) "), (b"(3, 64)", b"(3,-64)"),
                         (b"False", b"Maybe"), (b"'shape'", b"'descr'"), (b"}", b" "), (b"64)", b"6e)")):
            with self.subTest(new=new):
                self.refuse_file("has a malformed NumPy header", good.replace(old, new) + bytes(384))

    def test_huge_shapes(self) -> None:
        self.refuse_file("has a shape too large", header("<f2", (2**40, 2**40)))
        self.refuse_file("is truncated", header("<f2", (2**40,)))
        self.refuse_file("has a malformed NumPy header", header("<f2", (2**70,)))
        self.refuse_file("has a malformed NumPy header", header("<f2", (1,) * 33) + bytes(2))

    def test_wrong_types(self) -> None:
        self.write("f32.npy", sample("f32", (3, 64), 1))
        self.write("u16.npy", sample("bf16", (3, 64), 1))
        self.write("w16.npy", sample("bf16", (64,), 1))
        run = ("rms_norm_fwd", "-o", "y.npy")
        self.refuse(r"--x: u16\.npy holds uint16; expected f16 or f32, or --dtype bf16", *run, "--x", "u16.npy")
        self.refuse(r"--x: x\.npy holds f16; expected uint16 because of --dtype bf16", *run, "--x", "x.npy", "--dtype",
                    "bf16")
        self.refuse(r"--x: f32\.npy holds f32; expected f16", *run, "--x", "f32.npy", "--dtype", "f16")
        self.refuse(r"--weight: w16\.npy holds uint16; expected f16 as in x, or f32", *run, "--x", "x.npy", "--weight",
                    "w16.npy")
        self.refuse(r"--residual: f32\.npy holds f32; expected f16 as in x", "fused_add_rms_norm_fwd", "--x", "x.npy",
                    "--residual", "f32.npy", "-o", "y.npy")

    def test_wrong_shapes(self) -> None:
        self.write("flat.npy", sample("f16", (192,), 1))
        self.write("square.npy", sample("f16", (8, 8), 1))
        self.write("scalar.npy", sample("f16", (), 1))
        self.write("narrow.npy", Array("f16", (3, 0), []))
        self.refuse(r"--x: scalar\.npy has the shape \[\]", "rms_norm_fwd", "--x", "scalar.npy", "-o", "y.npy")
        self.refuse(r"--x: narrow\.npy has the shape \[3, 0\]", "rms_norm_fwd", "--x", "narrow.npy", "-o", "y.npy")
        self.refuse(r"--residual: flat\.npy has the shape \[192\]; expected \[3, 64\] as x", "fused_add_rms_norm_fwd",
                    "--x", "x.npy", "--residual", "flat.npy", "-o", "y.npy")
        for name in ("flat", "square", "scalar"):
            self.refuse(rf"--weight: {name}\.npy has the shape \[.*\]; expected \[64\] as the rows of x",
                        "rms_norm_fwd", "--x", "x.npy", "--weight", f"{name}.npy", "-o", "y.npy")

    def test_wrong_bias(self) -> None:
        run = ("layer_norm_fwd", "--x", "x.npy", "-o", "y.npy")
        self.write("b32.npy", sample("f32", (64,), 1))
        self.write("long.npy", sample("f16", (65,), 1))
        self.write("u16.npy", sample("bf16", (64,), 1))
        self.refuse(r"--bias: none\.npy can't be opened", *run, "--bias", "none.npy")
        self.refuse(r"--bias: u16\.npy holds uint16; expected f16 as in x, or f32", *run, "--bias", "u16.npy")
        self.refuse(r"--bias: b32\.npy holds f32; expected f16 as in the weight", *run, "--weight", "w.npy", "--bias",
                    "b32.npy")
        self.refuse(r"--bias: long\.npy has the shape \[65\]; expected \[64\] as the rows of x", *run, "--bias",
                    "long.npy")

    def test_wrong_conditioning(self) -> None:
        self.write("c32.npy", sample("f32", (3, 64), 1))
        self.write("narrow.npy", sample("f16", (3, 63), 1))
        self.write("two.npy", sample("f16", (2, 64), 1))
        self.write("flat.npy", sample("f16", (192,), 1))
        self.write("scalar.npy", sample("f16", (), 1))
        for name in ("scale", "shift", "gate"):
            run = ("ada_layer_norm_zero_fwd", "--x", "x.npy", "-o", "y.npy", f"--{name}")
            self.refuse(rf"--{name}: none\.npy can't be opened", *run, "none.npy")
            self.refuse(rf"--{name}: c32\.npy holds f32; expected f16 as in x", *run, "c32.npy")
            for bad, shape in (("narrow", r"3, 63"), ("two", "2, 64"), ("flat", "192"), ("scalar", "")):
                self.refuse(rf"--{name}: {bad}\.npy has the shape \[{shape}\]; expected \[\.\.\., 64\] with 3 rows in "
                            "all, one for each 1 of x", *run, f"{bad}.npy")
            self.refuse(rf"--{name}: r\.npy has the shape \[3, 64\]; expected \[\.\.\., 64\] with 2 rows in all, one "
                        "for each 2 of x", *run, "r.npy", "--rows-per-cond", "2")

    def test_outputs(self) -> None:
        run = ("rms_norm_fwd", "--x", "x.npy")
        for path, reason in (("none/y.npy", "No such file or directory"), (".", "it is not a regular file"),
                             ("/dev/null", "it is not a regular file")):
            result = self.run_tool(*run, "-o", "y.npy", "--rstd", path)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stderr, f"nst-run: --rstd: {path} can't be written: {reason}.\n")
            self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["r.npy", "w.npy", "x.npy"])

    def test_failure_keeps_old_output(self) -> None:
        (self.folder / "y.npy").write_bytes(b"precious")
        self.refuse("can't be opened", "rms_norm_fwd", "--x", "none.npy", "-o", "y.npy")
        self.assertEqual((self.folder / "y.npy").read_bytes(), b"precious")

    def test_command_line(self) -> None:
        x, y = ("--x", "x.npy"), ("-o", "y.npy")
        for expected, arguments in (
            ("expected one operation, got 0", (*x, *y)),
            ("expected one operation, got 2", ("rms_norm_fwd", "more", *x, *y)),
            ("the operation is 'rms_norm'; expected one of rms_norm_fwd, fused_add_rms_norm_fwd, layer_norm_fwd, "
             "fused_add_layer_norm_fwd, ada_layer_norm_fwd, ada_layer_norm_zero_fwd", ("rms_norm", *x, *y)),
            ("--x is missing", ("rms_norm_fwd", *y)),
            ("-o is missing", ("rms_norm_fwd", *x)),
            ("--residual is missing", ("fused_add_rms_norm_fwd", *x, *y)),
            ("--residual is given; rms_norm_fwd has no residual", ("rms_norm_fwd", *x, *y, "--residual", "r.npy")),
            ("--residual-out is given; rms_norm_fwd", ("rms_norm_fwd", *x, *y, "--residual-out", "s.npy")),
            ("--residual is missing", ("fused_add_layer_norm_fwd", *x, *y)),
            ("--bias is given; rms_norm_fwd has no bias", ("rms_norm_fwd", *x, *y, "--bias", "w.npy")),
            ("--mean is given; fused_add_rms_norm_fwd has no mean", ("fused_add_rms_norm_fwd", *x, *y, "--residual",
                                                                     "r.npy", "--mean", "m.npy")),
            ("--scale is given; layer_norm_fwd has no scale", ("layer_norm_fwd", *x, *y, "--scale", "r.npy")),
            ("--shift is given; rms_norm_fwd has no shift", ("rms_norm_fwd", *x, *y, "--shift", "r.npy")),
            ("--gate is given; ada_layer_norm_fwd has no gate", ("ada_layer_norm_fwd", *x, *y, "--gate", "r.npy")),
            ("--weight is given; ada_layer_norm_fwd has no weight", ("ada_layer_norm_fwd", *x, *y, "--weight",
                                                                     "w.npy")),
            ("--weight-offset is given; layer_norm_fwd has no weight_offset", ("layer_norm_fwd", *x, *y,
                                                                               "--weight-offset", "0")),
            ("--weight-offset is given; ada_layer_norm_fwd", ("ada_layer_norm_fwd", *x, *y, "--weight-offset", "1")),
            ("--rows-per-cond is given; layer_norm_fwd has no rows_per_cond", ("layer_norm_fwd", *x, *y,
                                                                               "--rows-per-cond", "1")),
            *((f"--rows-per-cond is '{text}'; expected a whole number from 1 to 2147483647",
               ("ada_layer_norm_fwd", *x, *y, "--rows-per-cond", text))
              for text in ("0", "2147483648", "2.5", "x", "")),
            ("--eps is 'small'; expected a finite number", ("rms_norm_fwd", *x, *y, "--eps", "small")),
            ("--eps is 'nan'", ("rms_norm_fwd", *x, *y, "--eps", "nan")),
            ("--eps is '1e99'", ("rms_norm_fwd", *x, *y, "--eps", "1e99")),
            ("eps", ("rms_norm_fwd", *x, *y, "--eps", "-1")),  # the library's own sentence
            ("--weight-offset is '1x'", ("rms_norm_fwd", *x, *y, "--weight-offset", "1x")),
            ("--dtype is 'f64'; expected one of f16, bf16, f32", ("rms_norm_fwd", *x, *y, "--dtype", "f64")),
            ("--flags is 'fast'; expected one of round-residual", ("rms_norm_fwd", *x, *y, "--flags",
                                                                   "weight-ready,fast")),
        ):
            with self.subTest(arguments=arguments):
                self.refuse(expected, *arguments)
        self.refuse("--device is 'gpu'; expected one of auto, card, soft", "rms_norm_fwd", *x, *y, device="gpu")
        result = self.run_tool("rms_norm_fwd", *x, *y, "--colour", "red")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--colour", result.stderr)


if __name__ == "__main__":
    unittest.main()
