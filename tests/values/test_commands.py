"""Typed values and schemas on the command line and in SQL."""

import datetime
import decimal
import json
import uuid

import pyarrow.parquet as pq
import pytest
from avro_cases import written
from registry import framed, schema_record, write

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog.cli import typed
from kraftlog.query.session import SqlSession
from kraftlog.values import first_values
from kraftlog.values.formats import FORMATS

ALL = {
    "type": "record",
    "name": "All",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "map", "type": {"type": "map", "values": "int"}},
        {"name": "list", "type": {"type": "array", "items": "string"}},
        {"name": "either", "type": ["null", "int", "string"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "raw", "type": "bytes"},
        {"name": "none", "type": "null"},
    ],
}
NESTED = {
    "type": "record",
    "name": "Outer",
    "fields": [{"name": "inner", "type": ["null", "All"]}],
}
SCHEMAS = [
    schema_record("all-value", 1, 3, ALL),
    schema_record("outer-value", 1, 4, NESTED, references=[{"name": "All", "subject": "all-value", "version": 1}]),
    schema_record("gone-value", 1, 5, '"long"'),
    schema_record("gone-value", 2, 6, '"string"'),
    schema_record("dropped-value", 1, 7, '"int"'),
    ('{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}', '{"subject":"gone-value","version":1}'),
    (schema_record("dropped-value", 1, 7, "")[0], None),
    schema_record("twin-value", 1, 5, '"double"'),
    ('{"keytype":"NEWS"}', "{}"),
    ("text", "{}"),
]
NUMBERS = {"n": -1, "map": {"a": 1, "b\n": 2}, "list": ["x", '"'], "either": "y", "raw": b"\xff", "none": None}


def value():
    return NUMBERS | {
        "price": decimal.Decimal("12.50"),
        "at": datetime.datetime(2026, 11, 23, 8, 0, 0, 5000, datetime.UTC),
        "day": datetime.date(2026, 11, 23),
    }


@pytest.fixture
def log(tmp_path):
    return write(
        tmp_path / "log",
        SCHEMAS,
        all=[("a", framed(3, ALL, value())), ("b", b"\0\0")],
        outer=[("a", b"\0\0\0\0\x04\x02" + written(ALL, value())), ("b", b"\0\0\0\0\x04\0")],
        gone=[("a", framed(5, "long", 5))],
    )


def run(*arguments):
    return run_command(*arguments, "--no-progress")


SHOWN = {
    "n": -1,
    "map": {"a": 1, "b\n": 2},
    "list": ["x", '"'],
    "either": {"member0": None, "member1": "y"},
    "price": "12.50",
    "at": "2026-11-23T08:00:00.005Z",
    "day": "2026-11-23",
    "raw": "ff",
    "none": None,
}


def test_records_as_json(log):
    done = run(
        "records", log, "-t", "all", "--value-format", "avro", "--columns", "value,value_error", "--binary", "hex"
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == {"value": SHOWN, "value_error": None}
    assert second["value"] is None
    assert second["value_error"].startswith("expected a byte 0 and a schema id")
    assert done.returncode == 1
    assert "all-0: 1 value could not be read, the first at offset 1" in done.stderr


def test_references_between_schemas(log):
    done = run("records", log, "-t", "outer", "--value-format", "avro", "--columns", "value", "--binary", "hex")
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == [{"inner": SHOWN}, {"inner": None}]
    assert "bad_value" not in done.stderr


def test_parquet_and_table(log, tmp_path):
    output = tmp_path / "all.parquet"
    run("records", log, "-t", "all", "--value-format", "avro", "--output", output)
    expected = kraftlog.open(log, topics=["all"]).records(["value"], value_format="avro").to_table()
    assert pq.read_table(output, columns=["value"]).to_pylist() == expected.to_pylist()
    done = run("records", log, "-t", "all", "--value-format", "avro", "--format", "table", "--full")
    assert "12.50" in done.stdout


def test_schemas_of_the_registry(log):
    done = run(
        "schemas", log, "--format", "jsonl", "--columns", "id,subject,version,type,deleted,references,record_offset"
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["id"], row["subject"], row["version"], row["deleted"]) for row in rows] == [
        (3, "all-value", 1, False),
        (5, "gone-value", 1, True),
        (6, "gone-value", 2, False),
        (4, "outer-value", 1, False),
    ]
    assert rows[3]["references"] == [{"name": "All", "subject": "all-value", "version": 1}]
    assert done.returncode == 1
    for reason in (
        "version 1 of twin-value with id 5 is left out: version 1 of gone-value with id 5 has another schema",
        "keytype 'NEWS' is not known",
        "the key is not JSON",
    ):
        assert reason in done.stderr


