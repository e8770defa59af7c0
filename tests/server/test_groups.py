"""Consumer groups: partitions are divided, given on and kept by static members; commits are those of the generation."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from group_member import DESCRIBE, FIND_COORDINATOR, LEAVE, LIST, OFFSET_COMMIT, OFFSET_FETCH, SESSION_MS, Member
from test_frames import until

import kraftlog
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server import groups, upkeep
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer

LOG = Path(__file__).parents[1] / "golden" / "transactions" / "log"
LIMIT = 30.0
DELETE_GROUPS, OFFSET_DELETE = 42, 47


@pytest.fixture
def server() -> Iterator[LogServer]:
    with LogServer(LOG) as running:
        yield running


def test_one_member(server: LogServer):
    with Member(server) as one:
        answer = one.join()
        assert (answer["error_code"], answer["generation_id"], answer["leader"]) == (0, 1, one.member_id)
        assert [each["member_id"] for each in answer["members"]] == [one.member_id]
        assert one.heartbeat() == 0
        assert one.commit(5) == ErrorCode.REBALANCE_IN_PROGRESS  # until it has its assignment
        assert one.sync({one.member_id: b"all"})["assignment"] == b"all"
        assert one.heartbeat() == 0
        assert one.commit(5) == 0
        assert one.committed() == (5, "why")


@pytest.mark.parametrize("name", ["t" * 32_767, "é" * 16_383, "é" * 16_365 + "tt"])
def test_the_longest_name_of_a_member_is_cut_in_its_id(server: LogServer, name: str):
    with Member(server) as one:
        one.instance = name
        answer = one.join()
        assert (answer["error_code"], answer["leader"]) == (0, one.member_id)
        begin = one.member_id[:-37]
        assert name.startswith(begin)
        assert 32_765 <= len(one.member_id.encode()) <= 32_767
        (group,) = one.ask(DESCRIBE, 5, {"groups": [one.group]})["groups"]
        assert [each["member_id"] for each in group["members"]] == [one.member_id]


def test_a_second_member_and_one_that_leaves(server: LogServer):
    with Member(server) as one, Member(server) as two:
        one.join()
        one.sync({one.member_id: b"all"})
        two.send(two.join_frame())
        assert two.joined()["error_code"] == ErrorCode.MEMBER_ID_REQUIRED
        two.send(two.join_frame())
        while (code := one.heartbeat()) == 0:
            pass
        assert code == ErrorCode.REBALANCE_IN_PROGRESS
        leader, follower = one.join(), two.joined()
        assert leader["generation_id"] == follower["generation_id"] == 2
        assert {each["member_id"] for each in leader["members"]} == {one.member_id, two.member_id}
        assert (leader["leader"], follower["leader"], follower["members"]) == (one.member_id, one.member_id, [])
        answers: list[bytes] = []
        waits = threading.Thread(target=lambda: answers.append(two.sync()["assignment"]))
        waits.start()
        assert one.sync({one.member_id: b"first", two.member_id: b"second"})["assignment"] == b"first"
        waits.join(LIMIT)
        assert answers == [b"second"]
        old = one.generation
        members = [{"member_id": two.member_id}]
        left = one.ask(LEAVE, 5, {"group_id": "g", "members": members})
        assert left["members"][0]["error_code"] == 0
        assert two.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert one.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert one.join()["generation_id"] == 3
        one.sync({one.member_id: b"all"})
        assert one.commit(1, generation_id=old) == ErrorCode.ILLEGAL_GENERATION
        assert one.commit(1, member_id="another") == ErrorCode.UNKNOWN_MEMBER_ID
        assert one.commit(1, member_id="", generation_id=-1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert one.committed() == (-1, "")


def test_a_member_that_is_silent_loses_its_place(server: LogServer):
    with Member(server) as one, Member(server) as two:
        one.join()
        one.sync({one.member_id: b"all"})
        two.send(two.join_frame())
        two.joined()
        two.send(two.join_frame(rebalance_timeout_ms=10_000))
        answer = two.joined()  # when the session of the first ends
        assert (answer["error_code"], answer["leader"], len(answer["members"])) == (0, two.member_id, 1)
        assert one.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_join_again_in_time_loses_its_place(server: LogServer):
    with Member(server) as one, Member(server) as two:
        one.join(rebalance_timeout_ms=300)
        one.sync({one.member_id: b"all"})
        two.send(two.join_frame())
        two.joined()
        two.send(two.join_frame(rebalance_timeout_ms=300))
        answer = two.joined()  # long before the session of the first ends
        assert (answer["error_code"], answer["leader"], len(answer["members"])) == (0, two.member_id, 1)
        assert one.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_starts_again_keeps_its_assignment(server: LogServer):
    with Member(server, instance="i") as before, Member(server, instance="i") as after:
        before.join()
        before.sync({before.member_id: b"all"})
        generation = before.generation
        answer = after.join()
        assert (answer["error_code"], answer["generation_id"]) == (0, generation)
        assert answer["skip_assignment"]
        assert after.sync()["assignment"] == b"all"
        assert before.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
        assert before.commit(3) == ErrorCode.FENCED_INSTANCE_ID
        assert after.commit(3) == 0
        left = after.ask(LEAVE, 5, {"group_id": "g", "members": [{"member_id": "", "group_instance_id": "i"}]})
        assert left["members"][0]["error_code"] == 0
        assert after.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_commits_of_a_generation_of_a_group_that_is_not_there(server: LogServer, version: int, code: ErrorCode):
    """A group that has only offsets is there, and has no members."""
    with Member(server) as one:
        topics = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
        for expected in (code, ErrorCode.UNKNOWN_MEMBER_ID):
            values = {"group_id": "g", "generation_id_or_member_epoch": 3, "member_id": "m", "topics": topics}
            (answered,) = one.ask(OFFSET_COMMIT, version, values)["topics"]
            assert [each["error_code"] for each in answered["partitions"]] == [expected]
            assert one.commit(1, member_id="", generation_id=-1) == 0


def test_groups_that_nobody_uses_make_room(server: LogServer, monkeypatch: pytest.MonkeyPatch):
    """Those with members or offsets stay; a join that is refused makes no group."""
    monkeypatch.setattr(groups, "_MOST_GROUPS", 3)

    def join(group: str, **others: Any) -> int:
        with Member(server, group) as one:
            code = one.join(**others)["error_code"]
            one.sync()
            if group == "offsets":
                assert one.commit(1) == 0
            if group != "members":
                one.ask(LEAVE, 5, {"group_id": group, "members": [{"member_id": one.member_id}]})
            return code

    for number in range(3):
        assert join(f"unknown {number}", member_id="unknown") == ErrorCode.UNKNOWN_MEMBER_ID
    assert listed(server) == {}
    for group in ("members", "offsets", "left", "left again", "and again"):
        assert join(group) == 0
    assert listed(server) == {"members": "Stable", "offsets": "Empty", "and again": "Empty"}


def listed(server: LogServer | Broker) -> dict[str, str]:
    """Return the states of the groups of a server."""
    with Member(server) as one:
        return {each["group_id"]: each["group_state"] for each in one.ask(LIST, 4, {})["groups"]}


def test_a_broker_removes_groups_that_nobody_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From its log, too."""
    path = tmp_path / "log"
    with Broker(path) as broker, Member(broker, "left") as left, Member(broker, "stays") as stays:
        for one in (left, stays):
            one.join()
            one.sync()
        left.ask(LEAVE, 5, {"group_id": "left", "members": [{"member_id": left.member_id}]})
        assert listed(broker) == {"left": "Empty", "stays": "Stable"}
    monkeypatch.setattr(upkeep, "_TRANSACTIONS_S", 0.01)
    monkeypatch.setattr(upkeep, "_GROUPS_EVERY", 1)
    with Broker(path) as broker:
        until = time.monotonic() + LIMIT
        while "left" in listed(broker):
            assert time.monotonic() < until
        assert listed(broker) == {"stays": "Stable"}
    monkeypatch.undo()
    with Broker(path) as broker:
        assert listed(broker) == {"stays": "Stable"}


