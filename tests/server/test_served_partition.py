"""What a fetch returns, at each offset and size: the batches of the log, as they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import kraftlog
from kraftlog.errors import CorruptRecordError
from kraftlog.log_store.errors import OffsetOutOfRangeError
from kraftlog.server.served_log import ServedLog, ServedPartition

GOLDEN = Path(__file__).parents[1] / "golden"
LEVELS = ("read_committed", "read_uncommitted")
BATCH = ["topic", "partition", "segment_base_offset", "position", "size_in_bytes", "base_offset", "last_offset"]


class Twin:
    """The batches of a partition, one by one, from the table of batches."""

    def __init__(self, folder: Path, topic: str, partition: int) -> None:
        rows = kraftlog.open(folder, topics=topic).batches(BATCH).to_pylist()
        self.batches = [
            (row["base_offset"], row["last_offset"], self.bytes_of(folder, row))
            for row in rows
            if (row["topic"], row["partition"]) == (topic, partition)
        ]

    def bytes_of(self, folder: Path, row: dict) -> bytes:
        name = f"{row['segment_base_offset']:020}.log"
        data = (folder / f"{row['topic']}-{row['partition']}" / name).read_bytes()
        return data[row["position"] : row["position"] + row["size_in_bytes"]]

    def from_offset(self, offset: int, end_offset: int) -> list[tuple[int, int, bytes]]:
        return [one for one in self.batches if one[1] >= offset and one[0] < end_offset]


def every_partition() -> Iterator[tuple[str, str, int]]:
    for name in ("transactions", "transactions_hanging", "compaction", "deleted_records", "legacy", "groups"):
        for topic, served in ServedLog(kraftlog.open(GOLDEN / name / "log")).topics.items():
            if topic != "mixed-bad-crc":  # which a fetch cannot pass
                yield from ((name, topic, number) for number in served.partitions)


@cache
def served_and_twin(folder: str, topic: str, number: int) -> tuple[ServedPartition, Twin]:
    directory = GOLDEN / folder / "log"
    served = ServedLog(kraftlog.open(directory, topics=topic))
    return served.topics[topic].partitions[number], Twin(directory, topic, number)


@pytest.mark.sweep(30)
@pytest.mark.parametrize(("folder", "topic", "number"), list(every_partition()))
@settings(max_examples=9, phases=[Phase.generate])
@given(data=st.data())
def test_a_fetch_is_a_stretch_of_the_log(folder: str, topic: str, number: int, data: st.DataObject):
    partition, twin = served_and_twin(folder, topic, number)
    for _ in range(5):  # a partition remembers where fetches ended
        level = data.draw(st.sampled_from(LEVELS))
        offset = data.draw(st.integers(partition.log_start_offset, partition.high_watermark))
        most = data.draw(st.integers(0, 5000))
        for _ in range(4):
            found = partition.fetch(offset, most, level)
            records = bytes(found.records)
            expected = twin.from_offset(offset, partition.end_offset(level))
            if not expected:
                assert records == b""
                break
            count = 0
            for _, last, one in expected:
                if count == len(records):
                    break
                assert records[count : count + len(one)] == one
                count, offset = count + len(one), last + 1
            assert 0 < count == len(records) <= max(most, len(expected[0][2]), 4096)


@pytest.mark.parametrize("level", LEVELS)
def test_aborted_transactions_are_those_of_the_fetched_offsets(level: str):
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    aborted = [row for row in log.partition_transactions().to_pylist() if row["state"] == "aborted"]
    assert aborted
    for number, partition in ServedLog(log).topics["orders"].partitions.items():
        for offset in range(partition.log_start_offset, partition.end_offset(level)):
            found = partition.fetch(offset, 1, level)
            if level == "read_uncommitted":
                assert found.aborted is None
                continue
            last = max(kraftlog.batches(found.records).to_table()["last_offset"].to_pylist(), default=-1)
            expected = {
                (row["producer_id"], row["first_offset"])
                for row in aborted
                if row["partition"] == number and row["first_offset"] <= last and row["marker_offset"] >= offset
            }
            assert {(one.producer_id, one.first_offset) for one in found.aborted or ()} == expected


def test_offsets_outside_of_the_log():
    (partition, *_) = (
        ServedLog(kraftlog.open(GOLDEN / "deleted_records" / "log")).topics["orders-del-7"].partitions.values()
    )
    assert partition.log_start_offset > 0
    for offset in (-1, partition.log_start_offset - 1, partition.high_watermark + 1):
        with pytest.raises(OffsetOutOfRangeError):
            partition.fetch(offset, 1000, "read_uncommitted")
    assert bytes(partition.fetch(partition.high_watermark, 1000, "read_uncommitted").records) == b""


def batches_file(folder: Path, count: int = 10) -> tuple[Path, list[bytes]]:
    """Write a partition of batches of one record each."""
    batches = []
    for offset in range(count):
        one = kraftlog.encode(pa.table({"value": [b"x" * (offset * 30)]}), base_offset=offset)
        batches.append(one.to_pybytes() if isinstance(one, pa.Buffer) else bytes(one))
    path = folder / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(batches))
    return path, batches


def partition_of(folder: Path, *, leaves_out: bool) -> ServedPartition:
    return ServedLog(kraftlog.open(folder), leaves_out_damaged=leaves_out).topics["orders"].partitions[0]


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("byte", ["length", "crc", "record"])
def test_a_damaged_batch(tmp_path: Path, number: int, byte: str):
    path, batches = batches_file(tmp_path)
    data = bytearray(path.read_bytes())
    start = sum(map(len, batches[:number]))
    at = {"length": 8, "crc": 18, "record": len(batches[number]) - 1}[byte]
    data[start + at] ^= 0x55
    path.write_bytes(data)
    fails = partition_of(tmp_path, leaves_out=False)
    if byte == "length":  # as after a crash, the log ends there
        assert fails.high_watermark == number
    else:
        with pytest.raises(CorruptRecordError):
            fails.fetch(number, 10_000, "read_uncommitted")
    if number:
        assert bytes(fails.fetch(0, 10_000, "read_uncommitted").records) == b"".join(batches[:number])
    goes_on = partition_of(tmp_path, leaves_out=True)
    assert bytes(goes_on.fetch(number, 10_000, "read_uncommitted").records) == b"".join(batches[number + 1 :])
    assert len(goes_on.faults) == 1
    goes_on.fetch(number, 10_000, "read_uncommitted")
    assert len(goes_on.faults) == 1  # the same one


def test_a_file_that_is_gone_is_an_error_of_storage(tmp_path: Path):
    path, _ = batches_file(tmp_path)
    partition = partition_of(tmp_path, leaves_out=False)
    assert partition.high_watermark == 10
    shutil.rmtree(path.parent)
    with pytest.raises(OSError, match="orders-0"):
        partition.fetch(3, 100, "read_uncommitted")


def test_the_metadata_log_is_not_served():
    found = kraftlog.open(GOLDEN / "metadata" / "log")
    assert "__cluster_metadata" in {segment.topic for segment in found.found.segments}
    assert "__cluster_metadata" not in ServedLog(found).topics
