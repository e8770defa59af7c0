"""The types of records of each level of ``metadata.version``, and the versions in which a snapshot writes them."""

from __future__ import annotations

from kraftlog.codec.metadata_version import LEVELS

FIRST_LEVEL = min(LEVELS.values())

# from which level on a type, or a later version of it, is written; without an entry: version 0, at any level
_SINCE: dict[str, tuple[tuple[int, int], ...]] = {
    "RegisterBrokerRecord": (
        (FIRST_LEVEL, 1),
        (LEVELS["3.4-IV0"], 2),
        (LEVELS["3.7-IV2"], 3),
        (LEVELS["4.3-IV0"], 4),
    ),
    "PartitionRecord": ((FIRST_LEVEL, 0), (LEVELS["3.7-IV2"], 1), (LEVELS["4.0-IV1"], 2)),
    "PartitionChangeRecord": ((FIRST_LEVEL, 0), (LEVELS["3.7-IV2"], 1), (LEVELS["4.0-IV1"], 2)),
    "BrokerRegistrationChangeRecord": (
        (FIRST_LEVEL, 1),
        (LEVELS["3.7-IV2"], 2),
        (LEVELS["4.3-IV0"], 3),
    ),
    "RegisterControllerRecord": ((LEVELS["3.7-IV0"], 0),),
    "UserScramCredentialRecord": ((LEVELS["3.5-IV2"], 0),),
    "RemoveUserScramCredentialRecord": ((LEVELS["3.5-IV2"], 0),),
    "DelegationTokenRecord": ((LEVELS["3.6-IV2"], 0),),
    "RemoveDelegationTokenRecord": ((LEVELS["3.6-IV2"], 0),),
    "BeginTransactionRecord": ((LEVELS["3.6-IV1"], 0),),
    "EndTransactionRecord": ((LEVELS["3.6-IV1"], 0),),
    "AbortTransactionRecord": ((LEVELS["3.6-IV1"], 0),),
    "ClearElrRecord": ((LEVELS["4.0-IV1"], 0),),
    "UnregisterControllerRecord": ((LEVELS["4.4-IV2"], 0),),
}
_EVERYWHERE = ((FIRST_LEVEL, 0),)


def record_version(name: str, level: int) -> int | None:
    """Return the version in which a level of ``metadata.version`` writes a type of record; None if it has no such type.

    Parameters
    ----------
    name : str
        Kafka's, for example ``PartitionRecord``.
    level : int
        One that is newer than the newest known counts as that one.

    Examples
    --------
    >>> record_version("PartitionRecord", 17), record_version("RegisterControllerRecord", 14)
    (1, None)
    """
    versions = [version for since, version in _SINCE.get(name, _EVERYWHERE) if since <= level]
    return versions[-1] if versions else None
