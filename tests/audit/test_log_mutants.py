"""Mutants of logs that Kafka wrote: the audit, or the check of the files, finds each that Kafka could not have written.

The checksums of mutants are right: they are not bit errors, but what a faulty broker, tool or restore would write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from legal_mutants import RULES, rule_of
from log_mutants import Mutant, MutantDirectory, mutants

import kraftlog
from golden_files import GOLDEN
from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.read.log_pass import Pass

T = TypeVar("T")
PARTS = 8
LOGS = ["transactions", "transactions_tv0", "transactions_hanging"]


Facts = set[tuple[object, ...]]


def of_partition(folder: Path) -> Facts:
    """Return what the check of its files says of one partition."""
    return {(one.error, one.base_offset, one.message) for one in kraftlog.open(folder).verify()}


def of_cluster(directory: Path) -> Facts:
    """Return what the audit says of a log directory."""
    each = findings(Evidence(kraftlog.open(directory).found, Pass(), 0))
    return {(one.code.name, one.topic, one.partition, one.offset, one.known) for one in each}


@cache
def of_kafka(facts_of: Callable[[Path], Facts], path: Path) -> Facts:
    return facts_of(path)


def every_mutant() -> Iterator[Mutant]:
    for name in LOGS:
        yield from mutants(GOLDEN / name / "log")


def missed(chosen: Iterable[Mutant], directory: Path) -> Iterator[Mutant]:
    """Return the mutants of which neither the audit nor the check says anything."""
    place = MutantDirectory(directory)
    for mutant in chosen:
        log, folder = place.of(mutant), Path(mutant.file).parent
        is_found = of_partition(log / folder) - of_kafka(of_partition, mutant.log / folder)
        if not (is_found or of_cluster(log) - of_kafka(of_cluster, mutant.log)):
            yield mutant


@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_are_found(sampled: Callable[[Iterable[T], int], list[T]], part: int, tmp_path: Path):
    """With --all-cases all of them, in some minutes; a line for each kind says how many are found or legal."""
    count = sum(1 for _ in every_mutant())
    numbers = set(sampled(range(part, count, PARTS), 8))  # all mutants at once would fill the memory
    chosen = Counter[tuple[str, str]]()

    def counted() -> Iterator[Mutant]:
        for number, mutant in enumerate(every_mutant()):
            if number in numbers:
                chosen[mutant.what, mutant.kind] += 1
                yield mutant

    each = list(missed(counted(), tmp_path))
    legal = Counter((mutant.what, mutant.kind) for mutant in each if rule_of(mutant) is not None)
    for kind in sorted(chosen):
        print(*kind, "found", chosen[kind] - legal[kind], "legal", legal[kind])
    assert [str(mutant) for mutant in each if rule_of(mutant) is None] == []


def test_there_are_mutants_of_every_kind_and_every_rule_has_some():
    rules = Counter[str]()
    for mutant in every_mutant():
        rule = rule_of(mutant)
        rules["" if rule is None else rule.reason] += 1
    assert rules.keys() == {"", *(rule.reason for rule in RULES)}
    assert sum(rules.values()) > 8000
    assert rules[""] > 7000


@pytest.mark.parametrize("what", ["transactional", "marker"])
@pytest.mark.parametrize("kind", ["producer_id", "producer_epoch+1", "transactional_bit", "control_bit", "gone"])
def test_no_batch_of_a_transaction_can_be_changed(what: str, kind: str, tmp_path: Path):
    """One of each kind, of a topic that no cleaner touches."""
    chosen = next(one for one in every_mutant() if (one.what, one.kind, one.topic) == (what, kind, "orders"))
    assert not list(missed([chosen], tmp_path))
