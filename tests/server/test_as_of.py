"""A log that is served as of a moment: records, topics, committed offsets and transactions are those of then."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from random import Random

import confluent_kafka
import pyarrow as pa
import pytest
from clients import READERS, Row, digest
from confluent_kafka.admin import AdminClient
from test_connections import Client

import kraftlog
from accounts import ACCOUNTS, ORDERS, history
from command_line import run_command
from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.log_store.group_offsets import OffsetAndMetadata, offset_records
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.log_server import LogServer
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.transactions.cut import CutTime, Side
from standing_clock import StandingClock

GOLDEN = Path(__file__).parents[1] / "golden"
LEVELS = ("read_committed", "read_uncommitted")
METADATA, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 3, 61, 65, 66
COLUMNS = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"]
LIMIT = 30.0


def rows_of(log: kraftlog.Log, level: str) -> list[Row]:
    """Return the records that the Python door gives."""
    return [
        Row(
            *(row["topic"], row["partition"], row["offset"], row["timestamp_ms"], row["timestamp_type"]),
            *(digest(row["key"]), digest(row["value"]), len(row["headers"])),
        )
        for row in log.records(COLUMNS, isolation_level=level).to_table().to_pylist()
        if row["topic"] != CLUSTER_METADATA
    ]


def partitions_of(log: kraftlog.Log) -> set[tuple[str, int]]:
    return {(one.topic, one.partition) for one in log.partitions if one.topic != CLUSTER_METADATA}


def cuts_of(folder: str) -> Iterator[str]:
    """Return cuts on both sides of times at which batches were written."""
    stamps = kraftlog.open(GOLDEN / folder / "log").batches(["max_timestamp_ms"]).column(0).to_pylist()
    times = sorted({stamp for stamp in stamps if stamp is not None and stamp >= 0})
    yield f"at-or-before:{times[len(times) // 3]}"
    yield f"at-or-after:{times[2 * len(times) // 3]}"
    yield "end"


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka"])
@pytest.mark.parametrize("folder", ["transactions", "transactions_hanging", "transactions_tv0", "deleted_records"])
def test_clients_read_what_records_gives_at_the_cut(folder: str, client: str):
    open_there = 0
    for cut in cuts_of(folder):
        try:
            log = kraftlog.open(GOLDEN / folder / "log", cut=cut)
        except ValueError:
            with pytest.raises(ValueError, match="no cut"):
                LogServer(GOLDEN / folder / "log", as_of=cut)
            continue
        with LogServer(GOLDEN / folder / "log", as_of=cut) as server:
            for level in LEVELS:
                expected = rows_of(log, level)
                rows = READERS[client](server.bootstrap_servers, level, partitions_of(log))
                assert sorted(rows, key=repr) == sorted(expected, key=repr)
            assert server.faults == []
        open_there += "open" in log.partition_transactions()["state"].to_pylist()
    assert open_there or folder == "deleted_records"


def test_open_transactions_hold_nothing_back_at_a_cut():
    """The last stable offset is the end, for tables as for clients."""
    log = kraftlog.open(GOLDEN / "transactions_hanging" / "log", cut="end")
    opened = log.partition_transactions(["topic", "partition", "state"]).to_pylist()
    opened = {(row["topic"], row["partition"]) for row in opened if row["state"] == "open"}
    columns = ["topic", "partition", "last_stable_offset", "log_end_offset"]
    rows = log.partition_offsets(columns=columns).to_table().to_pylist()
    assert {(row["topic"], row["partition"]) for row in rows} >= opened > set()
    assert all(row["last_stable_offset"] == row["log_end_offset"] for row in rows)
    with LogServer(GOLDEN / "transactions_hanging" / "log", as_of="end") as server:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "g"})
        for row in rows:
            partition = confluent_kafka.TopicPartition(row["topic"], row["partition"])
            assert consumer.get_watermark_offsets(partition, LIMIT)[1] == row["log_end_offset"]
        consumer.close()


def test_a_moment_of_a_live_directory_stays(tmp_path: Path):
    begin, end = history(tmp_path, Random(4))
    log = kraftlog.open(tmp_path, cut=CutTime(Side.AT_OR_BEFORE, (begin + end) // 2))
    expected = {level: rows_of(log, level) for level in LEVELS}
    with LogServer(tmp_path, as_of=CutTime(Side.AT_OR_BEFORE, (begin + end) // 2)) as server:
        with kraftlog.LogStore(tmp_path) as store, store.producer("later") as producer:
            producer.begin_transaction()
            for number in range(50):
                producer.send(ACCOUNTS, value=f"later {number}", partition=number % 3, timestamp_ms=begin)
            producer.commit_transaction()
            store.create_topic("later", 1)
        for level in LEVELS:
            rows = READERS["librdkafka"](server.bootstrap_servers, level, partitions_of(log))
            assert sorted(rows, key=repr) == sorted(expected[level], key=repr)
        assert "later" not in server.topics
    assert expected["read_committed"]
    assert len(rows_of(kraftlog.open(tmp_path), "read_uncommitted")) > len(expected["read_uncommitted"]) + 50


def two_topics(folder: Path) -> tuple[int, int, int]:
    """Create a topic, and later another one and a partition; return a time between, its offset, and the end's."""
    clock = StandingClock()
    with kraftlog.LogStore(folder, clock=clock) as store:
        store.create_topic("early", 2)
        producer = store.producer()
        for partition in range(2):
            producer.send("early", value="one", partition=partition, timestamp_ms=clock.now)
        producer.flush()
        clock.now += 1000
        between = clock.now
        offset = kraftlog.open(folder).image().offset
        clock.now += 1000
        store.create_topic("late", 1)
        store.create_partitions("early", 3)
        for topic, partition in (("early", 0), ("early", 2), ("late", 0)):
            producer.send(topic, value="two", partition=partition, timestamp_ms=clock.now)
        producer.flush()
    return between, offset, kraftlog.open(folder).image().offset


