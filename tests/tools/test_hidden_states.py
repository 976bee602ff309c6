"""The sample input: made from the text by the recipe, the same every time, with the habits of real hidden states."""

import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.tools.arrays import Array, read

ROOT = Path(__file__).resolve().parent.parent.parent


class Sample(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.make("a")
        cls.x = cls.read("x")

    @classmethod
    def make(cls, name: str, *options: object) -> Path:
        folder = Path(cls.folder.name) / name
        subprocess.run([sys.executable, ROOT / "tools" / "hidden_states.py", folder, *options], check=True)
        return folder

    @classmethod
    def read(cls, name: str) -> Array:
        return read(Path(cls.folder.name) / "a" / f"{name}.npy", "f16")

    def row(self, index: int) -> list[float]:
        return self.x.values[4096 * index : 4096 * (index + 1)]

    def test_shapes(self) -> None:
        self.assertEqual(self.x.shape, (313, 4096))
        self.assertEqual(self.read("residual").shape, (313, 4096))
        self.assertEqual(self.read("weight").shape, (4096,))
        self.assertTrue(all(map(math.isfinite, self.x.values)))

    def test_same_every_time(self) -> None:
        again = self.make("b")
        for path in sorted(again.iterdir()):
            self.assertEqual(path.read_bytes(), (again.parent / "a" / path.name).read_bytes(), path.name)

    def test_rows_follow_from_the_text(self) -> None:
        """The text's beginning gives the first rows; a word that comes again gives another row for each place."""
        other = Path(self.folder.name) / "other.txt"
        other.write_text("Four score score")
        made = read(self.make("c", "--text", other) / "x.npy", "f16")
        self.assertEqual(made.shape, (4, 4096))
        self.assertEqual(made.values[: 3 * 4096], self.x.values[: 3 * 4096])
        self.assertNotEqual(made.values[3 * 4096 :], self.row(2))
        self.assertNotEqual(made.values[3 * 4096 :], self.row(3))

    def test_outliers(self) -> None:
        for index in (1, 100, 312):
            row = self.row(index)
            typical = math.sqrt(sorted(value * value for value in row)[2048])
            self.assertTrue(0.3 < typical < 2, typical)
            self.assertGreater(max(map(abs, row)), 10 * typical)
        self.assertEqual(max(self.row(0)), 1200)
        self.assertEqual(min(self.row(0)), -900)


if __name__ == "__main__":
    unittest.main()