def test_schemas_at_an_offset(log):
    rows = kraftlog.open(log).schemas(["id", "deleted"], at=4).to_pylist()
    assert rows == [{"id": one, "deleted": False} for one in (3, 7, 5, 6, 4)]


def test_a_deleted_schema_is_found_by_its_id(log):
    rows = kraftlog.open(log, topics=["gone"]).records(["value"], value_format="avro", value_schema="gone-value:1")
    assert rows.to_table()["value"].to_pylist() == [5]


def test_schemas_in_sql(log):
    with SqlSession(kraftlog.open(log)) as session:
        rows = session.query("select subject, id from schemas where not deleted order by id").read_all()
    assert rows["id"].to_pylist() == [3, 4, 6]


def test_guids_are_those_of_the_registry(tmp_path):
    """The digest is one that the tests of Confluent's registry have."""
    schema = '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
    rows = kraftlog.open(write(tmp_path / "log", [schema_record("s", 1, 1, schema)])).schemas(["guid"])
    digest = bytes(one & 0xFF for one in (29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37))
    assert uuid.UUID(rows["guid"][0].as_py()).bytes == digest


RULES = {
    "domainRules": [
        {
            "name": "second",
            "kind": "CONDITION",
            "mode": "WRITE",
            "type": "CEL",
            "tags": ["T2", "T1"],
            "params": {"p": "1", "a": "2"},
            "expr": "e",
            "onSuccess": "NONE",
            "onFailure": "ERROR",
            "disabled": True,
        },
        {"name": "first", "doc": "d", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "disabled": False},
    ],
    "migrationRules": [{"name": "up", "kind": "TRANSFORM", "mode": "UPGRADE", "type": "JSONATA", "expr": "$"}],
    "encodingRules": [{"name": "enc", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "X"}],
}
METADATA = {
    "tags": {"b": ["Z", "A"], "a": ["PII"]},
    "properties": {"owner": "ada", "größe": "1"},
    "sensitive": ["y", "x"],
}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {
                "references": [{"name": "n", "subject": "r", "version": 7}],
                "metadata": METADATA,
                "ruleSet": RULES,
            },
            "bad0d3fb-3a30-b0aa-00a3-026be51f3c85",
        ),
        ({"ruleSet": {}}, "90f5c5c3-46c9-70d2-4be1-6af76ee17773"),
        ({"metadata": {}}, "90f5c5c3-46c9-70d2-4be1-6af76ee17773"),
        (
            {"ruleSet": {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "READ", "type": "T"}]}},
            "bc2bd2c7-36bd-511f-c98f-7ac88b1f6997",
        ),
    ],
)
def test_guids_cover_metadata_and_rules(tmp_path, more, expected):
    """The expected ones are what Confluent Schema Registry 8.1.0 makes of the same schemas."""
    record = schema_record("s", 1, 1, '"long"', **more)
    assert kraftlog.open(write(tmp_path / "log", [record])).schemas(["guid"])["guid"].to_pylist() == [expected]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"metadata": {"tags": {"a": [1]}}}, "expected a text in metadata or rules, found [1]"),
        ({"metadata": {"tags": {"a": ["x", None]}}}, "expected a text in metadata or rules, found ['x', None]"),
        ({"metadata": {"properties": {"a": 7}}}, "expected a text in metadata or rules, found 7"),
        ({"metadata": []}, "expected an object in metadata or rules, found []"),
        ({"ruleSet": {"domainRules": [7]}}, "expected an object in metadata or rules, found 7"),
        ({"ruleSet": {"domainRules": 5}}, "expected an array as domainRules, found 5"),
        ({"ruleSet": "x"}, "expected an object in metadata or rules, found 'x'"),
    ],
)
def test_odd_metadata_and_rules(tmp_path, more, said):
    path = write(tmp_path / "log", [schema_record("s", 1, 1, '"long"', **more), schema_record("t", 1, 2, '"int"')])
    stream = kraftlog.open(path).scan("schemas")
    assert stream.to_table()["subject"].to_pylist() == ["t"]
    (fault,) = stream.faults
    assert fault.error == "bad_schema_record"
    assert fault.message.endswith(f"record at offset 0: {said}")


