"""Which partitions are meant, as kafka-get-offsets lets users say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from kraftlog.topics import INTERNAL_TOPICS

Command = TypeVar("Command", bound=Callable[..., Any])

_RULE = re.compile(r"(?P<topic>[^:]*)(?::(?:(?P<one>[0-9]+)|(?P<first>[0-9]*)-(?P<end>[0-9]*))?)?")
EXPECTED = (
    "TOPIC, TOPIC:3, TOPIC:0-3 (3 is not in it), TOPIC:5- or TOPIC:-3; the topic is a regular expression, or empty"
)


@dataclass(frozen=True)
class _Rule:
    topic: re.Pattern[str]
    first: int
    end: int | None

    def takes(self, topic: str, partition: int) -> bool:
        is_within = self.first <= partition and (self.end is None or partition < self.end)
        return is_within and self.topic.fullmatch(topic) is not None


class TopicPattern(click.ParamType[re.Pattern[str]]):
    """A regular expression that is the whole name of a topic; commas stand between several."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """Return the compiled pattern."""
        return value if isinstance(value, re.Pattern) else _pattern(self, value.replace(",", "|"), param, ctx)


class Numbers(click.ParamType[frozenset[int]]):
    """Numbers of partitions with commas between them."""

    name = "partitions"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        """Return the numbers."""
        if isinstance(value, frozenset):
            return value
        words = [word.strip() for word in value.split(",")]
        if not all(word.isascii() and word.isdigit() for word in words):
            self.fail(f"{value!r} is not a list of numbers with commas between them, such as 0,1,2", param, ctx)
        return frozenset(map(int, words))


class Rules(click.ParamType[tuple[_Rule, ...]]):
    """Patterns of topics with ranges of partitions, commas between them."""

    name = "topic-partitions"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[_Rule, ...]:
        """Return the rules; one of them must take a partition."""
        if isinstance(value, tuple):
            return value
        return tuple(self._rule(text, param, ctx) for text in value.split(","))

    def _rule(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> _Rule:
        found = _RULE.fullmatch(text)
        if found is None:
            self.fail(f"{text!r} is not of the form {EXPECTED}", param, ctx)
        first, end = int(found["first"] or 0), int(found["end"]) if found["end"] else None
        if found["one"]:
            first, end = int(found["one"]), int(found["one"]) + 1
        return _Rule(_pattern(self, found["topic"] or ".*", param, ctx), first, end)


def _pattern(
    kind: click.ParamType[Any], text: str, param: click.Parameter | None, ctx: click.Context | None
) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        return kind.fail(f"{text!r} is not a regular expression: {error}", param, ctx)


def topic_partition_options(command: Command) -> Command:
    """Add the options that say which partitions are meant; ``partitions_wanted`` takes what they give."""
    decorators = [
        click.option(
            "-t",
            "--topic",
            "topics",
            multiple=True,
            type=TopicPattern(),
            help="Only topics of this name, a regular expression. Repeatable.",
        ),
        click.option(
            "-p", "--partitions", type=Numbers(), help="Only these partitions: numbers with commas between them."
        ),
        click.option(
            "--topic-partitions",
            type=Rules(),
            help=f"Only these, with commas between them: {EXPECTED}. Goes without the two options above.",
        ),
        click.option("--exclude-internal-topics", is_flag=True, help="Leave out Kafka's own topics."),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def partitions_wanted(
    topics: Collection[re.Pattern[str]],
    partitions: Iterable[int] | None,
    topic_partitions: Iterable[_Rule] | None,
    exclude_internal_topics: bool,
) -> Callable[[str | None, int | None], bool]:
    """Return what says of a topic and a partition whether they are wanted; files of no topic are when all are.

    Raises
    ------
    click.UsageError
        When options exclude each other.
    """
    if topic_partitions is not None and (topics or partitions is not None):
        raise click.UsageError("--topic-partitions cannot be used with --topic or --partitions")
    wants_all = not topics and partitions is None and topic_partitions is None

    def is_wanted(name: str | None, partition: int | None) -> bool:
        if name is None or partition is None:
            return wants_all
        if exclude_internal_topics and name in INTERNAL_TOPICS:
            return False
        if topic_partitions is not None:
            return any(rule.takes(name, partition) for rule in topic_partitions)
        is_topic = not topics or any(topic.fullmatch(name) for topic in topics)
        return is_topic and (partitions is None or partition in partitions)

    return is_wanted
