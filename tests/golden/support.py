"""What the golden tests share: the tiny spec, and the generator run as a program or in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from codegen import emit, model, rules, spec

REPOSITORY = Path(__file__).resolve().parents[2]
TINY = Path(__file__).resolve().parent / "tiny"


def run(*arguments: object, cwd: Path = REPOSITORY, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    """`python3 -m codegen ARGUMENTS`."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONHASHSEED": hash_seed,
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-m", "codegen", *map(str, arguments)], cwd=cwd, env=environment, text=True,
                          capture_output=True, check=False)


def tiny_options(out: Path) -> tuple[object, ...]:
    return "--spec", TINY / "spec", "--sources", TINY / "src", "--out", out


def tree(root: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def tiny_json(name: str) -> Any:
    return json.loads((TINY / "spec" / name).read_text(encoding="utf-8"))


def build(directory: Path = TINY / "spec", kept: model.Filter = model.Filter()) -> model.Model:
    """The sound model of a spec."""
    read, problems = spec.read(directory, rules.STRATEGIES, rules.ACCESSES)
    assert read is not None and not problems, problems
    built, problems = model.build(read, kept)
    problems = problems or model.prove(built)
    assert not problems, problems
    return built


def render(built: model.Model) -> dict[str, str]:
    return emit.render(built, TINY / "src")
