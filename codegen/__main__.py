"""python3 -m codegen {all,check,explain CELL,coverage}"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

try:
    from . import audit, emit, model, rules, spec
except ModuleNotFoundError as missing:
    if missing.name != "jinja2":
        raise
    sys.exit("codegen: the Python package Jinja2 is missing; python3 -m pip install jinja2 brings it.")

REPOSITORY = Path(__file__).resolve().parent.parent


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="codegen", description="Prints the tables, kernels and build edges of "
                                     "normstatic from its axis lists.")
    parser.add_argument("command", choices=("all", "check", "explain", "coverage"),
                        help="all: write what changed; check: compare with what is there; explain: what is known of a "
                        "cell; coverage: the coverage page")
    parser.add_argument("cell", nargs="?", help="for explain: nst_<op>_<types>_n<bucket>_<strategy>_<access>")
    parser.add_argument("--ops", type=_names, metavar="A,B", help="a reduced build: only these operations")
    parser.add_argument("--dtypes", type=_names, metavar="A,B", help="a reduced build: only these data types")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "generated", metavar="DIR",
                        help="the folder of the printed files (generated)")
    parser.add_argument("--spec", type=Path, default=REPOSITORY / "codegen" / "spec", metavar="DIR",
                        help="the folder of axes.json and the tuning files (codegen/spec)")
    parser.add_argument("--sources", type=Path, default=REPOSITORY / "src", metavar="DIR",
                        help="the folder of params.h and device/, which count for the build id (src)")
    arguments = parser.parse_args()
    if (arguments.command == "explain") != (arguments.cell is not None):
        parser.error("explain needs the name of a cell, the other commands take none")
    return arguments


def main() -> int:
    arguments = _arguments()
    read, problems = spec.read(arguments.spec, rules.STRATEGIES, rules.ACCESSES)
    built = None
    if read is not None:
        built, more = model.build(read, model.Filter(arguments.ops, arguments.dtypes))
        problems = problems + more or model.prove(built)
    if built is None or problems:
        print("\n".join(problems), file=sys.stderr)
        print("codegen: nothing was generated.", file=sys.stderr)
        return 1

    if arguments.command == "explain":
        text, known = audit.explain(built, arguments.cell)
        print(text, file=sys.stdout if known else sys.stderr)
        return 0 if known else 1
    if arguments.command == "coverage":
        print(emit.coverage(built), end="")
        return 0
    files = emit.render(built, arguments.sources)
    if arguments.command == "check":
        wrong = audit.check(files, arguments.out)
        print("\n".join(wrong) if wrong else f"codegen: {len(files)} files are as printed.",
              file=sys.stderr if wrong else sys.stdout)
        return 1 if wrong else 0
    changed, removed = emit.write(files, arguments.out)
    for name in changed:
        print(f"wrote {name}")
    for name in removed:
        print(f"removed {name}")
    print(f"codegen: {len(built.rows)} rows, {len(built.kernels)} kernels; {len(changed)} of {len(files)} files "
          f"changed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
