"""``kraftlog downgrade``."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.writer import encode_messages
from kraftlog.metadata import levels
from kraftlog.metadata.schemas import schema_of
from kraftlog.write.metadata_writer import MetadataLogWriter

METADATA, GROUPS = GOLDEN / "metadata" / "log", GOLDEN / "groups" / "log"
Command = Callable[..., Any]


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def snapshot_records(path: Path) -> list[tuple[int, int, dict[str, Any]]]:
    """Return type, version and JSON of the records of a snapshot."""
    reader = MessageReader(BUILT_IN.formats["metadata"])
    found = []
    for batch in kraftlog.open(path).records(["key", "value"], strict=True).batches():
        messages = reader.read(batch.column("key"), batch.column("value"))
        assert not any(messages.errors.to_pylist())
        texts = messages.json()[1].to_pylist()
        found += zip(messages.types.tolist(), messages.value_versions.tolist(), map(json.loads, texts), strict=True)
    return found


def in_order(records: list[tuple[int, int, dict[str, Any]]]) -> list[str]:
    """Return records as text, in one order: that of Kafka's maps, features and entities among them, is not fixed."""
    for _, _, data in records:
        data.get("features", []).sort(key=lambda feature: feature["name"])
        data.get("entity", []).sort(key=lambda entity: entity["entityType"])
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def test_a_release_that_reads_all(kraftlog_command: Command) -> None:
    """Then there is no row, and the exit code is 0."""
    done = kraftlog_command("downgrade", GROUPS, "--to", "4.3", "--format", "jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "4.3.0: reads all records\n")


def test_a_release_that_skips_types(kraftlog_command: Command) -> None:
    """Counts by tests/coordinator; here the columns, the summary and the exit code."""
    done = kraftlog_command("downgrade", GROUPS, "--to", "3.4.1", "--format", "jsonl")
    found = rows(done.stdout)
    assert done.returncode == 1
    assert {row["outcome"] for row in found} == {"skipped", "field_ignored"}
    assert found[0] == {
        "topic": "__consumer_offsets",
        "partition": 0,
        "type": "OffsetCommit",
        "key": None,
        "key_version": 1,
        "value_version": 4,
        "tag": 0,
        "field": "topicId",
        "records_count": 20,
        "first_offset": 3,
        "outcome": "field_ignored",
        "message": "3.4.1 does not know topicId: a topic that is made anew under its name takes over the offset",
    }
    skipped = sum(row["records_count"] for row in found if row["outcome"] == "skipped")
    ignored = sum(row["records_count"] for row in found if row["outcome"] == "field_ignored")
    assert done.stderr == f"3.4.1: {skipped} records are skipped, {ignored} fields are ignored\n"


def test_fields_that_are_ignored_are_no_failure(kraftlog_command: Command) -> None:
    """KIP-915 takes them for optional."""
    done = kraftlog_command("downgrade", GOLDEN / "transactions" / "log", "--to", "3.5.0", "--format", "jsonl")
    assert done.returncode == 0
    assert {row["outcome"] for row in rows(done.stdout)} == {"field_ignored"}


def test_a_release_before_kip_915(kraftlog_command: Command) -> None:
    """It loads nothing."""
    done = kraftlog_command("downgrade", GROUPS, "--to", "3.4.0", "--columns", "type,outcome", "--format", "csv")
    assert done.returncode == 1
    table = list(csv.reader(io.StringIO(done.stdout)))
    assert table[:2] == [["type", "outcome"], ["OffsetCommit", "fails"]]
    assert {outcome for _, outcome in table[1:]} == {"fails"}


def test_replicas_are_one_log(kraftlog_command: Command, tmp_path: Path) -> None:
    """The newest counts, for the records and for metadata.version."""
    for broker in ("1", "2"):
        shutil.copytree(METADATA / "__cluster_metadata-0", tmp_path / broker / "__cluster_metadata-0")
    shorter = tmp_path / "2" / "__cluster_metadata-0" / "00000000000000000457.log"
    shorter.write_bytes(shorter.read_bytes()[:-100])
    one = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--format", "jsonl")
    two = kraftlog_command("downgrade", tmp_path / "1", tmp_path / "2", "--to", "4.2", "--format", "jsonl")
    assert rows(one.stdout)
    note = "1 partition has several replicas that agree; each offset is read once\n"
    assert (two.returncode, two.stdout, two.stderr) == (one.returncode, one.stdout, note + one.stderr)


@pytest.mark.parametrize("to", ["4.2", "4.2-IV1", "4.2.0"])
def test_the_metadata_log(kraftlog_command: Command, to: str) -> None:
    """Its records, and what a downgrade does to its image."""
    done = kraftlog_command("downgrade", METADATA, "--to", to, "--format", "jsonl")
    assert done.returncode == 1
    names = ("type", "value_version", "records_count", "first_offset", "outcome")
    assert [tuple(row[name] for name in names) for row in rows(done.stdout)] == [
        ("RegisterBrokerRecord", 4, 2, 257, "fails"),
        ("BrokerRegistrationChangeRecord", 3, 3, 210, "fails"),
        ("RegisterBrokerRecord", None, None, None, "kept_in_older_version"),
    ]
    assert done.stderr.splitlines()[:3] == [
        "4.2.0: 5 records keep a log from being loaded",
        "metadata.version 4.3-IV0 to 4.2-IV1: needs force",
        "  metadata changed with 4.3-IV0: the downgrade has to be forced",
    ]


def test_names_that_are_not_known(kraftlog_command: Command) -> None:
    """Say so, with the exit code of wrong usage."""
    done = kraftlog_command("downgrade", GROUPS, "--to", "2.8")
    assert done.returncode == 2
    assert "2.8" in done.stderr


def test_a_downgrade_that_must_be_forced(kraftlog_command: Command, tmp_path: Path) -> None:
    """Nothing is written without --unsafe."""
    done = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--write", tmp_path / "out")
    assert done.returncode == 1
    assert "nothing was written; --unsafe writes it nevertheless" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_snapshot(kraftlog_command: Command, tmp_path: Path) -> None:
    """Kafka's image with the other level, and the broker in version 3: the list that this lacks is empty."""
    done = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--write", tmp_path, "--unsafe", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    check = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--format", "jsonl")
    assert (check.returncode, check.stdout) == (1, done.stdout)
    assert done.stderr.startswith(check.stderr)
    assert [row["outcome"] for row in rows(done.stdout) if row["records_count"] is None] == ["kept_in_older_version"]
    answer = json.loads((GOLDEN / "metadata" / "expected" / "image_final.json").read_text())
    (path,) = [file for file in tmp_path.rglob("*") if file.is_file()]
    name = f"{answer['offset'] + 1:020d}-{answer['epoch']:010d}.checkpoint"
    assert path.relative_to(tmp_path) == Path("__cluster_metadata-0") / name
    assert done.stderr.splitlines()[-1] == str(path)
    expected = [(record["type_id"], record["version"], record["data"]) for record in answer["records"]]
    (broker,) = [data for type_id, _, data in expected if type_id == 0]
    assert broker.pop("cordonedLogDirs") == []
    expected = [(type_id, 3 if type_id == 0 else version, data) for type_id, version, data in expected]
    expected[0] = (12, 0, {"name": "metadata.version", "featureLevel": 29})
    written = snapshot_records(path)
    assert written[0] == expected[0]
    assert in_order(written) == in_order(expected)


