"""Reads what the compiler reports of each kernel (ptxas -v), lists it, and refuses spills that nobody has explained.

The report has a line for each kernel: registers, shared memory that it declares itself, stack, bytes of spill stores
and loads. A register that is spilled goes through memory, which can cost a kernel of this library several times its
time; so a spill is an error unless the file of explanations has an entry for the kernel:

    {"sm_90 nst_rms_norm_fwd_f32_n1024_warp_exact": {"bytes": 16, "reason": "why it does no harm"}}

where bytes is the most that may be stored and loaded. An entry for a kernel without a spill is an error too.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(sm_\w+)'")
PROPERTIES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


@dataclass
class Kernel:
    arch: str
    name: str
    stack: int = 0
    stores: int = 0
    loads: int = 0
    registers: int | None = None
    shared: int = 0

    @property
    def key(self) -> str:
        return f"{self.arch} {self.name}"

    @property
    def spilled(self) -> int:
        return self.stores + self.loads


def parse(text: str) -> list[Kernel]:
    """The kernels of one log, in its order."""
    kernels: list[Kernel] = []
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            kernels.append(Kernel(arch=entry[2], name=entry[1]))
        elif kernels and (numbers := PROPERTIES.search(line)):
            kernels[-1].stack, kernels[-1].stores, kernels[-1].loads = map(int, numbers.groups())
        elif kernels and (used := USED.search(line)):
            kernels[-1].registers = int(used[1])
            if shared := SHARED.search(line):
                kernels[-1].shared = int(shared[1])
    return kernels


def problems(kernels: list[Kernel], explained: dict[str, dict]) -> list[str]:
    """One sentence for each thing that the build must not pass over."""
    found = []
    spilling = {kernel.key: kernel for kernel in kernels if kernel.spilled}
    for kernel in kernels:
        if kernel.registers is None:
            found.append(f"{kernel.key}: the compiler's log ends before its number of registers")
    for key, kernel in spilling.items():
        allowed = explained.get(key, {}).get("bytes", 0)
        if kernel.spilled > allowed:
            found.append(f"{key}: {kernel.stores} bytes of spill stores and {kernel.loads} of loads; "
                         f"explained: {allowed}")
    built = {kernel.key for kernel in kernels}
    for key, entry in explained.items():
        if not str(entry.get("reason", "")).strip():
            found.append(f"{key}: its explanation has no reason")
        if key in built and key not in spilling:
            found.append(f"{key}: its spill is explained, but it has none")
    return found


def table(kernels: list[Kernel]) -> str:
    lines = [f"{'arch':7} {'registers':>9} {'shared':>7} {'stack':>6} {'stores':>7} {'loads':>6}  kernel"]
    for k in sorted(kernels, key=lambda k: (k.arch, k.name)):
        registers = "?" if k.registers is None else k.registers
        lines.append(f"{k.arch:7} {registers:>9} {k.shared:>7} {k.stack:>6} {k.stores:>7} {k.loads:>6}  {k.name}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--explained", type=Path, required=True, help="JSON: explanations of spills")
    parser.add_argument("--report", type=Path, required=True, help="the list to write")
    parser.add_argument("cubins", type=Path, nargs="+", help="compiled kernels; the log of each lies beside it")
    options = parser.parse_args()
    kernels: list[Kernel] = []
    for cubin in options.cubins:
        log = cubin.with_name(cubin.name + ".log")
        found = parse(log.read_text())
        if not found:
            print(f"resources: {log} names no kernel; expected the output of ptxas -v", file=sys.stderr)
            return 1
        kernels += found
    unexplained = problems(kernels, json.loads(options.explained.read_text()))
    # The list is kept where the check fails, but not as the product that ninja waits for.
    report = options.report if not unexplained else options.report.with_name(options.report.name + ".failed")
    report.write_text(table(kernels))
    for sentence in unexplained:
        print(f"resources: {sentence}", file=sys.stderr)
    if unexplained:
        print(f"resources: {len(unexplained)} problems; all kernels are listed in {report}", file=sys.stderr)
        return 1
    most = max(kernel.registers or 0 for kernel in kernels)
    print(f"resources: {len(kernels)} kernels, at most {most} registers, no unexplained spill; see {report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
