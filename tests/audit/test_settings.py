"""Settings in the metadata log against batches and replicas: each finding, and the silence on the other side."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from log_mutants import with_fields

import kraftlog
from kraftlog.audit.settings import records_without_keys, settings_of_batches, settings_of_replicas
from kraftlog.layout.checkpoints import CLEANER_OFFSETS
from kraftlog.metadata.kafka_names import BROKER_RESOURCE, TOPIC_RESOURCE
from stopped_broker import Broker, evidence_of

ORDERS = (TOPIC_RESOURCE, "orders")
ALL_BROKERS = (BROKER_RESOURCE, "")
COMPACT = {"cleanup.policy": "compact"}
LAST = 30


def names(findings: object) -> list[tuple[str, str | None, int | None]]:
    return [(one.code.name, one.topic, one.offset) for one in findings]  # type: ignore[attr-defined]


def last_segment(broker: Broker, *batches: bytes) -> None:
    """Write the last segment of a topic again."""
    (broker.folder("orders") / f"{LAST:020d}.log").write_bytes(b"".join(batches))


def batch(keys: list[str | None], base_offset: int = LAST) -> bytes:
    table = pa.table({"key": pa.array(keys, pa.string()), "value": ["v"] * len(keys)})
    return bytes(kraftlog.encode(table, base_offset=base_offset))


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_cleaner_will_delete_records_without_a_key(tmp_path: Path, policy: str) -> None:
    broker = Broker(tmp_path, {"orders": {"cleanup.policy": policy}})
    last_segment(broker, batch(["a", "b"]), batch(["c", None, None], LAST + 2))
    (finding,) = records_without_keys(broker.evidence())
    assert (finding.code.name, finding.topic, finding.offset) == ("compacted_without_key", "orders", LAST + 3)
    assert finding.known == f"the record at offset {LAST + 3} has no key, and cleanup.policy is {policy}"
    last_segment(broker, batch(["a", ""]))
    assert names(records_without_keys(broker.evidence())) == []


def test_records_without_a_key_are_no_finding_where_nothing_is_compacted(tmp_path: Path) -> None:
    for number, configs in enumerate(({}, {"cleanup.policy": "delete"})):
        broker = Broker(tmp_path / str(number), {"orders": configs})
        last_segment(broker, batch([None]))
        assert names(records_without_keys(broker.evidence())) == []
    assert names(records_without_keys(evidence_of(broker.folder("orders")))) == []  # no metadata log


@pytest.mark.parametrize(("checkpoint", "is_found"), [(LAST, True), (LAST + 1, False)])
def test_records_before_the_checkpoint_of_the_cleaner_are_not_read(
    tmp_path: Path, checkpoint: int, is_found: bool
) -> None:
    broker = Broker(tmp_path, {"orders": COMPACT})
    last_segment(broker, batch([None]), batch(["a"], LAST + 1))
    broker.checkpoint(CLEANER_OFFSETS, {"orders": checkpoint})
    assert bool(list(records_without_keys(broker.evidence()))) is is_found


def cleaned(broker: Broker) -> None:
    """Write a batch with an offset whose record a cleaner removed."""
    last_segment(broker, with_fields(batch(["a", "b"]), last_offset_delta=2))


@pytest.mark.parametrize(("policy", "is_found"), [("delete", True), ("compact", False), ("compact,delete", False)])
def test_a_topic_that_was_compacted(tmp_path: Path, policy: str, is_found: bool) -> None:
    broker = Broker(tmp_path, {"orders": {"cleanup.policy": policy}})
    assert names(settings_of_batches(broker.evidence())) == []
    cleaned(broker)
    assert names(settings_of_batches(broker.evidence())) == [("was_compacted", "orders", LAST)] * is_found


def test_brokers_may_have_another_policy_in_their_files(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    cleaned(broker)
    assert names(settings_of_batches(broker.evidence())) == []
    broker.configure(ALL_BROKERS, "log.cleanup.policy", "delete")
    assert names(settings_of_batches(broker.evidence())) == [("was_compacted", "orders", LAST)]


@pytest.mark.parametrize(("less", "is_found"), [(0, False), (1, True)])
@pytest.mark.parametrize(
    ("resource", "name"), [(ORDERS, "max.message.bytes"), (ALL_BROKERS, "message.max.bytes")], ids=["topic", "brokers"]
)
def test_a_batch_that_is_larger_than_the_limit(
    tmp_path: Path, resource: tuple[int, str], name: str, less: int, is_found: bool
) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    large, before = batch(["k" * 5000], LAST - 10), LAST - 10
    (broker.folder("orders") / f"{before:020d}.log").write_bytes(large)
    assert names(settings_of_batches(broker.evidence())) == []  # without a limit
    broker.configure(resource, name, str(len(large) - less))
    found = list(settings_of_batches(broker.evidence()))
    assert names(found) == [("batch_above_limit", "orders", before)] * is_found
    if is_found:
        limit = len(large) - 1
        assert (
            found[0].known == f"the batch at offset {before} has {len(large)} bytes, and max.message.bytes is {limit}"
        )


@pytest.mark.parametrize(("least", "is_found"), [("1", False), ("2", True)])
def test_a_partition_with_fewer_replicas_than_have_to_be_in_sync(tmp_path: Path, least: str, is_found: bool) -> None:
    broker = Broker(tmp_path, {"orders": {"min.insync.replicas": least}})
    found = list(settings_of_replicas(broker.evidence()))
    assert names(found) == [("few_replicas", "orders", None)] * is_found
    if is_found:
        assert (found[0].partition, found[0].known) == (0, "the replicas are [1], and min.insync.replicas is 2")


def test_elections_of_replicas_that_are_not_in_sync(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}, "payments": {}})
    name = "unclean.leader.election.enable"
    broker.configure(ORDERS, name, "true")
    broker.configure((TOPIC_RESOURCE, "payments"), name, "false")
    assert names(settings_of_replicas(broker.evidence())) == [("unclean_elections", "orders", None)]
    broker.configure(ORDERS, name, "false")
    assert names(settings_of_replicas(broker.evidence())) == []
    broker.configure(ALL_BROKERS, name, "true")
    (finding,) = settings_of_replicas(broker.evidence())
    assert (finding.topic, finding.known) == (None, f"{name} of all brokers is true")
    broker.configure((BROKER_RESOURCE, "1"), name, "false")  # brokers differ
    assert names(settings_of_replicas(broker.evidence())) == []


def test_only_topics_that_are_asked_for(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {"min.insync.replicas": "2"}, "payments": {"min.insync.replicas": "2"}})
    found = kraftlog.open(tmp_path, topics=["orders"]).findings(["code", "topic"]).to_pylist()
    assert [row["topic"] for row in found if row["code"] == "few_replicas"] == ["orders"]
    assert broker.path == tmp_path
