"""Images of random records, illegal ones included, against Kafka's MetadataDelta."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.constants_ast import Constants
from jvm import Jvm

from kraftlog.codec.metadata_version import LEVELS
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.levels import OLDEST_LEVEL
from kraftlog.metadata.schemas import schema_of

sys.path.append(str(Path(__file__).parent.parent / "metadata"))  # their records are drawn there

from image_rows import Fields, Record, applied, canonical, of_image, record, typed
from random_records import about_brokers, about_topics, few, fields, logs, uuids

LOGS = 2000
NEWEST_LEVEL = LEVELS["4.3-IV0"]  # of the Kafka that answers
METADATA_VERSION = "metadata.version"

principals = st.sampled_from(["User:a", "User:b"])
users = st.sampled_from(["a", "b", ""])
mechanisms = st.integers(1, 2)

# what a controller may write of them: Kafka refuses others for their content alone
about_kafka = st.one_of(
    fields("FeatureLevelRecord", name=st.sampled_from(["a", "b"]), feature_level=st.integers(0, 2)),
    fields(
        "FeatureLevelRecord",
        name=st.just(METADATA_VERSION),
        feature_level=st.sampled_from([0, OLDEST_LEVEL, 14, 20, 25, NEWEST_LEVEL]),
    ),
    fields("RegisterControllerRecord", controller_id=few),
    fields(
        "ClientQuotaRecord",
        entity=st.lists(
            st.fixed_dictionaries(
                {
                    "entity_type": st.sampled_from(["user", "client-id", "ip"]),
                    "entity_name": st.none() | users,
                    "unknown_tagged_fields": st.none(),
                }
            ),
            min_size=1,
            max_size=2,
            unique_by=lambda entity: entity["entity_type"],
        ),
        key=st.sampled_from(["producer_byte_rate", "request_percentage"]),
        value=st.floats(0, 9),
        remove=st.booleans(),
    ),
    fields("ProducerIdsRecord", broker_id=few, broker_epoch=few, next_producer_id=st.integers(-1, 9)),
    fields(
        "AccessControlEntryRecord",
        id=uuids,
        resource_type=st.integers(2, 5),
        resource_name=users,
        pattern_type=st.integers(3, 4),
        principal=principals,
        host=st.just("*"),
        operation=st.integers(2, 4),
        permission_type=st.integers(2, 3),
    ),
    fields("RemoveAccessControlEntryRecord", id=uuids),
    fields(
        "UserScramCredentialRecord",
        name=users,
        mechanism=mechanisms,
        salt=st.binary(max_size=2),
        iterations=st.just(4096),
    ),
    fields("RemoveUserScramCredentialRecord", name=users, mechanism=mechanisms),
    fields(
        "DelegationTokenRecord",
        token_id=users,
        owner=principals,
        requester=principals,
        renewers=st.lists(principals, max_size=2),
    ),
    fields("RemoveDelegationTokenRecord", token_id=users),
    fields("NoOpRecord"),
)


@pytest.fixture(scope="module")
def drawn(request: pytest.FixtureRequest) -> list[list[Record]]:
    """Draw the same logs in every run, one of ten in a sample.

    Each begins with a level of metadata.version, which Kafka needs to write one.
    """
    found: list[list[Record]] = []
    count = LOGS if request.config.getoption("--all-cases") else LOGS // 10
    level = record("FeatureLevelRecord", name=METADATA_VERSION, feature_level=NEWEST_LEVEL)

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(logs(about_topics, about_brokers, about_kafka))
    def draw(records: list[Record]) -> None:
        found.append([(0, "FeatureLevelRecord", level), *_of_one_name(records)])

    # constants of whatever modules are imported would make other logs of these
    with mock.patch("hypothesis.internal.conjecture.providers._get_local_constants", Constants):
        draw()
    assert len(found) >= count
    return found


def _of_one_name(records: list[Record]) -> Iterator[Record]:
    """Leave out topics of a name that another one has: of these it depends on Kafka's maps which of them it finds."""
    names: dict[bytes, str] = {}
    for offset, name, given_fields in records:
        if name == "TopicRecord":
            topic, topic_id = given_fields["name"], given_fields["topic_id"]
            if names.get(topic_id, topic) != topic or topic in [names[other] for other in names if other != topic_id]:
                continue
            names[topic_id] = topic
        elif name == "RemoveTopicRecord":
            names.pop(given_fields["topic_id"], None)
        yield offset, name, given_fields


def in_hex(drawn: list[list[Record]]) -> list[list[str]]:
    """Return the records of logs as they are in a log."""
    of_type: dict[str, list[Fields]] = {}
    for _, name, row in chain(*drawn):
        of_type.setdefault(name, []).append(row)
    values = {name: iter(_encoded(name, rows)) for name, rows in of_type.items()}
    return [[next(values[name]).hex() for _, name, _ in records] for records in drawn]


def _encoded(name: str, rows: list[Fields]) -> list[bytes]:
    definition = BUILT_IN.messages[name]
    assert definition.api_key is not None
    version = definition.versions.last
    table = pa.Table.from_pylist(rows, schema_of(name))
    return encode_messages(definition, version, table, prefix=frame(definition.api_key, version)).to_pylist()


def test_record_by_record(java: Jvm, drawn: list[list[Record]]) -> None:
    """Kafka publishes each record; the same ones are refused, and the image is the same."""
    _compare(java, drawn, 1)


def test_several_records_in_a_delta(java: Jvm, drawn: list[list[Record]]) -> None:
    """Kafka publishes several at a time.

    Without what its deltas know of each other's records only when they are published: a second removal is accepted;
    configs of a topic that is removed in the same delta stay; the removal of a SCRAM user takes the others of a new
    mechanism with it. Here each record counts by itself.
    """
    removals = ("RemoveTopicRecord", "RemoveUserScramCredentialRecord")
    kept = [[one for one in records if one[1] not in removals] for records in drawn]
    refused = [{fault.base_offset for fault in applied(records).faults} for records in kept]
    _compare(
        java, [[one for one in records if one[0] not in out] for records, out in zip(kept, refused, strict=True)], 20
    )


def _compare(java: Jvm, drawn: list[list[Record]], size: int) -> None:
    lines = [{"deltas": [values[at : at + size] for at in range(0, len(values), size)]} for values in in_hex(drawn)]
    answers = [json.loads(line) for line in java.run("RandomImages", lines=lines, limit=600)]
    assert len(answers) == len(drawn)
    for records, answer in zip(drawn, answers, strict=True):
        image = applied(records)
        refused = [records[at][0] for at in answer["refused"]]
        assert refused == sorted({fault.base_offset for fault in image.faults}), records
        assert image.metadata_version == answer["metadata_version"], records
        assert _others(of_image(image)) == _others(canonical(map(typed, answer["records"]))), records


def _others(records: list[str]) -> list[str]:
    """Leave out the record of metadata.version: Kafka writes that of the snapshot in its place."""
    return [one for one in records if repr(METADATA_VERSION) not in one]
