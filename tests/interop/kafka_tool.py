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


def run_tool(java: Jvm, tool: str, runs: Iterable[Sequence[str]]) -> list[Ran]:
    """Run a tool with each of these lists of arguments."""
    lines = java.run("Tool", tool, lines=[{"arguments": list(arguments)} for arguments in runs], limit=LIMIT)
    return [_ran(**json.loads(line)) for line in lines]


def _ran(output: str, errors: str, code: int) -> Ran:
    told = bytes.fromhex(errors).decode().split("\n")
    return Ran(bytes.fromhex(output).decode(), [line for line in told if line and "SLF4J" not in line], code)
