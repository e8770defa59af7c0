"""Kafka's command line tools, run many times in one process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jvm import Jvm

LIMIT = 300.0


@dataclass(frozen=True)
class Ran:
    """What a tool printed, and how it ended; lines of logging are left out of its errors."""

    output: str
    errors: list[str]
    code: int


@dataclass(frozen=True)
class Run:
    """A tool's class, its arguments, and what it reads from standard input."""

    tool: str
    arguments: Sequence[str]
    input: str = ""


def run_tool(java: Jvm, tool: str, runs: Iterable[Sequence[str]]) -> list[Ran]:
    """Run a tool with each of these lists of arguments."""
    return run_tools(java, [Run(tool, arguments) for arguments in runs])


def run_tools(java: Jvm, runs: Iterable[Run]) -> list[Ran]:
    """Run tools one after another."""
    lines = [{"tool": run.tool, "arguments": list(run.arguments), "input": run.input} for run in runs]
    return [_ran(**json.loads(line)) for line in java.run("Tool", lines=lines, limit=LIMIT)]


def _ran(output: str, errors: str, code: int) -> Ran:
    told = bytes.fromhex(errors).decode().split("\n")
    return Ran(bytes.fromhex(output).decode(), [line for line in told if line and "SLF4J" not in line], code)
