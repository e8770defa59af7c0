"""Metadata logs replayed to images, against the images that Kafka's own loader made of the same files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.errors import CorruptRecordError, Fault, InvalidTransactionStateError
from kraftlog.layout.discover import discover
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.diff.diff import SCHEMA, by_step, diff, diff_rows
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.changes import changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image

SCENARIOS = ("metadata", "metadata_dynamic")
EMPTY = ImageAt(Image.empty(), -1, -1, -1)
IMAGES = sorted(path for name in SCENARIOS for path in (GOLDEN / name / "expected").glob("image_*.json"))
IMAGES = [path for path in IMAGES if path.name != "image_notes.json"]


def folder_of(scenario: str) -> Path:
    return GOLDEN / scenario / "log" / "__cluster_metadata-0"


def canonical(data: Any) -> str:
    """Return JSON that does not depend on the order of lists whose order means nothing."""
    for name, key in (("features", "name"), ("entity", "entityType")):
        if isinstance(data.get(name), list):
            data = data | {name: sorted(data[name], key=lambda item, key=key: item[key])}
    return json.dumps(data, sort_keys=True)


def expected_records(path: Path) -> list[tuple[int, int, str]]:
    records = json.loads(path.read_text())["records"]
    return sorted((one["type_id"], one["version"], canonical(one["data"])) for one in records)


def records_of(at: ImageAt) -> list[tuple[int, int, str]]:
    """Return an image as the records of a snapshot, written at its own metadata.version."""
    found = []
    level = at.image.metadata_version
    assert level is not None
    for name, version, batch in at.image.snapshot_records(level):
        definition = BUILT_IN.messages[name]
        assert definition.api_key is not None
        values = encode_messages(definition, version, batch, prefix=frame(definition.api_key, version))
        _, texts = MessageReader(BUILT_IN.formats["metadata"]).read(None, values).json()
        found += [(definition.api_key, version, canonical(json.loads(text))) for text in texts.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("use_snapshots", [True, False], ids=["from snapshots", "from the start"])
@pytest.mark.parametrize("path", IMAGES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_image_is_kafkas(path: Path, use_snapshots: bool) -> None:
    """At every offset of which Kafka's image is there."""
    answer = json.loads(path.read_text())
    faults: list[Fault] = []
    log = MetadataLog.open(folder_of(path.parents[1].name))
    offset = None if path.name == "image_final.json" else answer["offset"]
    at = image_at(log, offset, faults, use_snapshots=use_snapshots)
    assert faults == []
    assert (at.offset, at.epoch) == (answer["offset"], answer["epoch"])
    assert records_of(at) == expected_records(path)