@pytest.mark.parametrize("makes_room", [False, True])
def test_a_member_that_sends_no_more_while_it_joins(makes_room: bool):
    """It stays in the group, as in Kafka, and is answered; but its connection makes room for that of another client."""
    with LogServer(LOG, max_connections=2) as server, Member(server) as one, Member(server) as two:
        one.join()
        one.sync({one.member_id: b"all"})
        for _ in range(2):  # first for an id
            two.send(two.join_frame())
            two.member_id = two.member_id or two.joined()["member_id"]
        two.socket.shutdown(socket.SHUT_WR)
        connections = server._thread._server._open  # type: ignore[union-attr]
        until(lambda: any(each.ended.done() for each in connections))
        if makes_room:
            with Member(server, "other") as three, Member(server) as four:
                assert three.join()["error_code"] == 0
                assert four.is_closed()  # those of clients that are there stay
                assert two.is_closed()
        assert [each["member_id"] for each in one.join()["members"]] == [one.member_id, two.member_id]
        if not makes_room:
            assert two.joined()["generation_id"] == 2
        assert two.is_closed()


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_is_refused(server: LogServer, others: dict[str, Any], code: ErrorCode):
    with Member(server) as one:
        one.send(one.join_frame(**others))
        assert one.joined()["error_code"] == code


