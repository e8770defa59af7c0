"""Findings about files: faults, torn tails, and files that are not read."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.log_report.advice import advice
from kraftlog.log_report.facts import Facts
from kraftlog.log_report.fault_counts import ErrorCount
from kraftlog.log_report.finding import DETAILS, ERROR, NOTE, SHOWN, WARNING, Finding, counted, place
from kraftlog.tables.commands import kraftlog, of_partition


def log_findings(facts: Facts) -> Iterator[Finding]:
    """Return the faults of the files, errors with the most lost bytes first."""
    for faults in (facts.faults, facts.other_faults):
        for error, one in sorted(faults.items(), key=lambda item: (-item[1].size_in_bytes, -item[1].count, item[0])):
            yield _of_error(facts, error, one)
    yield from _torn(facts)
    if facts.left_alone:
        yield Finding(
            NOTE,
            "not_read",
            counted(len(facts.left_alone), "file or folder that is not read", "files and folders that are not read"),
            "No files of live segments: Kafka was about to delete them, or they are not Kafka's.",
            details=[fault.message for fault in facts.left_alone[:DETAILS]],
            commands=[kraftlog("verify", facts.paths)],
        )


def _of_error(facts: Facts, error: str, one: ErrorCount) -> Finding:
    said = advice(error)
    lost = f", {counted(one.size_in_bytes, 'byte', 'bytes')} not read" if one.size_in_bytes else ""
    names = [place(*partition) for partition in one.partitions]
    return Finding(
        ERROR,
        error,
        f"{counted(one.count, said.one, said.many)}{lost}",
        said.text,
        names[:SHOWN],
        len(names) - len(names[:SHOWN]) + one.more_partitions,
        [fault.message for fault in one.examples[:DETAILS]],
        said.commands(facts.paths, one.examples[0]),
    )


def _torn(facts: Facts) -> Iterator[Finding]:
    torn = [one for one in facts.partitions if one.torn_bytes]
    if torn:
        chosen = of_partition(torn[0].topic, torn[0].partition) if len(torn) == 1 else []
        yield Finding(
            WARNING,
            "torn_tail",
            counted(len(torn), "log with a torn tail", "logs with a torn tail"),
            "The broker did not stop cleanly. A batch that is torn was never acknowledged with all its bytes on disk; a"
            " broker cuts it off when it starts. The command shows what it would do, and changes nothing.",
            [one.name for one in torn[:SHOWN]],
            max(len(torn) - SHOWN, 0),
            [note for one in torn[:DETAILS] for note in one.notes[:1]],
            [kraftlog("recover", facts.paths, *chosen)],
        )
