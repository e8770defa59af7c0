"""``kraftlog image``, ``kraftlog diff`` and ``kraftlog messages``."""

from __future__ import annotations

import csv
import io
import json
import shutil
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import kraftlog
from golden_files import GOLDEN, lines

METADATA = GOLDEN / "metadata" / "log"
Command = Callable[..., Any]


def records_of_segments() -> list[dict[str, Any]]:
    """Return what Kafka says of each record of the log itself; those of snapshots are told beside them."""
    answers = lines(GOLDEN / "metadata" / "expected" / "metadata_records.jsonl")
    return [one for one in answers if one["file"].endswith(".log") and "type" in one]


def test_image_as_json(kraftlog_command: Command) -> None:
    """Topics, partitions and features are those of Kafka's image; secrets are hidden unless they are asked for."""
    answer = json.loads((GOLDEN / "metadata" / "expected" / "image_at_206.json").read_text())
    done = kraftlog_command("image", METADATA, "--at", 206)
    tree = json.loads(done.stdout)
    of_type: dict[str, list[dict[str, Any]]] = {}
    for record in answer["records"]:
        of_type.setdefault(record["type"], []).append(record["data"])
    assert (done.returncode, done.stderr, tree["offset"], tree["epoch"]) == (0, "", 206, answer["epoch"])
    assert tree["features"] == {one["name"]: one["featureLevel"] for one in of_type["FEATURE_LEVEL_RECORD"]}
    assert {name: topic["id"] for name, topic in tree["topics"].items()} == {
        topic["name"]: topic["topicId"] for topic in of_type["TOPIC_RECORD"]
    }
    assert sum(len(topic["partitions"]) for topic in tree["topics"].values()) == len(of_type["PARTITION_RECORD"])
    salt = of_type["USER_SCRAM_CREDENTIAL_RECORD"][0]["salt"]
    assert salt not in done.stdout
    assert salt in kraftlog_command("image", METADATA, "--at", 206, "--show-secrets").stdout


def test_image_at_a_time(kraftlog_command: Command) -> None:
    """The image of the last batch that was appended by then."""
    published = lines(GOLDEN / "metadata" / "expected" / "published_images.jsonl")
    done = kraftlog_command("image", METADATA, "--at", "2026-11-21T03:12:15.557Z")
    last = max(one["offset"] for one in published if one["timestamp"] <= 1795230735557)
    assert json.loads(done.stdout)["offset"] == last


