"""The model: indexes, names, reduced builds, choices, and what explain says of them."""

from __future__ import annotations

import itertools
import re
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from codegen import model, rules
from codegen.axes import Space, space
from codegen.model import Filter, Model
from codegen.rules import Cell, Config, Hole
from codegen.spec import ANY, ROWS_MAX

from .support import REPOSITORY, TINY, build, render, run, tiny_options

FULL = build(REPOSITORY / "codegen" / "spec")


class Index(unittest.TestCase):
    def assert_bijection(self, found: Space, count: int) -> None:
        self.assertEqual(count, found.count)
        self.assertEqual(list(range(count)), [found.index(coordinates) for coordinates in found])
        self.assertEqual(count, len(set(found)))

    def test_mixed_radix(self) -> None:
        self.assert_bijection(space(("a", "xyz", ""), ("b", "uv", ""), ("c", "pqrs", "")), 24)
        self.assertEqual([8, 4, 1], [axis.stride for axis in space(("a", "xyz", ""), ("b", "uv", ""),
                                                                   ("c", "pqrs", "")).axes])

    def test_full_tables(self) -> None:
        self.assert_bijection(FULL.rows_space, len(FULL.rows))
        self.assert_bijection(FULL.choices_space, len(FULL.choices))

    def test_printed_index_macro(self) -> None:
        """The macro's text gives every row its index."""
        text = render(FULL)["axes.h"]
        found = re.search(r"#define NST_ROWS_INDEX\((.*)\) \\\n  (\(.*\))\n", text)
        assert found is not None
        expression = compile(found[2], "NST_ROWS_INDEX", "eval")
        for row in FULL.rows:
            ordinals = {axis.name: axis.choices.index(choice) for axis, choice in
                        zip(FULL.rows_space.axes, FULL.rows_space.coordinates(row.index))}
            self.assertEqual(found[1].split(", "), list(ordinals))
            self.assertEqual(row.index, eval(expression, {}, ordinals))  # plain arithmetic of our own template

    def test_names_are_unique_and_end_in_kernels_inc(self) -> None:
        names = [row.cell.name for row in FULL.rows]
        self.assertEqual(len(names), len(set(names)))
        printed = re.findall(r"^NST_KERNEL_SYMBOL\(rows, (\w+)\)$", render(FULL)["kernels.inc"], re.MULTILINE)
        self.assertEqual([row.cell.name for row in FULL.kernels], printed)


class Proof(unittest.TestCase):
    """The proof finds what it is there for."""

    def wrong_rows(self, *rows: model.Row) -> list[str]:
        return model.prove(replace(FULL, full_rows=rows))

    def wrong_with(self, choice: model.Choice) -> list[str]:
        """What is wrong if this choice takes the place of its like."""
        choices = [*FULL.choices[:choice.index], choice, *FULL.choices[choice.index + 1:]]
        return model.prove(replace(FULL, choices=tuple(choices)))

    def test_sound(self) -> None:
        self.assertEqual([], model.prove(FULL))

    def test_missing_choice(self) -> None:
        self.assertIn("The index is not a bijection onto the table.",
                      model.prove(replace(FULL, choices=FULL.choices[1:])))

    def test_row_out_of_place(self) -> None:
        a, b, *others = FULL.rows
        found = self.wrong_rows(replace(b, index=0), replace(a, index=1), *others)
        self.assertEqual(2, sum("belongs to other coordinates" in text for text in found))

    def test_doubled_row(self) -> None:
        self.assertIn("Two cells have the same name.", self.wrong_rows(FULL.rows[0], *FULL.rows[:-1]))

    def test_choice_of_a_hole(self) -> None:
        choice = FULL.choices[0]
        hole = next(row.cell for row in FULL.rows if not row.config and row.cell.op == choice.op)
        bad = replace(choice, steps=(replace(choice.steps[0], cell=hole),))
        self.assertIn(f"sm_90 rms_norm_fwd f16 64 exact: {hole.name} is no kernel.", self.wrong_with(bad))

    def test_choice_too_narrow(self) -> None:
        masked = next(choice for choice in FULL.choices if (choice.bucket, choice.access) == (1024, "masked"))
        exact = replace(masked.steps[-1].cell, access="exact")
        shorter = replace(masked.steps[-1].cell, bucket=512)
        for cell in (exact, shorter):
            self.assertEqual([f"sm_90 rms_norm_fwd f16 1024 masked: {cell.name} can't serve it."],
                             self.wrong_with(replace(masked, steps=(model.Step(ROWS_MAX, cell),))))

    def test_choice_without_last_range(self) -> None:
        bad = replace(FULL.choices[0], steps=(replace(FULL.choices[0].steps[-1], rows_up_to=5),))
        self.assertEqual(["sm_90 rms_norm_fwd f16 64 exact: no kernel serves such a call with any number of rows."],
                         self.wrong_with(bad))

    def test_impossible_shapes(self) -> None:
        row = FULL.kernels[0]
        for config, text in (
            (Config(100, 100, 8), "100 threads are not whole warps up to 1024"),
            (Config(128, 128, 8, smem=232449), "232449 bytes of shared memory are more than 232448"),
            (Config(128, 128, 8, cluster=16), "a cluster of 16 is larger than 8"),
            (Config(128, 2, 2), "1 x 2 x 2 vectors do not hold 8"),
        ):
            with self.subTest(text):
                found = self.wrong_rows(replace(row, outcome=config), *FULL.rows[1:])
                self.assertEqual([f"{row.cell.name}: {text}."], found)


