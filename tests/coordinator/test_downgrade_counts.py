"""Records counted by type and version, against Kafka's answers record by record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from downgrade_counts import TOPICS, answers, by_kind, counts

from kraftlog.coordinator.present_tags import present_tags
from kraftlog.coordinator.record_counts import Count, Kind, RecordCounts, TagKind
from kraftlog.messages.arrow_types import TAGGED_FIELD, UNKNOWN_TAGGED_FIELDS, arrow_type
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.defaults import default_column


@pytest.mark.parametrize(("scenario", "topic"), TOPICS)
def test_types_and_versions(scenario: str, topic: str) -> None:
    """Of each partition: how many of each, which is the first, which are tombstones and which are damaged."""
    found = {
        partition: {tuple(kind): (count.records, count.first_offset) for kind, count in counted.kinds.items()}
        for (_, partition), counted in counts(scenario, topic).items()
    }
    assert {partition: kinds for partition, kinds in found.items() if kinds} == {
        partition: by_kind(rows) for partition, rows in answers(scenario, topic).items()
    }


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0", "coordinator_future", "schema_all"])
def test_tagged_fields_of_transactions(scenario: str) -> None:
    """A field is there where Kafka shows it: it leaves out what is absent."""
    names = {"previousProducerId": 0, "nextProducerId": 1, "clientTransactionVersion": 2, "nextProducerEpoch": 3}
    expected: dict[tuple[int, TagKind], Count] = {}
    for partition, rows in answers(scenario, "__transaction_state").items():
        for offset, answer, kind in rows:
            data = (answer.get("value") or {}).get("data", {})
            for name in names.keys() & data.keys():
                assert kind[0] is not None
                assert kind[1] is not None
                key = partition, TagKind(kind[0], kind[1], "", names[name], name)
                expected[key] = expected.get(key, Count(0, offset)) + Count(1, offset)
    found = {
        (partition, kind): count
        for (_, partition), counted in counts(scenario, "__transaction_state").items()
        for kind, count in counted.tags.items()
        if kind.name
    }
    assert found == expected


def test_tagged_fields_nobody_knows() -> None:
    """What the cases of coordinator_future say of themselves."""
    (counted,) = counts("coordinator_future", "__transaction_state").values()
    unknown = {kind: count for kind, count in counted.tags.items() if not kind.name}
    # offset 25 has them at the top and in a partition entry; offset 38 is the same value
    assert {(kind.structs, kind.tag): count for kind, count in unknown.items()} == {
        ("", 4): Count(2, 25),
        ("", 100): Count(2, 25),
        ("transactionPartitions", 0): Count(2, 25),
    }
    (counted,) = counts("coordinator_future", "__consumer_offsets").values()
    of_commits = {kind.tag: count for kind, count in counted.tags.items() if kind.api_key == 1 and not kind.name}
    assert of_commits == {1: Count(1, 22), 7: Count(1, 21), 300: Count(1, 21)}


def test_counts_do_not_depend_on_how_records_come() -> None:
    """All at once or one by one."""
    types = np.array([1, -7, 1, 99, 2, 1], np.int32)
    versions = np.array([3, 0, 4, -1, -1, 3], np.int32)
    is_tombstone = np.array([False, False, False, True, False, False])
    offsets = np.array([5, 6, 8, 9, 10, 20])
    at_once, one_by_one = RecordCounts(), RecordCounts()
    at_once.add(types, versions, is_tombstone, offsets, unknown_type=-7)
    for row in range(len(types)):
        part = slice(row, row + 1)
        one_by_one.add(types[part], versions[part], is_tombstone[part], offsets[part], unknown_type=-7)
    assert at_once.kinds == {
        Kind(None, None, False, False): Count(1, 6),
        Kind(1, 3, False, False): Count(2, 5),
        Kind(1, 4, False, False): Count(1, 8),
        Kind(2, None, False, False): Count(1, 10),
        Kind(99, None, True, False): Count(1, 9),
    }
    assert one_by_one.kinds == at_once.kinds


def test_a_tagged_struct_that_is_absent_is_not_counted() -> None:
    """The default of classicMemberMetadata is a struct of defaults, not null."""
    definition = BUILT_IN.messages["ConsumerGroupMemberMetadataValue"]
    record_type = next(one for one in BUILT_IN.formats["consumer_offsets"].types.values() if one.value is definition)
    inner = next(field for field in definition.fields if field.tag is not None)
    nothing = default_column(inner, arrow_type(inner), 1)[0].as_py()
    values = pa.array([nothing, None, nothing | {"session_timeout_ms": 9}], arrow_type(inner))
    columns = {
        column: values if field is inner else default_column(field, arrow_type(field), 3)
        for column, field, _ in record_type.columns
    }
    unknown = pa.array([[]] * 3, pa.list_(TAGGED_FIELD))
    found = list(present_tags(record_type, pa.record_batch(columns | {UNKNOWN_TAGGED_FIELDS: unknown})))
    assert [(tag.name, tag.rows.tolist()) for tag in found] == [("classicMemberMetadata", [2])]
