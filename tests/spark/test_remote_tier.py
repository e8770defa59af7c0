"""A log directory and its remote tier as one log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.layout.tier import find
from kraftlog.layout.tier.manifest import read_manifest
from kraftlog.spark import read_ranges
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from spark_rows import comparable, plain_rows, rows_of
from tier_writer import Aiven, KeyPair, last_only, new_id, sources, to_folder

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
TOPIC_ID = "911PgdAUTfK0_8FSda0bUA"
COLUMNS = ["topic", "partition", "offset", "key", "value", "timestamp"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tier")
    key_pair = KeyPair("k1", found / "keys")
    Aiven(1000, compression=True, key_pair=key_pair).write(to_folder(found / "tier"), sources(ORDERS), TOPIC_ID)
    last_only(ORDERS, found / "logs")
    return found


def options_of(root: Path, **options: str) -> dict[str, str]:
    keys = json.dumps({"k1": str(root / "keys" / "k1.pem")})
    return {"remoteTier": str(root / "tier"), "tierKeys": keys, "columns": ",".join(COLUMNS), **options}


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_rows(spark, root: Path, level: str):
    expected = comparable(plain_rows(kraftlog.open(ORDERS).records(COLUMNS, isolation_level=level).to_table()))
    options = options_of(root, isolationLevel=level, rangeBytes="8k")
    assert comparable(rows_of(spark.read.format("kraftlog").options(**options).load(str(root / "logs")))) == expected
    assert comparable(rows_of(read_ranges(spark, str(root / "logs"), **options))) == expected


def test_without_a_path(spark, root: Path):
    options = options_of(root, startingOffsets=json.dumps({"orders": {"0": 20}}))
    expected = kraftlog.open(ORDERS).records(COLUMNS, start_offset=20, end_offset=102).to_table()
    found = rows_of(spark.read.format("kraftlog").options(**options).load())
    assert comparable(found) == comparable(plain_rows(expected))


def test_manifests_of_other_topics_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for topic in ("orders", "returns"):
        of_topic = [replace(one, topic=topic) for one in sources(ORDERS)]
        Aiven(1000).write(to_folder(tmp_path), of_topic, TOPIC_ID if topic == "orders" else new_id())
    read: list[str] = []
    monkeypatch.setattr(
        find, "read_manifest", lambda data, keys: read.append(json.loads(data)) or read_manifest(data, keys)
    )
    request = parse_request({"remoteTier": str(tmp_path), "subscribe": "returns", "columns": "offset"})
    assert plan_parts(request)
    assert len(read) == len(sources(ORDERS))
    with pytest.raises(ValueError, match="no topic return; there are orders-0, returns-0"):
        plan_parts(parse_request({"remoteTier": str(tmp_path), "subscribe": "return", "columns": "offset"}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "logs", "tierKeys": '{"k1": "k1.pem"}'}, "option tierKeys requires remoteTier"),
        ({"remoteTier": "tier", "tierKeys": "k1.pem"}, "option tierKeys is 'k1.pem', not JSON like"),
        ({"remoteTier": "tier", "tierKeys": '{"k1": 1}'}, "not JSON like"),
        ({"table": "records"}, "no path"),
    ],
)
def test_options(given: dict[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        parse_request(given)


def test_a_message_shows_no_password(root: Path):
    request = parse_request({"remoteTier": "s3://me:hunter2@bucket/tier"})
    assert request.shown_paths == ["s3://bucket/tier"]
    assert "hunter2" not in repr(request)