@pytest.mark.parametrize("form", ["offset", "text", "time", "cut"])
def test_topics_are_those_that_existed(tmp_path: Path, form: str):
    between, offset, end = two_topics(tmp_path)
    moment = {
        "offset": offset,
        "text": str(offset),
        "time": f"{between}ms",
        "cut": CutTime(Side.AT_OR_BEFORE, between),
    }[form]
    with LogServer(tmp_path, as_of=moment) as server:
        assert {name: n for name, n in server.topics.items() if not name.startswith("__")} == {"early": 2}
        assert any("late" in note for note in server.notes)
        rows = READERS["librdkafka"](server.bootstrap_servers, "read_committed", [("early", 0)])
        assert [row.value for row in rows] == [digest(b"one")]
        with Client(server) as client:
            (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "late"}]})["topics"]
            assert topic["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with LogServer(tmp_path, as_of=end) as server:
        assert {name: n for name, n in server.topics.items() if not name.startswith("__")} == {"early": 3, "late": 1}
        assert server.notes == []


def test_a_topic_that_was_created_again_is_not_the_one_of_then(tmp_path: Path):
    between, _, _ = two_topics(tmp_path)
    with kraftlog.LogStore(tmp_path) as store:
        store.delete_topic("early")
        store.create_topic("early", 2)
        producer = store.producer()
        producer.send("early", value="three", partition=0, timestamp_ms=between)
        producer.flush()
    with LogServer(tmp_path, as_of=f"{between}ms") as server:
        assert "early" not in server.topics
        assert any("existed then have no files: " in note and "early" in note for note in server.notes)


def test_groups_have_the_offsets_of_then(tmp_path: Path):
    begin, end = history(tmp_path / "store", Random(5))
    several = set()
    for time in (begin + (end - begin) // 3, end):
        moment = CutTime(Side.AT_OR_BEFORE, time)
        rows = kraftlog.open(tmp_path / "store", cut=moment).offsets().to_pylist()
        expected = {row["partition"]: row["offset"] for row in rows if row["state"] == "committed"}
        several.add(tuple(sorted(expected.items())))
        with LogServer(tmp_path / "store", as_of=moment) as server:
            admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
            assert [one.group_id for one in admin.list_consumer_groups().result(LIMIT).valid] == ["transfers"]
            consumer = confluent_kafka.Consumer(
                {"bootstrap.servers": server.bootstrap_servers, "group.id": "transfers"}
            )
            asked = [confluent_kafka.TopicPartition(ORDERS, number) for number in range(2)]
            found = {one.partition: one.offset for one in consumer.committed(asked, LIMIT) if one.offset >= 0}
            assert found == expected
            consumer.commit(offsets=[confluent_kafka.TopicPartition(ORDERS, 0, 1)], asynchronous=False)
            assert consumer.committed(asked[:1], LIMIT)[0].offset == 1
            consumer.close()
    assert len(several) == 2
    with LogServer(tmp_path / "store") as server, Client(server) as client:  # without a moment, groups begin anew
        assert client.ask(16, 4, {"states_filter": []})["groups"] == []


def test_offsets_of_a_file_precede_those_of_the_log(tmp_path: Path):
    history(tmp_path / "store", Random(5))
    for offset in (1, 2):
        with LogServer(tmp_path / "store", as_of="end", group_offsets=tmp_path / "offsets.json") as server:
            consumer = confluent_kafka.Consumer(
                {"bootstrap.servers": server.bootstrap_servers, "group.id": "transfers"}
            )
            asked = [confluent_kafka.TopicPartition(ORDERS, 0)]
            before = consumer.committed(asked, LIMIT)[0].offset
            assert (before == 1) == (offset == 2)
            consumer.commit(offsets=[confluent_kafka.TopicPartition(ORDERS, 0, offset)], asynchronous=False)
            consumer.close()


def test_an_offset_after_the_end_of_a_partition_is_its_end(tmp_path: Path):
    """The cut lies behind offsets that a cleaner has removed since then."""
    (commit,) = offset_records("readers", {("orders", 0): OffsetAndMetadata(10, "", 3)}, 900)
    batches = {
        "orders-0": [({"value": [b"one"]}, 0, 1000), ({"value": [b"two"]}, 10, 5000)],
        "__consumer_offsets-0": [({"key": [commit.key], "value": [commit.value]}, 0, 900)],
    }
    for folder, some in batches.items():
        (tmp_path / folder).mkdir()
        with (tmp_path / folder / f"{0:020}.log").open("wb") as file:
            for columns, base_offset, timestamp in some:
                stamps = pa.array([timestamp], pa.timestamp("ms", "UTC"))
                rows = pa.table({**columns, "timestamp": stamps})
                file.write(kraftlog.encode(rows, base_offset=base_offset))
    with LogServer(tmp_path, as_of="at-or-before:2000") as server:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "readers"})
        assert consumer.committed([confluent_kafka.TopicPartition("orders", 0)], LIMIT)[0].offset == 1
        consumer.close()


