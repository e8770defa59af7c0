"""A classic group without sockets: who is in a generation, who leads it, and what each member gets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.group import Group, GroupState, Member
from kraftlog.server.group_error import GroupError
from kraftlog.server.group_records import decoded_records, group_of, group_record

LIMIT, LONG_MS = 30.0, 60_000
Joined = asyncio.Task[dict[str, Any]]


class Members:
    """Members of a group, by the name with which they join."""

    def __init__(self) -> None:
        self.group = Group("g")
        self.members: dict[str, Member] = {}

    def join(self, name: str, member_id: str | None = None, *protocols: str, **others: Any) -> Joined:
        """Begin to join; a member that is known joins again."""
        known = self.members.get(name)
        fields = {"group_instance_id": None, "session_timeout_ms": LONG_MS, "rebalance_timeout_ms": LONG_MS} | others
        member_id = (known.member_id if known else "") if member_id is None else member_id
        metadata = {one: b"of " + one.encode() for one in protocols or ("range",)}
        member = Member(member_id=member_id, client_id=name, client_host="/h", protocols=metadata, **fields)
        self.members.setdefault(name, member)
        return asyncio.ensure_future(self.group.join(member, "consumer", requires_id=False))

    async def sync(self, name: str) -> bytes:
        one = self.members[name]
        return await self.group.sync(one.member_id, one.group_instance_id, self.group.generation, {})


def run(test: Callable[[Members], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        members = Members()
        try:
            await asyncio.wait_for(test(members), LIMIT)
        finally:
            members.group.close()

    asyncio.run(within())


async def turns() -> None:
    """Let all tasks go on that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def refused(joined: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> ErrorCode:
    with pytest.raises(GroupError) as raised:
        await joined
    return raised.value.code


async def together(members: Members, *names: str, **others: Any) -> None:
    """Let all join in one generation: the first ones wait for the last."""
    await members.join(names[0], **others)
    joins = [members.join(name, **others) for name in names[1:]]
    await turns()
    await asyncio.gather(members.join(names[0], **others), *joins)


def test_the_protocol_is_one_that_all_have_and_most_prefer():
    async def vote(members: Members) -> None:
        await members.join("one", None, "own", "sticky", "range")
        joins = [members.join("two", None, "range", "sticky"), members.join("three", None, "sticky", "range")]
        await turns()
        joins.append(members.join("one", None, "own", "sticky", "range"))
        answers = await asyncio.gather(*joins)
        assert {one["protocol_name"] for one in answers} == {"sticky"}
        (leading,) = (one for one in answers if one["members"])
        assert {one["metadata"] for one in leading["members"]} == {b"of sticky"}

    run(vote)


def test_a_rebalance_lasts_as_long_as_the_slowest_member_may_take():
    async def wait(members: Members) -> None:
        await together(members, "slow", "quick")
        members.members["quick"].rebalance_timeout_ms = 1
        joins = [members.join("new", rebalance_timeout_ms=1)]
        await asyncio.sleep(0.05)
        assert len(members.group.members) == 3
        joins += [members.join("slow"), members.join("quick")]
        assert {one["generation_id"] for one in await asyncio.gather(*joins)} == {3}

    run(wait)


def test_a_static_member_that_is_away_stays_and_does_not_lead():
    async def away(members: Members) -> None:
        await members.join("static", group_instance_id="i", rebalance_timeout_ms=20)
        answer = await members.join("new", rebalance_timeout_ms=20)
        assert answer["leader"] == members.members["new"].member_id == members.group.leader
        assert [one["group_instance_id"] for one in answer["members"]] == ["i", None]

    run(away)


def test_a_rebalance_goes_on_while_only_static_members_are_left_that_are_away():
    """Nobody could lead its generation: who comes then would wait for assignments."""

    async def away(members: Members) -> None:
        static = {"group_instance_id": "i", "rebalance_timeout_ms": 1}
        await members.join("dynamic", rebalance_timeout_ms=1)
        await asyncio.gather(members.join("static", **static), members.join("dynamic", rebalance_timeout_ms=1))
        members.group.leave(members.members["dynamic"].member_id, None)
        await asyncio.sleep(0.05)
        assert (members.group.state, members.group.generation) == (GroupState.PREPARING_REBALANCE, 2)
        answer = await members.join("static", "", **static)
        assert (answer["generation_id"], answer["leader"]) == (3, members.members["static"].member_id)

    run(away)


def test_a_member_that_waits_for_its_assignment_is_told_of_the_next_rebalance():
    async def interrupt(members: Members) -> None:
        await together(members, "leader", "follower")
        waits = asyncio.ensure_future(members.sync("follower"))
        await turns()
        new = members.join("new")
        assert await refused(waits) == ErrorCode.REBALANCE_IN_PROGRESS
        assert await refused(members.sync("leader")) == ErrorCode.REBALANCE_IN_PROGRESS
        assert not new.done()
        new.cancel()

    run(interrupt)


def test_members_that_have_joined_do_not_wait_for_one_that_leaves():
    async def leave(members: Members) -> None:
        await members.join("one")
        joins = [members.join("two"), members.join("three")]
        await turns()
        members.group.leave(members.members["two"].member_id, None)
        assert await refused(joins[0]) == ErrorCode.UNKNOWN_MEMBER_ID
        members.group.leave(members.members["one"].member_id, None)
        answer = await joins[1]
        assert (answer["leader"], len(answer["members"])) == (members.members["three"].member_id, 1)

    run(leave)


def test_the_process_before_is_told_that_its_static_member_was_taken_over():
    async def take_over(members: Members) -> None:
        await members.join("other")
        before = members.join("static", group_instance_id="i")
        await turns()
        old = members.members["static"].member_id
        after = members.join("static", "", group_instance_id="i")
        assert await refused(before) == ErrorCode.FENCED_INSTANCE_ID
        assert await refused(members.join("static", old, group_instance_id="i")) == ErrorCode.FENCED_INSTANCE_ID
        with pytest.raises(GroupError) as raised:
            members.group.leave(old, "i")
        assert raised.value.code == ErrorCode.FENCED_INSTANCE_ID
        answers = await asyncio.gather(after, members.join("other"))
        assert [one["generation_id"] for one in answers] == [2, 2]
        assert len(members.group.members) == 2

    run(take_over)


def test_sessions_are_extended_and_rest_while_a_member_waits():
    async def touch(members: Members) -> None:
        await together(members, "one", "two")
        one, group = members.members["one"], members.group
        await group.sync(str(group.leader), None, group.generation, {})

        def extends(request: Callable[[str, None, int], Any]) -> bool:
            before = one.expiry
            request(one.member_id, None, group.generation)
            assert before is not None
            assert one.expiry is not None
            return before.cancelled() and not one.expiry.cancelled() and one.expiry.when() > before.when()

        assert extends(group.heartbeat)
        assert extends(group.may_commit)
        members.join("new")
        members.join("one")
        await turns()
        assert one.expiry is not None
        assert one.expiry.cancelled()

    run(touch)


SHORT_MS = 30


def test_a_member_that_waits_for_assignments_does_not_lose_its_place():
    """Also when a heartbeat comes meanwhile; afterwards its session begins."""

    async def wait(members: Members) -> None:
        await together(members, "leader", "follower")
        follower = members.members["follower"]
        follower.session_timeout_ms = SHORT_MS
        waits = asyncio.ensure_future(members.sync("follower"))
        await turns()
        members.group.heartbeat(follower.member_id, None, members.group.generation)
        await asyncio.sleep(2 * SHORT_MS / 1000)
        leader = members.members["leader"].member_id
        await members.group.sync(leader, None, members.group.generation, {follower.member_id: b"its"})
        assert await waits == b"its"
        await asyncio.sleep(2 * SHORT_MS / 1000)
        assert list(members.group.members) == [leader]

    run(wait)


def test_a_member_that_waits_for_others_does_not_lose_its_place():
    """A client may send heartbeats while its request to join waits."""

    async def wait(members: Members) -> None:
        await members.join("one")
        new = members.join("new", session_timeout_ms=SHORT_MS)
        await turns()
        one = members.members["new"]
        with pytest.raises(GroupError):
            members.group.heartbeat(one.member_id, None, members.group.generation)
        await asyncio.sleep(2 * SHORT_MS / 1000)
        assert not new.done()
        answers = await asyncio.gather(members.join("one"), new)
        assert [one["generation_id"] for one in answers] == [2, 2]

    run(wait)


def test_a_member_that_is_told_of_a_rebalance_has_to_join_within_its_session():
    async def silent(members: Members) -> None:
        await together(members, "leader", "follower")
        members.members["follower"].session_timeout_ms = SHORT_MS
        waits = asyncio.ensure_future(members.sync("follower"))
        await turns()
        joins = [members.join("new"), members.join("leader")]
        assert await refused(waits) == ErrorCode.REBALANCE_IN_PROGRESS
        answers = await asyncio.gather(*joins)
        assert {len(one["members"]) for one in answers} == {0, 2}

    run(silent)


def test_members_that_do_not_ask_for_their_assignments_in_time_are_removed():
    """A session alone does not end: their heartbeats may go on."""

    async def unsynced(members: Members) -> None:
        await together(members, "leader", "synced", "silent", rebalance_timeout_ms=SHORT_MS)
        group, leader = members.group, members.members["leader"].member_id
        waits = asyncio.ensure_future(members.sync("synced"))
        await turns()
        await group.sync(leader, None, group.generation, {})
        await waits
        while group.state == GroupState.STABLE:
            await asyncio.sleep(0.001)
        assert group.state == GroupState.PREPARING_REBALANCE
        assert group.members.keys() == {leader, members.members["synced"].member_id}

    run(unsynced)


def test_a_group_whose_members_all_ask_in_time_stays():
    async def synced(members: Members) -> None:
        await members.join("one", rebalance_timeout_ms=SHORT_MS)
        await members.group.sync(str(members.group.leader), None, 1, {})
        await asyncio.sleep(2 * SHORT_MS / 1000)
        assert (members.group.state, members.group.generation) == (GroupState.STABLE, 1)

    run(synced)


def test_of_two_requests_for_an_assignment_the_later_one_is_answered():
    async def twice(members: Members) -> None:
        await together(members, "leader", "follower")
        first, second = (asyncio.ensure_future(members.sync("follower")) for _ in range(2))
        await turns()
        assert first.cancelled()
        await members.group.sync(members.members["leader"].member_id, None, members.group.generation, {})
        assert await second == b""

    run(twice)


def test_a_static_member_that_starts_again_before_the_assignments_begins_a_rebalance():
    """The leader would assign its partitions to its former id, and nobody would read them."""

    async def start_again(members: Members) -> None:
        static = {"group_instance_id": "i"}
        await members.join("leader")
        await asyncio.gather(members.join("static", **static), members.join("leader"))
        again = members.join("static", "", **static)
        await turns()
        assert members.group.state == GroupState.PREPARING_REBALANCE
        assert await refused(members.sync("leader")) == ErrorCode.REBALANCE_IN_PROGRESS
        answers = await asyncio.gather(again, members.join("leader"))
        assert [one["generation_id"] for one in answers] == [3, 3]

    run(start_again)


@pytest.mark.parametrize(
    ("protocols", "begins"), [(("range",), False), (("range", "sticky"), False), (("sticky",), True)]
)
def test_a_static_member_that_starts_again_with_other_metadata(protocols: tuple[str, ...], begins: bool):
    """Its metadata are stored; partitions are assigned again if the protocol is another one (KIP-345)."""

    async def start_again(members: Members) -> None:
        group = members.group
        stored = list[dict[str, Any]]()
        await members.join("static", None, "range", "sticky", group_instance_id="i")
        await group.sync(str(group.leader), "i", 1, {str(group.leader): b"its"})
        group.on_change = lambda _: stored.append({**next(iter(group.members.values())).protocols})
        answer = await members.join("static", "", *protocols, group_instance_id="i")
        assert (answer["generation_id"], answer["skip_assignment"]) == ((2, False) if begins else (1, True))
        assert stored == ([] if begins else [{one: b"of " + one.encode() for one in protocols}])

    run(start_again)


def new_member(session_timeout_ms: int = LONG_MS) -> Member:
    return Member("", None, "new", "/h", session_timeout_ms, LONG_MS, {"range": b""})


async def given_id(members: Members, session_timeout_ms: int = LONG_MS) -> str:
    """Ask for an id to join with (KIP-394)."""
    with pytest.raises(GroupError) as raised:
        await members.group.join(new_member(session_timeout_ms), "consumer", requires_id=True)
    assert raised.value.code == ErrorCode.MEMBER_ID_REQUIRED
    return raised.value.member_id


@pytest.mark.parametrize("how", ["joins", "leaves", "is gone"])
def test_a_rebalance_waits_for_those_who_were_given_an_id(how: str):
    async def wait(members: Members) -> None:
        await members.join("one")
        await members.sync("one")
        member_id = await given_id(members, SHORT_MS)
        again = members.join("one")
        await turns()
        assert not again.done()
        if how == "joins":
            joined = members.join("new", member_id)
            assert len(members.group.members) == 1
            await joined
        elif how == "leaves":
            assert members.group.leave(member_id, None) == member_id
        answer = await again
        assert (answer["generation_id"], len(answer["members"])) == (2, 2 if how == "joins" else 1)
        assert members.group._pending == {}

    run(wait)


def test_a_group_is_not_empty_while_somebody_is_about_to_join():
    async def wait(members: Members) -> None:
        assert members.group.is_empty
        await given_id(members, SHORT_MS)
        assert not members.group.is_empty
        await asyncio.sleep(2 * SHORT_MS / 1000)
        assert members.group.is_empty

    run(wait)


def test_a_leader_that_joins_again_makes_the_group_assign_again():
    async def again(members: Members) -> None:
        await members.join("one")
        await members.group.sync(str(members.group.leader), None, 1, {})
        assert (await members.join("one"))["generation_id"] == 2
        assert members.group.state == GroupState.COMPLETING_REBALANCE

    run(again)


def test_an_id_that_a_client_gives_back_is_unknown():
    async def give_back(members: Members) -> None:
        member = Member("", None, "c", "/h", LONG_MS, LONG_MS, {"range": b""})
        with pytest.raises(GroupError) as raised:
            await members.group.join(member, "consumer", requires_id=True)
        assert raised.value.code == ErrorCode.MEMBER_ID_REQUIRED
        assert members.group.leave(raised.value.member_id, None) == raised.value.member_id
        assert await refused(members.join("c", raised.value.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID
        static = Member("", "i", "c", "/h", LONG_MS, LONG_MS, {"range": b""})
        assert (await members.group.join(static, "consumer", requires_id=True))["leader"] == static.member_id

    run(give_back)


@pytest.mark.parametrize("generation", [0, 2])
def test_requests_of_another_generation(generation: int):
    async def ask(members: Members) -> None:
        await members.join("one")
        group, member_id = members.group, members.members["one"].member_id
        for request in (group.heartbeat, group.may_commit):
            with pytest.raises(GroupError) as raised:
                request(member_id, None, generation)
            assert raised.value.code == ErrorCode.ILLEGAL_GENERATION

    run(ask)


def test_a_group_from_its_record_is_the_one_before():
    async def read(members: Members) -> None:
        await members.join("one", group_instance_id="i", session_timeout_ms=20_000, rebalance_timeout_ms=30_000)
        group = members.group
        await group.sync(str(group.leader), "i", 1, {str(group.leader): b"all"})
        record = group_record(group, 1)
        ((_, key, value),) = decoded_records({record.key: record.value or b""})
        again = group_of(key["group"], value)
        (one,), (other,) = group.members.values(), again.members.values()
        fields = ("member_id", "group_instance_id", "client_id", "client_host", "protocols", "assignment")
        for field in (*fields, "session_timeout_ms", "rebalance_timeout_ms"):
            assert getattr(one, field) == getattr(other, field)
        for field in ("group_id", "state", "generation", "protocol_type", "protocol", "leader"):
            assert getattr(group, field) == getattr(again, field)
        value["members"][0]["rebalance_timeout"] = -1  # of a record of version 0
        (older,) = group_of("g", value).members.values()
        assert older.rebalance_timeout_ms == 20_000

    run(read)