def test_what_is_dropped(kraftlog_command: Command, tmp_path: Path) -> None:
    """Is listed, and not in the snapshot."""
    done = kraftlog_command(
        "downgrade", METADATA, "--to", "3.5-IV1", "--write", tmp_path, "--unsafe", "--format", "jsonl"
    )
    assert done.returncode == 0, done.stderr
    dropped = [(row["type"], row["key"]) for row in rows(done.stdout) if row["outcome"] == "dropped"]
    assert dropped == [
        ("RegisterControllerRecord", "1"),
        ("UserScramCredentialRecord", "alice SCRAM-SHA-256"),
        ("UserScramCredentialRecord", "alice SCRAM-SHA-512"),
    ]
    (path,) = [file for file in tmp_path.rglob("*") if file.is_file()]
    types = {(type_id, version) for type_id, version, _ in snapshot_records(path)}
    assert types == {(12, 0), (0, 2), (2, 0), (3, 0), (4, 0), (14, 0), (15, 0), (18, 0)}


def test_no_downgrade(kraftlog_command: Command, tmp_path: Path) -> None:
    """Upwards, or to a level that is too old; --unsafe does not help."""
    for to, reason in (
        ("4.4", "4.4-IV2 is not below 4.3-IV0"),
        ("4.3", "4.3-IV0 is not below 4.3-IV0"),
        ("3.2", "3.2-IV0 is below 3.3-IV3"),
    ):
        done = kraftlog_command("downgrade", METADATA, "--to", to, "--write", tmp_path / "out", "--unsafe")
        assert done.returncode == 1
        assert "impossible" in done.stderr
        assert reason in done.stderr
        assert not (tmp_path / "out").exists()


