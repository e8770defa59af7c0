"""What a read_committed consumer gets out of a fetch response: its algorithm in plain Python, and its own answers."""

from __future__ import annotations

import hashlib
import heapq
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Record, encode_batch

import kraftlog
from golden_files import GOLDEN, lines

NO_PRODUCER = -1


def sha256(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass
class Batch:
    """What the consumer looks at, and the bytes."""

    data: bytes
    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER
    is_transactional: bool = False
    marker: str | None = None


def data_batch(offset: int, count: int, producer_id: int, is_transactional: bool) -> Batch:
    records = [Record(offset + i, 1000 + i, None, b"%d" % (offset + i)) for i in range(count)]
    attributes = 0x10 if is_transactional else 0
    epoch = -1 if producer_id < 0 else 0
    data = encode_batch(
        records, attributes=attributes, producer_id=producer_id, producer_epoch=epoch, base_sequence=epoch
    )
    return Batch(data, offset, offset + count - 1, producer_id, is_transactional)


def marker_batch(offset: int, producer_id: int, kind: str) -> Batch:
    data = kraftlog.encode_marker(kind, producer_id=producer_id, producer_epoch=1, base_offset=offset)
    return Batch(data.to_pybytes(), offset, offset, producer_id, True, kind)


def consumed(batches: list[Batch], transactions: list[tuple[int, int]], position: int) -> list[int]:
    """Return the offsets that CompletedFetch hands out, with its queue and its set."""
    waiting = [(first_offset, producer_id) for producer_id, first_offset in transactions]
    heapq.heapify(waiting)
    aborted: set[int] = set()
    shown = []
    for batch in batches:
        if batch.producer_id != NO_PRODUCER:
            while waiting and waiting[0][0] <= batch.last_offset:
                aborted.add(heapq.heappop(waiting)[1])
            if batch.marker == "ABORT":
                aborted.discard(batch.producer_id)
            elif batch.is_transactional and batch.producer_id in aborted:
                continue
        if batch.marker is None:
            shown += [offset for offset in range(batch.base_offset, batch.last_offset + 1) if offset >= position]
    return shown


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Batch], list[tuple[int, int, int]]]:
    """Interleaved transactions, and the aborted ones as producer_id, first and last offset."""
    offset, batches, aborted = draw(st.integers(0, 50)), [], []
    begun: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 25))):
        producer_id = draw(st.integers(NO_PRODUCER, 3))
        what = draw(st.sampled_from(["data", "data", "plain", "ABORT", "COMMIT"]))
        if what in ("ABORT", "COMMIT") and producer_id >= 0:
            batches.append(marker_batch(offset, producer_id, what))
            if producer_id in begun and what == "ABORT":
                aborted.append((producer_id, begun[producer_id], offset))
            begun.pop(producer_id, None)
        else:
            is_transactional = what == "data" and producer_id >= 0
            batches.append(data_batch(offset, draw(st.integers(1, 3)), producer_id, is_transactional))
            if is_transactional:
                begun.setdefault(producer_id, offset)
        offset = batches[-1].last_offset + 1 + draw(st.sampled_from([0, 0, 0, 2]))
    return batches, aborted


def offsets(batches: list[Batch], transactions: list[tuple[int, int]], position: int, **options: int) -> list[int]:
    stream = kraftlog.decode(
        b"".join(batch.data for batch in batches),
        columns=["offset"],
        start_offset=position,
        isolation_level="read_committed",
        aborted_transactions=transactions,
        **options,
    )
    found = stream.to_table().column("offset").to_pylist()
    assert stream.faults == []
    assert stream.next_offset == (batches[-1].last_offset + 1 if batches else None)
    return found


@given(logs(), st.data())
def test_as_the_consumer(log: tuple[list[Batch], list[tuple[int, int, int]]], draw: st.DataObject):
    """A fetch begins in any batch and at any offset; the broker names the transactions that reach into it."""
    batches, aborted = log
    first = draw.draw(st.integers(0, len(batches) - 1))
    fetched = batches[first : draw.draw(st.integers(first + 1, len(batches)))]
    position = draw.draw(st.integers(fetched[0].base_offset, fetched[0].last_offset))
    named = [(producer, start) for producer, start, last in aborted if last >= position]
    expected = consumed(fetched, named, position)
    assert offsets(fetched, named, position) == expected
    assert offsets(fetched, named, position, batch_rows=1) == expected


@given(logs())
def test_named_transactions_are_taken_once(log: tuple[list[Batch], list[tuple[int, int, int]]]):
    """Whatever they are given as, and whatever becomes of it: each pass hides the same records."""
    batches, aborted = log
    data = b"".join(batch.data for batch in batches)
    named = [(producer, start) for producer, start, _ in aborted]
    expected = consumed(batches, named, 0)
    changed = list(named)
    for given_as in (iter(named), changed, np.array(named, np.int64).reshape(-1, 2), dict(enumerate(named)).values()):
        options = {"isolation_level": "read_committed", "aborted_transactions": given_as}
        stream = kraftlog.decode(data, columns=["offset"], **options)
        if given_as is changed:
            changed.clear()
        for _ in range(3):
            assert stream.to_table().column("offset").to_pylist() == expected
            assert [offset for batch in stream for offset in batch.column("offset").to_pylist()] == expected
    records = kraftlog.records(data, isolation_level="read_committed", aborted_transactions=iter(named))
    assert [record.offset for record in records] == expected


