"""Makes a sample input with the shape and the habits of a transformer's hidden states, from a real text.

The recipe, without any trained model, so that it is the same everywhere:

1. Tokens: the words and punctuation marks of the text, in lower case; one row for each, and one before them all for
   the beginning of the text. Columns: 4096 features.
2. Each token has its own embedding: 4096 values that follow from the token's spelling alone. Four bytes of
   SHAKE-256(token) are summed for each value, which is close to a normal distribution, with deviation 1.
3. The sinusoidal position code of the row is added, with half that size.
4. Outlier channels: in trained transformers a few fixed channels are ten to a hundred times larger than the others, and
   the first row has two that are larger still. So six channels are multiplied by 12 to 60, and two values of the first
   row are set to 1200 and -900. This is what makes the mean of squares of such rows hard on careless arithmetic.
5. The weight, one value a column, is 0.4 with deviation 0.05, and small in the outlier channels, as trained gains are.
6. The residual is the same text's embeddings shifted by one row, at a quarter of the size.

Writes x.npy [rows, 4096], weight.npy [4096] and residual.npy [rows, 4096], each f16, into the folder named.
"""

import argparse
import hashlib
import math
import re
import struct
from pathlib import Path

COLUMNS = 4096
OUTLIER_CHANNELS = {37: 60.0, 511: 24.0, 1290: -18.0, 2048: 40.0, 2733: -12.0, 3905: 30.0}
FIRST_ROW = {37: 1200.0, 2048: -900.0}
TEXT = Path(__file__).parent / "data" / "gettysburg.txt"


def tokens_of(text: str) -> list[str]:
    return ["<begin>"] + re.findall(r"[a-z]+|[^\sa-z]+", text.lower())


def hashed_normal(name: str, count: int) -> list[float]:
    """`count` values with mean 0 and deviation 1 that follow from `name`."""
    digest = hashlib.shake_256(name.encode()).digest(4 * count)
    deviation = math.sqrt(4 * (256**2 - 1) / 12)
    return [(sum(digest[i : i + 4]) - 4 * 127.5) / deviation for i in range(0, 4 * count, 4)]


def position_code(row: int) -> list[float]:
    code = []
    for pair in range(COLUMNS // 2):
        angle = row / 10000 ** (2 * pair / COLUMNS)
        code += [math.sin(angle), math.cos(angle)]
    return code


def hidden_states(tokens: list[str]) -> list[list[float]]:
    embeddings = {token: hashed_normal(token, COLUMNS) for token in set(tokens)}
    rows = []
    for index, token in enumerate(tokens):
        row = [value + 0.5 * position for value, position in zip(embeddings[token], position_code(index))]
        for channel, factor in OUTLIER_CHANNELS.items():
            row[channel] *= factor
        rows.append(row)
    for channel, value in FIRST_ROW.items():
        rows[0][channel] = value
    return rows


def weight() -> list[float]:
    values = [0.4 + 0.05 * value for value in hashed_normal("weight", COLUMNS)]
    for channel, factor in OUTLIER_CHANNELS.items():
        values[channel] /= abs(factor)
    return values


def write_npy(path: Path, shape: tuple[int, ...], values: list[float]) -> None:
    header = f"{{'descr': '<f2', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    data = struct.pack(f"<{len(values)}e", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where x.npy, weight.npy and residual.npy go")
    parser.add_argument("--text", type=Path, default=TEXT, help="the text; default: %(default)s")
    options = parser.parse_args()
    rows = hidden_states(tokens_of(options.text.read_text()))
    residual = [[value / 4 for value in row] for row in rows[-1:] + rows[:-1]]
    options.folder.mkdir(parents=True, exist_ok=True)
    write_npy(options.folder / "x.npy", (len(rows), COLUMNS), [value for row in rows for value in row])
    write_npy(options.folder / "weight.npy", (COLUMNS,), weight())
    write_npy(options.folder / "residual.npy", (len(rows), COLUMNS), [value for row in residual for value in row])


if __name__ == "__main__":
    main()
