"""The commands of the tables: the rows of Kafka's answers, in every format, with the right exit code."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from golden_files import GOLDEN, by_file, hex_or_none, lines, scenarios

LOG = GOLDEN / "codecs" / "log"
RECORD_COLUMNS = "offset,timestamp_ms,timestamp_type,key,value,headers"


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["codecs", "legacy", "transactions", "compaction"])
def test_records_as_json_lines(kraftlog_command, name: str):
    folder = GOLDEN / name
    answers = by_file(lines(folder / "expected" / "records.jsonl"))
    for partition in sorted(path for path in (folder / "log").iterdir() if path.is_dir()):
        done = kraftlog_command(
            "records", partition, "--format", "jsonl", "--binary", "hex", "--columns", RECORD_COLUMNS
        )
        got = rows(done.stdout)
        expected = [
            answer
            for file in sorted(answers)
            if file.startswith(f"{partition.name}/") and file.endswith(".log")
            for answer in answers[file]
            if answer["control_type"] is None
        ]
        assert len(got) == len(expected)
        for row, answer in zip(got, expected, strict=True):
            assert list(row) == RECORD_COLUMNS.split(",")
            assert (row["offset"], row["timestamp_ms"], row["timestamp_type"], row["key"]) == (
                answer["offset"],
                answer["timestamp"],
                answer["timestamp_type"],
                answer["key"],
            )
            if "value" in answer:
                assert row["value"] == answer["value"]
            else:
                assert len(str(row["value"])) == 2 * answer["value_len"]
            assert [[header["key"], header["value"]] for header in row["headers"]] == answer["headers"]
        assert done.returncode == (1 if "bad-crc" in partition.name else 0)


def test_every_scenario_through_the_command(kraftlog_command):
    """One process a scenario: batches of all its log files."""
    assert len(scenarios()) == 38
    for folder in scenarios()[::6]:
        logs = sorted(folder.glob("log/**/*.log"))
        answers = by_file(lines(folder / "expected" / "batches.jsonl"))
        expected = [row for path in logs for row in answers.get(str(path.relative_to(folder / "log")), [])]
        done = kraftlog_command("batches", *logs, "--format", "jsonl", "--columns", "position,crc,base_offset,magic")
        got = rows(done.stdout)
        key = ("crc", "position", "base_offset", "magic")
        assert sorted([row[name] for name in key] for row in got) == sorted(
            [row[name] for name in key] for row in expected
        )


def test_json_line_of_a_record(kraftlog_command):
    done = kraftlog_command(
        "records", LOG / "codec-appendtime-0", "--format", "jsonl", "--start-offset", 1, "--end-offset", 2
    )
    assert rows(done.stdout) == [
        {
            "key": "key-419",
            "value": "ze",
            "topic": "codec-appendtime",
            "partition": 0,
            "offset": 1,
            "timestamp": "2026-11-21T02:54:37.775Z",
            "timestamp_type": "LogAppendTime",
            "headers": [{"key": "größe", "value": None}, {"key": "größe", "value": ""}],
        }
    ]


def test_formats_have_the_same_rows(kraftlog_command, tmp_path: Path):
    partition = LOG / "codec-mixed-0"
    first = ["topic", "partition", "offset", "timestamp", "key", "value"]
    table = kraftlog.open(partition).records([*first, "timestamp_type", "headers"]).to_table()
    arguments = ["records", partition, "--binary", "hex"]
    assert kraftlog_command(*arguments, "--format", "parquet", "--output", tmp_path / "r.parquet").returncode == 0
    assert pq.read_table(tmp_path / "r.parquet").cast(table.schema).equals(table)
    assert kraftlog_command(*arguments, "--format", "arrow", "--output", tmp_path / "r.arrow").returncode == 0
    assert pa.ipc.open_file((tmp_path / "r.arrow").read_bytes()).read_all().equals(table)
    text = kraftlog_command(*arguments, "--format", "csv").stdout
    parsed = list(csv.DictReader(io.StringIO(text)))
    assert [row["offset"] for row in parsed] == [str(offset) for offset in table["offset"].to_pylist()]
    assert [row["value"] for row in parsed] == [hex_or_none(value) or "" for value in table["value"].to_pylist()]
    shown = kraftlog_command(*arguments, "--format", "table", "--limit", 5).stdout.splitlines()
    assert len(shown) == 6
    assert shown[0].split() == table.schema.names


def test_bounds_limit_and_workers(kraftlog_command):
    partition = LOG / "codec-mixed-0"
    whole = kraftlog_command("records", LOG, "--format", "jsonl").stdout
    assert kraftlog_command("records", LOG, "--format", "jsonl", "--workers", 2).stdout == whole
    columns = ["--columns", "offset", "--format", "jsonl"]
    some = kraftlog_command("records", partition, "--start-offset", 10, "--limit", 3, *columns)
    assert rows(some.stdout) == [{"offset": 10}, {"offset": 11}, {"offset": 12}]
    late = kraftlog_command(
        "records", LOG / "codec-appendtime-0", "--start-timestamp", "2026-11-21T02:54:37.788Z", *columns
    )
    assert [row["offset"] for row in rows(late.stdout)] == list(range(290, 330))
    by_number = kraftlog_command("records", LOG / "codec-appendtime-0", "--start-timestamp", 1795229677788, *columns)
    assert by_number.stdout == late.stdout
    topic = kraftlog_command(
        "segments", LOG, "--topic", "codec-lz4", "--columns", "topic,base_offset", "--format", "jsonl"
    )
    assert [row["topic"] for row in rows(topic.stdout)] == ["codec-lz4", "codec-lz4"]


def test_errors_and_exit_codes(kraftlog_command):
    damaged = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    listed = kraftlog_command("verify", damaged, "--format", "jsonl")
    assert listed.returncode == 1
    assert [(row["error"], row["position"], row["size_in_bytes"]) for row in rows(listed.stdout)] == [
        ("bad_crc", 254, 96)
    ]
    read = kraftlog_command("records", damaged, "--format", "jsonl")
    assert (read.returncode, len(rows(read.stdout))) == (1, 17)
    assert read.stderr.splitlines()[0] == "1 error, 96 bytes not read:"
    assert "stored crc 1973285820, computed crc 2762825390" in read.stderr
    strict = kraftlog_command("records", damaged, "--strict", "--format", "jsonl")
    assert strict.returncode == 1
    assert [row["offset"] for row in rows(strict.stdout)] == [0, 1, 2, 3, 4]  # what comes before the fault
    assert strict.stderr.startswith("kraftlog: t-0/00000000000000000000.log: batch at byte 254:")
    left_alone = kraftlog_command("verify", GOLDEN / "deleted_records" / "log", "--format", "jsonl")
    assert left_alone.returncode == 0
    assert [row["error"] for row in rows(left_alone.stdout)] == ["not_read", "not_read"]
    assert left_alone.stderr == "34323 bytes in 5 segments: no errors, 2 not_read\n"
    refused = kraftlog_command("errors", damaged)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no command 'errors'; did you mean verify?" in refused.stderr


def test_verify_has_the_options_of_the_table_errors(kraftlog_command):
    damaged = GOLDEN / "damaged" / "bit_flip_payload" / "log"

    def codes(folder: Path, *options: object) -> list[str]:
        done = kraftlog_command("verify", folder, "--format", "jsonl", "--columns", "error", *options)
        assert done.returncode == (1 if done.stdout else 0)
        return [row["error"] for row in rows(done.stdout)]

    assert codes(damaged) == codes(damaged, "--workers", 2) == ["bad_crc"]
    assert codes(damaged, "--end-offset", 4) == codes(damaged, "--start-offset", 8) == []
    assert "bad_crc" not in codes(damaged, "--no-check-crc")
    assert "decompression_limit" in codes(GOLDEN / "codecs" / "log", "--max-decompressed-bytes", 100)
    strict = kraftlog_command("verify", damaged, "--strict", "--format", "jsonl")
    assert (strict.returncode, strict.stdout) == (1, "")
    assert strict.stderr.startswith("kraftlog: t-0/00000000000000000000.log: batch at byte 254:")
    back = kraftlog_command("verify", GOLDEN / "damaged" / "offsets_go_back" / "log", "--strict")
    assert (back.returncode, back.stdout) == (1, "")  # also for what only a comparison shows
    lost = GOLDEN / "damaged" / "batch_length_13" / "log"
    table = kraftlog.open(lost).errors(salvage=True).to_pylist()
    done = kraftlog_command("verify", lost, "--salvage", "--format", "jsonl")
    assert [row["size_in_bytes"] for row in rows(done.stdout)] == [row["size_in_bytes"] for row in table]
    assert table != kraftlog.open(lost).errors().to_pylist()


def test_log_start_offset(kraftlog_command):
    folder = GOLDEN / "deleted_records" / "log" / "orders-del-7-0"
    arguments = ("records", folder, "--format", "jsonl", "--columns", "offset")
    hides = kraftlog_command(*arguments)
    assert min(row["offset"] for row in rows(hides.stdout)) == 91
    assert hides.returncode == 0
    assert "28 records before the log start offset 91 are not shown" in hides.stderr
    shows = kraftlog_command(*arguments, "--include-deleted")
    assert len(rows(shows.stdout)) == len(rows(hides.stdout)) + 28
    assert "log start offset" not in shows.stderr


def test_wrong_usage(kraftlog_command):
    for arguments, text in (
        (["records"], "Missing argument"),
        (["records", "nowhere"], "no such file or directory: nowhere"),
        (
            ["records", LOG, "--columns", "ofset"],
            "no column 'ofset'; did you mean offset or base_offset? It has key, value",
        ),
        (["records", LOG, "--format", "parquet"], "--format parquet needs --output"),
        (["records", LOG, "--start-timestamp", "soon"], "timestamp 'soon' is not a time such as"),
        (["records", LOG, "--topic", "no"], "no topic 'no'"),
        (["reccords", LOG], "there is no command 'reccords'; did you mean records or recover?"),
    ):
        done = kraftlog_command(*arguments)
        assert done.returncode == 2, arguments
        assert text in done.stderr


def test_records_of_a_transaction(kraftlog_command):
    log = GOLDEN / "transactions" / "log"
    done = kraftlog_command(
        "records", log, "--transaction", "7:1", "--columns", "topic,partition,offset", "--format", "csv"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["__consumer_offsets,0,6", "orders,1,47", "orders,1,48", "orders,2,21"]
    wrong = kraftlog_command("records", log, "--transaction", "7")
    assert wrong.returncode == 2
    assert "transaction '7' is not PID:EPOCH" in wrong.stderr
    both = kraftlog_command("records", log, "--transaction", "7:1", "--follow")
    assert both.returncode == 2
    assert "--follow and --transaction exclude each other" in both.stderr
