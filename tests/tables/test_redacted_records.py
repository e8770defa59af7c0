"""Redaction of the table records, typed or not, and of exports: each row as ``Redaction.record`` leaves it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kraftlog
from command_line import run_command
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.search import Search

SECRET = b"0123456789abcdef"
RULES = ["key=hash", "value.card=mask", "value.note=null", "header.user=hash"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("redacted") / "logs"
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        store.create_topic("orders", 2)
        for number in range(200):
            value = json.dumps({"id": number, "card": f"4000 {number:04d}", "note": "call me"})
            headers = [("user", f"u{number % 3}".encode()), ("other", b"x")]
            content = None if number % 20 == 7 else f"no JSON {number}" if number % 20 == 11 else value
            producer.send("orders", key=f"k{number % 9}", value=content, headers=headers, partition=number % 2)
    return path


def expected(logs: Path) -> list[dict[str, object]]:
    twin = Redaction(RULES, SECRET)
    rows = kraftlog.open(logs, topics=["orders"]).records().to_table().to_pylist()
    for row in rows:
        headers = [(one["key"].encode(), one["value"]) for one in row["headers"]]
        row["key"], row["value"], left = twin.record((row["key"], row["value"], headers))
        row["headers"] = [{"key": name.decode(), "value": content} for name, content in left]
    assert twin.not_json == 10
    return rows


def test_rows(logs: Path):
    stream = kraftlog.open(logs, topics=["orders"]).records(redact=RULES, redact_key=SECRET)
    assert stream.to_table().to_pylist() == expected(logs)
    assert stream.notes == ["10 keys or values are no JSON, and were redacted as a whole"]
    assert stream.to_table().num_rows == 200
    assert stream.notes == ["10 keys or values are no JSON, and were redacted as a whole"]


@pytest.mark.parametrize("columns", [["value", "offset"], ["headers"], ["offset"], []])
def test_some_columns(logs: Path, columns: list[str]):
    stream = kraftlog.open(logs, topics=["orders"]).records(columns, redact=RULES, redact_key=SECRET)
    found = stream.to_table()
    assert found.num_rows == 200
    assert found.to_pylist() == [{name: row[name] for name in columns} for row in expected(logs)]


def test_a_filter_sees_what_was_there(logs: Path):
    log = kraftlog.open(logs, topics=["orders"])
    wanted = pc.field("key") == b"k3"
    found = log.records(["key", "offset"], redact=RULES, redact_key=SECRET, filter=wanted).to_table().to_pylist()
    plain = log.records(["offset"], filter=wanted).to_table().to_pylist()
    assert [row["offset"] for row in found] == [row["offset"] for row in plain] != []
    assert {row["key"] for row in found} == {Redaction(RULES, SECRET).record((b"k3", None, []))[0]}


def test_a_filter_may_see_what_is_left(logs: Path):
    log, redaction = kraftlog.open(logs, topics=["orders"]), Redaction(RULES, SECRET)
    how = {"redaction": redaction, "filters_redacted": True}
    columns = ["partition", "offset", "key", "value"]
    every = [{name: row[name] for name in columns} for row in expected(logs)]
    for row in every[:3]:
        found = log.scan("records", columns, filter=pc.field("key") == row["key"], **how)
        assert found.to_table().to_pylist() == [one for one in every if one["key"] == row["key"]]
    assert log.scan("records", columns, filter=pc.field("key") == b"k3", **how).to_table().num_rows == 0
    of_a_card = pc.match_substring(pc.field("value"), b"4000 0012")
    assert log.scan("records", ["offset"], filter=of_a_card, **how).to_table().num_rows == 0


@pytest.mark.parametrize(
    "search", [{"key": "k3"}, {"value": "4000 0012"}, {"json_path": "card=4000 0012"}, {"header": "user=u1"}]
)
def test_a_search_sees_what_was_there(logs: Path, search: dict[str, str]):
    log = kraftlog.open(logs, topics=["orders"])
    rows = log.grep(redact=RULES, redact_key=SECRET, **search).to_table().to_pylist()
    offsets = {(row["partition"], row["offset"]) for row in log.grep(**search).to_table().to_pylist()}
    assert rows == [row for row in expected(logs) if (row["partition"], row["offset"]) in offsets] != []
    with pytest.raises(ValueError, match="a key, and no rule"):
        log.grep(redact_key=SECRET, **search)


def test_what_is_followed(logs: Path, tmp_path: Path):
    path = tmp_path / "logs"
    shutil.copytree(logs, path)
    options = {"topics": ["orders"], "redact": RULES, "redact_key": SECRET}
    follower = kraftlog.follow(path, **options)
    assert [row for batch in follower.look() for row in batch.to_pylist()] == expected(path)
    searching = kraftlog.follow(path, search=Search(value="4000 new"), **options)
    assert list(searching.look()) == list(follower.look()) == []
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        producer.send("orders", key="k3", value='{"card": "4000 new"}', partition=1)
    row = expected(path)[-1]
    assert (row["partition"], row["value"]) == (1, b'{"card":"***"}')
    for one in (follower, searching):
        assert [row for batch in one.look() for row in batch.to_pylist()] == [row]
    with pytest.raises(ValueError, match="redaction is of the table records, not of messages"):
        kraftlog.follow(path, "messages", redact=["key=null"])


def test_typed_values_are_made_of_what_is_left(logs: Path):
    log = kraftlog.open(logs, topics=["orders"])
    found = log.records(["value", "value_error"], value_format="json", redact=["value.card=mask"]).to_table()
    for row, plain in zip(found.to_pylist(), log.records(["value"]).to_table().to_pylist(), strict=True):
        if plain["value"] is None or not plain["value"].startswith(b"{"):
            assert row["value"] is None
            assert (row["value_error"] is None) == (plain["value"] is None)
        else:
            assert row["value"] == json.loads(plain["value"]) | {"card": "***"}


def test_a_number_that_is_masked_does_not_fit(logs: Path):
    """Nothing of the value is shown; without the number the rest is."""
    log = kraftlog.open(logs, topics=["orders"])
    columns, wanted = ["value", "value_error"], pc.field("offset") < 3
    masked = log.records(columns, value_format="json", redact=["value.id=mask"], end_offset=3).to_table().to_pylist()
    plain = log.records(["value"], filter=wanted).to_table().to_pylist()
    assert [row["value"] for row in masked] == [None] * len(plain)
    assert all("from number to string" in row["value_error"] for row in masked)
    without = log.records(columns, value_format="json", redact=["value.id=null"], end_offset=3).to_table().to_pylist()
    assert [row["value"] for row in without] == [json.loads(row["value"]) | {"id": None} for row in plain]


def test_other_tables_are_refused(logs: Path):
    with pytest.raises(ValueError, match="redaction is of the table records, not of batches"):
        kraftlog.open(logs).scan("batches", redaction=Redaction(["key=null"]))


def test_commands(logs: Path, tmp_path: Path):
    key = tmp_path / "key"
    key.write_bytes(SECRET + b"\n")
    options = [word for rule in RULES for word in ("--redact", rule)]
    shown = [
        "records",
        str(logs),
        "-t",
        "orders",
        *options,
        "--redact-key",
        str(key),
        "--columns",
        "offset,key",
    ]
    done = run_command(*shown, "--output", str(tmp_path / "rows.arrow"))
    assert done.returncode == 0, done.stderr
    with pa.ipc.open_file(tmp_path / "rows.arrow") as file:
        rows = file.read_all().to_pylist()
    assert rows == [{"offset": row["offset"], "key": row["key"]} for row in expected(logs)]
    exported = ["export", str(logs), str(tmp_path / "parquet"), *options, "--redact-key", str(key)]
    done = run_command(*exported)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("are no JSON, and were redacted as a whole") == 1  # those of one partition
    rows = []
    for partition in range(2):
        rows += pq.read_table(
            tmp_path / "parquet" / "topic=orders" / f"partition={partition}" / "records.parquet"
        ).to_pylist()
    whole = expected(logs)
    assert [(row["key"], row["value"]) for row in rows] == [(row["key"], row["value"]) for row in whole]


@pytest.mark.parametrize("more", [[], ["--last", "1000"], ["--follow", "-c", "12"]])
def test_searches_and_followed_logs_of_commands(logs: Path, tmp_path: Path, more: list[str]):
    key = tmp_path / "key"
    key.write_bytes(SECRET)
    options = [word for rule in RULES for word in ("--redact", rule)]
    asked = ["-t", "orders", "--key", "k3", "--columns", "partition,offset,key,value", "--binary", "utf8", *more]
    command = ["grep", str(logs), *asked]
    done = run_command(*command, "--format", "jsonl", *options, "--redact-key", str(key))
    assert done.returncode == 0, done.stderr
    assert "4000" not in done.stdout
    wanted = [row for row in expected(logs) if row["key"] == Redaction(RULES, SECRET).record((b"k3", None, []))[0]]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (row["partition"], row["offset"]) for row in wanted[: 12 if "-c" in more else None]
    ]
    assert {row["key"] for row in rows} == {wanted[0]["key"].decode()}
    refused = run_command(*command, "--redact-key", str(key))
    assert refused.returncode == 2
    assert "--redact-key goes with --redact" in refused.stderr
