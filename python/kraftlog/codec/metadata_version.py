"""Kafka's ``metadata.version``: its levels by name, and their features."""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
# of levels 7 and up; what is below has no KRaft in production
_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
_FIRST_LEVEL = 7
LEVELS = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}
NEWEST_LEVEL = max(LEVELS.values())
FIRST_WITH_TRANSACTIONS = LEVELS["3.6-IV1"]


def metadata_version_level(version: int | str | None) -> int:
    """Return the feature level of a metadata version.

    Parameters
    ----------
    version : int, str or None
        A level; a name such as ``3.6-IV1``; a release such as ``3.6`` or ``3.6.2``, which means its newest version;
        None for the newest version.

    Raises
    ------
    ValueError
        When there is no such version.

    Examples
    --------
    >>> metadata_version_level("3.6-IV1"), metadata_version_level("3.5"), metadata_version_level(None)
    (13, 11, 33)
    """
    if version is None:
        return NEWEST_LEVEL
    if isinstance(version, int):
        if version in LEVELS.values():
            return version
        raise ValueError(f"metadata.version {version} is not between {_FIRST_LEVEL} and {NEWEST_LEVEL}")
    if version in LEVELS:
        return LEVELS[version]
    release = ".".join(version.split(".")[:2])
    levels = [level for name, level in LEVELS.items() if name.split("-")[0] == release]
    if not levels:
        raise ValueError(f"metadata.version {version!r} is not known; the newest is {_NAMES[-1]}")
    return levels[-1]


def metadata_version_name(level: int) -> str:
    """Return the name of a level, such as ``3.6-IV1``, or its number."""
    return next((name for name, known in LEVELS.items() if known == level), str(level))


def has_metadata_transactions(level: int) -> bool:
    """Whether a level allows transaction markers in the metadata log (KIP-868)."""
    return level >= FIRST_WITH_TRANSACTIONS
