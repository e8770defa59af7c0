"""A controller starts from an image that kraftlog wrote as a snapshot, and goes on behind it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cluster_state
import pyarrow as pa
import pytest
from jvm import Jvm, Line
from kafka_broker import WITH_ACLS, Broker

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image
from kraftlog.metadata_log.snapshot_writer import write_snapshot

DYNAMIC = "metadata_dynamic"  # its voters are in the log, not in the nodes' configuration
PHASES = {"metadata": 4, DYNAMIC: 3}  # the last one of each; only the node's shutdown is behind it
IMAGES = [
    (name, file)
    for name in PHASES
    for file in sorted((GOLDEN / name / "expected").glob("image_*.json"))
    if file.name != "image_notes.json"
]
METADATA_FOLDER, BOOTSTRAP = "__cluster_metadata-0", "bootstrap.checkpoint"


def log_of(scenario: str) -> MetadataLog:
    return MetadataLog.open(GOLDEN / scenario / "log")


def image_of(log: MetadataLog | Path, offset: int | None = None) -> ImageAt:
    faults: list[kraftlog.Fault] = []
    found = image_at(log if isinstance(log, MetadataLog) else MetadataLog.open(log), offset, faults)
    assert not faults
    return found


@pytest.fixture(scope="module")
def read_by_kafka(java: Jvm, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Line]:
    """Write each image that is known, and let Kafka read the snapshots."""
    answers = [file for _, file in IMAGES]
    folders = [tmp_path_factory.mktemp("snapshot") for _ in IMAGES]
    snapshots = [
        write_image(folder, image_of(log_of(scenario), json.loads(answer.read_text())["offset"]))
        for folder, (scenario, answer) in zip(folders, IMAGES, strict=True)
    ]
    printed = map(json.loads, java.run("SnapshotImage", *map(str, snapshots)))
    return dict(zip(answers, printed, strict=True))


@pytest.mark.parametrize(("scenario", "file"), IMAGES, ids=[f"{name}-{file.stem}" for name, file in IMAGES])
def test_kafka_reads_the_image_that_it_had_itself(read_by_kafka: dict[Path, Line], scenario: str, file: Path) -> None:
    """The same records in the same versions, and the same place in the log."""
    answer = json.loads(file.read_text())
    read = read_by_kafka[file]
    assert {name: read[name] for name in ("offset", "epoch")} == {name: answer[name] for name in ("offset", "epoch")}
    times = {row["offset"]: row["timestamp"] for row in lines(file.parent / "published_images.jsonl")}
    assert read["timestamp"] == times[answer["offset"]]
    assert _as_set(read["records"]) == _as_set(answer["records"])


def _as_set(records: list[Line]) -> list[str]:
    """Return records in a form to compare: what Kafka keeps in maps comes in any order."""
    return sorted(_text([record[name] for name in ("type_id", "version", "data")]) for record in records)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return repr(sorted((name, _text(item)) for name, item in value.items()))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return repr(sorted(map(_text, value)))
    return repr(list(map(_text, value)) if isinstance(value, list) else value)


class Run(NamedTuple):
    """A node that was started on an image and nothing else."""

    scenario: str
    image: ImageAt
    snapshot: Path
    answer: Line
    broker: Broker


@pytest.fixture(scope="module", params=list(PHASES))
def run(java: Jvm, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Give a new node the snapshot of an image, as the node and the log directory that the image speaks of."""
    scenario = str(request.param)
    with tempfile.TemporaryDirectory(prefix="kraftlog-image-") as home:
        broker = Broker(java, Path(home), WITH_ACLS, is_dynamic=scenario == DYNAMIC)
        image = image_of(log_of(scenario))
        snapshot = write_image(broker.log_dir / METADATA_FOLDER, image)
        (registration,) = image.image.tables()["RegisterBrokerRecord"].to_pylist()
        broker.take_directory_id(uuid_text(registration["log_dirs"][0]))
        (broker.log_dir / BOOTSTRAP).unlink()
        with broker:
            answer = broker.cluster_state()
        yield Run(scenario, image, snapshot, answer, broker)


def test_admin_says_what_is_in_the_image(run: Run) -> None:
    """Topics and their ids, partitions, configs, features, quotas, SCRAM credentials and ACLs."""
    expected = _of_image(run.image)
    assert all(expected.values())
    assert cluster_state.in_order(run.answer) == expected


def _of_image(at: ImageAt) -> Line:
    """Return what Admin says of an image: the level of kraft.version is a feature as well, but no record of it."""
    state = cluster_state.of_image(at)
    kraft_version = {"kraft.version": 1} if at.quorum else {}
    return state | {"features": state["features"] | kraft_version}