def test_image_as_a_table(kraftlog_command: Command, tmp_path: Path) -> None:
    """The same columns as the table of the type has, also in a file."""
    done = kraftlog_command("image", METADATA, "--at", 85, "--type", "PartitionRecord", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    answer = json.loads((GOLDEN / "metadata" / "expected" / "image_at_85.json").read_text())
    expected = [one["data"] for one in answer["records"] if one["type"] == "PARTITION_RECORD"]
    assert sorted((row["topic_id"], int(row["partition_id"]), int(row["leader_epoch"])) for row in rows) == sorted(
        (one["topicId"], one["partitionId"], one["leaderEpoch"]) for one in expected
    )
    target = tmp_path / "topics.parquet"
    kraftlog_command("image", METADATA, "--type", "TopicRecord", "--format", "parquet", "--output", target)
    assert pq.read_table(target).column_names == ["name", "topic_id", "unknown_tagged_fields"]


def test_image_written_as_a_snapshot(kraftlog_command: Command, tmp_path: Path) -> None:
    """What was written is shown as the same image."""
    done = kraftlog_command("image", METADATA, "--at", 321, "--snapshot", tmp_path)
    path = tmp_path / "00000000000000000322-0000000003.checkpoint"
    assert done.stderr == f"{path}\n"
    assert json.loads(kraftlog_command("image", path).stdout) == json.loads(done.stdout)


def test_image_of_an_incomplete_log(kraftlog_command: Command, tmp_path: Path) -> None:
    """What is missing is reported, and the exit code is 1."""
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(METADATA / "__cluster_metadata-0", folder)
    for path in [*folder.glob("*.checkpoint"), folder / "00000000000000000000.log"]:
        path.unlink()
    done = kraftlog_command("image", folder)
    assert done.returncode == 1
    assert "no snapshot can be read that tells what was before" in done.stderr
    assert json.loads(done.stdout)["offset"] == 522


def test_nothing_is_written_where_it_is_read(kraftlog_command: Command, tmp_path: Path) -> None:
    """Neither an output nor a snapshot; the log stays as it is."""
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(METADATA / "__cluster_metadata-0", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    segment = folder / "00000000000000000457.log"
    for arguments in (
        ("image", tmp_path, "--output", segment),
        ("image", tmp_path, "--at", 85, "--snapshot", folder),
        ("diff", tmp_path, "--from", 0, "--output", folder / "new"),
    ):
        done = kraftlog_command(*arguments)
        assert done.returncode == 2
        assert "which is being read" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_no_snapshot_of_what_cannot_be_read_whole(kraftlog_command: Command, tmp_path: Path) -> None:
    """A controller that starts from it would have lost something."""
    folder = tmp_path / "log" / "__cluster_metadata-0"
    shutil.copytree(METADATA / "__cluster_metadata-0", folder)
    for path in folder.glob("*.checkpoint"):
        path.unlink()
    (folder / "00000000000000000258.log").unlink()
    done = kraftlog_command("image", folder, "--snapshot", tmp_path / "new")
    assert done.returncode == 1
    assert "missing_offsets" in done.stderr
    assert "no snapshot was written" in done.stderr
    assert not (tmp_path / "new").exists()
    done = kraftlog_command("downgrade", folder, "--to", "4.2", "--unsafe", "--write", tmp_path / "new")
    assert (done.returncode, "nothing was written" in done.stderr) == (1, True)


def test_offsets_behind_the_end_are_told(kraftlog_command: Command) -> None:
    """The image is that of the end."""
    done = kraftlog_command("image", METADATA, "--at", 900)
    assert (done.returncode, done.stderr) == (0, "the log ends at offset 522\n")
    assert json.loads(done.stdout)["offset"] == 522


def test_what_has_no_such_topic(kraftlog_command: Command) -> None:
    """Is told, and is no all-clear of a check."""
    for table, path, found in (
        ("groups", GOLDEN / "codecs" / "log" / "codec-lz4-0", "codec-lz4"),
        ("offsets", METADATA, "__cluster_metadata"),
    ):
        done = kraftlog_command(table, path, "--format", "csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{table} reads __consumer_offsets, and found {found}: give a log directory that has a folder " in (
            done.stderr
        )
    done = kraftlog_command("changes", GOLDEN / "codecs" / "log" / "codec-lz4-0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no metadata log in it" in done.stderr
    done = kraftlog_command("downgrade", GOLDEN / "codecs" / "log" / "codec-lz4-0", "--to", "3.4.0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was checked" in done.stderr


def test_wrong_usage(kraftlog_command: Command) -> None:
    """Each refusal says what is wanted."""
    for arguments, words in (
        (("image", METADATA, "--format", "csv"), "all others need --type"),
        (("image", METADATA, "--at", "soon"), "'soon' is not an offset, and timestamp"),
        (("image", GOLDEN / "codecs" / "log"), "no metadata log in it"),
        (("diff", METADATA / "bootstrap.checkpoint"), "one image only"),
        (("image", METADATA, "--at", "2001-01-01"), "before the first one of the log"),
        (("messages", METADATA, "--type", "Nothing"), "is not a type of message"),
    ):
        done = kraftlog_command(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert words in done.stderr


def test_diff_tells_what_changed(kraftlog_command: Command) -> None:
    """A topic that is made shows with its partitions; nothing shows where nothing changed."""
    done = kraftlog_command("diff", METADATA, "--from", 10, "--to", 15)
    answer = [
        one
        for one in records_of_segments()
        if 10 < one["offset"] <= 15 and one["type"] in ("TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD")
    ]
    topic = next(one["data"] for one in answer if one["type"] == "TOPIC_RECORD")
    told = done.stdout.splitlines()
    assert f"+ topic meta-0: topic_id = {topic['topicId']}" in told or any(topic["topicId"] in line for line in told)
    assert sum(line.startswith("+ partition meta-0-") for line in told) == 2
    assert kraftlog_command("diff", METADATA, "--from", 15, "--to", 15).stdout == ""


def test_messages_are_objects_in_json_lines(kraftlog_command: Command) -> None:
    """Key and value are JSON within JSON, not text."""
    done = kraftlog_command("messages", METADATA, "--format", "jsonl", "--columns", "offset,value", "--show-secrets")
    expected = [(one["offset"], one["data"]) for one in records_of_segments()]
    found = [(row["offset"], row["value"]) for row in map(json.loads, done.stdout.splitlines())]
    assert found == expected


def test_messages_of_one_type(kraftlog_command: Command) -> None:
    """Fields are columns."""
    wanted = ("--type", "TopicRecord", "--columns", "offset,name")
    done = kraftlog_command("messages", METADATA, "--format", "jsonl", *wanted)
    expected = [(one["offset"], one["data"]["name"]) for one in records_of_segments() if one["type"] == "TOPIC_RECORD"]
    assert [tuple(json.loads(line).values()) for line in done.stdout.splitlines()] == expected


def test_messages_without_secrets(kraftlog_command: Command) -> None:
    """Salt and keys of SCRAM credentials are hidden, in the JSON and in the columns of their type."""
    done = kraftlog_command("messages", METADATA, "--format", "jsonl", "--columns", "offset,type,value")
    hidden = {"salt", "storedKey", "serverKey"}
    shown = []
    for one in records_of_segments():
        is_secret = one["type"] == "USER_SCRAM_CREDENTIAL_RECORD"
        data = {name: "[redacted]" if is_secret and name in hidden else value for name, value in one["data"].items()}
        shown.append((one["offset"], data))
    assert [(row["offset"], row["value"]) for row in map(json.loads, done.stdout.splitlines())] == shown
    typed = ("--type", "UserScramCredentialRecord", "--format", "jsonl", "--columns", "offset,iterations,salt")
    answer = [
        (one["offset"], one["data"]["iterations"], b64decode(one["data"]["salt"]).decode())
        for one in records_of_segments()
        if one["type"] == "USER_SCRAM_CREDENTIAL_RECORD"
    ]
    found = [json.loads(line) for line in kraftlog_command("messages", METADATA, *typed).stdout.splitlines()]
    assert [(row["offset"], row["iterations"], row["salt"]) for row in found] == [
        (offset, iterations, None) for offset, iterations, _ in answer
    ]
    found = [
        json.loads(line)
        for line in kraftlog_command("messages", METADATA, *typed, "--show-secrets").stdout.splitlines()
    ]
    assert [tuple(row.values()) for row in found] == answer


def test_messages_of_control_records(kraftlog_command: Command) -> None:
    """Each type of them is a table as well."""
    wanted = ("--type", "LeaderChangeMessage", "--format", "jsonl", "--columns", "offset,leader_id")
    done = kraftlog_command("messages", METADATA, *wanted)
    answers = lines(GOLDEN / "metadata" / "expected" / "metadata_records.jsonl")
    expected = [
        (one["offset"], one["data"]["leaderId"])
        for one in answers
        if one["file"].endswith(".log") and one.get("control_type") == "LEADER_CHANGE"
    ]
    assert expected
    assert [tuple(json.loads(line).values()) for line in done.stdout.splitlines()] == expected


def test_limits(kraftlog_command: Command) -> None:
    """The first rows and lines of what is shown without a limit."""
    for arguments, size in (
        (("image", METADATA, "--type", "TopicRecord", "--format", "jsonl"), 3),
        (("diff", METADATA, "--from", 10), 3),
        (("diff", METADATA, "--from", 10, "--format", "jsonl"), 3),
    ):
        whole = kraftlog_command(*arguments).stdout.splitlines()
        assert len(whole) > size
        assert kraftlog_command(*arguments, "--limit", size).stdout.splitlines() == whole[:size]


def test_strict_shows_nothing_of_an_incomplete_log(kraftlog_command: Command, tmp_path: Path) -> None:
    """Of a log with a damaged batch."""
    folder = shutil.copytree(METADATA / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    for snapshot in folder.glob("*.checkpoint"):
        snapshot.unlink()
    log = folder / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    for arguments in (("image", tmp_path), ("diff", tmp_path), ("changes", tmp_path, "--fields")):
        assert kraftlog_command(*arguments).returncode == 1
        assert kraftlog_command(*arguments).stdout
        done = kraftlog_command(*arguments, "--strict")
        assert (done.returncode, done.stdout) == (1, ""), arguments
        assert "batch at byte 4327: stored crc" in done.stderr


def test_health(kraftlog_command: Command) -> None:
    """When the only node has stopped, no partition of Kafka's image has a leader; while it is there, all is well."""
    answer = json.loads((GOLDEN / "metadata" / "expected" / "image_final.json").read_text())["records"]
    topics = {one["data"]["topicId"]: one["data"]["name"] for one in answer if one["type"] == "TOPIC_RECORD"}
    offline = sorted(
        (topics[one["data"]["topicId"]], one["data"]["partitionId"])
        for one in answer
        if one["type"] == "PARTITION_RECORD" and one["data"]["leader"] == -1
    )
    done = kraftlog_command("health", METADATA, "--format", "jsonl", "--columns", "check,topic,partition")
    assert [tuple(row.values()) for row in map(json.loads, done.stdout.splitlines())] == [
        *(("offline", *one) for one in offline),
        ("leader_imbalance", None, None),
        ("fenced_broker", None, None),
    ]
    counts = f"{len(offline)} offline, 1 leader_imbalance, 1 fenced_broker"
    assert done.stderr == f"{len(offline)} partitions at offset 522: {counts}\n"
    done = kraftlog_command("health", METADATA, "--at", 206)
    assert (done.returncode, done.stderr) == (0, "40 partitions at offset 206: nothing needs attention\n")


def test_messages_of_ones_own_definitions(kraftlog_command: Command, tmp_path: Path) -> None:
    """A folder of Kafka's JSON takes the place of what this package knows."""
    definition = {
        "apiKey": 2,
        "type": "metadata",
        "name": "TopicRecord",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [
            {"name": "CalledSo", "type": "string", "versions": "0+"},
            {"name": "TopicId", "type": "uuid", "versions": "0+"},
        ],
    }
    (tmp_path / "TopicRecord.json").write_text(json.dumps(definition))
    done = kraftlog_command(
        *("messages", METADATA, "--type", "TopicRecord", "--definitions", tmp_path, "--format", "jsonl"),
        *("--columns", "called_so", "--limit", 1),
    )
    assert done.stdout == '{"called_so":"meta-0"}\n'


def test_secrets_of_ones_own_definitions(kraftlog_command: Command, tmp_path: Path) -> None:
    """Where a definition does not tell passwords from other configs, all values are hidden; what it lacks is not."""
    configs = [("Kind", "int8"), ("ResourceName", "string"), ("Setting", "string"), ("Value", "string")]
    credentials = [("Name", "string"), ("Kind", "int8"), ("Salt", "bytes"), ("A", "bytes"), ("B", "bytes")]
    for name, api_key, fields in (
        ("ConfigRecord", 4, configs),
        ("UserScramCredentialRecord", 11, [*credentials, ("C", "int32")]),
    ):
        definition = {"apiKey": api_key, "type": "metadata", "name": name, "validVersions": "0"}
        definition |= {"flexibleVersions": "0+", "fields": []}
        for field, kind in fields:
            nullable = {"nullableVersions": "0+"} if kind == "string" else {}
            definition["fields"].append({"name": field, "type": kind, "versions": "0+", **nullable})
        (tmp_path / f"{name}.json").write_text(json.dumps(definition))
    shown = ("--definitions", tmp_path, "--format", "jsonl")
    done = kraftlog_command("messages", METADATA, *shown, "--columns", "type,value")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    configs_shown = [row["value"] for row in rows if row["type"] == "ConfigRecord"]
    assert configs_shown
    assert {row["value"] for row in configs_shown} == {"[redacted]"}
    assert all(row["setting"] for row in configs_shown)
    salts = [row["value"]["salt"] for row in rows if row["type"] == "UserScramCredentialRecord"]
    assert salts
    assert set(salts) == {"[redacted]"}
    for name, column in (("ConfigRecord", "value"), ("UserScramCredentialRecord", "salt")):
        done = kraftlog_command("messages", METADATA, *shown, "--type", name, "--columns", column)
        found = [json.loads(line)[column] for line in done.stdout.splitlines()]
        assert len(found) > 1
        assert set(found) == ({"[redacted]"} if column == "value" else {None})


def test_what_cannot_be_read_is_a_row_and_told(kraftlog_command: Command) -> None:
    """Unknown types are counted and no error; what Kafka's coordinator refuses is one, and with --strict the end."""
    log = GOLDEN / "coordinator_future" / "log" / "__transaction_state-0"
    done = kraftlog_command("messages", log, "--format", "jsonl", "--columns", "offset,type,error")
    errors = {row["offset"]: row["error"] for row in map(json.loads, done.stdout.splitlines()) if row["error"]}
    assert done.returncode == 1
    assert errors == {
        27: "value: version 2 of TransactionLog is not between 0 and 1",
        28: "value: version 77 of TransactionLog is not between 0 and 1",
        30: "value: a field of 2 bytes, but 0 bytes left",
        **{
            offset: f"unknown type {key}"
            for key, offsets in {1: (31, 32), 2: (33, 34), 50: (35, 36)}.items()
            for offset in offsets
        },
        37: "key: a field of 2 bytes, but 0 bytes left",
        39: "key: the key is null",
    }
    assert "__transaction_state-0: 6 records of unknown types: 1 (2), 2 (2), 50 (2)\n" in done.stderr
    strict = kraftlog_command("messages", log, "--strict")
    assert strict.returncode == 1
    assert "record at offset 27: value: version 2 of TransactionLog" in strict.stderr
    checked = kraftlog_command("verify", log, "--format", "jsonl", "--columns", "error,message")
    assert checked.returncode == 1
    found = [json.loads(line) for line in checked.stdout.splitlines()]
    assert sum(row["error"] == "bad_message" for row in found) == kraftlog.open(log).errors().num_rows > 0


def test_messages_of_a_topic_of_users(kraftlog_command: Command) -> None:
    """There are none, and why is said."""
    done = kraftlog_command("messages", GOLDEN / "codecs" / "log" / "codec-lz4-0", "--format", "jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "no internal topic among codec-lz4\n"


def test_copy_of_one_segment(kraftlog_command: Command, tmp_path: Path) -> None:
    """Outside of its folder a file does not say what it is of; who reads it does."""
    source = GOLDEN / "groups" / "log" / "__consumer_offsets-1"
    shutil.copy(source / "00000000000000000000.log", tmp_path / "copy.log")
    columns = ("--format", "jsonl", "--columns", "offset,type,key,value,error")
    done = kraftlog_command("messages", tmp_path / "copy.log", *columns)
    assert done.stdout == ""
    assert done.stderr == "no internal topic among files in no partition's folder (--as-topic says what they are)\n"
    told = kraftlog_command("messages", tmp_path / "copy.log", "--as-topic", "__consumer_offsets", *columns)
    assert told.stdout == kraftlog_command("messages", source, *columns).stdout
    columns = ("--format", "csv", "--columns", "group,topic,partition,offset,state")
    told = kraftlog_command("offsets", tmp_path / "copy.log", "--as-topic", "__consumer_offsets", *columns)
    assert told.stdout == kraftlog_command("offsets", source, *columns).stdout


def test_tables_at_an_offset(kraftlog_command: Command) -> None:
    """Before its marker, which is at offset 2 for the one and at 5 for the other, a transactional commit is pending."""
    log = GOLDEN / "transactions" / "log"
    columns = ("--format", "jsonl", "--columns", "topic,partition,offset,state")
    for at, expected in (
        (1, [("orders-in", 0, 11, "pending"), ("orders-in", 1, 999, "pending")]),
        (2, [("orders-in", 0, 11, "committed"), ("orders-in", 1, 999, "pending")]),
    ):
        done = kraftlog_command("offsets", log, "--at", at, *columns)
        assert sorted(tuple(json.loads(line).values()) for line in done.stdout.splitlines()) == expected


def test_diff_of_two_clusters(kraftlog_command: Command) -> None:
    """Of a log and its snapshot nothing differs; of two clusters what Kafka's images show does."""
    other = GOLDEN / "metadata_dynamic" / "log"
    done = kraftlog_command("diff", METADATA, other, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    topics = []
    for name in ("metadata", "metadata_dynamic"):
        answer = json.loads((GOLDEN / name / "expected" / "image_final.json").read_text())["records"]
        topics.append({one["data"]["name"] for one in answer if one["type"] == "TOPIC_RECORD"})
    for change, names in (("removed", topics[0] - topics[1]), ("added", topics[1] - topics[0])):
        assert {row["key"] for row in rows if (row["kind"], row["change"]) == ("topic", change)} == names
    assert not {row["field"] for row in rows} & {"topic_id", "leader_epoch", "directories", "incarnation_id"}
    assert kraftlog_command("diff", METADATA, other, "--exit-code").returncode == 3
    same = kraftlog_command("diff", METADATA, METADATA, "--exit-code")
    assert (same.returncode, same.stdout) == (0, "")
    snapshot = max((METADATA / "__cluster_metadata-0").glob("0*-*.checkpoint"))
    end_offset = int(snapshot.name.split("-")[0])
    for option in ((), ("--by-id",)):
        same = kraftlog_command("diff", snapshot, METADATA, "--to", end_offset - 1, *option)
        assert (same.returncode, same.stdout) == (0, "")
    assert kraftlog_command("diff", METADATA, other, "--by-id").stdout.count("- topic") == len(topics[0])
    assert kraftlog_command("diff", METADATA, "--by-id").returncode == 2