class Rules(unittest.TestCase):
    def test_every_hole_has_a_reason(self) -> None:
        for row in FULL.holes:
            assert isinstance(row.outcome, Hole)
            self.assertGreater(len(row.outcome.reason.split()), 3, row.cell.name)

    def test_general_cells_exist_for_powers_of_two_only(self) -> None:
        for row in FULL.kernels:
            c = row.cell
            if c.bucket != ANY and c.bucket & (c.bucket - 1):
                self.assertEqual(("exact", c.types.data), (c.access, c.types.weight), c.name)

    def test_every_strategy_has_kernels_of_every_type(self) -> None:
        """But for the layer norms in a ring."""
        found = {(row.cell.op.name, row.cell.types.name, row.cell.strategy) for row in FULL.kernels}
        missing = {(op.name, types.name, strategy.name) for op in FULL.spec.ops for types in FULL.spec.types
                   for strategy in FULL.spec.strategies if rules.occurs(op, types)} - found
        self.assertEqual({(op.name, types.name, "ring") for op in FULL.spec.ops for types in FULL.spec.types
                          if op.statistic == "moments" and rules.occurs(op, types)}, missing)

    def test_operations_without_weights_have_no_cells_of_weights_alone(self) -> None:
        for row in FULL.rows:
            if not rules.occurs(row.cell.op, row.cell.types):
                self.assertEqual(Hole("the operation has no weights, and conditioning has the data's type"),
                                 row.outcome)
        self.assertEqual({"ada_layer_norm_fwd", "ada_layer_norm_zero_fwd"},
                         {row.cell.op.name for row in FULL.rows if not rules.occurs(row.cell.op, row.cell.types)})

    def test_shared_memory_holds_every_word(self) -> None:
        """The reductions' memory by strategy: sums of squares are one number, the layer norms' moments two."""
        for row in FULL.kernels:
            assert row.config is not None
            name, config = row.cell.name, row.config
            statistic = 4 if "rms_norm" in name else 8
            each = statistic * config.threads
            exchanged = each + statistic * 32 * config.cluster + 16
            streams = len(row.cell.op.inputs) + len(row.cell.op.conditioning)
            slot = streams * config.threads * config.vectors * 16
            needed = {"warp": 0, "block": each, "persist": config.slots * (slot + 8) + 2 * each, "reread": each,
                      "cluster": exchanged + -exchanged % 128, "loop": exchanged + -exchanged % 128,
                      "ring": config.slots * 16384 + 4 * statistic * 512 * config.cluster + 512}
            self.assertEqual(needed[row.cell.strategy], config.smem, name)

    def test_hints(self) -> None:
        for row in FULL.kernels:
            assert row.config is not None
            expected = "NONE" if row.cell.access == "unaligned" else "EVICT_LAST"
            self.assertEqual(expected, row.config.hint, row.cell.name)

    def test_default_choices_are_in_range(self) -> None:
        for v in (0, 1, 8, 128, 129, 511, 512, 1023, 1024, 2047, 2048, 4096, 4097, 8192, 16384, 32768, 65536):
            for op, access in itertools.product(FULL.spec.ops, rules.ACCESSES):
                limits = [rows for rows, _ in rules.default_choice(op, v, access)]
                self.assertEqual(sorted(set(limits)), limits)
                self.assertEqual(ROWS_MAX, limits[-1])
                self.assertLessEqual(len(limits), 4)