def test_admin_says_what_it_said_to_the_node_that_wrote_the_log(run: Run) -> None:
    """What Kafka's own node answered shortly before its log ended."""
    file = GOLDEN / run.scenario / "expected" / f"broker_state_phase_{PHASES[run.scenario]}.json"
    answer = json.loads(file.read_text())
    topics = {
        name: (topic["topic_id"], topic["partitions"], topic["dynamic_configs"])
        for name, topic in answer["topics"].items()
    }
    configs: dict[str, Line] = {name: {} for name in run.answer["topics"]}
    for kind, name, config, value in run.answer["configs"]:
        if kind == "TOPIC":
            configs[name][config] = value
    found = {
        name: (topic["topic_id"], len(topic["replicas"]), configs[name]) for name, topic in run.answer["topics"].items()
    }
    assert found == topics
    assert run.answer["features"] == answer["features"]
    assert sorted({user for user, _, _ in run.answer["scram"]}) == sorted(answer["scram_users"])
    assert len(run.answer["quotas"]) == len(answer["quotas"])
    assert len(run.answer["acls"]) == len(answer["acls"])


def test_the_node_has_gone_on_behind_the_snapshot(run: Run) -> None:
    """Its log begins where the snapshot ends, at the next epoch, and there was nothing to complain of."""
    log = kraftlog.open(run.broker.log_dir)
    batches = log.batches(["topic", "base_offset", "partition_leader_epoch", "control_type"]).to_pylist()
    first = next(batch for batch in batches if batch["topic"] == "__cluster_metadata")
    assert first == {
        "topic": "__cluster_metadata",
        "base_offset": run.image.offset + 1,
        "partition_leader_epoch": run.image.epoch + 1,
        "control_type": "LEADER_CHANGE",
    }
    assert run.snapshot.exists()
    set_aside = "not_read"  # the empty log that Kafka begins with before it looks at its snapshots
    assert [row for row in log.errors().to_pylist() if row["error"] != set_aside] == []
    assert run.broker.errors() == []


def test_kraftlog_reads_what_the_node_made_of_it(run: Run) -> None:
    """The snapshot and the node's own records behind it are again what Admin said."""
    image = image_of(run.broker.log_dir)
    assert image.offset > run.image.offset
    assert _of_image(image) == cluster_state.in_order(run.answer)


FEATURES = {"metadata.version": 28, "group.version": 1, "transaction.version": 1}
MECHANISM, ITERATIONS = 2, 4096  # SCRAM-SHA-512


def test_a_node_boots_from_a_bootstrap_checkpoint(java: Jvm, tmp_path: Path) -> None:
    """The levels of features, not the newest ones, and a user: with these the first controller begins its log."""
    broker = Broker(java, tmp_path, WITH_ACLS)
    scram = {"name": "ключ", "mechanism": MECHANISM, "salt": b"salt", "stored_key": bytes(64), "server_key": bytes(64)}
    levels = [{"name": name, "feature_level": level} for name, level in FEATURES.items()]
    values = [
        _serialized("FeatureLevelRecord", levels),
        _serialized("UserScramCredentialRecord", [scram | {"iterations": ITERATIONS}]),
    ]
    (broker.log_dir / BOOTSTRAP).unlink()
    write_snapshot(
        broker.log_dir / BOOTSTRAP,
        values,
        epoch=0,
        last_contained_log_timestamp=0,
        timestamp_ms=0,
        max_batch_bytes=1 << 20,
    )
    with broker:
        answer = broker.cluster_state()
    assert answer["features"] == FEATURES
    assert answer["scram"] == [["ключ", MECHANISM, ITERATIONS]]
    log = kraftlog.open(broker.log_dir / METADATA_FOLDER)
    (transaction,) = log.metadata_transactions().to_pylist()
    assert (transaction["name"], transaction["state"]) == ("Bootstrap records", "committed")
    written = log.records(["value"], start_offset=transaction["begin_offset"] + 1, end_offset=transaction["end_offset"])
    assert written.to_table()["value"].to_pylist() == pa.concat_arrays(values).to_pylist()


def _serialized(name: str, rows: list[Line]) -> pa.BinaryArray:
    definition = BUILT_IN.messages[name]
    fields = [field for field in message_schema(definition) if field.name in rows[0]]
    assert definition.api_key is not None
    return encode_messages(
        definition, 0, pa.Table.from_pylist(rows, pa.schema(fields)), prefix=frame(definition.api_key, 0)
    )
