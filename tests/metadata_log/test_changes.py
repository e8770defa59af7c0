"""The table metadata_changes: of random logs against a comparison of whole images, and of the logs of Kafka."""

from __future__ import annotations

import json
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from change_logs import LOG, write
from change_twin import Block, Row, fold, from_json, state_of
from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import contents

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.errors import RecordError
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at

METADATA = GOLDEN / "metadata" / "log"
COLUMNS = ["offset", "kind", "key", "change", "field", "before", "after"]
SCENARIOS = [GOLDEN / "metadata", GOLDEN / "metadata_dynamic", *sorted((GOLDEN / "metadata_txn").iterdir())]


def parsed(row: Row) -> Row:
    """Return a row with the texts of its JSON."""
    if row["field"] is not None:
        return row
    return row | {side: row[side] and from_json(row["kind"], row[side]) for side in ("before", "after")}


def in_order(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@settings(max_examples=120, deadline=None)
@given(LOG, st.sampled_from([600, 2000, 100_000]), st.booleans(), st.integers(1, 40), st.data())
def test_changes_are_those_of_whole_images(
    log: list[Block], batch_bytes: int, ends_open: bool, batch_rows: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "__cluster_metadata-0"
        twin = write(folder, log, batch_bytes, ends_open=ends_open)
        opened = kraftlog.open(folder)
        stream = opened.scan(
            "metadata_changes",
            COLUMNS,
            kraftlog.tables.user_options.read_options(batch_rows=batch_rows, show_secrets=True),
        )
        rows = stream.to_table().to_pylist()
        assert [row["offset"] for row in rows] == sorted(row["offset"] for row in rows)
        assert in_order([parsed(row) for row in rows]) == in_order(twin.rows)
        faults = [(fault.error, fault.base_offset) for fault in stream.faults if fault.error != "unsupported_marker"]
        assert faults == twin.image.faults
        state: dict[Any, Any] = {}
        by_offset = {offset: list(some) for offset, some in groupby(rows, lambda row: row["offset"])}
        for offset, expected in twin.states.items():
            fold(state, by_offset.pop(offset, []))
            assert state == expected
        assert not by_offset
        start = data.draw(st.integers(0, sum(len(block.whole) for block in log)))
        bounded = (
            opened.metadata_changes(COLUMNS, start_offset=start, include_image=True, show_secrets=True)
            .to_table()
            .to_pylist()
        )
        assert {row["offset"] for row in bounded if row["offset"] < start} <= {start - 1}
        behind: dict[Any, Any] = {}
        fold(behind, bounded)
        assert behind == state
        assert [row for row in bounded if row["offset"] >= start] == [row for row in rows if row["offset"] >= start]


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_fold_of_a_log_of_kafka_is_its_image(folder: Path) -> None:
    """Also from the image at an offset, and with the marks of transactions in any place."""
    log = MetadataLog.open(folder / "log")
    whole = kraftlog.open(folder / "log" / "__cluster_metadata-0")
    rows = whole.metadata_changes(include_image=True, show_secrets=True).to_table().to_pylist()
    state: dict[Any, Any] = {}
    for offset, some in groupby(rows, lambda row: row["offset"]):
        fold(state, some)
        if offset % 7 == 0:
            assert state == state_of(contents(image_at(log, offset, []).image)), offset
    assert state == state_of(contents(image_at(log, None, []).image))
    assert state


@pytest.mark.parametrize("name", ["metadata", "metadata_dynamic"])
def test_topics_that_kafka_publishes(name: str) -> None:
    """Offsets, times, and what there is in each of Kafka's images."""
    rows = (
        kraftlog.open(GOLDEN / name / "log")
        .metadata_changes(include_image=True, show_secrets=True)
        .to_table()
        .to_pylist()
    )
    times = {row["offset"]: row["timestamp"] for row in rows}
    answers = {one["offset"]: one for one in lines(GOLDEN / name / "expected" / "published_images.jsonl")}
    for offset, answer in answers.items():
        state: dict[Any, Any] = {}
        fold(state, (row for row in rows if row["offset"] <= offset))
        assert sorted(key for kind, key in state if kind == "topic") == sorted(answer["topics"])
        assert sum(kind == "partition" for kind, _ in state) == answer["partitions"]
        if offset in times:
            assert times[offset].timestamp() * 1000 == answer["timestamp"]


def test_filters() -> None:
    """They leave the rows that a look at each of them leaves."""
    log = kraftlog.open(METADATA)
    shown = ["offset", "kind", "key", "field", "topic", "partition", "brokers"]
    rows = log.metadata_changes(shown).to_table().to_pylist()

    def filtered(**wanted: Any) -> list[Row]:
        return log.metadata_changes(shown, **wanted).to_table().to_pylist()

    assert filtered(kinds=["broker", "acl"]) == [row for row in rows if row["kind"] in ("broker", "acl")]
    of_topic = [row for row in rows if row["topic"] == "meta-1"]
    assert filtered(topics=["meta-1"]) == of_topic
    assert {row["kind"] for row in of_topic} == {"topic", "partition"}
    assert {row["kind"] for row in filtered(topics=["meta-0"])} == {"topic", "partition", "config"}
    of_broker = filtered(brokers=[1], kinds=["partition"])
    assert of_broker == [row for row in rows if row["kind"] == "partition" and 1 in row["brokers"]]
    assert {row["field"] for row in of_broker} == {None, "leader"}
    assert filtered(brokers=[9]) == []
    assert log.metadata_changes(["offset"], topics=["meta-1"]).to_table().column_names == ["offset"]
    assert log.metadata_changes(["offset"], brokers=[1]).to_table().num_rows == sum(1 in row["brokers"] for row in rows)
    with pytest.raises(ValueError, match="'leader' is not a kind of change; there are feature, broker"):
        log.metadata_changes(kinds=["leader"])


@pytest.mark.sweep(10)
@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_every_filter(folder: Path) -> None:
    check_filters(kraftlog.open(folder / "log"))


@settings(max_examples=40, deadline=None)
@given(LOG)
def test_every_filter_of_random_logs(log: list[Block]) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "__cluster_metadata-0"
        write(folder, log, 2000, ends_open=False)
        check_filters(kraftlog.open(folder))


def check_filters(log: kraftlog.Log) -> None:
    """Look for every kind, topic and broker of a log, and two at a time."""
    shown = ["offset", "kind", "key", "change", "field", "before", "after", "topic", "brokers"]
    rows = log.metadata_changes(shown, include_image=True).to_table().to_pylist()
    brokers = sorted({broker for row in rows for broker in row["brokers"]})
    topics = sorted({row["topic"] for row in rows if row["topic"] is not None})
    kinds = sorted({row["kind"] for row in rows})
    for wanted in (
        *({"brokers": [broker]} for broker in [*brokers, -1, 99, 1 << 40]),
        *({"topics": [topic]} for topic in topics),
        *({"kinds": [kind]} for kind in kinds),
        *({"brokers": brokers[:2], "kinds": [kind]} for kind in kinds),
        *({"topics": topics[-2:], "brokers": [broker]} for broker in brokers),
    ):
        found = log.metadata_changes(shown, include_image=True, **wanted).to_table().to_pylist()
        assert found == [row for row in rows if is_wanted(row, **wanted)], wanted


def is_wanted(
    row: Row, kinds: list[str] | None = None, topics: list[str] | None = None, brokers: list[int] | None = None
) -> bool:
    return (
        (kinds is None or row["kind"] in kinds)
        and (topics is None or row["topic"] in topics)
        and (brokers is None or not set(brokers).isdisjoint(row["brokers"]))
    )


def test_bounds_of_time() -> None:
    log = kraftlog.open(METADATA)
    rows = log.metadata_changes().to_table().to_pylist()
    stamps = sorted({row["timestamp"] for row in rows})
    first, last = stamps[3], stamps[-3]
    found = log.metadata_changes(start_timestamp=first, end_timestamp=last).to_table().to_pylist()
    assert found == [row for row in rows if first <= row["timestamp"] < last]
    assert len(found) < len(rows)


def test_secrets() -> None:
    """They are shown on request; that one has changed is shown in any case."""
    log = kraftlog.open(METADATA)
    columns = ["kind", "key", "change", "field"]
    hidden = log.metadata_changes().to_table()
    shown = log.metadata_changes(show_secrets=True).to_table()
    assert hidden.select(columns).equals(shown.select(columns))
    salts = [
        json.loads(row["after"])["salt"]
        for row in hidden.to_pylist()
        if row["kind"] == "scram_credential" and row["after"]
    ]
    assert set(salts) == {"[redacted]"}
    assert '"salt":"[redacted]"' not in "".join(filter(None, shown["after"].to_pylist()))


def test_snapshot_and_strict(tmp_path: Path) -> None:
    """A snapshot has an image and no changes; what a log lacks is a fault, or an error."""
    snapshot = max((METADATA / "__cluster_metadata-0").glob("0*-*.checkpoint"))
    log = kraftlog.open(snapshot)
    assert log.metadata_changes().to_table().num_rows == 0
    rows = log.metadata_changes(include_image=True).to_table().to_pylist()
    end_offset = int(snapshot.name.split("-")[0])
    assert {(row["offset"], row["change"]) for row in rows} == {(end_offset - 1, "added")}
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    data = bytearray((METADATA / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes())
    data[-3] ^= 1
    (folder / f"{0:020d}.log").write_bytes(data)
    damaged = kraftlog.open(folder)
    stream = damaged.metadata_changes()
    assert stream.to_table().num_rows
    assert [fault.error for fault in stream.faults] == ["bad_crc"]
    with pytest.raises(RecordError, match="stored crc"):
        damaged.metadata_changes(strict=True).to_table()
    stream = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-lz4-0").metadata_changes()
    assert (stream.to_table().num_rows, stream.notes) == (0, ["no __cluster_metadata among codec-lz4"])
