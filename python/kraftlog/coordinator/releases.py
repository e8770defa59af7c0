"""The records of the internal topics and of the metadata log that each release of Kafka reads.

The rows of 3.3 to 4.4 are from the classes of these releases: the lowest and the highest version and the tagged fields
of each message, and the types that their serdes take. The rows of 3.0 to 3.2, and of the patch releases that KIP-915
names (3.4.1 was published; 3.0.3, 3.1.3, 3.2.4 and 3.3.3 were not), are from KIP-915. Other patch releases read the
same as the first release of their line.

Groups of the new protocol (types 3 to 8) were in early access in 3.7 to 3.9: the default group coordinator of these
releases skips them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from kraftlog.messages.definition import Versions


class Release(NamedTuple):
    """A release of Kafka."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        """Return the name, for example ``3.4.1``."""
        return ".".join(map(str, self))


class Tag(NamedTuple):
    """A tagged field that came without a new version: its number, the structs it lies in, its name."""

    tag: int
    field: str
    since: Release
    loss: str


@dataclass(frozen=True)
class Reader:
    """How a release reads the records of one type.

    Attributes
    ----------
    name : str
        The type's, without Key and Value.
    versions : Versions
        Versions of the value.
    is_other_layout : bool
        The release has other fields in the same version: it misreads records of later releases.
    """

    name: str
    versions: Versions
    is_other_layout: bool


_OLDEST, _NEWEST = Release(3, 0), Release(4, 4)
_KIP_915 = {Release(3, 0): 3, Release(3, 1): 3, Release(3, 2): 4, Release(3, 3): 3, Release(3, 4): 1}
_KIP_915_EVERYWHERE = Release(3, 5)
_KIP_915_MARK = "KIP-915"

# api key, name, versions of the value, the first release that reads these, the first one that no longer does
_READERS = {
    "consumer_offsets": """
         0 OffsetCommit                            0-3 3.0     KIP-915
         0 OffsetCommit                            0-4 KIP-915 4.1
         0 OffsetCommit                            0   4.1     -
         1 OffsetCommit                            0-3 3.0     KIP-915
         1 OffsetCommit                            0-4 KIP-915 -
         2 GroupMetadata                           0-3 3.0     KIP-915
         2 GroupMetadata                           0-4 KIP-915 -
         3 ConsumerGroupMetadata                   0   4.0     -
         4 ConsumerGroupPartitionMetadata          0   4.0     -
         5 ConsumerGroupMemberMetadata             0   4.0     -
         6 ConsumerGroupTargetAssignmentMetadata   0   4.0     -
         7 ConsumerGroupTargetAssignmentMember     0   4.0     -
         8 ConsumerGroupCurrentMemberAssignment    0   4.0     -
         9 ShareGroupPartitionMetadata             0   4.0     4.1
        10 ShareGroupMemberMetadata                0   4.0     -
        11 ShareGroupMetadata                      0   4.0     4.1 other_layout
        11 ShareGroupMetadata                      0   4.1     -
        12 ShareGroupTargetAssignmentMetadata      0   4.0     -
        13 ShareGroupTargetAssignmentMember        0   4.0     -
        14 ShareGroupCurrentMemberAssignment       0   4.0     -
        15 ShareGroupStatePartitionMetadata        0   4.0     4.1 other_layout
        15 ShareGroupStatePartitionMetadata        0   4.1     -
        16 ConsumerGroupRegularExpression          0   4.0     -
        17 StreamsGroupMetadata                    0   4.1     -
        19 StreamsGroupMemberMetadata              0   4.1     -
        20 StreamsGroupTargetAssignmentMetadata    0   4.1     -
        21 StreamsGroupTargetAssignmentMember      0   4.1     -
        22 StreamsGroupCurrentMemberAssignment     0   4.1     -
        23 StreamsGroupTopology                    0   4.1     -
    """,
    "transaction_state": """
         0 TransactionLog                          0   3.0     KIP-915
         0 TransactionLog                          0-1 KIP-915 -
    """,
    "share_group_state": """
         0 ShareSnapshot                           0   4.0     4.1 other_layout
         0 ShareSnapshot                           0   4.1     -
         1 ShareUpdate                             0   4.0     4.1 other_layout
         1 ShareUpdate                             0   4.1     -
    """,
    "metadata": """
         0 RegisterBrokerRecord                    0-1 3.3     3.4
         0 RegisterBrokerRecord                    0-2 3.4     3.7
         0 RegisterBrokerRecord                    0-3 3.7     4.3
         0 RegisterBrokerRecord                    0-4 4.3     -
         1 UnregisterBrokerRecord                  0   3.3     -
         2 TopicRecord                             0   3.3     -
         3 PartitionRecord                         0   3.3     3.7
         3 PartitionRecord                         0-2 3.7     -
         4 ConfigRecord                            0   3.3     -
         5 PartitionChangeRecord                   0   3.3     3.7
         5 PartitionChangeRecord                   0-2 3.7     -
         7 FenceBrokerRecord                       0   3.3     -
         8 UnfenceBrokerRecord                     0   3.3     -
         9 RemoveTopicRecord                       0   3.3     -
        10 DelegationTokenRecord                   0   3.3     -
        11 UserScramCredentialRecord               0   3.3     -
        12 FeatureLevelRecord                      0   3.3     -
        14 ClientQuotaRecord                       0   3.3     -
        15 ProducerIdsRecord                       0   3.3     -
        17 BrokerRegistrationChangeRecord          0-1 3.3     3.7
        17 BrokerRegistrationChangeRecord          0-2 3.7     4.3
        17 BrokerRegistrationChangeRecord          0-3 4.3     -
        18 AccessControlEntryRecord                0   3.3     -
        19 RemoveAccessControlEntryRecord          0   3.3     -
        20 NoOpRecord                              0   3.3     -
        21 ZkMigrationStateRecord                  0   3.4     -
        22 RemoveUserScramCredentialRecord         0   3.5     -
        23 BeginTransactionRecord                  0   3.6     -
        24 EndTransactionRecord                    0   3.6     -
        25 AbortTransactionRecord                  0   3.6     -
        26 RemoveDelegationTokenRecord             0   3.6     -
        27 RegisterControllerRecord                0   3.7     -
        28 ClearElrRecord                          0   4.0     -
        29 UnregisterControllerRecord              0   4.4     -
    """,
}

_ENDED_TWICE = "a producer that repeats the end of its transaction is fenced"
_REVOCATION = "an offset commit of a member whose epoch is behind is refused"
# api key, tag, field, the first release that knows it, what happens without it
_TAGS = {
    "consumer_offsets": f"""
         1 0 topicId                     4.1 a topic that is made anew under its name takes over the offset
         3 0 metadataHash                4.1 it is computed again
         5 0 classicMemberMetadata       3.8 a member that uses the classic protocol is taken for one of the new one
         6 0 assignmentTimestamp         4.3 the next assignment need not wait
         8 0 assignedPartitions.assignmentEpochs 4.3 {_REVOCATION}
         8 0 partitionsPendingRevocation.assignmentEpochs 4.3 {_REVOCATION}
        12 0 assignmentTimestamp         4.3 the next assignment need not wait
        17 0 validatedTopologyEpoch      4.2 the topology is validated again
        17 1 lastAssignmentConfigs       4.2 the group is assigned anew
        17 2 storedDescriptionTopologyEpoch 4.4 the description of the topology is asked for again
        17 3 failedDescriptionTopologyEpoch 4.4 a description of the topology that was refused is asked for again
        20 0 assignmentTimestamp         4.3 the next assignment need not wait
        22 0 activeTasks.assignmentEpochs                   4.2 {_REVOCATION}
        22 0 standbyTasks.assignmentEpochs                  4.2 {_REVOCATION}
        22 0 warmupTasks.assignmentEpochs                   4.2 {_REVOCATION}
        22 0 activeTasksPendingRevocation.assignmentEpochs  4.2 {_REVOCATION}
        22 0 standbyTasksPendingRevocation.assignmentEpochs 4.2 {_REVOCATION}
        22 0 warmupTasksPendingRevocation.assignmentEpochs  4.2 {_REVOCATION}
    """,
    "transaction_state": f"""
         0 0 previousProducerId          4.0 {_ENDED_TWICE}
         0 1 nextProducerId              4.0 {_ENDED_TWICE}
         0 2 clientTransactionVersion    4.0 an open transaction is ended as one of version 0
         0 3 nextProducerEpoch           4.1 {_ENDED_TWICE}
    """,
    "share_group_state": """
         0 0 deliveryCompleteCount       4.2 the group's lag is not known
         1 0 deliveryCompleteCount       4.2 the group's lag is not known
    """,
    "metadata": "",
}

_OTHER_LAYOUT = "other_layout"
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+)|-IV\d+)?", re.ASCII)


def release_of(name: str) -> Release:
    """Return a release by its name, or the first one with a metadata.version.

    Parameters
    ----------
    name : str
        ``3.4.1``; ``3.4``, which is 3.4.0, the release of its line that reads least; or ``3.6-IV1``.

    Raises
    ------
    ValueError
        For a release other than 3.0 to 4.4.

    Examples
    --------
    >>> str(release_of("3.4")), str(release_of("3.6-IV1"))
    ('3.4.0', '3.6.0')
    """
    match = _RELEASE.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is neither a release such as 3.4.1 nor a metadata.version such as 3.6-IV1")
    release = Release(int(match[1]), int(match[2]), int(match[3] or 0))
    if not _OLDEST <= release < (_NEWEST.major, _NEWEST.minor + 1):
        raise ValueError(f"release {name} is unknown here; known releases are {_OLDEST} to {_NEWEST}")
    return release


def skips_unknown_types(release: Release) -> bool:
    """Whether a coordinator skips a record of an unknown type (KIP-915), or fails to load."""
    patch = _KIP_915.get(Release(release.major, release.minor))
    return release >= _KIP_915_EVERYWHERE or (patch is not None and release.patch >= patch)


def readers(format_name: str, release: Release) -> dict[int, Reader]:
    """Return how a release reads each type of a log's records, by api key.

    Parameters
    ----------
    format_name : str
        One of ``FORMATS``.
    release : Release
    """
    return {
        api_key: reader
        for api_key, reader, since, before in _parsed_readers(format_name)
        if _is_at_least(release, since) and not (before != "-" and _is_at_least(release, before))
    }


def name_of_type(format_name: str, api_key: int) -> str | None:
    """Return the name of a type in any release."""
    return next((reader.name for key, reader, _, _ in _parsed_readers(format_name) if key == api_key), None)


@cache
def tags(format_name: str) -> dict[int, tuple[Tag, ...]]:
    """Return the tagged fields that came without a new version, by api key."""
    by_api_key: dict[int, tuple[Tag, ...]] = {}
    for line in _lines(_TAGS[format_name]):
        api_key, tag, field, since, loss = line.split(maxsplit=4)
        tag_of_release = Tag(int(tag), field, release_of(since), loss)
        by_api_key[int(api_key)] = (*by_api_key.get(int(api_key), ()), tag_of_release)
    return by_api_key


FORMATS = tuple(_READERS)
NEWEST_RELEASE = f"{_NEWEST.major}.{_NEWEST.minor}"


def _is_at_least(release: Release, bound: str) -> bool:
    return skips_unknown_types(release) if bound == _KIP_915_MARK else release >= release_of(bound)


@cache
def _parsed_readers(format_name: str) -> tuple[tuple[int, Reader, str, str], ...]:
    return tuple(_parse_readers(_READERS[format_name]))


def _parse_readers(text: str) -> Iterator[tuple[int, Reader, str, str]]:
    for line in _lines(text):
        api_key, name, versions, since, before, *more = line.split()
        first, _, last = versions.partition("-")
        reader = Reader(name, Versions(int(first), int(last or first)), _OTHER_LAYOUT in more)
        yield int(api_key), reader, since, before


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
