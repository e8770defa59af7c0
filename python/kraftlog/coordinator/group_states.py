"""The state of a group in a coordinator that has just loaded the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

EMPTY, STABLE = "Empty", "Stable"
ASSIGNING, RECONCILING, NOT_READY = "Assigning", "Reconciling", "NotReady"

STABLE_MEMBER = "STABLE"
# the same number means something else in a streams group
_MEMBER_STATES = {0: STABLE_MEMBER, 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 127: "UNKNOWN"}
_STREAMS_MEMBER_STATES = {1: STABLE_MEMBER, 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS", 127: "UNKNOWN"}

DEFAULT_CONSUMER_ASSIGNOR = "uniform"
DEFAULT_SHARE_ASSIGNOR = "simple"

MemberProgress = tuple[int, str]
"""The epoch of a member, and the name of its state."""


def classic_state(members: int) -> str:
    """Return the state of a classic or share group: a rebalance in progress is not in the log."""
    return STABLE if members else EMPTY


def reconciled_state(group_epoch: int, target_epoch: int, members: Sequence[MemberProgress]) -> str:
    """Return the state of a consumer group, as ``ConsumerGroup.maybeUpdateGroupState`` in Kafka."""
    if not members:
        return EMPTY
    if group_epoch > target_epoch:
        return ASSIGNING
    are_reconciled = all(epoch == target_epoch and state == STABLE_MEMBER for epoch, state in members)
    return STABLE if are_reconciled else RECONCILING


def streams_state(
    group_epoch: int,
    target_epoch: int,
    members: Sequence[MemberProgress],
    topology_epoch: int | None,
    validated_topology_epoch: int,
) -> str:
    """Return the state of a streams group, as ``StreamsGroup.maybeUpdateGroupState`` in Kafka."""
    if members and topology_epoch != validated_topology_epoch:
        return NOT_READY
    return reconciled_state(group_epoch, target_epoch, members)


def member_state(state: int | None, *, is_streams: bool) -> str:
    """Return the name of a member's state; the number of an unknown state.

    A member without an assignment has no state yet, and is stable.
    """
    names = _STREAMS_MEMBER_STATES if is_streams else _MEMBER_STATES
    return STABLE_MEMBER if state is None else names.get(state, f"UNKNOWN({state})")


def preferred_assignor(wished: Iterable[str | None]) -> str:
    """Return the assignor that most members of a consumer group ask for.

    If none asks for one it is the broker's default, which is not in the log; this returns Kafka's default.
    """
    votes = Counter(name for name in wished if name)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else DEFAULT_CONSUMER_ASSIGNOR
