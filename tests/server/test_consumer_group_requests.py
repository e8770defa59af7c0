"""Consumer groups of the newer protocol (KIP-848) at a broker: requests by hand, restarts, and librdkafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import confluent_kafka
import pytest
from broker_client import BrokerClient, batch, check
from group_member import Member

import kraftlog
from kraftlog.log_store import cluster
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server import groups
from kraftlog.server.broker import Broker

HEARTBEAT, DESCRIBE, LIST, DELETE, OFFSET_DELETE, DESCRIBE_CLASSIC = 68, 69, 16, 42, 47, 15
LIMIT = 30.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        running.store.create_topic("orders", partitions=4)
        yield running
    check(running.path)


class Consumer(BrokerClient):
    """A member, request by request."""

    def beat(self, member_id: str, epoch: int, /, version: int = 1, **others: Any) -> dict[str, Any]:
        return self.ask(HEARTBEAT, version, {"group_id": "g", "member_id": member_id, "member_epoch": epoch} | others)

    def join(self, member_id: str, /, **others: Any) -> dict[str, Any]:
        first = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": ["orders"]}
        return self.beat(member_id, 0, **(first | others))

    def described(self) -> dict[str, Any]:
        return self.ask(DESCRIBE, 1, {"group_ids": ["g"]})["groups"][0]


def numbers(answer: dict[str, Any]) -> list[int]:
    return [number for one in answer["assignment"]["topic_partitions"] for number in one["partitions"]]


def owned(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return answer["assignment"]["topic_partitions"]


def test_two_members_and_a_restart_between_their_steps(broker: Broker):
    """Epochs, assignments and what a member has to give up survive each restart, in order or by a kill."""

    def restart(*, kills: bool) -> Consumer:
        if kills:
            broker.kill()
        broker.restart()
        return Consumer(broker)

    with Consumer(broker) as client:
        first = client.join("a")
        assert (first["error_code"], first["member_id"], first["member_epoch"]) == (0, "a", 1)
        assert numbers(first) == [0, 1, 2, 3]
        second = client.join("b")
        assert (second["member_epoch"], numbers(second)) == (2, [])
        asked = client.beat("a", 1, topic_partitions=owned(first))
        assert (asked["member_epoch"], len(numbers(asked))) == (1, 2)
    with restart(kills=True) as client:
        waits = client.beat("b", 2)
        assert (waits["error_code"], waits["assignment"]) == (0, None)
        assert client.described()["group_state"] == "Reconciling"
        revoked = client.beat("a", 1, topic_partitions=owned(asked))
        assert (revoked["member_epoch"], revoked["assignment"]) == (2, None)
    with restart(kills=False) as client:
        rest = client.beat("b", 2)
        assert sorted(numbers(rest) + numbers(asked)) == [0, 1, 2, 3]
        group = client.described()
        assert (group["group_state"], group["group_epoch"], group["assignment_epoch"]) == ("Stable", 2, 2)
        assert group["assignor_name"] == "uniform"
        assert [(one["member_id"], one["member_epoch"], one["member_type"]) for one in group["members"]] == [
            ("a", 2, 1),
            ("b", 2, 1),
        ]
        assert group["members"][0]["assignment"] == group["members"][0]["target_assignment"]
        assert group["members"][0]["assignment"]["topic_partitions"][0]["topic_name"] == "orders"
        (row,) = kraftlog.open(broker.path).groups().to_pylist()
        assert (row["group"], row["group_type"], row["state"], row["generation_or_epoch"]) == (
            ("g", "consumer", "Stable", 2)
        )
        assert [one["member_id"] for one in row["members"]] == ["a", "b"]
        assert client.beat("b", -1)["member_epoch"] == -1
    with restart(kills=True) as client:
        assert numbers(client.beat("a", 2, topic_partitions=owned(asked))) == [0, 1, 2, 3]
        assert client.beat("b", 2)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID


def test_lists_and_deletion(broker: Broker):
    with Consumer(broker) as client:
        client.join("a")
        (group,) = client.ask(LIST, 5, {"types_filter": ["Consumer"]})["groups"]
        assert (group["group_id"], group["protocol_type"], group["group_type"]) == ("g", "consumer", "consumer")
        assert client.ask(LIST, 5, {"types_filter": ["classic"]})["groups"] == []
        (classic,) = client.ask(DESCRIBE_CLASSIC, 6, {"groups": ["g"]})["groups"]
        assert (classic["group_state"], classic["error_code"]) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
        assert client.ask(DELETE, 2, {"groups_names": ["g"]})["results"][0]["error_code"] == ErrorCode.NON_EMPTY_GROUP
        topics = [{"name": "orders", "partitions": [{"partition_index": 0}]}]
        deleted = client.ask(OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})["topics"][0]["partitions"][0]
        assert deleted["error_code"] == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        client.beat("a", -1)
        assert client.described()["group_state"] == "Empty"
        assert client.ask(DELETE, 2, {"groups_names": ["g"]})["results"][0]["error_code"] == 0
        assert client.described()["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
        assert client.beat("a", 1)["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
    broker.restart()
    assert kraftlog.open(broker.path).groups().num_rows == 0


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"subscribed_topic_names": None}, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null"),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
        ({"server_assignor": "sticky"}, "ServerAssignor sticky is not supported. Supported assignors: uniform, range."),
        ({"subscribed_topic_regex": "(?=x)"}, "SubscribedTopicRegex `(?=x)` is not a valid regular expression"),
    ],
)
def test_requests_that_are_refused(broker: Broker, others: dict[str, Any], message: str):
    with Consumer(broker) as client:
        answer = client.join("a", **others)
        codes = {"server_assignor": ErrorCode.UNSUPPORTED_ASSIGNOR}
        codes["subscribed_topic_regex"] = ErrorCode.INVALID_REGULAR_EXPRESSION
        assert answer["error_code"] == codes.get(next(iter(others)), ErrorCode.INVALID_REQUEST)
        assert answer["error_message"].startswith(message)
        assert client.ask(LIST, 5, {})["groups"] == []


def test_a_regular_expression_matches_topics_as_they_come(broker: Broker):
    with Consumer(broker) as client:
        found = client.join("a", subscribed_topic_names=None, subscribed_topic_regex="ord.*|pay.*")
        assert numbers(found) == [0, 1, 2, 3]
        broker.store.create_topic("payments")
        broker.store.create_topic("repayments")
        more = client.beat("a", 1, topic_partitions=owned(found))
        assert (more["member_epoch"], len(owned(more)), len(numbers(more))) == (2, 2, 5)


def test_epochs_of_assignments_are_unknown_rather_than_none(broker: Broker):
    """Without null, Kafka 4.3 expects an epoch for each partition, and logs an error (KIP-1251)."""
    with Consumer(broker) as client:
        client.join("a")
    broker.close()
    rows = kraftlog.open(broker.path).messages(type="ConsumerGroupCurrentMemberAssignment").to_table().to_pylist()
    (partitions,) = rows[-1]["assigned_partitions"]
    assert (partitions["partitions"], partitions["assignment_epochs"]) == ([0, 1, 2, 3], None)


def test_members_have_the_host_that_kafka_would_keep(broker: Broker):
    with Consumer(broker) as client:
        client.join("a")
        (member,) = client.described()["members"]
        assert (member["client_id"], member["client_host"]) == ("c", "/127.0.0.1")


def test_a_regular_expression_matches_internal_topics(broker: Broker):
    with Consumer(broker) as client:
        client.join("a")  # creates __consumer_offsets
        found = client.join("b", subscribed_topic_names=None, subscribed_topic_regex="__consumer_.*")
        offsets = broker.store.parts.topic_of("__consumer_offsets")
        assert [one["topic_id"] for one in owned(found)] == [offsets.topic_id]
        assert len(numbers(found)) == offsets.partitions


def test_an_older_client_gets_its_id_and_a_static_one_comes_back(broker: Broker):
    with Consumer(broker) as client:
        first = client.join("", version=0, instance_id="i", subscribed_topic_names=["orders"])
        assert first["error_code"] == 0
        assert len(first["member_id"]) == 36
        assert client.join("new", instance_id="i")["error_code"] == ErrorCode.UNRELEASED_INSTANCE_ID
        left = client.beat(first["member_id"], -2, instance_id="i")
        assert (left["error_code"], left["member_epoch"]) == (0, -2)
    broker.restart()
    with Consumer(broker) as client:
        back = client.join("new", instance_id="i")
        assert (back["member_epoch"], numbers(back)) == (1, [0, 1, 2, 3])
        assert client.beat(first["member_id"], 1, instance_id="i")["error_code"] == ErrorCode.FENCED_INSTANCE_ID


def test_offsets_are_those_of_members_in_their_epoch(broker: Broker):
    partitions = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]
    topics = [{"name": "orders", "partitions": partitions}]
    asked = [{"name": "orders", "partition_indexes": [0]}]

    def commit(client: Consumer, version: int, epoch: int, member_id: str = "a") -> int:
        values = {"group_id": "g", "member_id": member_id, "generation_id_or_member_epoch": epoch, "topics": topics}
        return client.ask(8, version, values)["topics"][0]["partitions"][0]["error_code"]

    def fetch(client: Consumer, epoch: int, member_id: str | None = "a") -> tuple[int, list[int]]:
        one = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, "topics": asked}
        (answer,) = client.ask(9, 9, {"groups": [one]})["groups"]
        offsets = [each["committed_offset"] for topic in answer["topics"] for each in topic["partitions"]]
        return answer["error_code"], offsets

    with Consumer(broker) as client:
        client.produce(batch("x"))
        client.join("a")
        assert commit(client, 9, 1) == 0
        assert commit(client, 9, 2) == ErrorCode.STALE_MEMBER_EPOCH
        assert commit(client, 8, 1) == ErrorCode.UNSUPPORTED_VERSION
        assert commit(client, 9, -1, "") == ErrorCode.UNKNOWN_MEMBER_ID
        assert fetch(client, 1) == (0, [1])
        assert fetch(client, -1, None) == (0, [1])
        assert fetch(client, 0) == (ErrorCode.STALE_MEMBER_EPOCH, [])
        assert fetch(client, 1, "b") == (ErrorCode.UNKNOWN_MEMBER_ID, [])
        begun = client.init("t")
        values = {"transactional_id": "t", "group_id": "g", "member_id": "a", "generation_id": 7, "topics": topics}
        values |= {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
        answer = client.ask(28, 5, values)["topics"][0]["partitions"][0]
        assert answer["error_code"] == ErrorCode.ILLEGAL_GENERATION


def test_the_two_protocols_do_not_mix(broker: Broker):
    """A group with members keeps its protocol; an empty one takes that of its next member."""
    with Consumer(broker) as client, Member(broker) as classic:
        client.join("a")
        classic.send(classic.join_frame())
        assert classic.joined()["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        client.beat("a", -1)
        classic.member_id = ""
        classic.join()
        classic.sync({classic.member_id: b"all"})
        assert client.join("a")["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND
        classic.ask(13, 5, {"group_id": "g", "members": [{"member_id": classic.member_id}]})
        assert client.join("a")["member_epoch"] == 1
    broker.restart()
    (row,) = kraftlog.open(broker.path).groups().to_pylist()
    assert (row["group_type"], len(row["members"])) == ("consumer", 1)


@pytest.mark.parametrize("is_revoking", [False, True])
def test_a_member_that_is_late_is_removed(broker: Broker, monkeypatch: pytest.MonkeyPatch, is_revoking: bool):
    """By the end of its session, or of the time that it has to give up partitions."""
    with Consumer(broker) as client:
        first = client.join("a", rebalance_timeout_ms=100 if is_revoking else 60_000)
        client.join("b")
        if is_revoking:
            client.beat("a", 1, topic_partitions=owned(first))
        else:
            monkeypatch.setattr(groups, "SESSION_TIMEOUT_MS", 100)
            client.beat("a", 1)
            monkeypatch.undo()
        members = kraftlog.open(broker.path).groups()["members"]
        until = monotonic() + LIMIT
        while len(members[0]) == 2:
            assert monotonic() < until
            sleep(0.02)
            members = kraftlog.open(broker.path).groups()["members"]
        assert len(client.described()["members"]) == 1
        assert client.beat("a", 1)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
        assert numbers(client.beat("b", 2)) == [0, 1, 2, 3]


@pytest.mark.parametrize("restarts", [False, True])
def test_heartbeats_and_restarts_give_no_more_time_to_give_up_partitions(broker: Broker, restarts: bool):
    with Consumer(broker) as client:
        first = client.join("a", rebalance_timeout_ms=1000)
        client.join("b")
        assert client.beat("a", 1, topic_partitions=owned(first))["error_code"] == 0
    if restarts:
        broker.restart()
    until = monotonic() + LIMIT
    with Consumer(broker) as client:
        while len(client.described()["members"]) == 2:
            assert monotonic() < until
            if not restarts:
                assert client.beat("a", 1)["error_code"] in (0, ErrorCode.UNKNOWN_MEMBER_ID)
            sleep(0.02)
        assert client.beat("a", 1)["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_cluster_without_the_feature_does_not_offer_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Broker() as broker, BrokerClient(broker) as client:
        answer = client.ask(18, 4, {})
        assert {HEARTBEAT, DESCRIBE} <= {one["api_key"] for one in answer["api_keys"]}
        assert ("group.version", 1) in {(one["name"], one["max_version_level"]) for one in answer["finalized_features"]}
    monkeypatch.setattr(cluster, "FEATURES", {key: one for key, one in cluster.FEATURES.items() if "group" not in key})
    with Broker() as broker, BrokerClient(broker) as client:
        answer = client.ask(18, 4, {})
        assert not {HEARTBEAT, DESCRIBE} & {one["api_key"] for one in answer["api_keys"]}


def test_consumers_of_librdkafka_share_partitions(broker: Broker):
    """One joins, a kill does not disturb them, one leaves; each record is read, and offsets are committed."""
    configs = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "g",
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 50,
        "log_level": 0,
    }
    assigned: list[set[int]] = [set(), set()]
    read: set[bytes] = set()

    def consumer(number: int) -> confluent_kafka.Consumer:
        one = confluent_kafka.Consumer(configs)
        one.subscribe(
            ["orders"],
            on_assign=lambda _, some: assigned[number].update(each.partition for each in some),
            on_revoke=lambda _, some: assigned[number].difference_update([each.partition for each in some]),
        )
        return one

    def write(text: str) -> None:
        with broker.store.producer() as producer:
            for number in range(4):
                producer.send("orders", value=f"{text} {number}", partition=number)

    def read_until(count: int, *consumers: confluent_kafka.Consumer) -> None:
        while len(read) < count:
            for one in consumers:
                message = one.poll(0.05)
                if message is not None and message.error() is None:
                    read.add(message.value())

    first = consumer(0)
    write("one")
    read_until(4, first)
    assert assigned[0] == {0, 1, 2, 3}
    second = consumer(1)
    while len(assigned[0]) != 2 or len(assigned[1]) != 2:
        first.poll(0.05)
        second.poll(0.05)
    assert assigned[0] | assigned[1] == {0, 1, 2, 3}
    before = [set(one) for one in assigned]
    broker.kill()
    broker.restart()
    write("two")
    read_until(8, first, second)
    assert assigned == before
    first.commit(asynchronous=False)
    first.close()
    write("three")
    read_until(12, second)
    second.close()
    assert {offset.offset for offset in broker.store.committed("g").values()} == {3}