def test_a_member_with_other_protocols_is_refused(server: LogServer):
    with Member(server) as one, Member(server) as two:
        one.join()
        one.sync({one.member_id: b"all"})
        for others in ({"protocol_type": "connect"}, {"protocols": [{"name": "sticky", "metadata": b""}]}):
            two.send(two.join_frame(**others))
            assert two.joined()["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert one.heartbeat() == 0


def test_commits_that_are_refused(server: LogServer):
    with Member(server) as one:
        assert one.commit(1, member_id="", generation_id=-1) == 0  # of a consumer that assigns partitions by itself
        long = {"partition_index": 2, "committed_offset": 3, "committed_metadata": "x" * 5000}
        topics = [
            {"name": "orders", "partitions": [{"partition_index": 9}, {"partition_index": 1}, long]},
            {"name": "nothing", "partitions": [{"partition_index": 0}]},
        ]
        answer = one.ask(OFFSET_COMMIT, 9, {"group_id": "g", "topics": topics})
        codes = [[each["error_code"] for each in topic["partitions"]] for topic in answer["topics"]]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [[unknown, 0, ErrorCode.OFFSET_METADATA_TOO_LARGE], [unknown]]
        assert one.commit(1, group_id="") == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_of_offset_fetch(server: LogServer, version: int):
    with Member(server) as one:
        one.commit(17, member_id="", generation_id=-1)
        topic_id = one.ask(3, 12, {"topics": [{"name": "orders"}]})["topics"][0]["topic_id"]
        named = {"topic_id": topic_id} if version >= 10 else {"name": "orders"}
        topics = [{**named, "partition_indexes": [0, 1]}]
        if version >= 8:
            answer = one.ask(OFFSET_FETCH, version, {"groups": [{"group_id": "g", "topics": topics}]})["groups"][0]
            everything = one.ask(OFFSET_FETCH, version, {"groups": [{"group_id": "g", "topics": None}]})["groups"][0]
        else:
            answer = one.ask(OFFSET_FETCH, version, {"group_id": "g", "topics": topics})
            everything = one.ask(OFFSET_FETCH, version, {"group_id": "g", "topics": None}) if version >= 2 else None
        assert [each["committed_offset"] for each in answer["topics"][0]["partitions"]] == [17, -1]
        if everything is not None:
            assert [each["committed_offset"] for each in everything["topics"][0]["partitions"]] == [17]


def test_groups_are_listed_and_described(server: LogServer):
    with Member(server) as one:
        one.join()
        one.sync({one.member_id: b"all"})
        one.commit(3)
        listed = one.ask(LIST, 5, {})["groups"]
        assert [(each["group_id"], each["protocol_type"], each["group_state"]) for each in listed] == [
            ("g", "consumer", "Stable")
        ]
        assert one.ask(LIST, 5, {"states_filter": ["Empty"]})["groups"] == []
        found, missing = one.ask(DESCRIBE, 6, {"groups": ["g", "nothing"]})["groups"]
        assert (found["group_state"], found["protocol_data"]) == ("Stable", "range")
        (member,) = found["members"]
        assert (member["member_id"], member["member_assignment"], member["client_id"]) == (one.member_id, b"all", "c")
        assert (missing["group_state"], missing["error_code"]) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)


