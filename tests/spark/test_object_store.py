"""Logs in an object store, by its URI: the rows of local files, without whole copies of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import kraftlog
from golden_files import GOLDEN
from growing_log import GrowingPartition
from kraftlog.spark import read_ranges
from kraftlog.spark.follow import LogFollower
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from object_store import BUCKET, ObjectStore, object_store
from segment_files import write_partition
from spark_rows import comparable, plain_rows, rows_of

COLUMNS = ["topic", "partition", "offset", "key", "value", "timestamp"]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


def options_of(store: ObjectStore, **options: str) -> dict[str, str]:
    return {"storageOptions": json.dumps(store.options), "columns": ",".join(COLUMNS), **options}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("name", ["codecs", "transactions"])
def test_rows(spark, store: ObjectStore, name: str, level: str):
    folder = GOLDEN / name / "log"
    uri = store.put(folder, f"{name}/{level}")
    expected = comparable(plain_rows(kraftlog.open(folder).records(COLUMNS, isolation_level=level).to_table()))
    options = options_of(store, isolationLevel=level, rangeBytes="8k")
    assert comparable(rows_of(spark.read.format("kraftlog").options(**options).load(uri))) == expected
    assert comparable(rows_of(read_ranges(spark, uri, **options))) == expected


def test_other_tables(spark, store: ObjectStore):
    folder = GOLDEN / "transactions" / "log"
    uri = store.put(folder, "tables")
    for table in ("batches", "segments", "partition_transactions", "errors"):
        options = {"storageOptions": json.dumps(store.options), "table": table}
        expected = comparable(plain_rows(kraftlog.open(folder).scan(table, columns_of(table)).to_table()))
        source = spark.read.format("kraftlog").options(**options, columns=",".join(columns_of(table))).load(uri)
        assert comparable(rows_of(source)) == expected


def columns_of(table: str) -> list[str]:
    names = {
        "batches": ["topic", "partition", "base_offset", "last_offset", "is_transactional"],
        "segments": ["topic", "partition", "base_offset", "records"],
        "partition_transactions": ["topic", "producer_id", "state", "first_offset"],
        "errors": ["error", "position"],
    }
    return names[table]


def test_a_few_offsets_are_a_few_bytes(spark, store: ObjectStore):
    folder = GOLDEN / "codecs" / "log"
    uri = store.put(folder, "few")
    segment = folder / "codec-none-0" / "00000000000000000000.log"
    store.forget()
    options = options_of(store, subscribe="codec-none", startingOffsets="0", endingOffsets="5")
    assert spark.read.format("kraftlog").options(**options).load(uri).count() == 5
    assert 0 < store.bytes_of(f"codec-none-0/{segment.name}") < segment.stat().st_size / 3
    assert sum(store.bytes_of(f"codec-none-0/{path.name}") for path in segment.parent.glob("*.log")) < 30_000


def test_a_plan_asks_only_for_segments_that_a_bound_cuts(store: ObjectStore, tmp_path: Path):
    write_partition(tmp_path / "orders-0", segments=30)
    uri = store.put(tmp_path, "planned")
    bounds = {"startingOffsets": '{"orders": {"0": 95}}', "endingOffsets": '{"orders": {"0": 203}}'}
    request = parse_request({"path": uri, "storageOptions": json.dumps(store.options), "columns": "offset", **bounds})
    store.forget()
    parts = plan_parts(request)
    asked = {key for _, key, _ in store.requests if key.endswith(".log")}
    assert asked <= {f"planned/orders-0/{number:020d}.log" for number in (90, 200)}
    assert store.listings() == 1
    rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
    assert rows == list(range(95, 203))


def test_a_plan_of_ten_thousand_segments(store: ObjectStore, tmp_path: Path):
    """Pages of 1000 keys of what is subscribed, one of the folders, and nothing for a bound without an index."""
    write_partition(tmp_path / "orders-0")
    segment = (tmp_path / "orders-0" / f"{0:020d}.log").read_bytes()
    for topic, partitions, segments in (("orders", 10, 1000), ("other", 30, 10)):
        for number in range(partitions):
            for offset in range(0, 10 * segments, 10):
                store.write(f"many/{topic}-{number}/{offset:020d}.log", segment)
    storage = json.dumps({**store.options, "request_timeout": 60})  # the server answers slowly, one at a time
    options = {"path": f"s3://{BUCKET}/many", "storageOptions": storage, "columns": "offset", "subscribe": "orders"}
    bounds = {
        f"{which}Offsets": json.dumps({"orders": dict.fromkeys(map(str, range(10)), offset)})
        for which, offset in (("starting", 15), ("ending", 9985))
    }
    for more, parts in (({}, 10_000), (bounds, 9_980)):
        store.forget()
        assert len(plan_parts(parse_request({**options, **more}))) == parts
        assert len(store.requests) == store.listings() == 1 + 10


@pytest.mark.parametrize("count", [1, 3])
def test_what_a_bound_costs(store: ObjectStore, count: int):
    """An index file and the header that its entry names; each is opened once, where pyarrow asks for its size."""
    folder = GOLDEN / "codecs" / "log"
    uri = store.put(folder, "bounded")
    names = [path.name.removesuffix("-0") for path in sorted(folder.glob("codec-*-0"))][:count]
    options = {"path": uri, "storageOptions": json.dumps(store.options), "columns": "offset"}
    bounds = {"subscribe": ",".join(names), "endingOffsets": json.dumps({name: {"0": 100} for name in names})}
    request = parse_request({**options, **bounds})
    store.forget()
    plan_parts(request)
    asked = [(method, key.rpartition(".")[2]) for method, key, _ in store.requests if key.endswith((".index", ".log"))]
    assert sorted(asked) == sorted([(how, kind) for how in ("GET", "HEAD") for kind in ("index", "log")] * count)


@pytest.mark.parametrize(
    ("selection", "listed"),
    [
        ({"subscribe": "orders-eu"}, {"orders-eu-0", "orders-eu-1"}),
        ({"subscribePattern": "orders-.*"}, {"orders-eu-0", "orders-eu-1"}),
        ({"assign": '{"orders-eu": [1], "other": [6]}'}, {"orders-eu-1", "other-6"}),
        ({}, None),
        ({"subscribePattern": "o.*"}, None),
    ],
)
def test_folders_of_few_selected_partitions_are_listed_alone(
    store: ObjectStore, tmp_path: Path, selection: dict[str, str], listed: set[str] | None
):
    """Folders of most partitions are listed together with all others, in fewer requests."""
    for name in ("orders-eu-0", "orders-eu-1", *(f"other-{number}" for number in range(10))):
        write_partition(tmp_path / name)
    uri = store.put(tmp_path, "selected")
    request = parse_request(
        {"path": uri, "storageOptions": json.dumps(store.options), "columns": "offset", **selection}
    )
    follower = LogFollower(request)
    for ask in (lambda: plan_parts(request), follower.bounds):
        store.forget()
        answer = ask()
        asked = {unquote(found[1]) for _, key, _ in store.requests if (found := re.search("prefix=([^&]*)", key))}
        assert asked == {"selected/"} | {f"selected/{name}/" for name in listed or ()}
        assert store.listings() <= 2 + len(listed or ())
    assert {f"{topic}-{number}" for topic, number in answer} == (listed or {path.name for path in tmp_path.iterdir()})


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("partitions", [2, 7])
def test_a_stream_that_waits_lists_files(store: ObjectStore, tmp_path: Path, level: str, partitions: int):
    """It opens those that changed: the number of requests does not depend on the number of partitions."""
    logs = [GrowingPartition(tmp_path, "orders", number) for number in range(partitions)]
    for log in logs:
        log.append(2, 1)
        log.commit(1)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n0\n")
    key = f"waits-{level}-{partitions}"
    uri = store.put(tmp_path, key)
    options = {"path": uri, "storageOptions": json.dumps(store.options), "columns": "offset", "isolationLevel": level}
    follower = LogFollower(parse_request({**options, "startingOffsets": "earliest"}, is_streaming=True))
    ends = [bounds.readable_offset for bounds in follower.bounds().values()]
    assert ends == [3] * partitions
    store.forget()
    assert [bounds.readable_offset for bounds in follower.bounds().values()] == ends
    assert store.listings() == 1
    assert {found for _, found, _ in store.requests if ".log" in found} == set()
    assert (
        len(store.requests) == 6
    )  # the listing, the size and the bytes of two checkpoints, and that there is no third
    logs[1].append(1, 1)
    logs[1].commit(1)
    store.put(tmp_path, key)
    store.forget()
    assert [bounds.readable_offset for bounds in follower.bounds().values()] == [3, 5, *ends[2:]]
    assert {found for _, found, _ in store.requests if ".log" in found} == {f"{key}/orders-1/{0:020d}.log"}
    store.forget()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    store.put(tmp_path, key)
    assert next(iter(follower.bounds().values())).log_start_offset == 2


def test_a_message_shows_no_password():
    with pytest.raises(ValueError, match="option storageOptions is not JSON") as caught:
        parse_request({"path": "s3://bucket/logs", "storageOptions": '{"secret_key": [], "access_key": "hunter2"}'})
    assert "hunter2" not in str(caught.value)
    request = parse_request({"path": "s3://me:hunter2@bucket/logs", "storageOptions": '{"secret_key": "hunter2"}'})
    assert request.storage_options == {"secret_key": "hunter2"}
    assert "hunter2" not in repr(request)