def test_no_topic_of_a_registry(log):
    done = run("schemas", log / "all-0")
    assert done.returncode == 2
    assert "schemas reads _schemas, and found all" in done.stderr


def test_export_of_topics(log, tmp_path):
    output = tmp_path / "parquet"
    done = run("export", log, output, "-t", "all", "-t", "outer", "--value-format", "avro", "--key-format", "string")
    assert "all: 2 records in 1 file" in done.stdout
    assert done.returncode == 1
    for topic in ("all", "outer"):
        rows = kraftlog.open(log, topics=[topic]).records(value_format="avro", key_format="string").to_table()
        written = pq.ParquetFile(output / f"topic={topic}" / "partition=0" / "records.parquet").read()
        names = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]
        names += ["key_raw", "value_raw", "key_error", "value_error"]
        assert written.column_names == names
        assert written.to_pylist() == rows.select(names).to_pylist()


def test_export_has_a_column_for_a_field_that_comes_late(tmp_path, monkeypatch):
    """All values say the type of what is handed on, and a sample where one is chosen."""
    monkeypatch.setattr(first_values, "_OF_A_PARTITION", 3)
    log = write(tmp_path / "log", orders=[("k", b'{"id": 1}')] * 3 + [("k", b'{"id": 2, "late": "x"}')])
    options = ("-t", "orders", "--value-format", "json")
    for more, late in ((), "x"), (("--json-sample", 3), None):
        done = run("export", log, tmp_path / f"parquet{late}", *options, *more)
        rows = pq.ParquetFile(tmp_path / f"parquet{late}" / "topic=orders" / "partition=0" / "records.parquet").read()
        last = rows.to_pylist()[3]
        assert (last["value"].get("late"), last["value"]["id"]) == (late, 2)
        assert (last["value_raw"] is None) == (late is not None)
        assert (done.returncode, "field late" in done.stderr) == ((0, False) if late else (1, True))


def test_export_of_everything_but_internal_topics(log, tmp_path):
    done = run("export", log, tmp_path / "parquet")
    assert done.stdout.splitlines() == [
        f"{topic}: {rows} record{'' if int(rows) == 1 else 's'} in 1 file" for topic, rows in WRITTEN.items()
    ]
    assert done.returncode == 0
    again = run("export", log, tmp_path / "parquet")
    assert again.returncode == 2
    assert "holds topic=all; give a new or empty folder" in again.stderr
    inside = run("export", log, log / "all-0" / "parquet")
    assert "which is being read" in inside.stderr


def test_export_hands_committed_records_on(tmp_path):
    """What consumers of transactions would not see is kept on request alone."""
    log = GOLDEN / "transactions" / "log"
    for level, more in ("read_committed", ()), ("read_uncommitted", ("--isolation-level", "read_uncommitted")):
        done = run("export", log, tmp_path / level, "-t", "orders", *more)
        count = kraftlog.open(log, topics=["orders"]).records(["offset"], isolation_level=level).to_table().num_rows
        assert done.stdout == f"orders: {count} records in 3 files\n"
        assert ("read_committed: left out 54 records of aborted transactions" in done.stderr) == (
            level == "read_committed"
        )


WRITTEN = {"all": 2, "gone": "1", "outer": 2}


def test_the_command_line_has_all_formats():
    assert sorted(typed.FORMAT_NAMES) == sorted(FORMATS)


def test_a_format_string(log):
    done = run("records", log, "-t", "all", "-f", "%k %s|", "--value-format", "avro", "--key-format", "string")
    first, second, _ = done.stdout.split("|")
    assert json.loads(first.removeprefix("a ")) == SHOWN | {"raw": "/w=="}
    assert second == "b "