def steps_of(log: MetadataLog, before: ImageAt, faults: list[Fault]) -> list[ImageAt]:
    """Return the steps to the end; what each of them changed is what two whole images show."""
    steps: list[ImageAt] = []
    for some in changes(log, before, None, faults, by_batch=True):
        found = dict(by_step(diff_rows(some.changed)))
        assert found.keys() <= set(some.offsets.tolist())
        for offset, epoch, timestamp in zip(some.offsets, some.epochs, some.timestamps, strict=True):
            after = image_at(log, int(offset), [])
            expected = diff((steps[-1] if steps else before).image, after.image)
            rows = found.get(int(offset))
            assert (expected.num_rows == 0) if rows is None else rows.select(SCHEMA.names).equals(expected)
            assert (after.epoch, after.timestamp) == (epoch, timestamp)
            steps.append(after)
    return steps


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_steps_are_those_that_kafka_publishes(scenario: str) -> None:
    """Offsets, epochs, times, topics and partitions of every image; batches without records change nothing."""
    published = {one["offset"]: one for one in lines(GOLDEN / scenario / "expected" / "published_images.jsonl")}
    log = MetadataLog.open(folder_of(scenario))
    faults: list[Fault] = []
    steps = steps_of(log, EMPTY, faults)
    assert faults == []
    assert [step.offset for step in steps] == sorted(step.offset for step in steps)
    seen: dict[str, Any] = {"topics": [], "partitions": 0}
    by_offset = {step.offset: step for step in steps}
    assert set(by_offset) <= set(published)
    for offset, answer in sorted(published.items()):
        step = by_offset.get(offset)
        if step is not None:
            tables = step.image.tables()
            seen["topics"] = sorted(tables["TopicRecord"]["name"].to_pylist())
            seen["partitions"] = tables["PartitionRecord"].num_rows
            assert (step.epoch, step.timestamp) == (answer["epoch"], answer["timestamp"])
        assert seen == {"topics": sorted(answer["topics"]), "partitions": answer["partitions"]}, offset


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_snapshot_is_the_image_before_its_end(scenario: str) -> None:
    """As Kafka wrote it, and as a replay of the log has it."""
    log = MetadataLog.open(folder_of(scenario))
    names = [snapshot.segment.path.name for snapshot in log.snapshots]
    assert names == sorted(names, reverse=True)
    assert len(names) >= 4
    for snapshot in log.snapshots:
        faults: list[Fault] = []
        of_file = image_at(MetadataLog([snapshot.segment]), None, faults)
        if snapshot.end_offset == 0:  # what a cluster is made with: no record of the log is in it
            assert of_file.offset == -1
            continue
        replayed = image_at(log, snapshot.end_offset - 1, faults, use_snapshots=False)
        assert faults == []
        assert records_of(of_file) == records_of(replayed)
        assert (of_file.offset, of_file.epoch) == (replayed.offset, replayed.epoch)
        assert of_file.timestamp == replayed.timestamp


def test_image_of_a_bootstrap_checkpoint() -> None:
    """It holds the features that a cluster starts with."""
    faults: list[Fault] = []
    at = image_at(MetadataLog.open(GOLDEN / "metadata" / "log" / "bootstrap.checkpoint"), None, faults)
    levels = dict(
        zip(*(column.to_pylist() for column in at.image.tables()["FeatureLevelRecord"].columns[:2]), strict=True)
    )
    assert (levels["metadata.version"], faults, at.offset) == (25, [], -1)


def cut_log(folder: Path, scenario: str, first: int) -> Path:
    """Return a copy of a log without the segments before an offset."""
    shutil.copytree(folder_of(scenario), folder / "__cluster_metadata-0")
    for path in (folder / "__cluster_metadata-0").glob("*.log"):
        if int(path.stem) < first:
            path.unlink()
    return folder / "__cluster_metadata-0"


def test_log_that_starts_later_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    """The images are those of the whole log; before the first snapshot that is left there is none."""
    folder = cut_log(tmp_path, "metadata", 258)
    (folder / "00000000000000000056-0000000001.checkpoint").unlink()
    (folder / "00000000000000000135-0000000001.checkpoint").unlink()
    (folder / "00000000000000000207-0000000002.checkpoint").unlink()
    faults: list[Fault] = []
    assert records_of(image_at(MetadataLog.open(folder), 330, faults)) == records_of(
        image_at(MetadataLog.open(folder_of("metadata")), 330, faults, use_snapshots=False)
    )
    assert faults == []
    early = image_at(MetadataLog.open(folder), 300, faults)
    assert faults[0].error == "incomplete_image"
    assert "the log starts at offset 258" in faults[0].message
    assert early.offset == 300


def test_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    """The one before it is used, and the damage is reported."""
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(folder_of("metadata"), folder)
    path = folder / "00000000000000000322-0000000003.checkpoint"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    faults: list[Fault] = []
    at = image_at(MetadataLog.open(folder), 330, faults)
    assert [fault.error for fault in faults] == ["bad_crc"]
    assert path.name in faults[0].message
    whole = image_at(MetadataLog.open(folder_of("metadata")), 330, [], use_snapshots=False)
    assert records_of(at) == records_of(whole)


# what is not legal is told by its strict reading there, which ends the log; the topic that is removed has its own test
LEGAL = sorted(
    path.name
    for path in (GOLDEN / "metadata_txn").iterdir()
    if path.is_dir() and not path.name.endswith("_illegal") and "missing_segment" not in path.name
)
LEGAL.remove("remove_and_recreate")


