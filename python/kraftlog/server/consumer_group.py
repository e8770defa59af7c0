"""A consumer group of the newer protocol (KIP-848): its members, epochs, and the way to an assignment.

It is a function of the heartbeats that arrive: without clocks, files and sockets. The coordinator assigns partitions,
and a member gets one only when no other member has it: a member that is to lose partitions says by its heartbeats that
it no longer owns them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

from kraftlog.coordinator.group_states import preferred_assignor
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.assignors import ASSIGNORS, NO_PARTITIONS, Partitions, Subscriber
from kraftlog.server.group_error import GroupError
from kraftlog.server.topic_regex import InvalidRegexError, check_regex, matching

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
"""Epochs of heartbeats; the last one is of a static member that comes back."""

UNCHANGED = -1
"""A rebalance timeout that a heartbeat leaves as it was."""

_STALE_EPOCHS_SINCE = 9  # first version of OffsetCommit and OffsetFetch that has a member epoch


class MemberState(IntEnum):
    """Progress of a member towards its assignment; the numbers are those of records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        """Return what stands for a number of a later release (KIP-915): its member has to rejoin."""
        return cls.UNKNOWN


class ConsumerGroupState(StrEnum):
    """The state of a group, by Kafka's name."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class SubscribedTopic(NamedTuple):
    """A topic that members subscribe to."""

    topic_id: bytes
    partitions_count: int


Topics = Mapping[str, SubscribedTopic]
"""Topics by name."""


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat of a member; None stands for what it has said before.

    Attributes
    ----------
    member_epoch : int
        Its epoch, or ``JOINING``.
    owned : frozenset of (bytes, int) or None
        Partitions that it consumes.
    """

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it says everything, as after an error, so that its answer must have the assignment."""
        has_subscription = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.member_epoch == JOINING or (
            self.rebalance_timeout_ms != UNCHANGED and has_subscription and self.owned is not None
        )


@dataclass(frozen=True)
class Subscription:
    """What a member has said of itself: its record ``ConsumerGroupMemberMetadata``."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    server_assignor: str | None = None

    def updated(self, beat: Heartbeat) -> Subscription:
        """Return it after a heartbeat."""
        names, regex = beat.subscribed_topic_names, beat.subscribed_topic_regex
        timeout_ms = beat.rebalance_timeout_ms
        return Subscription(
            self.instance_id if beat.instance_id is None else beat.instance_id,
            self.rack_id if beat.rack_id is None else beat.rack_id,
            beat.client_id,
            beat.client_host,
            self.subscribed_topic_names if names is None else names,
            self.subscribed_topic_regex if regex is None else regex or None,
            self.rebalance_timeout_ms if timeout_ms == UNCHANGED else timeout_ms,
            self.server_assignor if beat.server_assignor is None else beat.server_assignor,
        )


@dataclass(frozen=True)
class CurrentAssignment:
    """What a member has: its record ``ConsumerGroupCurrentMemberAssignment``.

    Attributes
    ----------
    member_epoch, previous_member_epoch : int
        The epoch of the assignment that it has come to, and the one before, which it repeats if an answer is lost.
    assigned : frozenset of (bytes, int)
    revoking : frozenset of (bytes, int)
        Partitions that it has to give up, and that it may still consume.
    """

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    revoking: Partitions = NO_PARTITIONS

    @property
    def owned(self) -> Partitions:
        """The partitions that no other member may have."""
        return self.assigned | self.revoking


class Beaten(NamedTuple):
    """The answer to a heartbeat: what the member has, and whether it must learn its partitions."""

    current: CurrentAssignment
    is_told: bool


