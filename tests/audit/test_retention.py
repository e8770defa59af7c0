"""Why segments are not deleted or cleaned: each finding, and the silence where a precondition does not hold."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.audit.retention import future_timestamps, logs_not_cleaned, segments_not_deleted
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS
from kraftlog.metadata.kafka_names import BROKER_RESOURCE
from stopped_broker import HOUR_MS, Broker, evidence_of

DAY_MS = 24 * HOUR_MS
SECOND = {"retention.ms": "1000"}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"}


def names(findings: object) -> list[tuple[str, str | None]]:
    return [(one.code.name, one.topic) for one in findings]  # type: ignore[attr-defined]


def write(folder: Path, *timestamps: int) -> None:
    """Write a segment of one record for each timestamp."""
    folder.mkdir(parents=True)
    for offset, stamp in enumerate(timestamps):
        data = kraftlog.encode(pa.table({"value": [b"v"]}), base_offset=offset, timestamp_ms=stamp)
        (folder / f"{offset:020d}.log").write_bytes(data)


def test_the_first_segment_with_a_timestamp_of_the_future_is_named(tmp_path: Path) -> None:
    now = 1_700_000_000_000
    write(tmp_path / "orders-3", now, now + DAY_MS, now, now + 2 * DAY_MS)
    (finding,) = future_timestamps(evidence_of(tmp_path, now=now))
    assert finding.code.name == "future_timestamp"
    assert (finding.topic, finding.partition, finding.offset) == ("orders", 3, 1)
    assert finding.file == str(tmp_path / "orders-3" / f"{1:020d}.log")
    size = sum(path.stat().st_size for path in (tmp_path / "orders-3").iterdir())
    assert f"2023-11-15T22:13:20+00:00; it pins 3 segments of {size * 3 // 4} bytes" in finding.known


@pytest.mark.parametrize(("ahead", "is_found"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
def test_a_clock_that_is_an_hour_ahead_is_no_finding(tmp_path: Path, ahead: int, is_found: bool) -> None:
    now = 1_700_000_000_000
    write(tmp_path / "orders-0", now + ahead)
    assert bool(list(future_timestamps(evidence_of(tmp_path, now=now)))) is is_found


def test_a_damaged_header_does_not_prove_a_timestamp(tmp_path: Path) -> None:
    now = 1_700_000_000_000
    write(tmp_path / "orders-0", now)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[35:43] = (now + DAY_MS).to_bytes(8, "big")  # max_timestamp
    path.write_bytes(data)
    assert not list(future_timestamps(evidence_of(tmp_path, now=now)))


def test_timestamps_matter_only_where_settings_heed_them(tmp_path: Path) -> None:
    compacted = {"cleanup.policy": "compact"}
    topics = {
        "deleted": {},
        "forever": {"retention.ms": "-1"},
        "compacted": compacted,
        "lagging": {**compacted, "min.compaction.lag.ms": "60000"},
        "both": {"cleanup.policy": "compact,delete", "retention.ms": "-1"},
        "both-lagging": {"cleanup.policy": "compact,delete", "retention.ms": "-1", "min.compaction.lag.ms": "1"},
    }
    broker = Broker(tmp_path, topics)
    before = evidence_of(broker.path, now=broker.end_ms - 10 * HOUR_MS)
    assert {topic for _, topic in names(future_timestamps(before))} == {"deleted", "lagging", "both-lagging"}
    assert not list(future_timestamps(broker.evidence()))


def test_the_broker_uses_the_time_index_of_a_settled_segment(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    table = pa.table({"value": [b"v"] * 10})
    data = kraftlog.encode(table, base_offset=10, timestamp_ms=broker.end_ms + DAY_MS)
    (broker.folder("orders") / f"{10:020d}.log").write_bytes(data)
    assert not list(future_timestamps(broker.evidence()))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    broker.checkpoint("recovery-point-offset-checkpoint", {"orders": 19})
    assert [one.offset for one in future_timestamps(broker.evidence())] == [10]
    broker.checkpoint("recovery-point-offset-checkpoint", {"orders": 20})
    assert not list(future_timestamps(broker.evidence()))


def test_segments_that_retention_should_have_deleted(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": SECOND})
    (finding,) = segments_not_deleted(broker.evidence())
    assert (finding.code.name, finding.topic, finding.offset) == ("segment_not_deleted", "orders", 0)
    size = sum(path.stat().st_size for path in sorted(broker.folder("orders").glob("*.log"))[:3])
    assert finding.known.startswith(f"3 segments of {size} bytes exceed retention.ms 1000; the last timestamp is ")


def test_segments_that_retention_by_size_should_have_deleted(tmp_path: Path) -> None:
    size = (Broker(tmp_path / "same", {"orders": {}}).folder("orders") / f"{10:020d}.log").stat().st_size
    broker = Broker(tmp_path / "small", {"orders": {"retention.ms": "-1", "retention.bytes": str(size * 2)}})
    (finding,) = segments_not_deleted(broker.evidence())
    assert finding.known.startswith("2 segments of ")
    assert f"exceed retention.bytes {size * 2};" in finding.known


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"retention.ms": "-1"},
        {"retention.ms": str(DAY_MS)},
        {**SECOND, "cleanup.policy": "compact"},
        {**SECOND, "cleanup.policy": "compact,delete"},
        {**SECOND, "remote.storage.enable": "true"},
    ],
    ids=str,
)
def test_settings_that_keep_segments(tmp_path: Path, configs: dict[str, str]) -> None:
    assert not list(segments_not_deleted(Broker(tmp_path, {"orders": configs}).evidence()))


def age(broker: Broker) -> None:
    """Make the files of a broker a day old, as after a restart."""
    for path in broker.path.rglob("*.log"):
        os.utime(path, (broker.end_ms / 1000 - 86_400, broker.end_ms / 1000 - 86_400))


def test_a_broker_that_has_not_run_for_an_hour_may_still_delete_and_clean(tmp_path: Path) -> None:
    brokers = [
        Broker(tmp_path / str(hours), {"orders": SECOND, "tables": COMPACT}, hours=hours) for hours in (0.9, 1.1)
    ]
    for broker in brokers:
        age(broker)
    assert [[one.code.name for one in segments_not_deleted(broker.evidence())] for broker in brokers] == [
        [],
        ["segment_not_deleted"],
    ]
    assert [not_cleaned(broker) for broker in brokers] == [["not_cleaned"], ["cleaner_stopped"]]


def test_segments_that_were_written_within_the_last_hour_may_still_be_deleted(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": SECOND})
    for path in broker.folder("orders").glob("*.log"):
        os.utime(path, (broker.end_ms / 1000, broker.end_ms / 1000))
    assert not list(segments_not_deleted(broker.evidence()))


@pytest.mark.parametrize(("offset", "counts"), [(9, []), (10, ["1 segment"]), (29, ["2 segments"])])
def test_segments_above_the_high_watermark_are_kept(tmp_path: Path, offset: int, counts: list[str]) -> None:
    broker = Broker(tmp_path, {"orders": SECOND})
    broker.checkpoint(HIGH_WATERMARKS, {"orders": offset})
    assert [one.known.split(" of ")[0] for one in segments_not_deleted(broker.evidence())] == counts


def test_without_proof_that_the_broker_ran_nothing_is_overdue(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": SECOND})
    folder = broker.folder("orders")
    assert not list(segments_not_deleted(evidence_of(folder)))  # no metadata log
    (tmp_path / HIGH_WATERMARKS).unlink()
    assert not list(segments_not_deleted(broker.evidence()))


def test_a_metadata_log_of_another_broker_does_not_prove_that_this_one_ran(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "a", {"orders": SECOND, "tables": COMPACT})
    other = tmp_path / "b"
    other.mkdir()
    for name in ("meta.properties", HIGH_WATERMARKS, CLEANER_OFFSETS):
        shutil.copy(broker.path / name, other / name)
    for topic in ("orders", "tables"):
        broker.folder(topic).rename(other / f"{topic}-0")
    evidence = broker.evidence(other)  # two directories of one broker
    assert names(segments_not_deleted(evidence)) == [("segment_not_deleted", "orders")]
    assert names(logs_not_cleaned(evidence)) == [("cleaner_stopped", "tables")]
    properties = broker.path / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=2"))
    assert names(segments_not_deleted(broker.evidence(other))) == []
    assert names(logs_not_cleaned(broker.evidence(other))) == [("not_cleaned", "tables")]


def test_a_log_that_was_cleaned_had_another_policy(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": SECOND})
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 10})
    assert not list(segments_not_deleted(broker.evidence()))


def test_a_cleaner_that_stopped(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": COMPACT})
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 10})
    (finding,) = logs_not_cleaned(broker.evidence())
    size = sum(path.stat().st_size for path in sorted(broker.folder("orders").glob("*.log"))[1:3])
    assert (finding.code.name, finding.topic, finding.offset) == ("cleaner_stopped", "orders", 10)
    assert finding.known == (
        f"the cleaner's checkpoint is 10, and {size} bytes in 2 segments after it are closed;"
        " the dirty ratio is 0.67; min.cleanable.dirty.ratio is 0.5"
    )


def not_cleaned(broker: Broker) -> list[str]:
    return [one.code.name for one in logs_not_cleaned(broker.evidence())]


@pytest.mark.parametrize(
    ("configs", "cleaned", "code"),
    [
        ({**COMPACT, "min.cleanable.dirty.ratio": "0.7"}, 10, "not_cleaned"),
        ({**COMPACT, "min.compaction.lag.ms": str(DAY_MS)}, 10, "not_cleaned"),
        ({"cleanup.policy": "compact"}, 10, "not_cleaned"),  # a file of the broker may have the ratio
        ({"cleanup.policy": "compact"}, 0, "cleaner_stopped"),
        ({"cleanup.policy": "compact,delete"}, 0, "cleaner_stopped"),
    ],
)
def test_the_reason_why_a_log_is_not_cleaned(tmp_path: Path, configs: dict[str, str], cleaned: int, code: str) -> None:
    broker = Broker(tmp_path, {"orders": configs})
    broker.checkpoint(CLEANER_OFFSETS, {"orders": cleaned})
    assert not_cleaned(broker) == [code]


def test_a_cleaner_that_is_up_to_date_is_no_finding(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": COMPACT, "kept": {"cleanup.policy": "delete"}})
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 30})
    assert not_cleaned(broker) == []
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 29})
    assert not_cleaned(broker) == ["not_cleaned"]


def test_a_cleaner_may_still_run_in_the_first_hour(tmp_path: Path) -> None:
    assert not_cleaned(Broker(tmp_path, {"orders": COMPACT}, hours=0.9)) == ["not_cleaned"]


def test_without_the_checkpoint_of_the_cleaner_nothing_is_known(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": COMPACT})
    (tmp_path / CLEANER_OFFSETS).unlink()
    assert not_cleaned(broker) == []


def open_transaction(broker: Broker, topic: str, segments_before: int) -> None:
    """Turn the first batch of a segment into an open transaction."""
    path = sorted(broker.folder(topic).glob("*.log"))[segments_before]
    table = pa.table({"value": [b"v" * 100] * 10})
    data = kraftlog.encode(
        table, base_offset=segments_before * 10, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    path.write_bytes(data)
    for other in broker.folder(topic).glob("*.snapshot"):
        other.unlink()


def test_an_open_transaction_keeps_a_log_from_being_cleaned(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": COMPACT})
    open_transaction(broker, "orders", 1)
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 10})
    (finding,) = logs_not_cleaned(broker.evidence())
    assert (finding.code.name, finding.offset) == ("cleaning_blocked", 10)
    assert "a transaction is open from offset 10 on" in finding.known
    broker.checkpoint(CLEANER_OFFSETS, {"orders": 20})
    (finding,) = logs_not_cleaned(broker.evidence())
    assert finding.code.name == "not_cleaned"  # half of it is clean: no cleaner would run


def test_settings_of_all_brokers_hold_where_topics_have_none(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    broker.configure((BROKER_RESOURCE, ""), "log.retention.ms", "1000")
    assert names(segments_not_deleted(broker.evidence())) == [("segment_not_deleted", "orders")]
    broker.configure((BROKER_RESOURCE, "1"), "log.retention.ms", "1000000000000")
    assert not list(segments_not_deleted(broker.evidence()))  # brokers differ