def test_transactions_and_producers_are_those_of_then():
    directory = GOLDEN / "transactions" / "log"
    for cut in ("at-or-before:2026-11-21T03:13:27.650Z", "end"):
        log = kraftlog.open(directory, cut=cut)
        with LogServer(directory, as_of=cut) as server, Client(server) as client:
            rows = log.transactional_ids().to_pylist()
            listed = client.ask(LIST_TRANSACTIONS, 0, {"state_filters": [], "producer_id_filters": []})
            found = {
                (one["transactional_id"], one["producer_id"], one["transaction_state"])
                for one in listed["transaction_states"]
            }
            assert found == {(row["transactional_id"], row["producer_id"], row["status"]) for row in rows} > set()
            ids = [row["transactional_id"] for row in rows]
            states = client.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ids})["transaction_states"]
            assert [(one["producer_epoch"], one["transaction_timeout_ms"], one["topics"]) for one in states] == [
                (row["producer_epoch"], row["timeout_ms"], sorted(row["partitions"], key=itemgetter("topic")))
                for row in rows
            ]
            asked = [{"name": "orders", "partition_indexes": [0, 1, 2, 3]}]
            *described, missing = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": asked})["topics"][0]["partitions"]
            assert missing["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            producers = [
                (one["partition_index"], each["producer_id"], each["last_sequence"], each["current_txn_start_offset"])
                for one in described
                for each in one["active_producers"]
            ]
            expected = [
                (row["partition"], row["producer_id"], row["last_sequence"], row["current_transaction_first_offset"])
                for row in log.producers().to_pylist()
                if row["topic"] == "orders"
            ]
            assert producers == [tuple(-1 if one is None else one for one in row) for row in expected]
            assert producers


def test_what_is_no_moment(tmp_path: Path):
    two_topics(tmp_path)
    with pytest.raises(ValueError, match="as of offset 10000: the metadata log has offsets 0 to"):
        LogServer(tmp_path, as_of=10_000)
    with pytest.raises(ValueError, match="not among the files"):
        LogServer(GOLDEN / "transactions" / "log", as_of=3)
    with pytest.raises(ValueError, match="cut 'at-or-before' is not"):
        LogServer(tmp_path, as_of="at-or-before")
    done = run_command("serve", tmp_path, "--as-of", "soon", "--port", 0)
    assert done.returncode == 2
    assert "'soon' is not an offset" in done.stderr


def test_an_offset_of_the_metadata_log_whose_time_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two_topics(tmp_path)
    monkeypatch.setattr(MetadataLog, "batch_at", lambda *_: {"max_timestamp": [-1]})
    with pytest.raises(ValueError, match="as of offset 3: the time of this offset of the metadata log is unknown"):
        LogServer(tmp_path, as_of=3)


def test_a_moment_before_the_metadata_log_serves_all_topics(tmp_path: Path):
    two_topics(tmp_path)
    with LogServer(tmp_path, as_of="at-or-before:2001-01-01T00:00:00Z") as server:
        assert {"early", "late"} <= server.topics.keys()
        assert any("metadata of that moment is unknown" in note for note in server.notes)
        assert READERS["librdkafka"](server.bootstrap_servers, "read_uncommitted", [("early", 0), ("late", 0)]) == []


def test_a_topic_whose_id_is_lost_is_known_by_its_name(tmp_path: Path):
    """As where ``partition.metadata`` is missing."""
    between, _, _ = two_topics(tmp_path)
    for path in tmp_path.glob("early-*/partition.metadata"):
        path.unlink()
    with LogServer(tmp_path, as_of=f"{between}ms") as server:
        assert server.topics["early"] == 2
        rows = READERS["librdkafka"](server.bootstrap_servers, "read_committed", [("early", 0), ("early", 1)])
        assert [row.value for row in rows] == [digest(b"one")] * 2


def test_a_damaged_metadata_log_serves_all_topics_and_says_so(tmp_path: Path):
    between, _, _ = two_topics(tmp_path)
    (path,) = (tmp_path / f"{CLUSTER_METADATA}-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[RECORD_BATCH_OVERHEAD + 3] ^= 1  # in the records of the first batch
    path.write_bytes(data)
    with LogServer(tmp_path, as_of=f"{between}ms") as server:
        assert {"early", "late"} <= server.topics.keys()
        (note,) = [note for note in server.notes if "metadata of that moment is unknown" in note]
        assert "offsets 0 to 0 are missing" in note
