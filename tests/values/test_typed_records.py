"""Records with typed keys and values, from logs with the topic of a registry."""

import json
import struct
import uuid

import pytest
from registry import framed, schema_record, write

import kraftlog
from kraftlog.errors import InvalidRecordError

FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "customer", "type": "string"}],
}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "customer", "type": "string"},
    ],
}
SCHEMAS = [
    ('{"keytype":"NOOP","magic":0}', None),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"BACKWARD"}'),
    schema_record("orders-value", 1, 1, FIRST),
    schema_record("orders-value", 2, 5, SECOND),
]
OLD = framed(1, FIRST, {"id": 7, "customer": "ada"})
NEW = framed(5, SECOND, {"id": 1 << 40, "note": "late", "customer": "bob"})


@pytest.fixture
def log(tmp_path):
    write(
        tmp_path / "log",
        SCHEMAS,
        orders=[
            ("a", OLD),
            ("b", NEW),
            ("c", None),
            ("d", framed(9, FIRST, {"id": 1, "customer": ""})),
            ("e", OLD[:-1]),
            ("f", b"text"),
        ],
    )
    return tmp_path / "log"


EXPECTED = [
    {"id": 7, "note": None, "customer": "ada"},
    {"id": 1 << 40, "note": "late", "customer": "bob"},
    None,
    None,
    None,
    None,
]


def test_avro_by_the_topic_of_the_registry(log):
    stream = kraftlog.open(log, topics=["orders"]).records(
        ["key", "value", "value_error"], value_format="avro", key_format="string"
    )
    rows = stream.to_table()
    assert rows["key"].to_pylist() == list("abcdef")
    assert rows["value"].to_pylist() == EXPECTED
    errors = rows["value_error"].to_pylist()
    assert errors[:3] == [None] * 3
    assert errors[3] == "no schema with id 9 in topic _schemas"
    assert (
        errors[4]
        == "version 1 of orders-value with id 1: byte 2: a length is negative or exceeds the bytes that are left"
    )
    assert (
        errors[5]
        == "expected a byte 0 and a schema id of four bytes before the value, found 4 bytes that begin with 74 65 78 74"
    )
    (fault,) = stream.faults
    assert (fault.error, fault.topic, fault.partition, fault.base_offset) == ("bad_value", "orders", 0, 3)
    assert (
        fault.message
        == "orders-0: 3 values could not be read, the first at offset 3: no schema with id 9 in topic _schemas"
    )


def test_the_columns_that_are_shown(log):
    rows = kraftlog.open(log, topics=["orders"]).records(value_format="avro").to_table()
    assert rows.schema.names == [*kraftlog.schema.RECORDS.shown, "value_raw", "value_error"]
    assert rows["offset"].to_pylist() == list(range(6))


def test_one_partition_finds_the_topic_beside_it(log):
    rows = kraftlog.open(log / "orders-0").records(["value"], value_format="avro").to_table()
    assert rows["value"].to_pylist() == EXPECTED


@pytest.mark.parametrize("named", ["orders-value:1", "1"])
def test_another_reader_schema(log, named):
    rows = kraftlog.open(log, topics=["orders"]).records(
        ["value", "value_error"], value_format="avro", value_schema=named
    )
    first, second, *_ = rows.to_table().to_pylist()
    assert first == {"value": {"id": 7, "customer": "ada"}, "value_error": None}
    assert second["value"] is None
    assert "does not fit the reader's schema" in second["value_error"]


def test_strict_raises_at_the_first(log):
    stream = kraftlog.open(log, topics=["orders"]).records(["value"], value_format="avro", strict=True)
    with pytest.raises(InvalidRecordError, match="orders-0: 1 value could not be read, the first at offset 3"):
        stream.to_table()


def test_a_folder_of_schemas(log, tmp_path):
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "1.avsc").write_text(json.dumps(FIRST))
    rows = kraftlog.open(log, topics=["orders"]).records(["value"], value_format="avro", schemas=folder).to_table()
    assert rows["value"].to_pylist() == [{"id": 7, "customer": "ada"}, *[None] * 5]


def test_headers_name_the_schema(tmp_path):
    guid = kraftlog.open(write(tmp_path / "first", SCHEMAS)).scan("schemas", ["guid"]).to_table()["guid"].to_pylist()
    records = [
        {"key": "a", "value": OLD[5:], "headers": [("__value_schema_id", b"\x01" + uuid.UUID(guid[0]).bytes)]},
        {"key": "b", "value": NEW[5:], "headers": [("x", b""), ("apicurio.value.globalId", (5).to_bytes(8, "big"))]},
        {"key": "c", "value": NEW},
        {"key": "d", "value": NEW[5:], "headers": [("apicurio.value.globalId", b"5")]},
        {"key": "e", "value": OLD[5:], "headers": [("__value_schema_id", b"\x01" + bytes(16))]},
        {
            "key": "f",
            "value": OLD[5:],
            "headers": [("apicurio.value.contentId", bytes(8)), ("apicurio.value.contentId", (1).to_bytes(8, "big"))],
        },
    ]
    path = write(tmp_path / "log", SCHEMAS, orders=records)
    rows = kraftlog.open(path, topics=["orders"]).records(["value", "value_error"], value_format="avro").to_table()
    assert rows["value"].to_pylist() == [EXPECTED[0], EXPECTED[1], EXPECTED[1], None, None, EXPECTED[0]]
    errors = rows["value_error"].to_pylist()
    assert errors[3] == "header apicurio.value.globalId: expected eight bytes, found 35"
    assert errors[4] == f"no schema with guid {bytes(16).hex()} in topic _schemas"


