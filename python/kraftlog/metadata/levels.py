"""The levels of ``metadata.version``, those at which metadata changed, and those that other features depend on."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.codec.metadata_version import LEVELS, NEWEST_LEVEL
from kraftlog.metadata.kafka_names import ELR_VERSION, KRAFT_VERSION

OLDEST_LEVEL = LEVELS["3.3-IV3"]

# levels that Kafka 4 no longer knows, and that no downgrade reaches
_FORMER_LEVELS = {"3.0-IV1": 1, "3.1-IV0": 2, "3.2-IV0": 3, "3.3-IV0": 4, "3.3-IV1": 5, "3.3-IV2": 6}
_NAMES = {level: name for name, level in (_FORMER_LEVELS | LEVELS).items()}

# Kafka's didMetadataChange: metadata of these levels has records or fields that the level below does not have
METADATA_CHANGED = tuple(
    LEVELS[name]
    for name in (
        *("3.3-IV3", "3.4-IV0", "3.5-IV2", "3.6-IV1", "3.6-IV2"),
        *("3.7-IV0", "3.7-IV2", "4.0-IV1", "4.3-IV0", "4.4-IV1", "4.4-IV2"),
    )
)


@dataclass(frozen=True)
class FeatureLevel:
    """A level of a feature other than ``metadata.version``, and levels of ``metadata.version``.

    Attributes
    ----------
    bootstrap : int
        With which a new cluster has the feature at this level.
    depends_on : int
        That the feature needs at the least.
    """

    bootstrap: int = OLDEST_LEVEL
    depends_on: int = OLDEST_LEVEL


FEATURE_LEVELS = {
    ("transaction.version", 1): FeatureLevel(LEVELS["4.0-IV2"]),
    ("transaction.version", 2): FeatureLevel(LEVELS["4.0-IV2"]),
    ("group.version", 1): FeatureLevel(LEVELS["4.0-IV0"]),
    (KRAFT_VERSION, 1): FeatureLevel(LEVELS["3.9-IV0"]),
    (ELR_VERSION, 1): FeatureLevel(LEVELS["4.1-IV0"], LEVELS["4.0-IV1"]),
    ("share.version", 1): FeatureLevel(LEVELS["4.2-IV0"]),
    ("share.version", 2): FeatureLevel(LEVELS["4.4-IV0"]),
    ("streams.version", 1): FeatureLevel(LEVELS["4.2-IV1"]),
}


def level_of(version: str) -> int:
    """Return the level that a name means, also one that is too old for Kafka 4.

    Parameters
    ----------
    version : str
        ``3.6-IV1``, or a release such as ``3.6`` or ``3.6.2``, which means its newest level.

    Raises
    ------
    ValueError
        There is no such level.

    Examples
    --------
    >>> level_of("3.6-IV1"), level_of("3.5"), level_of("3.2"), level_of("3.3")
    (13, 11, 3, 7)
    """
    levels = _FORMER_LEVELS | LEVELS
    if version in levels:
        return levels[version]
    release = ".".join(version.split(".")[:2])
    of_release = [level for name, level in levels.items() if name.partition("-")[0] == release]
    if not of_release:
        raise ValueError(f"metadata.version {version!r} is not known; it is from 3.0-IV1 to {_NAMES[NEWEST_LEVEL]}")
    return max(of_release)


def name_of(level: int) -> str:
    """Return a level's name; its number where it has none."""
    return _NAMES.get(level, str(level))


def is_newer(level: int) -> bool:
    """Return whether a level is above the newest known one: the metadata of such a level is unknown.

    Examples
    --------
    >>> is_newer(NEWEST_LEVEL), is_newer(NEWEST_LEVEL + 1)
    (False, True)
    """
    return level > NEWEST_LEVEL


def is_known_feature(feature: str, level: int) -> bool:
    """Return whether it is known what a level of a feature other than ``metadata.version`` needs.

    Examples
    --------
    >>> is_known_feature("group.version", 1), is_known_feature("group.version", 99), is_known_feature("new", 1)
    (True, False, False)
    """
    return level == 0 or (feature, level) in FEATURE_LEVELS


def metadata_changes(from_level: int, to_level: int) -> list[int]:
    """Return the levels above the lower and up to the higher one at which metadata changed.

    Examples
    --------
    >>> metadata_changes(16, 13)
    [14, 15]
    """
    low, high = sorted((from_level, to_level))
    return [level for level in METADATA_CHANGED if low < level <= high]


def feature_level(feature: str, level: int) -> FeatureLevel:
    """Return what a level of a feature needs; nothing if it is not known."""
    return FEATURE_LEVELS.get((feature, level), FeatureLevel())