@pytest.mark.parametrize("read", [kraftlog.decode, kraftlog.records])
@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((1,), r"aborted_transactions\[1\] is \(1,\), not \(producer_id, first_offset\)"),
        (("a", 1), r"aborted_transactions\[1\] is \('a', 1\), not"),
        (5, r"aborted_transactions\[1\] is 5, not"),
        ((1.5, 1), r"is \(1.5, 1\), not"),
        ((2**63, 1), f"producer_id {2**63} does not fit 64 bits"),
        ((1, -(2**63) - 1), f"first_offset {-(2**63) - 1} does not fit 64 bits"),
    ],
)
def test_what_is_no_transaction(read: Callable[..., object], pair: object, text: str):
    """It is refused before a byte is read."""
    with pytest.raises(ValueError, match=text):
        read(b"", isolation_level="read_committed", aborted_transactions=[(1, 1), pair])


PAIRS = st.lists(st.tuples(st.integers(-1, 4), st.integers(-5, 120)), max_size=8)


@given(logs(), PAIRS, st.randoms(use_true_random=False), st.booleans())
def test_whatever_is_named(
    log: tuple[list[Batch], list[tuple[int, int, int]]],
    named: list[tuple[int, int]],
    order: random.Random,
    is_shuffled: bool,
):
    """Transactions that no broker would name, and batches that are not in the order of their offsets."""
    batches = list(log[0])
    if is_shuffled:
        order.shuffle(batches)
    assert offsets(batches, named, 0) == consumed(batches, named, 0)


@given(logs(), st.data())
def test_a_damaged_batch_hides_nothing_but_itself(
    log: tuple[list[Batch], list[tuple[int, int, int]]], draw: st.DataObject
):
    """A batch whose checksum does not match says nothing of transactions: not by its last offset, nor as a marker."""
    batches, aborted = log
    bad = draw.draw(st.integers(0, len(batches) - 1))
    at = draw.draw(st.integers(23, len(batches[bad].data) - 1))
    flipped = bytearray(batches[bad].data)
    flipped[at] ^= 1 << draw.draw(st.integers(0, 7))
    left = batches[:bad] + batches[bad + 1 :]
    named = [(producer, start) for producer, start, _ in aborted]
    stream = kraftlog.decode(
        b"".join([*(b.data for b in batches[:bad]), bytes(flipped), *(b.data for b in batches[bad + 1 :])]),
        columns=["offset"],
        isolation_level="read_committed",
        aborted_transactions=named,
    )
    found = stream.to_table().column("offset").to_pylist()
    if stream.faults:  # a batch of an aborted transaction that is not decoded is none
        assert found == consumed(left, named, 0)
    else:
        assert found == consumed(batches, named, 0)


SCENARIOS = ["transactions", "transactions_tv0", "transactions_hanging", "transactions_live"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_of_a_broker(scenario: str):
    """The aborted transactions of .txnindex, and the rows that Kafka's own consumer returned."""
    expected = GOLDEN / scenario / "expected"
    indexes = json.loads((expected / "indexes.json").read_text())
    partitions = json.loads((expected / "broker_state.json").read_text())["partitions"]
    answers = lines(expected / "consumer_read_committed.jsonl")
    compared = 0
    for name, state in partitions.items():
        folder = GOLDEN / scenario / "log" / name
        topic, partition = name.rsplit("-", 1)
        named = [
            (entry["producer_id"], entry["first_offset"])
            for file, index in sorted(indexes.items())
            if file.startswith(f"{name}/") and file.endswith(".txnindex")
            for entry in index["aborted"]
        ]
        stream = kraftlog.decode(
            b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))),
            columns=["offset", "timestamp_ms", "key", "value"],
            start_offset=state["log_start_offset"],
            isolation_level="read_committed",
            aborted_transactions=named,
        )
        rows = [row for row in stream.to_table().to_pylist() if row["offset"] < state["last_stable_offset"]]
        of_partition = [
            row for row in answers if "offset" in row and (row["topic"], row["partition"]) == (topic, int(partition))
        ]
        if not of_partition:
            continue
        assert [(row["offset"], row["timestamp_ms"], sha256(row["key"]), sha256(row["value"])) for row in rows] == [
            (row["offset"], row["timestamp"], row["key_sha256"], row["value_sha256"]) for row in of_partition
        ]
        compared += len(rows)
    assert compared > 0


def test_what_does_not_go_together():
    with pytest.raises(ValueError, match="read_committed needs aborted_transactions"):
        kraftlog.decode(b"", isolation_level="read_committed")
    with pytest.raises(ValueError, match="have no meaning with read_uncommitted"):
        kraftlog.decode(b"", aborted_transactions=[(1, 0)])
    with pytest.raises(ValueError, match="isolation_level 'read_comitted' is not one of"):
        kraftlog.decode(b"", isolation_level="read_comitted")
    assert kraftlog.decode(b"", aborted_transactions=[]).to_table().num_rows == 0
