"""In which partition Kafka keeps a group or a transactional id."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_files import GOLDEN, lines
from kraftlog.codec.value_hashes import hash_code
from kraftlog.coordinator.coordinator_partition import coordinator_partition
from kraftlog.coordinator.partition_for import group_partition

_PARTITIONS = 2  # of these topics, in the brokers that wrote the files


def _placed(folder: Path, name: str, keys: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for line in lines(folder / "expected" / f"{name}.jsonl"):
        data = line.get("key", {}).get("data", {})
        found.update({data[key]: int(line["file"].split("/")[0][-1]) for key in keys if key in data})
    return found


@pytest.mark.parametrize(
    ("scenario", "name"),
    [
        ("groups", "consumer_offsets"),
        ("share_state", "consumer_offsets"),
        ("transactions", "consumer_offsets"),
        ("transactions", "transaction_state"),
        ("transactions_hanging", "transaction_state"),
    ],
)
def test_where_kafka_put_them(scenario: str, name: str) -> None:
    folder = GOLDEN / scenario
    placed = _placed(folder, name, ("group", "groupId", "transactionalId"))
    assert placed
    assert group_partition(pa.array(list(placed)), _PARTITIONS).to_pylist() == list(placed.values())


def test_hash_codes_are_those_of_java() -> None:
    known = {"": 0, "a": 97, "Hello": 69609650, "Aa": 2112, "BB": 2112, "polygenelubricants": -(1 << 31)}
    assert hash_code(pa.array(list(known))).to_pylist() == list(known.values())


def test_the_least_number_has_no_absolute_value() -> None:
    names = pa.array(["polygenelubricants"])
    assert group_partition(names).to_pylist() == [0]
    assert group_partition(names, 7).to_pylist() == [0]
    assert coordinator_partition("polygenelubricants", 7) == 0


@given(st.lists(st.text(max_size=20), max_size=10), st.integers(1, 1000))
def test_letter_by_letter(names: list[str], partitions: int) -> None:
    expected = []
    for name in names:
        code, units = 0, name.encode("utf-16-be")
        for at in range(0, len(units), 2):
            code = (code * 31 + int.from_bytes(units[at : at + 2], "big")) % (1 << 32)
        signed = code - (1 << 32) if code >= 1 << 31 else code
        expected.append(0 if signed == -(1 << 31) else abs(signed) % partitions)
    assert group_partition(pa.array(names, pa.string()), partitions).to_pylist() == expected
    assert [coordinator_partition(name, partitions) for name in names] == expected


def test_null_of_null() -> None:
    assert group_partition(pa.array(["a", None, ""], pa.large_string())).to_pylist() == [97 % 50, None, 0]
    assert group_partition(pa.array(["a", "a"]), pa.array([50, None])).to_pylist() == [97 % 50, None]


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_topic_has_partitions(partitions: int) -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        group_partition(pa.array(["group"]), partitions)