@pytest.mark.parametrize("case", LEGAL)
def test_no_part_of_a_transaction_is_in_an_image(case: str) -> None:
    """At every offset the topics are those that KIP-868 says are visible."""
    expected = json.loads((GOLDEN / "metadata_txn" / case / "expected" / "expected.json").read_text())
    log = MetadataLog.open(GOLDEN / "metadata_txn" / case / "log")
    visible_from = expected["topic_visible_from_offset"]
    last = log.end_offset - 1
    for offset in range(max(last - 40, log.start_offset), last + 1):
        topics = image_at(log, offset, []).image.tables()["TopicRecord"]["name"].to_pylist()
        known = {topic for topic, since in visible_from.items() if since is not None and since <= offset}
        assert set(topics) == known, offset


def test_topic_is_removed_and_made_anew_at_once() -> None:
    """An aborted removal removes nothing; a committed one shows with the End of the transaction that makes it anew."""
    log = MetadataLog.open(GOLDEN / "metadata_txn" / "remove_and_recreate" / "log")
    ids = []
    for offset in range(1, 12):
        topics = image_at(log, offset, []).image.tables()["TopicRecord"].to_pylist()
        assert [topic["name"] for topic in topics] == ["A"], offset
        ids.append(topics[0]["topic_id"])
    assert len(set(ids[:-1])) == 1
    assert ids[-1] != ids[0]


def test_offset_of_a_time() -> None:
    """The last batch that was appended by then counts."""
    log = MetadataLog.open(folder_of("metadata"))
    published = lines(GOLDEN / "metadata" / "expected" / "published_images.jsonl")
    for one in published[3:40:9]:
        later = [other["offset"] for other in published if other["timestamp"] <= one["timestamp"]]
        assert log.offset_at(one["timestamp"]) == max(later)
    with pytest.raises(ValueError, match="before the first one of the log"):
        log.offset_at(0)


def test_written_snapshot_is_read_as_the_same_image(tmp_path: Path) -> None:
    """Its name says what it stands for."""
    at = image_at(MetadataLog.open(folder_of("metadata")), 321, [])
    path = write_image(tmp_path / "__cluster_metadata-0", at)
    assert path.name == "00000000000000000322-0000000003.checkpoint"
    again = image_at(MetadataLog.open(path), None, faults := [])
    assert faults == []
    assert records_of(again) == records_of(at)
    assert (again.offset, again.epoch, again.timestamp) == (at.offset, at.epoch, at.timestamp)
    with pytest.raises(FileExistsError):
        write_image(tmp_path / "__cluster_metadata-0", at)


def test_written_snapshot_names_the_voters_as_kafkas_own_does(tmp_path: Path) -> None:
    """KRAFT_VERSION and KRAFT_VOTERS, which no record of an image says; a quorum that is configured has none."""
    folder = folder_of("metadata_dynamic")
    for theirs in sorted(folder.glob("*.checkpoint"))[1:]:
        log = MetadataLog.open(folder)
        ours = write_image(tmp_path / theirs.stem, image_at(log, int(theirs.name.partition("-")[0]) - 1, []))
        assert _quorum(ours) == _quorum(theirs) != []
        again = write_image(tmp_path / "again" / theirs.stem, image_at(MetadataLog.open(ours), None, []))
        assert again.read_bytes() == ours.read_bytes()
    assert _quorum(write_image(tmp_path, image_at(MetadataLog.open(folder_of("metadata")), None, []))) == []


def _quorum(snapshot: Path) -> list[tuple[str, bytes]]:
    rows = kraftlog.open(snapshot).records(["control_type", "value"], include_control=True).to_table().to_pylist()
    return [(row["control_type"], row["value"]) for row in rows if (row["control_type"] or "").startswith("KRAFT")]


def test_a_segment_alone_is_not_taken_for_the_snapshots_beside_it() -> None:
    """Its image is that of its own last record; the folder has snapshots of what came later."""
    folder = folder_of("metadata")
    alone = image_at(MetadataLog.open(folder / "00000000000000000000.log"), None, faults := [])
    same = image_at(MetadataLog.open(folder), alone.offset, faults)
    assert faults == []
    assert alone.offset == 71
    assert records_of(alone) == records_of(same)