def test_output_directories_that_are_refused(kraftlog_command: Command, tmp_path: Path) -> None:
    """One with something in it, a file, and one inside of what is read."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("mine")
    for target in (tmp_path / "used", tmp_path / "used" / "file", METADATA / "new"):
        done = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--write", target, "--unsafe")
        assert done.returncode == 2
        assert str(target) in done.stderr
    assert [file.name for file in (tmp_path / "used").iterdir()] == ["file"]
    assert not (METADATA / "new").exists()


def test_arrow_output(kraftlog_command: Command, tmp_path: Path) -> None:
    """The table with its types."""
    path = tmp_path / "check.arrow"
    kraftlog_command("downgrade", GROUPS, "--to", "3.4.0", "--format", "arrow", "--output", path)
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    assert table.num_rows > 0
    assert str(table.schema.field("records_count").type) == "int64"


def test_a_snapshot_requires_a_metadata_log(kraftlog_command: Command, tmp_path: Path) -> None:
    """The check alone does not."""
    done = kraftlog_command("downgrade", GROUPS, "--to", "4.3", "--write", tmp_path / "out")
    assert done.returncode == 2
    assert "--write requires one metadata log with a metadata.version, found 0" in done.stderr
    assert not (tmp_path / "out").exists()
    done = kraftlog_command("downgrade", METADATA, "--to", "4.2", "--unsafe")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--unsafe requires --write" in done.stderr


def metadata_version_record(level: int) -> bytes:
    definition = BUILT_IN.messages["FeatureLevelRecord"]
    assert definition.api_key is not None
    row = {"name": "metadata.version", "feature_level": level}
    rows = pa.Table.from_pylist([row], schema_of("FeatureLevelRecord"))
    (value,) = encode_messages(definition, 0, rows, prefix=frame(definition.api_key, 0)).to_pylist()
    return bytes(value)


def test_a_lossless_downgrade_is_written(kraftlog_command: Command, tmp_path: Path) -> None:
    """Without --unsafe: the records of the log are those of the newer level, and the snapshot replaces them."""
    folder = tmp_path / "log"
    shutil.copytree(METADATA / "__cluster_metadata-0", folder / "__cluster_metadata-0")
    with MetadataLogWriter(folder / "__cluster_metadata-0", leader_epoch=None) as writer:
        writer.append([metadata_version_record(levels.level_of("4.1"))])
    done = kraftlog_command("downgrade", folder, "--to", "4.0", "--write", tmp_path / "out", "--columns", "outcome")
    assert (done.returncode, list((tmp_path / "out").rglob("*.checkpoint")) != []) == (0, True), done.stderr
    assert "fails" in done.stdout


def test_the_command_has_one_name(kraftlog_command: Command) -> None:
    done = kraftlog_command("downgrade-check", METADATA, "--to", "4.2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no command 'downgrade-check'; did you mean downgrade?" in done.stderr
