"""Records with typed values, of logs that are written meanwhile, and those that a search finds."""

from registry import framed, schema_record, write

import kraftlog
from kraftlog.tables.follow import Follower
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.search import Search
from kraftlog.values.typed_options import TypedOptions

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string", "default": ""}],
}


def test_schemas_that_are_added_later(tmp_path):
    path = tmp_path / "log"
    write(path, [schema_record("orders-value", 1, 1, FIRST)], orders=[("a", framed(1, FIRST, {"id": 7}))])
    typed = TypedOptions.of(value_format="avro", key_format="string")
    columns = ["offset", "key", "value", "value_error"]
    follower = Follower(lambda: open_log(path, topics=["orders"]), "records", columns, typed=typed)

    def new():
        return [tuple(row.values()) for batch in follower.look() for row in batch.to_pylist()]

    assert new() == [(0, "a", {"id": 7}, None)]
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        key, value = schema_record("orders-value", 2, 5, SECOND)
        producer.send("_schemas", key=key, value=value)
        producer.send("orders", key="b", value=framed(5, SECOND, {"id": 8, "note": "new"}))
        producer.send("orders", key="c", value=framed(6, SECOND, {"id": 9, "note": ""}))
    assert new() == [(1, "b", {"id": 8}, None), (2, "c", None, "no schema with id 6 in topic _schemas")]
    assert [fault.error for fault in follower.faults] == ["bad_value"]
    assert new() == []


def test_search_for_bytes_shows_typed_values(tmp_path):
    path = tmp_path / "log"
    values = [framed(5, SECOND, {"id": number, "note": note}) for number, note in enumerate(["hay", "needle", "hay"])]
    write(path, [schema_record("orders-value", 1, 5, SECOND)], orders=[("k", value) for value in values])
    log = kraftlog.open(path, topics=["orders"])
    found = log.scan(
        "records", ["offset", "value"], search=Search(value="needle"), typed=TypedOptions.of(value_format="avro")
    )
    assert found.to_table().to_pylist() == [{"offset": 1, "value": {"id": 1, "note": "needle"}}]