@pytest.mark.parametrize("name", ["backup", "node-1"])
def test_files_of_a_metadata_log_that_lie_somewhere_else(tmp_path: Path, name: str) -> None:
    """The name of the folder does not make another topic of what is opened as a metadata log."""
    folder = tmp_path / name
    folder.mkdir()
    for file in ("00000000000000000000.log", "00000000000000000056-0000000001.checkpoint"):
        shutil.copy(folder_of("metadata") / file, folder)
        theirs = image_at(MetadataLog.open(folder_of("metadata") / file), 50, faults := [])
        at = image_at(MetadataLog.open(folder / file), 50, faults)
        assert faults == []
        assert at.image.partitions_count > 0
        assert records_of(at) == records_of(theirs)
        assert (at.offset, at.epoch, at.timestamp) == (theirs.offset, theirs.epoch, theirs.timestamp)


def test_folder_with_snapshots_alone(tmp_path: Path) -> None:
    """The latest one is the image."""
    for path in folder_of("metadata").glob("*.checkpoint"):
        shutil.copy(path, tmp_path)
    at = image_at(MetadataLog.open(tmp_path), None, faults := [])
    assert (at.offset, at.epoch, faults) == (451, 4, [])


def damaged(case: str, folder: Path, position: int) -> MetadataLog:
    """Return a copy of a log with a byte of the batch at a position changed."""
    target = folder / "__cluster_metadata-0"
    shutil.copytree(GOLDEN / "metadata_txn" / case / "log" / "__cluster_metadata-0", target)
    path = next(target.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[position + 62] ^= 0x20
    path.write_bytes(data)
    return MetadataLog.open(target)


def topics_of(at: ImageAt) -> list[str]:
    return sorted(at.image.tables()["TopicRecord"]["name"].to_pylist())


@pytest.mark.parametrize("case", ["committed_many_batches", "controller_failover", "aborted_own_batch"])
def test_damage_shows_no_part_of_a_transaction(case: str, tmp_path: Path) -> None:
    """Whichever batch is damaged: topics and their partitions are those of whole committed transactions, or missing."""
    sound = MetadataLog.open(GOLDEN / "metadata_txn" / case / "log")
    whole = image_at(sound, None, [])
    partitions = whole.image.tables()["PartitionRecord"].num_rows
    expected = json.loads((GOLDEN / "metadata_txn" / case / "expected" / "expected.json").read_text())["records"]
    in_transactions = sum(one["type"] == "PartitionRecord" and one["why"] == "committed" for one in expected)
    batches = kraftlog.open(GOLDEN / "metadata_txn" / case / "log").batches(["position", "records_count"])
    positions, counts = (batches[name].to_pylist() for name in ("position", "records_count"))
    for number, position in enumerate(positions[:40]):
        at = image_at(damaged(case, tmp_path / str(number), position), None, faults := [])
        assert {"bad_crc"} | ({"missing_offsets"} if position < positions[-1] else set()) <= {
            fault.error for fault in faults
        }
        found = topics_of(at)
        assert len(found) == len(set(found))
        assert set(found) <= set(topics_of(whole))
        lost = partitions - at.image.tables()["PartitionRecord"].num_rows
        # the batch alone where it is in no transaction, else all of the transaction
        assert lost <= counts[number] or lost >= in_transactions


def test_missing_segment_is_told(tmp_path: Path) -> None:
    """The offsets that are gone are named, with the segment behind them."""
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(folder_of("metadata"), folder)
    (folder / "00000000000000000258.log").unlink()
    image_at(MetadataLog.open(folder), 400, faults := [], use_snapshots=False)
    assert faults[0].error == "missing_offsets"
    assert "00000000000000000378.log: offsets 258 to 377 are missing" in faults[0].message
    assert "missing_offsets" in {fault.error for fault in kraftlog.open(folder).verify()}
    assert "missing_offsets" in kraftlog.open(folder).errors()["error"].to_pylist()


@pytest.mark.parametrize("lost", [60, 2000, 100_000])
def test_cut_snapshot_is_no_image(lost: int, tmp_path: Path) -> None:
    """Alone it is a fault; beside the log an older one or the log itself serves."""
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(folder_of("metadata"), folder)
    path = folder / "00000000000000000452-0000000004.checkpoint"
    path.write_bytes(path.read_bytes()[:-lost] if lost < 7514 else b"")
    image_at(MetadataLog([discover(path).segments[0]]), None, faults := [])
    assert "incomplete_snapshot" in {fault.error for fault in faults}
    assert "incomplete_snapshot" in {fault.error for fault in kraftlog.open(path).verify()}
    at = image_at(MetadataLog.open(folder), None, faults := [])
    assert {fault.error for fault in faults} == {"incomplete_snapshot"}
    assert records_of(at) == records_of(image_at(MetadataLog.open(folder_of("metadata")), None, []))


def test_no_snapshot_within_a_transaction_or_a_batch(tmp_path: Path) -> None:
    """Who went on from such a one would lose the records before it that show later."""
    log = MetadataLog.open(GOLDEN / "metadata_txn" / "committed_many_batches" / "log")
    batches = kraftlog.open(GOLDEN / "metadata_txn" / "committed_many_batches" / "log").batches(["last_offset"])
    cases = {}
    for offset in range(log.end_offset - 1 + 1):
        at = image_at(log, offset, [])
        cases[offset] = (at.open_since, at.is_offset_batch_aligned)
        if cases[offset] != (None, True):
            with pytest.raises(InvalidTransactionStateError, match=f"no snapshot can be made at offset {offset}"):
                write_image(tmp_path, at)
    begin = next(offset for offset, (since, _) in cases.items() if since is not None)
    last = max(offset for offset, (since, _) in cases.items() if since is not None)
    assert {since for since, _ in cases.values()} == {None, begin}
    assert [offset for offset, (since, _) in cases.items() if since == begin] == list(range(begin, last + 1))
    assert {offset for offset, (_, aligned) in cases.items() if aligned} == set(batches["last_offset"].to_pylist())


def test_steps_from_within_a_transaction(sampled: Callable[..., list[int]]) -> None:
    """What was appended before the start and shows with the End is in the step of the End."""
    log = MetadataLog.open(GOLDEN / "metadata_txn" / "committed_many_batches" / "log")
    whole = image_at(log, None, [])
    for offset in sampled(range(log.end_offset - 1), 40):
        steps = steps_of(log, image_at(log, offset, []), faults := [])
        assert faults == []
        if steps:
            assert records_of_tables(steps[-1]) == records_of_tables(whole)
        else:
            assert records_of_tables(image_at(log, offset, [])) == records_of_tables(whole)


def records_of_tables(at: ImageAt) -> dict[str, list[dict[str, Any]]]:
    return {name: table.to_pylist() for name, table in at.image.tables().items()}


def test_image_of_python_users(tmp_path: Path) -> None:
    """``Log.image`` raises where something cannot be read, and says which log it needs."""
    log = kraftlog.open(GOLDEN / "metadata" / "log")
    tables = log.image(321).image.tables()
    assert isinstance(tables["TopicRecord"], pa.Table)
    assert tables["TopicRecord"].num_rows == 17
    with pytest.raises(ValueError, match="one metadata log is needed, not 0"):
        kraftlog.open(GOLDEN / "codecs" / "log").image()
    folder = cut_log(tmp_path, "metadata", 258)
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    with pytest.raises(CorruptRecordError, match="no snapshot can be read that tells what was before"):
        kraftlog.open(folder).image()


def test_moment_is_of_utc() -> None:
    """Offsets of times do not depend on the zone that they are told in."""
    log = MetadataLog.open(folder_of("metadata"))
    batch = kraftlog.open(folder_of("metadata")).batches(["max_timestamp", "last_offset"]).slice(40, 1).to_pylist()[0]
    assert log.offset_at(round(batch["max_timestamp"].timestamp() * 1000)) == batch["last_offset"]
