"""The state machine of consumer groups (KIP-848), without sockets: random members, topics and losses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.assignors import ASSIGNORS, NO_PARTITIONS, Partitions, Subscriber
from kraftlog.server.consumer_group import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerGroupState,
    Heartbeat,
    MemberState,
    SubscribedTopic,
)
from kraftlog.server.consumer_group_records import RestoredGroups, changes, facts
from kraftlog.server.group_error import GroupError
from kraftlog.server.group_records import decoded_records

NAMES = ["orders", "payments", "returns"]
ORDERS = {"orders": SubscribedTopic(b"o" * 16, 4)}


@dataclass
class Consumer:
    """A client: it consumes what it was told, and gives up what it is told no longer."""

    member_id: str
    names: frozenset[str]
    assignor: str | None = None
    regex: str | None = None
    instance_id: str | None = None
    epoch: int = JOINING
    owned: Partitions = NO_PARTITIONS
    told: Partitions = NO_PARTITIONS

    def beat(self) -> Heartbeat:
        names, regex, timeout_ms = self.names, self.regex, 1000
        beat = Heartbeat(self.member_id, self.epoch, self.instance_id, None, timeout_ms, names, regex, self.assignor)
        return replace(beat, owned=self.owned)

    def abandon(self) -> None:
        self.epoch, self.owned, self.told = JOINING, NO_PARTITIONS, NO_PARTITIONS


class Groups(RuleBasedStateMachine):
    """Consumers whose heartbeats arrive in any order, whose answers may be lost, and which may end or be late."""

    def __init__(self) -> None:
        super().__init__()
        self.group = ConsumerGroup("g")
        self.topics = {name: SubscribedTopic(name[:1].encode() * 16, 3) for name in NAMES[:2]}
        self.consumers: dict[str, Consumer] = {}
        self.records: dict[bytes, bytes] = {}
        self.written: dict = {}
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    @rule(
        names=st.sets(st.sampled_from(NAMES)),
        assignor=st.sampled_from([None, *ASSIGNORS]),
        regex=st.sampled_from([None, "orders|pay.*", ".*s"]),
        is_static=st.booleans(),
    )
    def join(self, names: set[str], assignor: str | None, regex: str | None, is_static: bool) -> None:
        member_id = f"m{len(self.member_epochs)}"
        self.member_epochs[member_id] = 0
        instance_id = f"i{member_id}" if is_static else None
        self.consumers[member_id] = Consumer(member_id, frozenset(names), assignor, regex, instance_id)
        self.exchange(self.consumers[member_id], is_lost=False)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), is_lost=st.booleans(), gives_up=st.booleans())
    def heartbeat(self, data: st.DataObject, is_lost: bool, gives_up: bool) -> None:
        consumer = self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]
        if gives_up:
            consumer.owned &= consumer.told
        self.exchange(consumer, is_lost=is_lost)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), is_lost=st.booleans())
    def join_again(self, data: st.DataObject, is_lost: bool) -> None:
        """Let a member that has lost its way abandon its partitions, and join with the same id."""
        consumer = self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]
        consumer.abandon()
        self.exchange(consumer, is_lost=is_lost)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), names=st.sets(st.sampled_from(NAMES)))
    def subscribe(self, data: st.DataObject, names: set[str]) -> None:
        self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))].names = frozenset(names)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), how=st.sampled_from(["leaves", "late"]))
    def end(self, data: st.DataObject, how: str) -> None:
        consumer = self.consumers.pop(data.draw(st.sampled_from(sorted(self.consumers))))
        if consumer.member_id in self.group.subscriptions:
            if how == "leaves":
                self.group.leave(consumer.member_id, consumer.instance_id, LEAVING)
            else:
                self.group.remove(consumer.member_id)

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 5))
    def change_topics(self, name: str, count: int) -> None:
        self.topics.pop(name, None)
        if count:
            self.topics[name] = SubscribedTopic(name[:1].encode() * 16, count)

    @precondition(lambda self: any(one.instance_id for one in self.consumers.values()))
    @rule(data=st.data())
    def start_again(self, data: st.DataObject) -> None:
        """Let a static member leave for a while, and come back with another id."""
        static = sorted(key for key, one in self.consumers.items() if one.instance_id)
        consumer = self.consumers.pop(data.draw(st.sampled_from(static)))
        if consumer.member_id in self.group.subscriptions:
            self.group.leave(consumer.member_id, consumer.instance_id, LEAVING_FOR_A_WHILE)
        again = replace(consumer, member_id=f"m{len(self.member_epochs)}")
        again.abandon()
        self.member_epochs[again.member_id] = 0
        self.consumers[again.member_id] = again
        self.exchange(again, is_lost=False)

    @rule()
    def restart(self) -> None:
        self.write()
        restored = RestoredGroups()
        for name, key, value in decoded_records(self.records):
            restored.take(name, key, value)
        found = restored.finish().get("g", ConsumerGroup("g"))
        assert facts(found) == facts(self.group)
        self.group = found

    def write(self) -> None:
        after = facts(self.group)
        for key, value in changes("g", self.written, after):
            if value is None:
                del self.records[key]
            else:
                self.records[key] = value
        self.written = after

    def exchange(self, consumer: Consumer, *, is_lost: bool) -> None:
        try:
            current, is_told = self.group.heartbeat(consumer.beat(), self.topics)
        except GroupError as error:
            if error.code != ErrorCode.FENCED_MEMBER_EPOCH:
                raise
            consumer.abandon()
            return
        if is_lost:
            return
        consumer.epoch = current.member_epoch
        if is_told:
            consumer.told = current.assigned
            consumer.owned |= current.assigned

    @invariant()
    def nothing_is_consumed_twice(self) -> None:
        owned = [key for one in self.consumers.values() for key in one.owned]
        assert len(owned) == len(set(owned))
        held = [key for one in self.group.current.values() for key in one.owned]
        assert len(held) == len(set(held))

    @invariant()
    def epochs_only_rise(self) -> None:
        epochs = self.group.epoch, self.group.assignment_epoch
        assert epochs >= self.epochs
        assert self.group.assignment_epoch <= self.group.epoch
        self.epochs = epochs
        for member_id, current in self.group.current.items():
            if current.member_epoch != LEAVING_FOR_A_WHILE:
                assert current.member_epoch >= self.member_epochs[member_id]
                self.member_epochs[member_id] = current.member_epoch

    def teardown(self) -> None:
        """When all send heartbeats and give up what they must, all partitions are assigned, evenly enough."""
        for _ in range(12):
            for consumer in self.consumers.values():
                consumer.owned &= consumer.told
                self.exchange(consumer, is_lost=False)
        expected = {
            (topic.topic_id, number)
            for name, topic in self.topics.items()
            if self.group.subscribes(name)
            for number in range(topic.partitions_count)
        }
        if self.consumers:
            assert {key for one in self.consumers.values() for key in one.owned} == expected
            assert self.group.state == ConsumerGroupState.STABLE
        else:
            assert self.group.state == ConsumerGroupState.EMPTY


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def test_a_member_gets_partitions_when_the_other_has_given_them_up():
    group = ConsumerGroup("g")
    names = frozenset({"orders"})
    one = Heartbeat("a", JOINING, None, None, 1000, names, owned=NO_PARTITIONS)
    first = group.heartbeat(one, ORDERS)
    assert (first.current.member_epoch, len(first.current.assigned), first.is_told) == (1, 4, True)
    second = group.heartbeat(replace(one, member_id="b"), ORDERS)
    assert (second.current.member_epoch, second.current.assigned) == (2, NO_PARTITIONS)
    assert second.current.state == MemberState.UNRELEASED_PARTITIONS
    everything = first.current.assigned
    asked = group.heartbeat(Heartbeat("a", 1, owned=everything), ORDERS)
    assert (asked.current.member_epoch, asked.current.state) == (1, MemberState.UNREVOKED_PARTITIONS)
    assert (len(asked.current.assigned), len(asked.current.revoking), asked.is_told) == (2, 2, True)
    assert group.heartbeat(Heartbeat("a", 1), ORDERS).current == asked.current  # it does not say what it owns
    assert group.heartbeat(Heartbeat("b", 2), ORDERS).current.assigned == NO_PARTITIONS
    assert group.state == ConsumerGroupState.RECONCILING
    revoked = group.heartbeat(Heartbeat("a", 1, owned=asked.current.assigned), ORDERS)
    assert (revoked.current.member_epoch, revoked.current.state) == (2, MemberState.STABLE)
    assert group.heartbeat(Heartbeat("b", 2), ORDERS).current.assigned == asked.current.revoking
    assert group.state == ConsumerGroupState.STABLE


def test_an_answer_that_was_lost_is_asked_for_again():
    """With the epoch before, and without partitions that are no longer the member's."""
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, None, None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    everything = group.heartbeat(join, ORDERS).current.assigned
    group.heartbeat(replace(join, member_id="b"), ORDERS)
    kept = group.heartbeat(Heartbeat("a", 1, owned=everything), ORDERS).current.assigned
    assert group.heartbeat(Heartbeat("a", 1, owned=kept), ORDERS).current.member_epoch == 2
    assert refused(group, Heartbeat("a", 1, owned=everything)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(group, Heartbeat("a", 1)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert group.heartbeat(Heartbeat("a", 1, owned=kept), ORDERS).current.member_epoch == 2


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_member_that_was_fenced_joins_again_with_the_same_id(instance_id: str | None):
    """As in Kafka 4.3: it gets its epoch and its assignment, and no rebalance begins."""
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, instance_id, None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    everything = group.heartbeat(join, ORDERS).current.assigned
    group.heartbeat(replace(join, member_id="b", instance_id=None), ORDERS)
    asked = group.heartbeat(Heartbeat("a", 1, owned=everything), ORDERS).current
    assert asked.state == MemberState.UNREVOKED_PARTITIONS
    assert refused(group, Heartbeat("a", 7, owned=everything)) == ErrorCode.FENCED_MEMBER_EPOCH
    again = group.heartbeat(join, ORDERS)
    assert (again.current.member_epoch, again.current.assigned, again.is_told) == (2, asked.assigned, True)
    assert again.current.state == MemberState.STABLE  # who joins has revoked everything
    assert group.heartbeat(join, ORDERS) == again
    assert group.epoch == 2


@pytest.mark.parametrize("is_away", [False, True])
def test_only_the_epoch_before_may_be_repeated(is_away: bool):
    """And that only by a member that is there: a static one that has left for a while joins again."""
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, "i", None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    owned = group.heartbeat(join, ORDERS).current.assigned
    for epoch, other in ((1, "b"), (2, "c")):
        group.heartbeat(replace(join, member_id=other, instance_id=None), ORDERS)
        current = group.heartbeat(Heartbeat("a", epoch, owned=owned), ORDERS).current
        if current.state == MemberState.UNREVOKED_PARTITIONS:
            assert (current.member_epoch, current.previous_member_epoch) == (epoch, epoch)
        owned = current.assigned
        assert group.heartbeat(Heartbeat("a", epoch, owned=owned), ORDERS).current.member_epoch == epoch + 1
    current = group.current["a"]
    assert (current.member_epoch, current.previous_member_epoch) == (3, 2)
    if is_away:
        group.leave("a", "i", LEAVING_FOR_A_WHILE)
        assert refused(group, Heartbeat("a", 2, owned=owned)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(group, Heartbeat("a", 1, owned=owned)) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_static_member_that_leaves_for_a_while_gives_up_what_it_has_to():
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, "i", None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    owned = group.heartbeat(join, ORDERS).current.assigned
    group.heartbeat(replace(join, member_id="b", instance_id=None), ORDERS)
    asked = group.heartbeat(Heartbeat("a", 1, owned=owned), ORDERS).current
    assert group.heartbeat(Heartbeat("b", 2), ORDERS).current.assigned == NO_PARTITIONS
    group.leave("a", "i", LEAVING_FOR_A_WHILE)
    assert group.heartbeat(Heartbeat("b", 2), ORDERS).current.assigned == asked.revoking
    assert group.current["a"].assigned == asked.assigned


def refused(group: ConsumerGroup, beat: Heartbeat) -> ErrorCode:
    before = facts(group)
    with pytest.raises(GroupError) as raised:
        group.heartbeat(beat, ORDERS)
    assert facts(group) == before
    return raised.value.code


def test_heartbeats_that_are_refused():
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, "i", None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    assigned = group.heartbeat(join, ORDERS).current.assigned
    assert refused(group, Heartbeat("b", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(group, Heartbeat("a", 2)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(group, replace(join, member_id="b")) == ErrorCode.UNRELEASED_INSTANCE_ID
    assert refused(group, Heartbeat("b", 1, "i")) == ErrorCode.FENCED_INSTANCE_ID
    assert refused(group, Heartbeat("b", 1, "other")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(group, Heartbeat("a", 1, subscribed_topic_regex="(")) == ErrorCode.INVALID_REGULAR_EXPRESSION
    with pytest.raises(GroupError, match="Instance id other is unknown"):
        group.leave("a", "other", LEAVING)
    group.leave("a", "i", LEAVING_FOR_A_WHILE)
    back = group.heartbeat(replace(join, member_id="b"), ORDERS).current
    assert (back.member_epoch, back.assigned) == (1, assigned)  # nothing was assigned again
    assert list(group.subscriptions) == ["b"]


def test_a_member_in_a_state_of_a_later_release_has_to_rejoin():
    """As in Kafka (KIP-915): the group is read, and nothing is concluded from what is not understood."""
    group = ConsumerGroup("g")
    join = Heartbeat("a", JOINING, None, None, 1000, frozenset({"orders"}), owned=NO_PARTITIONS)
    assigned = group.heartbeat(join, ORDERS).current.assigned
    restored = RestoredGroups()
    for name, key, value in decoded_records({one.key: one.value or b"" for one in changes("g", {}, facts(group))}):
        restored.take(name, key, value | {"state": 99} if "state" in value else value)
    again = restored.finish()["g"]
    assert again.current["a"].state == MemberState.UNKNOWN
    assert again.state == ConsumerGroupState.RECONCILING
    assert refused(again, Heartbeat("a", 1, owned=assigned)) == ErrorCode.FENCED_MEMBER_EPOCH
    rejoined = again.heartbeat(join, ORDERS).current
    assert (rejoined.state, rejoined.assigned) == (MemberState.STABLE, assigned)


@pytest.mark.parametrize("epoch", [-1, 0, 1, 2])
def test_offsets_of_members(epoch: int):
    group = ConsumerGroup("g")
    group.check_commit("", -1, 2)
    group.check_fetch(None, -1)
    group.heartbeat(Heartbeat("a", JOINING, None, None, 1, frozenset({"orders"}), owned=NO_PARTITIONS), ORDERS)
    group.check_fetch(None, -1)
    for check in (lambda member_id: group.check_commit(member_id, epoch, 9), lambda one: group.check_fetch(one, epoch)):
        if epoch == 1:
            check("a")
        else:
            with pytest.raises(GroupError) as raised:
                check("a")
            assert raised.value.code == ErrorCode.STALE_MEMBER_EPOCH
        with pytest.raises(GroupError) as raised:
            check("b")
        assert raised.value.code == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(GroupError) as raised:
        group.check_commit("a", 1, 8)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_records_are_in_an_order_that_kafka_can_read():
    group = ConsumerGroup("g")
    group.heartbeat(Heartbeat("a", JOINING, None, None, 1, frozenset({"orders"}), owned=NO_PARTITIONS), ORDERS)
    after = facts(group)

    def types(records: list[KeyAndValue]) -> list[tuple[int, bool]]:
        return [(int.from_bytes(one.key[:2], "big"), one.value is None) for one in records]

    assert types(changes("g", {}, after)) == [(key, False) for key in (5, 4, 3, 7, 6, 8)]
    group.remove("a")
    assert types(changes("g", after, facts(group)))[:3] == [(8, True), (7, True), (5, True)]
    assert types(changes("g", facts(group), {})) == [(6, True), (4, True), (3, True)]


def test_assignments_of_a_member_without_a_record_are_no_member():
    """A cleaner may have removed them later than the record."""
    group = ConsumerGroup("g")
    group.heartbeat(Heartbeat("a", JOINING, None, None, 1, frozenset({"orders"}), owned=NO_PARTITIONS), ORDERS)
    restored = RestoredGroups()
    for name, key, value in decoded_records({one.key: one.value or b"" for one in changes("g", {}, facts(group))}):
        if name != "ConsumerGroupMemberMetadata":
            restored.take(name, key, value)
    again = restored.finish()["g"]
    assert (again.is_empty, again.current, again.targets) == (True, {}, {})


SUBSCRIBERS = st.dictionaries(
    st.sampled_from("abcde"),
    st.builds(Subscriber, st.none(), st.frozensets(st.sampled_from([b"t", b"u", b"v"]))),
    min_size=1,
)


@given(SUBSCRIBERS, st.integers(1, 7), st.integers(1, 7))
def test_uniform_is_even_and_keeps_what_it_can(members: dict[str, Subscriber], first: int, second: int):
    counts = {b"t": first, b"u": second, b"v": 3}
    assigned = ASSIGNORS["uniform"](members, counts)
    keys = [key for one in assigned.values() for key in one]
    topic_ids = frozenset().union(*(one.topic_ids for one in members.values()))
    assert sorted(keys) == sorted((one, number) for one in topic_ids for number in range(counts[one]))
    for member_id, partitions in assigned.items():
        for topic_id, _ in partitions:
            assert topic_id in members[member_id].topic_ids
            others = [len(assigned[key]) for key, one in members.items() if topic_id in one.topic_ids]
            assert len(partitions) <= min(others) + 1
    again = {key: replace(one, partitions=assigned[key]) for key, one in members.items()}
    assert ASSIGNORS["uniform"](again, counts) == assigned


def test_range_is_consecutive_and_static_members_come_first():
    topics = frozenset({b"t", b"u"})
    members = {"a": Subscriber(None, topics), "b": Subscriber("i", topics), "c": Subscriber(None, frozenset({b"t"}))}
    assigned = ASSIGNORS["range"](members, {b"t": 5, b"u": 2})
    assert {key: sorted(one) for key, one in assigned.items()} == {
        "b": [(b"t", 0), (b"t", 1), (b"u", 0)],
        "a": [(b"t", 2), (b"t", 3), (b"u", 1)],
        "c": [(b"t", 4)],
    }