def test_global_ids_of_eight_bytes(tmp_path):
    path = write(tmp_path / "log", SCHEMAS, orders=[("a", bytes(8) + b"\x05" + NEW[5:]), ("b", bytes(4))])
    rows = kraftlog.open(path, topics=["orders"]).records(["value"], value_format="avro", value_framing="apicurio")
    assert rows.to_table()["value"].to_pylist() == [EXPECTED[1], None]


def test_values_without_framing(tmp_path):
    path = write(tmp_path / "log", SCHEMAS, orders=[("a", NEW[5:])])
    rows = kraftlog.open(path, topics=["orders"]).records(["value"], value_format="avro", value_framing="none")
    assert rows.to_table()["value"].to_pylist() == [EXPECTED[1]]


KAFKA = {
    "long": (struct.pack(">q", -5), -5),
    "integer": (struct.pack(">i", 1 << 30), 1 << 30),
    "short": (struct.pack(">h", -2), -2),
    "double": (struct.pack(">d", 0.1), 0.1),
    "float": (struct.pack(">f", 0.5), 0.5),
    "string": ("ä".encode(), "ä"),
    "uuid": (b"123E4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
    "hex": (b"\x00\xff", "00ff"),
    "base64": (b"\x00\xff", "AP8="),
    "bytes": (b"\xff", b"\xff"),
}


@pytest.mark.parametrize("name", KAFKA)
def test_serializers_of_kafka(tmp_path, name):
    content, expected = KAFKA[name]
    records = [("a", content), ("b", None), ("c", b"\xffodd"), ("d", content)]
    path = write(tmp_path / "log", orders=records)
    rows = kraftlog.open(path, topics=["orders"]).records(["value", "value_error"], value_format=name).to_table()
    rows.validate(full=True)
    odd = rows["value"].to_pylist()[2]
    assert rows["value"].to_pylist() == [expected, None, odd, expected]
    assert (rows["value_error"].to_pylist()[2] is None) == (odd is not None)
    assert (odd is None) == (name not in ("hex", "base64", "bytes", "integer", "float"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"value_format": "avor"}, "format 'avor' is not one of avro"),
        ({"value_format": "avro", "value_framing": "x"}, "framing 'x' is not one of confluent"),
        ({"value_schema": "1"}, "value_schema and value_framing go with a value_format"),
        ({"value_format": "avro", "value_schema": "payments"}, "no schema 'payments': expected an id"),
        ({"key_format": "avro"}, "no schema orders-key in topic _schemas: name one with key_schema"),
    ],
)
def test_options_that_cannot_be(log, options, reason):
    with pytest.raises(ValueError, match=reason):
        kraftlog.open(log, topics=["orders"]).records(**options)


def test_no_schemas_at_all(tmp_path):
    write(tmp_path / "log", orders=[("a", OLD)])
    with pytest.raises(ValueError, match="no schema orders-value in the log directory, which has no topic _schemas"):
        kraftlog.open(tmp_path / "log", topics=["orders"]).records(value_format="avro")


def test_ids_of_contexts(tmp_path):
    """An id is of a context: that in which the topic's own subject has it, else the usual one, else the only one."""
    other = {"type": "record", "name": "Sale", "fields": [{"name": "price", "type": "double"}]}
    third = {"type": "record", "name": "Third", "fields": [{"name": "x", "type": "string"}]}
    schemas = [
        *SCHEMAS,
        schema_record(":.shop:sales-value", 1, 1, other),
        schema_record(":.shop:orders-value", 1, 9, FIRST),
        schema_record(":.shop:else-value", 1, 11, FIRST),
        schema_record(":.a:two-value", 1, 12, FIRST),
        schema_record(":.b:two-value", 1, 12, third),
    ]
    sale = framed(1, other, {"price": 2.5})
    found = {"id": 7, "customer": "ada"}
    orders = [OLD, framed(9, FIRST, found), framed(11, FIRST, found), framed(12, FIRST, found)]
    path = write(
        tmp_path / "log", schemas, sales=[("a", sale)], orders=[(str(at), value) for at, value in enumerate(orders)]
    )
    stream = kraftlog.open(path, topics=["sales"]).records(["value"], value_format="avro")
    assert stream.to_table()["value"].to_pylist() == [{"price": 2.5}]
    rows = kraftlog.open(path, topics=["orders"]).records(["value", "value_error"], value_format="avro").to_table()
    assert rows["value"].to_pylist() == [EXPECTED[0], EXPECTED[0], EXPECTED[0], None]
    assert rows["value_error"].to_pylist()[3] == "no schema with id 12 in topic _schemas"
    stream = kraftlog.open(path).scan("schemas")
    assert stream.to_table().num_rows == 7
    assert not stream.faults
