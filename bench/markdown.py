"""The comparison with other implementations as Markdown, to be pasted into the README."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence

import works
from goals import WITHOUT, Outcome
from report import Block, short

OWN = {
    "decode": works.STREAMED,
    "encode": works.STREAMED,
    "scan": works.SCANNER,
    "small": works.EACH,
    "threads": works.STREAMED,
}


def compared(blocks: Sequence[Block], left_out: Mapping[str, str]) -> str:
    """Return a table for each piece of work: who, on which log, M records/s, and how much faster kraftlog is."""
    parts = [
        _work(work, [block for block in blocks if block.work == work]) for work in _distinct(b.work for b in blocks)
    ]
    parts += [f"Left out: {name}: {why}" for name, why in left_out.items()]
    return "\n\n".join(parts)


def how(options: argparse.Namespace) -> str:
    """Return what the figures are."""
    clock = "CPU time of each process" if options.cpu_time else "wall time"
    return f"Logs of {options.megabytes:g} MB, medians of {options.rounds} interleaved rounds, {clock}:"


def goals(found: Iterable[Outcome]) -> str:
    """Return the outcomes of what was measured as a table, and of what was not because somebody was left out."""
    verdicts = {True: "yes", False: "**NO**", None: "not measured"}
    rows = [
        [
            outcome.goal,
            f"{outcome.sign} {short(outcome.bound)}",
            ", ".join(f"{where} {short(value)}" for where, value in outcome.measured) or outcome.note,
            verdicts[outcome.met],
        ]
        for outcome in found
        if outcome.measured or outcome.note.startswith(WITHOUT)
    ]
    return _table(["goal", "needed", "measured", "met"], rows)


def _work(work: str, blocks: Sequence[Block]) -> str:
    own = OWN.get(work)
    names = _distinct(contender.name for block in blocks for contender in block.contenders)
    rows = [[name, *(_cell(block, name, own) for block in blocks)] for name in names]
    title = f"{work}, M records/s" + (f" (in brackets: how many times as fast {own} is)" if own else "")
    return f"{title}:\n\n{_table(['', *(block.workload for block in blocks)], rows)}"


def _cell(block: Block, name: str, own: str | None) -> str:
    if name not in block:
        return ""
    speed = short(block[name].records_per_second / 1e6)
    ratio = block[own].speed_against(block[name]) if own and name != own else None
    return speed if ratio is None else f"{speed} ({short(ratio)}x)"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