def test_every_version_of_find_coordinator(server: LogServer):
    with Member(server) as one:
        for version in range(7):
            keys = {"coordinator_keys": ["g"]} if version >= 4 else {"key": "g"}
            answer = one.ask(FIND_COORDINATOR, version, keys)
            found = answer["coordinators"][0] if version >= 4 else answer
            assert f"{found['host']}:{found['port']}" == server.bootstrap_servers


def test_offsets_in_a_file(tmp_path: Path):
    path = tmp_path / "offsets.json"
    partitions = [{"partition_index": 1, "committed_offset": 7, "committed_leader_epoch": 3, "committed_metadata": ""}]
    topics = [{"name": "orders", "partitions": partitions}]
    with LogServer(LOG, group_offsets=path) as server, Member(server) as one:
        assert one.commit(12, member_id="", generation_id=-1) == 0
        assert one.ask(OFFSET_COMMIT, 9, {"group_id": "g", "topics": topics})["topics"][0]["partitions"][0] == {
            "partition_index": 1,
            "error_code": 0,
        }
    assert json.loads(path.read_text())["g"][0]["offset"] == 12
    with LogServer(LOG, group_offsets=path) as server, Member(server) as one:
        assert one.committed() == (12, "why")
        asked = [{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [1]}]}]
        answer = one.ask(OFFSET_FETCH, 9, {"groups": asked})["groups"][0]["topics"][0]["partitions"][0]
        assert (answer["committed_offset"], answer["committed_leader_epoch"]) == (7, 3)
        deleted = [{"name": "orders", "partitions": [{"partition_index": 1}]}]
        assert one.ask(OFFSET_DELETE, 0, {"group_id": "g", "topics": deleted})["error_code"] == 0
        assert one.committed() == (12, "why")
        assert [row["partition"] for row in json.loads(path.read_text())["g"]] == [0]
        assert one.ask(DELETE_GROUPS, 2, {"groups_names": ["g"]})["results"][0]["error_code"] == 0
        assert one.ask(LIST, 5, {})["groups"] == []
        assert json.loads(path.read_text()) == {}
    path.write_text("{]")
    with pytest.raises(ValueError, match=r"offsets\.json is not a file of committed offsets"):
        LogServer(LOG, group_offsets=path)


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_file_that_cannot_be_written_fails_the_commit(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The log of the server names the user's file, and the offsets before stay in it."""
    path = tmp_path / "offsets.json"

    def no_space(*arguments: Any) -> Any:
        names = {"open": [str(arguments[0])], "replace": [str(arguments[0]), None, str(arguments[-1])]}.get(step, [])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *names)

    with LogServer(LOG, group_offsets=path) as server, Member(server) as one:
        assert one.commit(12, member_id="", generation_id=-1) == ErrorCode.NONE
        with monkeypatch.context() as patch:
            patch.setattr(os, step, no_space)
            assert one.commit(13, member_id="", generation_id=-1) == ErrorCode.NOT_COORDINATOR
        assert one.committed() == (12, "why")
        assert [entry.name for entry in tmp_path.iterdir()] == ["offsets.json"]
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        assert caplog.messages == [f"a part of a request has failed: OSError: {error}"]
        assert one.commit(14, member_id="", generation_id=-1) == ErrorCode.NONE


def test_two_consumers_of_librdkafka_read_each_record_once():
    expected = kraftlog.open(LOG, topics=["orders"]).records(["partition", "offset"], isolation_level="read_committed")
    rows = sorted(map(tuple, (row.values() for row in expected.to_table().to_pylist())))
    with LogServer(LOG) as server:
        configs = {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 200,
        }
        read: list[tuple[int, int]] = []
        consumers = [confluent_kafka.Consumer(configs | {"client.id": f"c{number}"}) for number in range(2)]
        for consumer in consumers:
            consumer.subscribe(["orders"])
        for at in range(2000):
            message = consumers[at % 2].poll(0.05)
            if message is not None and message.error() is None:
                read.append((message.partition(), message.offset()))
            if len(read) >= len(rows):
                break
        for consumer in consumers:
            consumer.close()
        again = confluent_kafka.Consumer(configs)
        again.subscribe(["orders"])
        assert again.poll(2) is None  # all is committed
        again.close()
    assert sorted(set(read)) == rows
