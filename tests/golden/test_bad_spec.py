"""Bad input: each problem gives one sentence with file and place, all at once, and nothing is generated."""

from __future__ import annotations

import copy
import json
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .support import TINY, run, tiny_json

AXES = tiny_json("axes.json")
TUNING = tiny_json("tuning-sm_90.json")


class BadSpec(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.spec, self.out = Path(folder.name) / "spec", Path(folder.name) / "out"
        self.spec.mkdir()
        self.write("axes.json", AXES)
        self.write("tuning-sm_90.json", TUNING)

    def write(self, name: str, value: Any) -> None:
        (self.spec / name).write_text(json.dumps(value), encoding="utf-8")

    def assert_problems(self, expected: list[str], *options: str) -> None:
        result = run("all", "--spec", self.spec, "--sources", TINY / "src", "--out", self.out, *options)
        self.assertEqual([*expected, "codegen: nothing was generated."], result.stderr.splitlines())
        self.assertEqual((1, ""), (result.returncode, result.stdout))
        self.assertFalse(self.out.exists(), "nothing may be generated")

    def axes(self, change: Callable[[Any], object]) -> None:
        value = copy.deepcopy(AXES)
        change(value)
        self.write("axes.json", value)

    def tuning(self, change: Callable[[Any], object]) -> None:
        value = copy.deepcopy(TUNING)
        change(value)
        self.write("tuning-sm_90.json", value)

    def test_the_unchanged_spec_is_sound(self) -> None:
        result = run("all", "--spec", self.spec, "--sources", TINY / "src", "--out", self.out)
        self.assertEqual((0, ""), (result.returncode, result.stderr))

    # ---- axes.json ----

    def test_missing_file(self) -> None:
        (self.spec / "axes.json").unlink()
        self.assert_problems(["axes.json: can't be read (No such file or directory)."])

    def test_not_json(self) -> None:
        (self.spec / "axes.json").write_text('{\n  "ops": [,]\n}\n', encoding="utf-8")
        self.assert_problems(["axes.json: line 2, column 11: is not JSON (Expecting value)."])

    def test_not_utf_8(self) -> None:
        (self.spec / "axes.json").write_bytes(b'{"\xff"}')
        self.assert_problems(["axes.json: byte 2: is not UTF-8."])

    def test_key_twice(self) -> None:
        (self.spec / "axes.json").write_text('{"ops": [], "ops": []}', encoding="utf-8")
        self.assert_problems(['axes.json: the key "ops" stands twice in one object.'])

    def test_not_an_object(self) -> None:
        self.write("axes.json", [1])
        self.assert_problems(
            ["axes.json: is [1], expected an object with dtypes, ops, types, buckets, strategies, accesses, archs."])

    def test_keys(self) -> None:
        def change(axes: Any) -> None:
            del axes["ops"]
            axes["operations"] = []

        self.axes(change)
        self.assert_problems([
            'axes.json: the key "operations" is unknown, expected dtypes, ops, types, buckets, strategies, accesses, '
            "archs.",
            'axes.json: the key "ops" is missing.',
        ])

    def test_many_problems_at_once(self) -> None:
        def change(axes: Any) -> None:
            axes["dtypes"][0]["bytes"] = 3
            axes["ops"][0]["name"] = "RMS"
            axes["ops"][0]["statistic"] = "mean"
            axes["ops"][0]["inputs"] = []
            axes["ops"][1].update(inputs=["residual", "x"], parameters="weight", conditioning=["scale"])
            axes["types"][0]["data"] = "f8"
            axes["types"][1] = {"name": "bf16w32", "data": "bf16"}
            axes["buckets"] = [512, 500, "any", 772]
            axes["strategies"][0]["name"] = "wrap"
            axes["accesses"][1]["description"] = None
            axes["archs"][0]["capability"] = 9.0
            axes["archs"][1]["modelled_from"] = "sm_80"

        self.axes(change)
        self.assert_problems([
            "axes.json: dtypes[0].bytes: is 3, expected 1, 2, 4 or 8.",
            'axes.json: ops[0].name: is "RMS", expected a name of a-z, 0-9 and _ that starts with a letter.',
            'axes.json: ops[0].statistic: is "mean", expected one of squares, moments.',
            'axes.json: ops[0].inputs: is [], expected ["x"] or ["x", "residual"].',
            'axes.json: ops[1].inputs: is ["residual", "x"], expected ["x"] or ["x", "residual"].',
            'axes.json: ops[1].parameters: is "weight", expected [] or ["weight"] or ["weight", "bias"].',
            'axes.json: ops[1].conditioning: is ["scale"], expected [] or ["scale", "shift"] or '
            '["scale", "shift", "gate"].',
            'axes.json: types[0].data: is "f8", expected one of bf16, f32.',
            'axes.json: types[1]: the key "weight" is missing.',
            'axes.json: strategies[0].name: is "wrap", expected one of warp, block, persist, reread, cluster, ring, '
            "loop.",
            "axes.json: accesses[1].description: is null, expected text.",
            "axes.json: archs[0].capability: is 9.0, expected a whole number from 90 to 999.",
            'axes.json: archs[1].modelled_from: is "sm_80", expected one of sm_90.',
            "axes.json: buckets[1]: is 500 after 512, expected ascending buckets.",
            'axes.json: buckets[2]: "any" must be the last bucket.',
            'axes.json: buckets: the last bucket must be "any", so that no length is left out.',
        ])

    def test_names_twice(self) -> None:
        def change(axes: Any) -> None:
            axes["ops"].append(axes["ops"][0])
            axes["types"].append(axes["types"][1])
            axes["buckets"] = [512, 512, "any"]

        self.axes(change)
        self.assert_problems([
            'axes.json: ops: "rms_norm_fwd" stands twice.',
            'axes.json: types: "bf16w32" stands twice.',
            "axes.json: buckets[1]: is 512 after 512, expected ascending buckets.",
        ])

    def test_bucket_that_ends_within_a_vector(self) -> None:
        self.axes(lambda axes: axes.update(buckets=[500, "any"]))
        self.assert_problems(
            ["axes.json: buckets[0]: is 500, expected a multiple of 8, so that rows end on a 16-byte vector."])

    def test_accesses_out_of_order(self) -> None:
        self.axes(lambda axes: axes["accesses"].reverse())
        self.assert_problems(
            ["axes.json: accesses: are not in the order from narrow to general: exact, masked, unaligned."])

    def test_empty_axis(self) -> None:
        self.axes(lambda axes: axes.update(ops=[]))
        self.assert_problems(["axes.json: ops: is [], expected a list that is not empty."])

    def test_calls_that_nothing_serves(self) -> None:
        def change(axes: Any) -> None:
            del axes["strategies"][1], axes["ops"][1], axes["types"][1], axes["archs"][1]

        self.axes(change)
        self.tuning(lambda tuning: tuning.update(entries=[]))
        self.assert_problems([
            "sm_90 rms_norm_fwd bf16 768 unaligned: no kernel serves such a call with any number of rows.",
            "sm_90 rms_norm_fwd bf16 any exact: no kernel serves such a call with any number of rows.",
            "sm_90 rms_norm_fwd bf16 any unaligned: no kernel serves such a call with any number of rows.",
        ])

    # ---- tuning ----

    def test_no_tuning_file(self) -> None:
        (self.spec / "tuning-sm_90.json").unlink()
        self.assert_problems(["tuning-sm_90.json: can't be read (No such file or directory)."])

    def test_entry_without_origin(self) -> None:
        self.tuning(lambda tuning: tuning.update(device="", date=3))
        self.assert_problems([
            "tuning-sm_90.json: device: is empty, but measured entries must say where they come from.",
            "tuning-sm_90.json: date: is 3, expected text.",
        ])

    def test_bad_coordinates(self) -> None:
        self.tuning(lambda tuning: tuning["entries"][0].update(op="rms", types="f32", bucket=513, access="masked"))
        self.assert_problems([
            'tuning-sm_90.json: entries[0].op: is "rms", expected one of rms_norm_fwd, fused_add_rms_norm_fwd.',
            'tuning-sm_90.json: entries[0].types: is "f32", expected one of bf16, bf16w32.',
            "tuning-sm_90.json: entries[0].bucket: is 513, expected one of 512, 768, any.",
            'tuning-sm_90.json: entries[0].access: is "masked", expected one of exact, unaligned.',
        ])

    def test_entry_twice(self) -> None:
        self.tuning(lambda tuning: tuning["entries"].append(tuning["entries"][0]))
        self.assert_problems(
            ["tuning-sm_90.json: entries[1]: rms_norm_fwd bf16 512 exact stands in entries[0] already."])

    def test_bad_ranges(self) -> None:
        def change(tuning: Any) -> None:
            ranges = tuning["entries"][0]["ranges"]
            ranges[0].update(time_us=0)
            ranges[1].update(rows_up_to=0)
            ranges[2].update(rows_up_to=99, access="masked", faster=True)
            ranges.extend([{"rows_up_to": 99, "strategy": "warp", "time_us": 1},
                           {"rows_up_to": 100, "strategy": "warp", "time_us": 1}])

        self.tuning(change)
        at = "tuning-sm_90.json: entries[0].ranges"
        self.assert_problems([
            f"{at}: has 5 ranges, expected at most 4.",
            f"{at}[0].time_us: is 0, expected the measured time in microseconds.",
            f"{at}[1].rows_up_to: is 0, expected a whole number from 1 to 2147483647.",
            f'{at}[2]: the key "faster" is unknown, expected rows_up_to, strategy, time_us, bucket, access.',
            f'{at}[2].access: is "masked", expected one of exact, unaligned.',
            f"{at}[3].rows_up_to: is 99 after 99, expected ascending numbers of rows.",
            f"{at}[4].rows_up_to: is 100, expected null in the last range, which has no limit.",
        ])

    def test_choices_without_a_kernel(self) -> None:
        def change(tuning: Any) -> None:
            tuning["entries"][0].update(bucket=768, access="unaligned", ranges=[
                {"rows_up_to": 8, "strategy": "warp", "time_us": 1},
                {"rows_up_to": 9, "strategy": "warp", "access": "exact", "time_us": 1},
                {"rows_up_to": None, "strategy": "warp", "bucket": 512, "time_us": 1},
            ])

        self.tuning(change)
        at, call = "tuning-sm_90.json: entries[0].ranges", "rms_norm_fwd bf16 768 unaligned"
        narrow = "(the bucket or access that it names is too narrow)"
        self.assert_problems([
            f"{at}[0]: warp has no kernel for {call} "
            "(nst_rms_norm_fwd_bf16_nany_warp_unaligned: a bucket without limit has no compile-time shape).",
            f"{at}[1]: warp has no kernel for {call} {narrow}.",
            f"{at}[2]: warp has no kernel for {call} {narrow}.",
        ])

    # ---- options ----

    def test_unknown_filters(self) -> None:
        self.assert_problems([
            '--ops: "layer_norm" is unknown, expected some of rms_norm_fwd, fused_add_rms_norm_fwd.',
            '--dtypes: "f16" is unknown, expected some of bf16, f32.',
        ], "--ops", "layer_norm,rms_norm_fwd", "--dtypes", "f16")

    def test_empty_filter(self) -> None:
        self.assert_problems(["--ops: is empty, expected some of rms_norm_fwd, fused_add_rms_norm_fwd."], "--ops", "")


if __name__ == "__main__":
    unittest.main()