class Choices(unittest.TestCase):
    def test_modelled_choices_are_the_measured_ones(self) -> None:
        tiny = build()
        half = len(tiny.choices) // 2
        for mine, theirs in zip(tiny.choices[:half], tiny.choices[half:], strict=True):
            self.assertEqual(mine.steps, theirs.steps)
            self.assertEqual("MODELLED", theirs.source)
        self.assertEqual(["MEASURED"] + ["DEFAULT"] * (half - 1), [choice.source for choice in tiny.choices[:half]])

    def test_choices_for_calls_that_do_not_occur_end_at_a_hole(self) -> None:
        kernels = {row.cell for row in FULL.kernels}
        found = [choice for choice in FULL.choices if not rules.occurs(choice.op, choice.types)]
        self.assertEqual(2 * 2 * 2 * len(FULL.spec.buckets) * 3, len(found))  # archs, operations, types
        for choice in found:
            self.assertEqual(1, len(choice.steps))
            self.assertNotIn(choice.steps[0].cell, kernels)

    def test_a_bucket_that_is_exact_only_sends_the_rest_on(self) -> None:
        found = {(c.types.name, c.bucket, c.access): c.steps[-1].cell for c in FULL.choices
                 if rules.occurs(c.op, c.types)}
        self.assertEqual((768, "exact"), _place(found["bf16", 768, "exact"]))
        self.assertEqual((1024, "masked"), _place(found["bf16", 768, "masked"]))
        self.assertEqual((1024, "unaligned"), _place(found["bf16", 768, "unaligned"]))
        self.assertEqual((1024, "masked"), _place(found["bf16w32", 768, "exact"]))
        self.assertEqual((1024, "masked"), _place(found["bf16w32", 1024, "exact"]))
        self.assertEqual((ANY, "masked"), _place(found["bf16", ANY, "masked"]))


def _place(cell: Cell) -> tuple[int, str]:
    return cell.bucket, cell.access


class Reduced(unittest.TestCase):
    def reasons(self, built: Model) -> set[tuple[str, str, str]]:
        return {(row.cell.op.name, row.cell.types.name, row.outcome.reason) for row in built.rows
                if isinstance(row.outcome, Hole) and row.outcome.reason.startswith("left out")}

    def test_the_shape_stays(self) -> None:
        whole, part = build(), build(kept=Filter(ops=("rms_norm_fwd",)))
        self.assertEqual([row.cell for row in whole.rows], [row.cell for row in part.rows])
        self.assertEqual(whole.choices, part.choices)
        for before, after in zip(whole.rows, part.rows, strict=True):
            if after.cell.op.name == "rms_norm_fwd":
                self.assertEqual(before, after)
            else:
                self.assertEqual(Hole("left out of this build by --ops rms_norm_fwd"), after.outcome)
        left_out = {"kernels/fused_add_rms_norm_fwd_bf16.cu", "kernels/fused_add_rms_norm_fwd_bf16w32.cu"}
        self.assertEqual(set(render(whole)) - left_out, set(render(part)))

    def test_dtypes_count_by_the_data(self) -> None:
        full = build(REPOSITORY / "codegen" / "spec", Filter(dtypes=("bf16", "f32")))
        reason = "left out of this build by --dtypes bf16,f32"
        self.assertEqual({(op.name, types, reason) for op in full.spec.ops for types in ("f16", "f16w32")},
                         self.reasons(full))
        self.assertEqual({"bf16", "f32", "bf16w32"}, {row.cell.types.name for row in full.kernels})

    def test_printed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            result = run("all", "--ops", "fused_add_rms_norm_fwd", *tiny_options(out))
            self.assertEqual(0, result.returncode, result.stderr)
            rows = (out / "rows.inc").read_text(encoding="utf-8")
            line = next(line for line in rows.splitlines() if line.startswith("NST_") and " 0," in line)
            self.assertEqual('NST_HOLE(   0, RMS_NORM_FWD, BF16, 512, WARP, EXACT,     '
                             '"left out of this build by --ops fused_add_rms_norm_fwd")', line)
            self.assertIn("`python3 -m codegen all --ops fused_add_rms_norm_fwd`", rows)
            self.assertNotIn(" nst_rms_norm_fwd_", (out / "kernels.inc").read_text(encoding="utf-8"))
            self.assertEqual((TINY / "expected" / "axes.h").read_text(encoding="utf-8").splitlines()[2:],
                             (out / "axes.h").read_text(encoding="utf-8").splitlines()[2:])


