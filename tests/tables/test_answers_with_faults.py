"""Answers that a fault may change: a method of ``Log`` raises, unless its faults are asked for.

Each batch of a log is damaged, one byte at a time. Whatever the byte is: an answer is the one of the sound log, or the
method raises; without ``strict`` it is the answer and no fault, or there is a fault.
"""

import errno
import os
import random
import re
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from kraftlog.errors import Fault, RecordError
from kraftlog.tables.log import Log

GOLDEN = Path(__file__).parents[1] / "golden"

ANSWERS: dict[str, Callable[..., Any]] = {
    "offsets": Log.offsets,
    "groups": Log.groups,
    "transactional_ids": Log.transactional_ids,
    "transactions": Log.transactions,
    "partition_transactions": Log.partition_transactions,
    "producers": Log.producers,
    "hanging_transactions": Log.hanging_transactions,
    "last_stable_offsets": Log.last_stable_offsets,
    "metadata_transactions": Log.metadata_transactions,
}
STREAMS: dict[str, Callable[..., Any]] = {
    "lag": Log.lag,
    "partition_offsets": Log.partition_offsets,
    "partition_offsets of read_committed": lambda log, **how: log.partition_offsets(
        isolation_level="read_committed", **how
    ),
}
FILES: dict[str, Callable[..., Any]] = {
    "segments": Log.segments,
    "batches": lambda log, **how: log.batches(check_crc=True, **how),
    "index_entries": Log.index_entries,
}

_OF_TRANSACTIONS = ("producers", "hanging_transactions", "last_stable_offsets")
_OF_OFFSETS = ("partition_offsets", "partition_offsets of read_committed")
OF = {
    "transactions_hanging": ("partition_transactions", *_OF_TRANSACTIONS, *_OF_OFFSETS),
    "groups": ("offsets", "groups", *STREAMS),
    "transactions": ("transactions", "transactional_ids", "offsets", "hanging_transactions", "last_stable_offsets"),
    "metadata_txn": ("metadata_transactions",),
}
# The crc covers what follows it. Answers that are made of headers believe those of data batches, as a broker does.
CRC_END, HEADER_END = 21, 61


def _damaged(folder: Path, log: Log, count: int) -> Iterator[str]:
    """Damage one batch after the other, one byte each, and mend it again."""
    rows = log.batches(
        ["topic", "partition", "segment_base_offset", "position", "size_in_bytes", "is_control"]
    ).to_pylist()
    chosen = random.Random(1)
    for row in chosen.sample(rows, min(count, len(rows))):
        of = f"{row['topic']}-{row['partition']}/{row['segment_base_offset']:020d}.log"
        at = row["position"] + chosen.randrange(CRC_END if row["is_control"] else HEADER_END, row["size_in_bytes"])
        path = folder / of
        content = bytearray(path.read_bytes())
        sound = content[at]
        content[at] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        yield f"{of}, byte {at}"
        content[at] = sound
        path.write_bytes(content)


@pytest.fixture(params=OF)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    name: str = request.param
    source = GOLDEN / name
    folder = shutil.copytree(
        source / "log" if (source / "log").exists() else next(source.glob("*/log")), tmp_path / "log"
    )
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return name, folder


def _table(answer: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (answer if not hasattr(answer, "to_table") else answer.to_table()).to_pylist()
    return rows


@pytest.mark.sweep(2)
def test_an_answer_is_that_of_the_sound_log_or_it_raises(copied: tuple[str, Path]) -> None:
    name, folder = copied
    every = {**ANSWERS, **STREAMS}
    sound = {answer: _table(every[answer](kraftlog.open(folder))) for answer in OF[name]}
    raised = dict.fromkeys(OF[name], 0)
    for where in _damaged(folder, kraftlog.open(folder), 60):
        for answer in OF[name]:
            try:
                rows = _table(every[answer](kraftlog.open(folder)))
            except RecordError:
                raised[answer] += 1
                rows = None
            assert rows in (None, sound[answer]), (answer, where)
            lenient, faults = _lenient(answer, folder)
            assert bool(faults) == (rows is None), (answer, where)
            assert faults or lenient == sound[answer], (answer, where)
    assert all(raised.values()), raised


def _lenient(answer: str, folder: Path) -> tuple[list[dict[str, Any]], list[Fault]]:
    log = kraftlog.open(folder)
    if answer in STREAMS:
        stream = STREAMS[answer](log, strict=False)
        return stream.to_table().to_pylist(), stream.faults
    faults: list[Fault] = []
    return {**ANSWERS, **FILES}[answer](log, strict=False, faults=faults).to_pylist(), faults


@pytest.mark.parametrize("answer", [*ANSWERS, *FILES])
def test_faults_that_nobody_asks_for_are_a_warning(answer: str) -> None:
    log = kraftlog.open([GOLDEN / "groups" / "log", *(GOLDEN / "damaged").glob("*/log")])
    method = {**ANSWERS, **FILES}[answer]
    faults: list[Fault] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = method(log, strict=False, faults=faults)
    if not faults:
        assert method(log, strict=True).equals(rows)
        return
    with pytest.warns(UserWarning, match=re.escape(faults[0].message)) as caught:
        assert method(log, strict=False).equals(rows)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(RecordError, match=re.escape(faults[0].message)):
        method(log, strict=True)
    if answer in ANSWERS:
        with pytest.raises(RecordError, match=re.escape(faults[0].message)):
            method(log)
    else:
        with pytest.warns(UserWarning, match=re.escape(faults[0].message)):
            assert method(log).equals(rows)


@pytest.mark.parametrize("answer", [*ANSWERS, *STREAMS])
def test_a_folder_that_cannot_be_listed_changes_every_answer(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log")
    gone = folder / "__transaction_state-0"
    listed = os.scandir

    def refused(path: str | Path) -> Any:
        if Path(path) == gone:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    topics = ["orders"] if answer == "hanging_transactions" else None  # it looks for the coordinators by itself
    with pytest.raises(RecordError, match="__transaction_state-0"):
        _table({**ANSWERS, **STREAMS}[answer](kraftlog.open(folder, topics=topics)))
