"""Which partitions a job reads: ``subscribe``, ``subscribePattern`` and ``assign``, as in Spark's Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kraftlog.layout.discover import Discovery
from kraftlog.topics import INTERNAL_TOPICS

# A consumer that subscribes by a pattern does not get internal topics.

_WAYS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True)
class Selection:
    """Topics by name, by a pattern, or single partitions; at most one of these is set.

    Attributes
    ----------
    topics : tuple of str, optional
    pattern : str, optional
        The whole name of a topic must match it.
    partitions : frozenset of tuple of str and int, optional
    """

    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    partitions: frozenset[tuple[str, int]] | None = None

    @property
    def is_all(self) -> bool:
        """Whether every file is read, including files outside of partition folders."""
        return self.topics is None and self.pattern is None and self.partitions is None

    def wants(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition is read."""
        if self.topics is not None:
            return topic in self.topics
        if self.partitions is not None:
            return (topic, partition) in self.partitions
        if self.pattern is not None:
            return topic is not None and topic not in INTERNAL_TOPICS and bool(re.fullmatch(self.pattern, topic))
        return True

    def of(self, found: Discovery) -> Discovery:
        """Return the selected files among those that were listed.

        Raises
        ------
        ValueError
            When a named topic or partition does not exist.
        """
        if self.is_all:
            return found
        there = {(segment.topic, segment.partition) for segment in found.segments}
        there |= {(folder.topic, folder.partition) for folder in found.unread if folder.is_fault}  # planning reports it
        there |= set(found.not_wanted)
        missing = sorted({f"topic {topic}" for topic in self.topics or () if topic not in {name for name, _ in there}})
        missing += sorted(f"partition {topic}-{number}" for topic, number in (self.partitions or frozenset()) - there)
        if missing:
            names = ", ".join(sorted(f"{topic}-{number}" for topic, number in there))
            raise ValueError(f"no {', no '.join(missing)}; there are {names}")
        return found.only(self.wants)


def parse_selection(given: Mapping[str, str]) -> Selection:
    """Parse the options, whose names are in lower case.

    Raises
    ------
    ValueError
        When more than one is set, or one is invalid.
    """
    named = [way for way in _WAYS if way.lower() in given]
    if len(named) > 1:
        raise ValueError(f"options {' and '.join(named)} exclude each other; give one of them")
    if not named:
        return Selection()
    text = given[named[0].lower()]
    if named[0] == "subscribe":
        topics = tuple(word.strip() for word in text.split(",") if word.strip())
        if not topics:
            raise ValueError("option subscribe names no topic")
        return Selection(topics=topics)
    if named[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"option subscribePattern {text!r} is not a regular expression: {error}") from None
        return Selection(pattern=text)
    return Selection(partitions=_assigned(text))


def _assigned(text: str) -> frozenset[tuple[str, int]]:
    try:
        topics = json.loads(text)
        pairs = frozenset((topic, number) for topic, numbers in topics.items() for number in numbers)
    except (ValueError, AttributeError, TypeError):
        pairs = frozenset()
    if not pairs or any(type(number) is not int for _, number in pairs):
        raise ValueError(f'option assign is {text!r}, not like {{"orders": [0, 1]}}')
    return pairs