class Explain(unittest.TestCase):
    maxDiff = None

    def explain(self, name: str, *options: str) -> tuple[int, str, str]:
        result = run("explain", name, "--spec", TINY / "spec", *options)
        return result.returncode, result.stdout, result.stderr

    def test_kernel(self) -> None:
        self.assertEqual((0, """\
nst_rms_norm_fwd_bf16_n512_warp_unaligned

index           1
op              rms_norm_fwd (0 of 2, stride 24)
types           bf16 (0 of 2, stride 12)
bucket          512 (0 of 3, stride 4)
strategy        warp (0 of 2, stride 2)
access          unaligned (1 of 2, stride 1)

threads         128
lanes           16 (threads of a block that share a row)
vectors         4 (of 16 bytes, that a thread holds; 64 in a row)
cluster         1 (blocks that share a row)
rows_per_block  8
blocks_per_sm   not limited
slots           none
smem            0 bytes
launch bounds   (128, 1)
hint            none

chosen for
  sm_90 n = 512, exact: rows 65 to 512 (measured, 2 us)
  sm_90 n 1 to 512, unaligned: any rows (default)
  sm_100 n = 512, exact: rows 65 to 512 (modelled, 2 us)
  sm_100 n 1 to 512, unaligned: any rows (modelled)
""", ""), self.explain("nst_rms_norm_fwd_bf16_n512_warp_unaligned"))

    def test_hole(self) -> None:
        self.assertEqual((0, """\
nst_rms_norm_fwd_bf16_nany_warp_exact

index           8
op              rms_norm_fwd (0 of 2, stride 24)
types           bf16 (0 of 2, stride 12)
bucket          any (2 of 3, stride 4)
strategy        warp (0 of 2, stride 2)
access          exact (0 of 2, stride 1)

hole            a bucket without limit has no compile-time shape

chosen for
  nothing
""", ""), self.explain("nst_rms_norm_fwd_bf16_nany_warp_exact"))

    def test_left_out(self) -> None:
        status, text, _ = self.explain("nst_rms_norm_fwd_bf16_n512_warp_exact", "--ops", "fused_add_rms_norm_fwd")
        self.assertEqual(0, status)
        self.assertIn("hole            left out of this build by --ops fused_add_rms_norm_fwd\n", text)

    def test_unknown(self) -> None:
        self.assertEqual((1, "", """\
nst_rms_norm_fwd_bf16_n513_warp_exact: no such cell; a name is nst_<op>_<types>_n<bucket>_<strategy>_<access> with
  op        rms_norm_fwd, fused_add_rms_norm_fwd
  types     bf16, bf16w32
  bucket    512, 768, any
  strategy  warp, loop
  access    exact, unaligned
"""), self.explain("nst_rms_norm_fwd_bf16_n513_warp_exact"))

    def test_every_cell_of_the_full_table(self) -> None:
        status = run("explain", FULL.rows[-1].cell.name)
        self.assertEqual((0, ""), (status.returncode, status.stderr))
        self.assertIn(f"index           {len(FULL.rows) - 1}\n", status.stdout)

    def test_command_line(self) -> None:
        for arguments in (("explain",), ("all", "nst_x"), ("nothing",), ()):
            with self.subTest(arguments):
                self.assertEqual(2, run(*arguments).returncode)

    def test_coverage_command_prints_the_page(self) -> None:
        result = run("coverage", "--spec", TINY / "spec")
        self.assertEqual((TINY / "expected" / "coverage.md").read_text(encoding="utf-8"), result.stdout)


if __name__ == "__main__":
    unittest.main()
