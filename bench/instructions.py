"""Counts the instructions of the C walks on small logs, and compares them with ``native/instruction_limits``.

Usage: instructions.py [--write]. Unlike a time, a count does not depend on what else the machine does. It needs
valgrind and x86-64 with AVX2, which is as much as valgrind offers to what is chosen at run time. With another compiler
than that of the limits the tolerance is wider. Instructions of the C library are not counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import corpus

NATIVE = Path(__file__).resolve().parent / "native"
LIMITS = NATIVE / "instruction_limits"
C, TESTS = NATIVE.parents[1] / "native" / "c", NATIVE.parents[1] / "tests" / "native"
FLAGS = ["-O3", "-std=gnu11", "-fsigned-char", "-Wno-unused-function"]
MEGABYTES = 0.5
TOLERANCE, TOLERANCE_OF_OTHERS = 0.03, 0.15
LEGACY_RECORDS = 4000
GOALS = {"decode_20": 110}


@dataclass(frozen=True)
class Walk:
    """One walk of ``walks.c`` over one log."""

    name: str
    work: str
    log: corpus.Workload | None  # None: messages of magic 1


WALKS = [
    *(Walk(f"decode_{size}", "decode", corpus.Workload(size, 64)) for size in (20, 100, 1000)),
    Walk("decode_two_headers", "headers", corpus.WITH_HEADERS),
    Walk("decode_legacy", "decode", None),
    Walk("header_scan", "scan", corpus.Workload(20, 8)),
    *(Walk(f"encode_{size}", "encode", corpus.Workload(size, 64)) for size in (20, 100, 1000)),
]


def main() -> int:
    """Count, and print what was found; 1 when a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make what is counted the limits")
    options = parser.parse_args()
    if why := missing():
        print(f"instructions: not counted: {why}")
        return 0
    compiler, limits = read_limits()
    own = compiler_name()
    tolerance = TOLERANCE if own == compiler else TOLERANCE_OF_OTHERS
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        found = {walk.name: count(program, walk, Path(folder)) for walk in WALKS}
    if options.write:
        lines = [f"compiler {own}", *(f"{name} {number:.1f}" for name, number in found.items())]
        LIMITS.write_text("\n".join(lines) + "\n")
        return 0
    print(f"instructions a record (header_scan: a batch), {own}; within {tolerance:.0%} of the limits of {compiler}")
    exceeded = 0
    for name, number in found.items():
        limit = limits[name]
        is_over = number > limit * (1 + tolerance)
        exceeded += is_over
        remark = "EXCEEDED" if is_over else "lower it (--write)" if number < limit * (1 - tolerance) else ""
        if number > GOALS.get(name, number):
            remark += f" the goal is {GOALS[name]}"
        print(f"{name:<20}{number:>10.1f}{limit:>10.1f}{number / limit - 1:>+8.1%}  {remark}".rstrip())
    return int(exceeded > 0)


def missing() -> str | None:
    """Say why nothing can be counted here."""
    if shutil.which("valgrind") is None:
        return "valgrind is not on the PATH"
    cpu = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpu.exists() or " avx2 " not in cpu.read_text():
        return "the limits are those of x86-64 with AVX2"
    return None


def count(program: Path, walk: Walk, folder: Path) -> float:
    """Return instructions for each record that the walk met."""
    log = folder / "legacy.log" if walk.log is None else corpus.path(walk.log, MEGABYTES)
    if walk.log is None:
        log.write_bytes(legacy_log())
    profile = folder / "profile"
    options = [
        "--toggle-collect=measured*",
        "--compress-strings=no",
        "--compress-pos=no",
        f"--callgrind-out-file={profile}",
    ]
    command = ["valgrind", "-q", "--tool=callgrind", *options, str(program), walk.work, str(log)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return own_instructions(profile.read_text(), program) / int(done.stdout)


def own_instructions(profile: str, program: Path) -> int:
    """Return the sum over the functions of the program itself.

    A line of costs is a number of a line and a count. The one behind ``calls=`` is what the called function took, which
    has lines of its own.
    """
    total, is_own, is_of_call = 0, False, False
    for line in profile.splitlines():
        if line.startswith("ob="):
            is_own = line == f"ob={program}"
        elif line.startswith("calls="):
            is_of_call = True
        elif costs := re.fullmatch(r"\d+ (\d+)", line):
            total += int(costs[1]) if is_own and not is_of_call else 0
            is_of_call = False
    return total


def legacy_log() -> bytes:
    """Return messages of magic 1, as aiokafka writes them."""
    from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

    builder = LegacyRecordBatchBuilder(1, 0, 1 << 30)
    rows = next(corpus.rows(corpus.Workload(100, 64))).slice(0, LEGACY_RECORDS).to_pylist()
    for offset, row in enumerate(rows):
        builder.append(offset, row["timestamp_ms"], row["key"], row["value"])
    return bytes(builder.build())


def compiled(folder: Path) -> Path:
    """Compile ``walks.c`` as the extension is compiled."""
    program = folder / "walks"
    include = ["-I", str(C), "-I", str(TESTS)]
    subprocess.run([*compiler_command(), *FLAGS, *include, str(NATIVE / "walks.c"), "-o", str(program)], check=True)
    return program


def compiler_command() -> list[str]:
    """Return how the C compiler is called."""
    return shlex.split(os.environ.get("CC", "cc"))


def compiler_name() -> str:
    """Return the compiler and its major version."""
    macros = subprocess.run(
        [*compiler_command(), "-dM", "-E", "-x", "c", os.devnull], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    clang, gcc = (re.search(rf"__{name} (\d+)", macros) for name in ("clang_major__", "GNUC__"))
    return f"clang-{clang[1]}" if clang else f"gcc-{gcc[1]}" if gcc else "unknown"


def read_limits() -> tuple[str, dict[str, float]]:
    """Return the compiler of the limits, and them."""
    pairs = [line.split() for line in LIMITS.read_text().splitlines()] if LIMITS.exists() else [["compiler", "none"]]
    return pairs[0][1], {name: float(number) for name, number in pairs[1:]}


if __name__ == "__main__":
    sys.exit(main())
