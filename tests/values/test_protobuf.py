"""Values of Protocol Buffers, written by Google's package."""

import subprocess
import sys
import uuid

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from registry import schema_record, write

import kraftlog
from kraftlog.values.protobuf_schema import file_descriptor
from kraftlog.values.schema_store import PROTOBUF, Reference, Schema, SchemaStore

COMMON = """syntax = "proto3"; package shop; message Money { int64 cents = 1; string currency = 2; }"""
TEXT = """
syntax = "proto3";
package shop;
import "common.proto";
enum State { NEW = 0; PAID = 1; }
message Order {
  int64 id = 1;
  optional string note = 2;
  State state = 3;
  repeated string tags = 4;
  map<string, int32> counts = 5;
  Money price = 6;
  bytes raw = 7;
  uint64 big = 8;
  uint32 small = 9;
  oneof either { double number = 10; bool flag = 11; }
  message Line { float weight = 1; }
  repeated Line lines = 12;
}
message Other { int64 id = 1; }
"""
OLD = """syntax = "proto3"; package shop; message Order { int32 id = 1; string note = 2; string gone = 99; }"""
CHANGED = """syntax = "proto3"; package shop; message Order { string id = 1; }"""
REFERENCES = [{"name": "common.proto", "subject": "common", "version": 1}]
STORE = SchemaStore(
    [
        Schema("common", 1, 1, PROTOBUF, COMMON),
        Schema("orders-value", 1, 2, PROTOBUF, OLD),
        Schema("orders-value", 2, 3, PROTOBUF, TEXT, (Reference("common.proto", "common", 1),)),
        Schema("orders-value", 3, 4, PROTOBUF, CHANGED),
    ]
)
EMPTY = {
    "id": 0,
    "note": None,
    "state": "NEW",
    "tags": [],
    "counts": [],
    "price": None,
    "raw": b"",
    "big": 0,
    "small": 0,
    "number": None,
    "flag": None,
    "lines": [],
}


def message(number, name, **fields):
    descriptor = file_descriptor(STORE.by_id(number), STORE).message_types_by_name[name]
    return message_factory.GetMessageClass(descriptor)(**fields).SerializeToString()


def framed(number, content, indexes=b"\0"):
    return b"\0" + number.to_bytes(4, "big") + indexes + content


def rows(tmp_path, *records, **options):
    schemas = [
        schema_record(one.subject, one.version, one.id, one.schema, schemaType=one.type, references=references)
        for one, references in zip(STORE.schemas, ([], [], REFERENCES, []), strict=True)
    ]
    sent = [one if isinstance(one, dict) else {"key": "k", "value": one} for one in records]
    log = kraftlog.open(write(tmp_path / "log", schemas, orders=sent), topics=["orders"])
    options = {"value_schema": "orders-value:2"} | options
    return log.records(["value", "value_error"], value_format="protobuf", **options).to_table()


def test_every_kind_of_field(tmp_path):
    full = {
        "id": -5,
        "note": "",
        "state": 1,
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "price": {"cents": 5, "currency": "EUR"},
        "raw": b"\xff",
        "big": (1 << 64) - 1,
        "small": (1 << 32) - 1,
        "flag": False,
        "lines": [{"weight": 0.5}, {}],
    }
    got = rows(tmp_path, framed(3, message(3, "Order", **full)), framed(3, b""), None)
    got.validate(full=True)
    expected = EMPTY | full | {"state": "PAID", "counts": [("x", 1)], "lines": [{"weight": 0.5}, {"weight": 0.0}]}
    assert got["value"].to_pylist() == [expected, EMPTY, None]
    assert got["value_error"].null_count == 3
    assert got.schema.field("value").type.field("big").type == pa.decimal128(20, 0)


def test_schemas_that_changed_and_values_that_do_not_fit(tmp_path):
    other = message(3, "Other", id=1)
    got = rows(
        tmp_path,
        framed(2, message(2, "Order", id=7, note="old", gone="x")),
        framed(4, message(4, "Order", id="text")),
        framed(3, other, b"\x02\x02"),
        framed(3, message(3, "Order", id=1), b"\x02\x00"),
        framed(3, b"\xff\xff"),
        framed(3, b"", b"\x02\x08"),
        framed(9, b""),
        framed(3, b"", b""),
    )
    assert got["value"].to_pylist() == [EMPTY | {"id": 7, "note": "old"}, None, None, EMPTY | {"id": 1}, *[None] * 4]
    errors = got["value_error"].to_pylist()
    assert errors[1] == "field id of shop.Order was written as another type"
    assert errors[2] == "expected a message shop.Order, found shop.Other"
    assert errors[4] is not None
    assert errors[5] == "the schema has no message [4]"
    assert errors[6] == "no schema with id 9 in topic _schemas"
    assert errors[7] == "the indexes of a message are cut off"


def test_the_first_value_says_which_message(tmp_path):
    """What cannot be read says nothing; an inner message is one as well."""
    other = framed(3, message(3, "Other", id=5), b"\x02\x02")
    order = framed(3, message(3, "Order", id=1), b"\x02\x00")
    bad = [b"text", framed(9, b""), framed(3, b"", b""), framed(3, b"", b"\x02\x08")]
    for values in ([other, order], [*bad, None, other, order]):
        got = rows(tmp_path / str(len(values)), *values)
        assert got["value"].to_pylist() == [None] * (len(values) - 2) + [{"id": 5}, None]
        assert got["value_error"].to_pylist()[-1] == "expected a message shop.Other, found shop.Order"
    line = framed(3, message(3, "Order.Line", weight=0.5), b"\x04\x00\x02")
    assert rows(tmp_path / "inner", line)["value"].to_pylist() == [{"weight": 0.5}]


def test_headers_hold_the_indexes(tmp_path):
    guid = STORE.by_id(3).guid
    assert uuid.UUID(bytes=guid)
    header = [("__value_schema_id", b"\x01" + guid + b"\0")]
    got = rows(tmp_path, {"key": "k", "value": message(3, "Order", id=3), "headers": header})
    assert got["value"].to_pylist() == [EMPTY | {"id": 3}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message", "protoc refuses it"),
        ('syntax = "proto3"; enum E { A = 0; }', "has no message"),
        ('syntax = "proto3"; message M { M m = 1; }', "message M holds itself"),
    ],
)
def test_schemas_that_cannot_be(tmp_path, text, reason):
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders-value.proto").write_text(text)
    with pytest.raises(ValueError, match=reason):
        rows(tmp_path, b"", schemas=tmp_path / "schemas", value_schema=None)


def test_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    with pytest.raises(ImportError, match=r"the format protobuf needs grpc_tools.* 'kraftlog\[protobuf\]'"):
        rows(tmp_path, None)
    main = "import sys; sys.modules['grpc_tools'] = None; from kraftlog.cli import main; main()"
    options = ["--value-format", "protobuf", "--value-schema", "3"]
    command = [sys.executable, "-c", main, "records", str(tmp_path / "log"), "-t", "orders", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kraftlog: the format protobuf needs grpc_tools, which is not installed: pip install")