@dataclass
class ConsumerGroup:
    """A group.

    Attributes
    ----------
    epoch, assignment_epoch : int
        Of the subscriptions and members, and of the target assignment, which follows.
    topics : mapping of str to SubscribedTopic
        The existing topics that members subscribe to.
    subscriptions, current, targets : dict
        By member id.
    regexes : mapping of str to frozenset of str
        The topics that each regular expression of a member matches.
    """

    group_id: str
    epoch: int = 0
    assignment_epoch: int = 0
    topics: Topics = field(default_factory=dict)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    current: dict[str, CurrentAssignment] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    regexes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    protocol_type = "consumer"
    group_type = "consumer"

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group."""
        if not self.subscriptions:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        has_arrived = all(
            one.state == MemberState.STABLE and one.member_epoch == self.assignment_epoch
            for one in self.current.values()
        )
        return ConsumerGroupState.STABLE if has_arrived else ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.subscriptions

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for."""
        return preferred_assignor(one.server_assignor for one in self.subscriptions.values())

    def subscribes(self, topic: str) -> bool:
        """Whether a member subscribes to a topic."""
        return any(topic in self._names(one) for one in self.subscriptions.values())

    # heartbeats

    def heartbeat(self, beat: Heartbeat, topics: Topics) -> Beaten:
        """Take a heartbeat of a member, or of one that joins.

        Parameters
        ----------
        beat : Heartbeat
        topics : mapping of str to SubscribedTopic
            All topics.

        Raises
        ------
        GroupError
            Nothing is changed in this case.
        """
        before = self._joining(beat) if beat.member_epoch == JOINING else self._known(beat)
        subscription = before.subscription.updated(beat)
        if subscription.subscribed_topic_regex != before.subscription.subscribed_topic_regex:
            _check_regex(subscription.subscribed_topic_regex)
        if before.replaced is not None:
            self._forget(before.replaced)
        member_id = beat.member_id
        is_new = member_id not in self.subscriptions and before.replaced is None
        self.subscriptions[member_id], self.current[member_id] = subscription, before.current
        self.targets.setdefault(member_id, before.target)
        self._update(topics, is_changed=is_new or not _subscribes_to_the_same(before.subscription, subscription))
        if self.epoch > self.assignment_epoch:
            self._assign()
        current = self.current[member_id] = self._reconciled(member_id, beat.owned)
        return Beaten(current, beat.is_full or current.assigned != before.current.assigned)

    def _joining(self, beat: Heartbeat) -> _Before:
        """Return the member that joins: a new one, the same once more, or a static one that comes back."""
        static_id = None if beat.instance_id is None else self._static(beat.instance_id)
        if static_id is not None and static_id != beat.member_id:
            if self.current[static_id].member_epoch != LEAVING_FOR_A_WHILE:
                raise GroupError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    beat.member_id,
                    f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the group because "
                    f"the instance id is owned by {static_id} member.",
                )
            current = replace(self.current[static_id], member_epoch=JOINING)
            return _Before(self.subscriptions[static_id], current, self.targets[static_id], static_id)
        if beat.member_id not in self.subscriptions:
            return _Before(Subscription(), CurrentAssignment(), NO_PARTITIONS)
        before = self._member(beat.member_id)
        _check_epoch(before.current, beat)
        if before.current.member_epoch == LEAVING_FOR_A_WHILE:
            return before._replace(current=replace(before.current, member_epoch=JOINING))
        return before

    def _known(self, beat: Heartbeat) -> _Before:
        if beat.instance_id is not None:
            self._check_static(beat.instance_id, beat.member_id)
        before = self._member(beat.member_id)
        _check_epoch(before.current, beat)
        return before

    def _member(self, member_id: str) -> _Before:
        subscription = self.subscriptions.get(member_id)
        if subscription is None:
            raise GroupError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                member_id,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return _Before(subscription, self.current[member_id], self.targets[member_id])

    def _static(self, instance_id: str) -> str | None:
        return next((key for key, one in self.subscriptions.items() if one.instance_id == instance_id), None)

    def _check_static(self, instance_id: str, member_id: str) -> None:
        static_id = self._static(instance_id)
        if static_id is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, member_id, f"Instance id {instance_id} is unknown.")
        if static_id != member_id:
            raise GroupError(
                ErrorCode.FENCED_INSTANCE_ID,
                member_id,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {static_id}.",
            )

    # from subscriptions to assignments

    def _update(self, topics: Topics, *, is_changed: bool) -> None:
        """Begin an epoch if members, subscriptions or their topics have changed."""
        regexes = {one.subscribed_topic_regex for one in self.subscriptions.values()}
        self.regexes = {regex: matching(regex, topics) for regex in sorted(filter(None, regexes))}
        subscribed = {name for one in self.subscriptions.values() for name in self._names(one)}
        found = {name: topics[name] for name in sorted(subscribed & topics.keys())}
        if is_changed or found != self.topics:
            self.topics = found
            self.epoch += 1

    def _names(self, subscription: Subscription) -> frozenset[str]:
        return subscription.subscribed_topic_names | self.regexes.get(
            subscription.subscribed_topic_regex or "", frozenset()
        )

    def _topic_ids(self, member_id: str) -> frozenset[bytes]:
        names = self._names(self.subscriptions[member_id])
        return frozenset(topic.topic_id for name, topic in self.topics.items() if name in names)

    def _assign(self) -> None:
        members = {
            member_id: Subscriber(one.instance_id, self._topic_ids(member_id), self.targets[member_id])
            for member_id, one in self.subscriptions.items()
        }
        counts = {topic.topic_id: topic.partitions_count for topic in self.topics.values()}
        self.targets = ASSIGNORS[self.assignor](members, counts)
        self.assignment_epoch = self.epoch

    def _reconciled(self, member_id: str, owned: Partitions | None) -> CurrentAssignment:
        """Return what a member has after a step towards its target, if it can make one."""
        current = self.current[member_id]
        if current.state == MemberState.STABLE and current.member_epoch == self.assignment_epoch:
            return current
        if current.state == MemberState.UNREVOKED_PARTITIONS and _still_owns(current.revoking, owned):
            return current
        target = self.targets[member_id]
        kept = current.assigned & target
        revoking = current.assigned - target
        if revoking and _still_owns(revoking, owned):
            epoch = current.member_epoch
            return CurrentAssignment(epoch, epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        others = frozenset().union(*(one.owned for key, one in self.current.items() if key != member_id))
        state = MemberState.UNRELEASED_PARTITIONS if target & others else MemberState.STABLE
        return CurrentAssignment(self.assignment_epoch, current.member_epoch, state, target - others)

    # leaving

    def leave(self, member_id: str, instance_id: str | None, member_epoch: int) -> None:
        """Remove a member that leaves; a static one may leave for a while, and keeps its partitions.

        Raises
        ------
        GroupError
        """
        if instance_id is not None:
            self._check_static(instance_id, member_id)
        before = self._member(member_id)
        if member_epoch == LEAVING_FOR_A_WHILE:
            self.current[member_id] = replace(
                before.current, member_epoch=LEAVING_FOR_A_WHILE, revoking=NO_PARTITIONS, state=MemberState.STABLE
            )
        else:
            self.remove(member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, for example one whose session has ended; its partitions are free."""
        self._forget(member_id)
        subscribed = {name for one in self.subscriptions.values() for name in self._names(one)}
        self.topics = {name: topic for name, topic in self.topics.items() if name in subscribed}
        self.regexes = {
            regex: names
            for regex, names in self.regexes.items()
            if any(one.subscribed_topic_regex == regex for one in self.subscriptions.values())
        }
        self.epoch += 1

    def _forget(self, member_id: str) -> None:
        del self.subscriptions[member_id], self.current[member_id], self.targets[member_id]

    # offsets

    def check_commit(self, member_id: str, member_epoch: int, version: int) -> None:
        """Check that a commit is from a member in its epoch, or from outside of an empty group.

        Parameters
        ----------
        member_id : str
        member_epoch : int
        version : int
            Of OffsetCommit.

        Raises
        ------
        GroupError
        """
        if member_epoch < 0 and self.is_empty:
            return
        self._check_member_epoch(member_id, member_epoch, version)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that a fetch of offsets is from a member in its epoch, or says nothing of a member.

        Raises
        ------
        GroupError
        """
        if not member_id and member_epoch < 0:
            return
        self._check_member_epoch(member_id or "", member_epoch, _STALE_EPOCHS_SINCE)

    def _check_member_epoch(self, member_id: str, member_epoch: int, version: int) -> None:
        current = self._member(member_id).current
        if version < _STALE_EPOCHS_SINCE:
            raise GroupError(
                ErrorCode.UNSUPPORTED_VERSION,
                member_id,
                f"OffsetCommit version {_STALE_EPOCHS_SINCE} or above must be used by members of consumer groups",
            )
        if member_epoch != current.member_epoch:
            raise GroupError(
                ErrorCode.STALE_MEMBER_EPOCH,
                member_id,
                f"The received member epoch {member_epoch} does not match the expected member epoch "
                f"{current.member_epoch}.",
            )


class _Before(NamedTuple):
    """A member before its heartbeat; ``replaced`` is the id of the static member that it takes the place of."""

    subscription: Subscription
    current: CurrentAssignment
    target: Partitions
    replaced: str | None = None


def _check_regex(regex: str | None) -> None:
    try:
        check_regex(regex or "")
    except InvalidRegexError as error:
        raise GroupError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            message=f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from error


def _check_epoch(current: CurrentAssignment, beat: Heartbeat) -> None:
    """Check the epoch of a heartbeat: the current one, or the one before if the answer to it may be lost.

    Who joins once more, such as a member that was fenced, has no partitions, and gets its epoch and assignment again.
    """
    if current.state == MemberState.UNKNOWN:
        if beat.member_epoch == JOINING and beat.owned == NO_PARTITIONS:
            return
        raise GroupError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            beat.member_id,
            "The consumer group member is in an unknown state. The member must abandon all its partitions and rejoin.",
        )
    if beat.member_epoch in (JOINING, current.member_epoch):
        return
    is_repeated = (
        beat.member_epoch < current.member_epoch
        and beat.member_epoch == current.previous_member_epoch
        and beat.owned is not None
        and beat.owned <= current.assigned
    )
    if not is_repeated:
        size = "greater" if beat.member_epoch > current.member_epoch else "smaller"
        raise GroupError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            beat.member_id,
            f"The consumer group member has a {size} member epoch ({beat.member_epoch}) than the one known by the "
            f"group coordinator ({current.member_epoch}). The member must abandon all its partitions and rejoin.",
        )


def _subscribes_to_the_same(one: Subscription, other: Subscription) -> bool:
    return (one.subscribed_topic_names, one.subscribed_topic_regex) == (
        other.subscribed_topic_names,
        other.subscribed_topic_regex,
    )


def _still_owns(revoking: Partitions, owned: Partitions | None) -> bool:
    """Whether a member may still consume partitions: it does unless it says otherwise."""
    return owned is None or bool(owned & revoking)
