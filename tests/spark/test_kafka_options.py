"""Options by the names, forms and rules of Spark's Kafka source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import Fault
from kraftlog.spark.option_tables import READING, SINK, STREAMS
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import Part, plan_parts
from kraftlog.spark.read import read
from kraftlog.spark.sink_options import parse_sink_options
from kraftlog.tables.user_options import read_options

CODECS = GOLDEN / "codecs" / "log"
APPEND_TIME = {"path": str(CODECS), "subscribe": "codec-appendtime", "columns": "topic,partition,offset"}


def rows(**options: str) -> list[tuple[str, int, int]]:
    request = parse_request(options)
    faults: list[Fault] = []
    found = [
        (row["topic"], row["partition"], row["offset"])
        for part in plan_parts(request)
        for batch in read(request, part, faults)
        for row in batch.to_pylist()
    ]
    assert not faults
    return found


def offsets(**options: str) -> list[int]:
    return [offset for _, _, offset in rows(**APPEND_TIME, **options)]


def test_offsets():
    assert offsets(startingOffsets="earliest", endingOffsets="latest") == list(range(330))
    assert offsets(startingOffsets="100", endingOffsets="120") == list(range(100, 120))
    one = json.dumps({"codec-appendtime": {"0": 320}})
    assert offsets(startingOffsets=one) == list(range(320, 330))
    assert offsets(startingOffsets=json.dumps({"codec-appendtime": {"0": -2}}), endingOffsets=one) == list(range(320))
    assert offsets(endingOffsets=json.dumps({"codec-appendtime": {"0": -1}})) == list(range(330))


def test_timestamps():
    stamps = kraftlog.open(CODECS, topics=["codec-appendtime"]).records(["timestamp_ms"]).to_table()["timestamp_ms"]
    at = stamps.to_pylist()
    some = at[290]
    first = next(offset for offset, stamp in enumerate(at) if stamp >= some)
    assert offsets(startingTimestamp=str(some)) == list(range(first, 330))
    assert offsets(endingTimestamp=str(some)) == list(range(first))
    by_timestamp = json.dumps({"codec-appendtime": {"0": some}})
    assert offsets(startingOffsetsByTimestamp=by_timestamp) == list(range(first, 330))
    assert offsets(endingOffsetsByTimestamp=by_timestamp, endingOffsets="latest") == list(range(first))
    late = str(max(at) + 1)
    assert offsets(endingTimestamp=late) == list(range(330))
    assert offsets(startingTimestamp=late, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(ValueError, match=f"codec-appendtime-0: no record has timestamp {late} or a later one"):
        offsets(startingTimestamp=late)


def test_partitions():
    log = kraftlog.open(CODECS)
    there = {(segment.topic, segment.partition) for segment in log.found.segments}
    columns = {"path": str(CODECS), "columns": "topic,partition,offset"}

    def read_by(**options: str) -> set[tuple[str, int]]:
        return {(topic, partition) for topic, partition, _ in rows(**columns, **options)}

    assert read_by() == there
    assert read_by(subscribe="codec-lz4, codec-gzip") == {("codec-lz4", 0), ("codec-gzip", 0)}
    assert read_by(subscribePattern="codec-(lz4|gzip)") == {("codec-lz4", 0), ("codec-gzip", 0)}
    assert read_by(subscribePattern="lz4") == set()
    assert read_by(assign='{"codec-lz4": [0]}') == {("codec-lz4", 0)}


def test_a_pattern_takes_no_internal_topics():
    request = parse_request({"path": str(GOLDEN / "transactions" / "log"), "subscribePattern": ".*"})
    topics = {segment.topic for segment in request.log().found.segments}
    assert "orders" in topics
    assert not any(topic.startswith("__") for topic in topics if topic)


@pytest.mark.parametrize("least", [1, 3, 5, 8])
@pytest.mark.parametrize("bounds", [{}, {"endingOffsets": "200"}])
def test_more_partitions(least: int, bounds: dict[str, str]):
    segment = CODECS / "codec-none-0" / "00000000000000000000.log"
    assert len(kraftlog.open(segment).batches(["position"])) >= 8
    request = parse_request({"path": str(segment), "minPartitions": str(least), **bounds})
    assert len(plan_parts(request)) >= least


def test_more_partitions_than_batches():
    segment = CODECS / "codec-none-0" / "00000000000000000000.log"
    batches = len(kraftlog.open(segment).batches(["position"]))
    assert len(plan_parts(parse_request({"path": str(segment), "minPartitions": "1000"}))) == batches


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_plan_is_of_its_moment(tmp_path: Path, level: str):
    """What is appended behind it is not read, however often it is."""
    log = shutil.copytree(CODECS / "codec-none-0", tmp_path / "codec-none-0")
    request = parse_request({"path": str(log), "columns": "offset", "isolationLevel": level})
    parts = plan_parts(request)
    last = max(log.glob("*.log"))
    batches = kraftlog.encode(pa.table({"value": ["late"]}), base_offset=795)
    with last.open("ab") as file:
        file.write(batches)

    def count(parts: list[Part]) -> int:
        return sum(batch.num_rows for part in parts for batch in read(request, part, []))

    assert count(plan_parts(request)) == count(parts) + 1


def test_folded_tables_end_at_an_offset():
    folder = GOLDEN / "groups" / "log"
    for table in ("groups", "offsets"):
        for end in (1, 40, 100):
            request = parse_request({"path": str(folder), "table": table, "endingOffsets": str(end)})
            found = [
                row for part in plan_parts(request) for batch in read(request, part, []) for row in batch.to_pylist()
            ]
            options = read_options(end_offset=end)
            assert found == kraftlog.open(folder).scan(table, None, options).to_table().to_pylist()
    for options, text in (
        ({"startingOffsets": "3"}, "the table groups takes no starting offset"),
        ({"endingOffsets": '{"__consumer_offsets": {"0": 4}}'}, "the table groups has no such ending"),
        ({"endingTimestamp": "4"}, "the table groups has no such ending"),
    ):
        with pytest.raises(ValueError, match=text):
            plan_parts(parse_request({"path": str(folder), "table": "groups", **options}))


def test_what_speaks_of_a_broker_alone_is_ignored():
    given = {
        **APPEND_TIME,
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.max.poll.records": "20000",
        "groupIdPrefix": "a",
        "kafkaConsumer.pollTimeoutMs": "1000",
        "kafka.isolation.level": "read_committed",
    }
    request = parse_request(given)
    assert request.options.isolation_level == "read_committed"
    assert len(rows(**given)) == 330


def test_offsets_that_are_gone(tmp_path: Path):
    log = tmp_path / "t-0"
    log.mkdir()
    for file in (GOLDEN / "deleted_records" / "log").rglob("*.log"):
        if file.parent.name.startswith("_"):
            continue
        shutil.copy(file, log / file.name)
    first = min(int(file.stem) for file in log.iterdir())
    if first == 0:
        (log / f"{0:020d}.log").unlink()
        first = min(int(file.stem) for file in log.iterdir())
    options = {"path": str(log), "columns": "topic,partition,offset", "startingOffsets": "0"}
    with pytest.raises(ValueError, match=f"asks for offset 0, but the log begins at {first}"):
        rows(**options)
    assert rows(**options, failOnDataLoss="false")[0][2] >= first


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subscribe": "a", "assign": "{}"}, "options subscribe and assign exclude each other"),
        ({"subscribe": "nothing"}, "no topic nothing; there are "),
        ({"assign": '{"codec-lz4": [7]}'}, "no partition codec-lz4-7"),
        ({"assign": "codec-lz4"}, "option assign is 'codec-lz4', not like"),
        ({"subscribePattern": "("}, "option subscribePattern '\\(' is not a regular expression"),
        ({"startingOffsets": "latest"}, "a batch cannot start at the latest offset"),
        ({"startingOffsets": '{"codec-lz4": {"0": -1}}'}, "a batch cannot start at the latest offset"),
        ({"endingOffsets": "earliest"}, "nothing lies before the earliest offset"),
        ({"startingOffsets": '{"codec-lz4": {"0": "x"}}'}, "option startingOffsets is"),
        ({"startingOffsets": '{"codec-lz4": {"0": 1}}'}, "found only codec-lz4-0"),
        (
            {"startingOffsets": "earliest", "endingOffsets": '{"typo": {"0": 1}}'},
            "set for typo-0, which the job does not read",
        ),
        ({"paths": "a,b"}, "options path and paths exclude each other"),
        ({"startTimestamp": "--5"}, "option startTimestamp: timestamp '--5' is not a time"),
        ({"storageOptions": '{"a": []}'}, "option storageOptions is not JSON like"),
        ({"startingTimestamp": "yesterday"}, "option startingTimestamp is 'yesterday', not milliseconds"),
        ({"minPartitions": "0"}, "option minPartitions is '0', not a positive number"),
        ({"includeHeaders": "yes"}, "option includeHeaders is 'yes', not false or true"),
        ({"onError": "quarantine"}, "onError=quarantine and the option quarantinePath require each other"),
        ({"kafka.isolation.level": "dirty"}, "isolation_level 'dirty'"),
        ({"filterPushdown": "true"}, "unknown option filterpushdown; there are against, assign, "),
        ({"startingOffset": "1"}, "unknown option startingoffset; there are against, assign, "),
        ({"subscribe": "a", "subscribePattern": "b"}, "options subscribe and subscribePattern exclude each other"),
        ({"subscribe": ""}, "option subscribe is empty"),
        ({"subscribe": " , "}, "option subscribe names no topic"),
        ({"subscribePattern": " "}, "option subscribePattern is empty"),
        ({"assign": "{}"}, "option assign is '{}', not like"),
        ({"assign": '{"codec-lz4": [true]}'}, "option assign is"),
        ({"columns": ""}, "option columns is empty"),
        ({"columns": ","}, "option columns is ',', a list without names"),
        ({"startingOffsets": ""}, "option startingOffsets is empty"),
        ({"startingOffsets": "-5"}, "option startingOffsets is '-5', not earliest, latest, a number or JSON"),
        ({"startingOffsets": "\u00b2"}, "option startingOffsets is '\u00b2', not earliest, latest, a number or JSON"),
        ({"startingOffsets": "[1]"}, "option startingOffsets is '\\[1\\]', not earliest, latest, a number or JSON"),
        ({"startingOffsets": '{"codec-lz4": {"0": 1}'}, 'not like {"orders": {"0": 23, "1": -2}}'),
        ({"startingOffsets": '{"codec-lz4": {"0": -3}}'}, 'not like {"orders": {"0": 23, "1": -2}}'),
        ({"startingOffsets": '{"codec-lz4": {"0": 1.5}}'}, 'not like {"orders": {"0": 23, "1": -2}}'),
        ({"startingOffsets": '{"codec-lz4": {"first": 1}}'}, 'not like {"orders": {"0": 23, "1": -2}}'),
        ({"startingOffsets": f"{2**63}"}, f"option startingOffsets is {2**63}, more than {2**63 - 1}"),
        ({"endingOffsets": "-2"}, "option endingOffsets is '-2', not earliest, latest, a number or JSON"),
        ({"endingOffsets": '{"codec-lz4": {"0": -2}}'}, "nothing lies before the earliest offset"),
        ({"startingTimestamp": "-1"}, "option startingTimestamp is '-1', not milliseconds"),
        ({"startingTimestamp": "1e3"}, "option startingTimestamp is '1e3', not milliseconds"),
        ({"endingTimestamp": "2026-11-21"}, "option endingTimestamp is '2026-11-21', not milliseconds"),
        ({"startingOffsetsByTimestamp": '{"codec-lz4": {"0": "x"}}'}, 'not like {"orders": {"0": 1767225600000}}'),
        ({"startingOffsetsByTimestamp": '{"codec-lz4": {"0": -2}}'}, 'not like {"orders": {"0": 1767225600000}}'),
        ({"startingOffsetsByTimestamp": "latest"}, "option startingOffsetsByTimestamp is 'latest', not like"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "Strategy is 'first', not error or latest"),
        ({"subscribe": "codec-lz4", "startingOffsets": "752"}, "asks for offset 752, but the log ends at 751"),
        ({"startingOffsets": "9", "endingOffsets": "4"}, "^the start offset 9 is after the end offset 4"),
        (
            {"startingOffsets": '{"codec-lz4": {"0": 9}}', "endingOffsets": "4"},
            "^codec-lz4-0: the start offset 9 is after the end offset 4",
        ),
        (
            {"startingOffsets": "earliest", "startingTimestamp": "5", "endingTimestamp": "4"},
            "^the start timestamp 5 is after the end timestamp 4",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"a": {"0": 3, "1": 6}}',
                "endingOffsetsByTimestamp": '{"a": {"0": 3, "1": 5}, "b": {"0": 1}}',
            },
            "^a-1: the start timestamp 6 is after the end timestamp 5",
        ),
        ({"startTimestamp": "5", "endTimestamp": "4"}, "the start time .* is after the end time"),
        (
            {"startTimestamp": "1795229677788123456"},
            "option startTimestamp: timestamp 1795229677788123456 looks like nanoseconds of 2026-11-21T02:54:37.788Z",
        ),
        (
            {"endingTimestamp": "1795229677788000"},
            "option endingTimestamp: timestamp 1795229677788000 looks like microseconds of .* give 1795229677788, or",
        ),
        (
            {"startingOffsetsByTimestamp": '{"codec-lz4": {"0": 1795229677}}'},
            "option startingOffsetsByTimestamp: timestamp 1795229677 looks like seconds",
        ),
        ({"minPartitions": "\u00b2"}, "option minPartitions is '\u00b2', not a positive number"),
        ({"rangeBytes": "1t"}, "option rangeBytes is '1t', not a size such as"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "minOffsetsPerTrigger is 5, more than maxOffsets"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay is 'soon', not a time such as"),
        ({"onError": "ignore"}, "option onError is 'ignore', not fail, skip or quarantine"),
        ({"definitions": ""}, "option definitions is empty"),
        ({"path": ""}, "option path is empty"),
    ],
)
def test_mistakes(options: dict[str, str], text: str):
    with pytest.raises(ValueError, match=text):
        rows(**{"path": str(CODECS), **options})


def test_each_option_is_documented_once():
    for options in ((*READING, *STREAMS), SINK):
        names = [option.name for option in options]
        assert sorted(set(names)) == sorted(names)


def test_the_defaults_of_the_documentation_are_those():
    """Each option whose default is told, given as that, changes nothing; that of a stream is told in words."""
    bare = {"path": str(CODECS)}
    defaults = {option.name: option.default for option in (*READING, *STREAMS) if option.default is not None}
    assert len(defaults) > 10
    for name, default in defaults.items():
        assert parse_request({**bare, name: default}) == parse_request(bare), name
    sink = {option.name: option.default for option in SINK if option.default is not None}
    written = {"is_streaming": False, "overwrite": False}
    for name, default in sink.items():
        assert parse_sink_options({**bare, name: default}, **written) == parse_sink_options(bare, **written), name


def test_paths_are_a_list():
    for text, message in (("[]", r'not like \["backup'), ("[1]", r'not like \["backup'), (",", "a list without names")):
        with pytest.raises(ValueError, match=f"option paths is .*{message}"):
            parse_request({"paths": text})
    assert parse_request({"paths": "2024"}).paths == ("2024",)  # a folder of this name


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str):
    with pytest.raises(ValueError, match=f"option {name}: a stream has no end"):
        parse_request({"path": str(CODECS), name: "5"}, is_streaming=True)


def test_an_end_behind_the_log_is_its_end_and_a_start_there_can_be_allowed():
    some = {"path": str(CODECS), "columns": "topic,partition,offset", "subscribe": "codec-lz4"}
    assert len(rows(**some, endingOffsets="100000")) == 751
    assert rows(**some, startingOffsets="751") == []
    assert rows(**some, startingOffsets="752", failOnDataLoss="false") == []
