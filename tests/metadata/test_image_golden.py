"""The image against Kafka's own: at published and other offsets, from snapshots, and as a broker told it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from image_rows import (
    SCENARIOS,
    applied,
    canonical,
    contents,
    kafka_images,
    log_records,
    of_image,
    snapshot_records,
)

from golden_files import lines, name_of
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.uuids import uuid_text

scenario = pytest.mark.parametrize("folder", SCENARIOS, ids=name_of)
CHUNKS = [1, 7, None]


@scenario
@pytest.mark.parametrize("size", CHUNKS)
def test_images_equal_those_of_kafka(folder: Path, size: int | None) -> None:
    images = kafka_images(folder)
    assert len(images) == 4
    for offset, expected, _ in images:
        image = applied([record for record in log_records(folder) if record[0] <= offset], size)
        assert of_image(image) == canonical(expected)
        assert image.faults == []


@scenario
def test_chunks_make_no_difference(folder: Path) -> None:
    images = [contents(applied(log_records(folder), size)) for size in CHUNKS]
    assert images[0] == images[1] == images[2]


@scenario
def test_topics_and_partitions_at_every_published_offset(folder: Path) -> None:
    records = log_records(folder)
    image = Image.empty()
    at = 0
    for published in lines(folder / "expected" / "published_images.jsonl"):
        behind = at
        while behind < len(records) and records[behind][0] <= published["offset"]:
            behind += 1
        applied(records[at:behind], 1, image)
        at = behind
        tables = image.tables()
        assert tables["TopicRecord"].column("name").to_pylist() == sorted(published["topics"])
        assert tables["PartitionRecord"].num_rows == image.partitions_count == published["partitions"]
    assert at == len(records)


@scenario
def test_what_follows_an_image_makes_the_later_one(folder: Path) -> None:
    records = log_records(folder)
    (first, *_), (second, expected, _) = kafka_images(folder)[0], kafka_images(folder)[2]
    early = applied([record for record in records if record[0] <= first])
    before = of_image(early)
    late = applied([record for record in records if first < record[0] <= second], 5, early.copy())
    assert of_image(late) == canonical(expected)
    assert of_image(early) == before


@scenario
def test_a_snapshot_is_the_image_at_its_offset(folder: Path) -> None:
    snapshots = snapshot_records(folder)
    assert len(snapshots) >= 3
    for name, records in snapshots.items():
        end_offset = int(name.split("-")[0])
        if end_offset:
            replayed = applied([record for record in log_records(folder) if record[0] < end_offset])
            assert contents(applied(records)) == contents(replayed)


@scenario
def test_versions_of_a_snapshot_are_those_of_kafka(folder: Path) -> None:
    for offset, _, expected in kafka_images(folder):
        image = applied([record for record in log_records(folder) if record[0] <= offset])
        level = image.metadata_version
        assert level is not None
        versions = [(name, version) for name, version, batch in image.snapshot_records(level) if batch.num_rows]
        assert sorted(versions) == expected
        assert [name for name, _ in versions] == [name for name in TYPES if name in dict(versions)]


@scenario
def test_image_is_what_the_broker_told(folder: Path) -> None:
    states = sorted((folder / "expected").glob("broker_state_phase_*.json"))
    assert states
    for state in map(json.loads, (file.read_text() for file in states)):
        end = state["quorum_high_watermark"]
        image = applied([record for record in log_records(folder) if record[0] < end])
        tables = contents(image)
        partitions = [row["topic_id"] for row in tables["PartitionRecord"]]
        topics = {
            row["name"]: {
                "topic_id": uuid_text(row["topic_id"]),
                "partitions": partitions.count(row["topic_id"]),
                "dynamic_configs": {
                    config["name"]: config["value"]
                    for config in tables["ConfigRecord"]
                    if (config["resource_type"], config["resource_name"]) == (2, row["name"])
                },
            }
            for row in tables["TopicRecord"]
        }
        assert topics == state["topics"]
        features = dict(image.feature_levels())
        assert features.items() <= state["features"].items()
        assert state["features"].keys() - features.keys() <= {"kraft.version"}
        assert {row["name"] for row in tables["UserScramCredentialRecord"]} == set(state["scram_users"])
        assert len(tables["AccessControlEntryRecord"]) == len(state["acls"])
        assert len({str(row["entity"]) for row in tables["ClientQuotaRecord"]}) == len(state["quotas"])
