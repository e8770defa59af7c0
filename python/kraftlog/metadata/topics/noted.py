"""What groups of records changed of topics and partitions, from the notes of the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.topic_slots import TopicSlots
from kraftlog.last_by_key import NOWHERE
from kraftlog.metadata import columns
from kraftlog.metadata.changed import Changed, Rows
from kraftlog.metadata.topics.names import Names
from kraftlog.metadata.topics.tables import partition_table, topic_table
from kraftlog.metadata.topics.types import PARTITION, TOPIC

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _TopicNames:
    """Numbers of the names of topics over time: of those that came or went, before and after a group.

    Attributes
    ----------
    places : int64[changes]
        Topic and group as one number, ascending.
    topics, before, after : int64[changes]
        Which topic, and the numbers of its name.
    now : int64[topics]
        The number of each topic's name behind all groups.
    """

    places: Rows
    topics: Rows
    before: Rows
    after: Rows
    now: Rows

    def names(self, topics: Rows, places: Rows, *, is_after: Bools) -> Rows:
        """Return the numbers of the names that topics have before, or after, a group."""
        at = np.where(is_after, *(np.searchsorted(self.places, places, side) for side in ("right", "left")))
        is_known = np.zeros(len(topics), bool)
        names_of = self.now[topics]
        if not len(self.places):
            return names_of
        for step, names in ((-1, self.after), (0, self.before)):
            there = (at + step).clip(0, len(self.places) - 1)
            fits = ~is_known & (at + step == there) & (self.topics[there] == topics)
            names_of, is_known = np.where(fits, names[there], names_of), is_known | fits
        return names_of


def changed_topics(slots: TopicSlots, names: Names) -> dict[str, Changed]:
    """Return the topics and partitions that were noted; none of a type of which nothing was."""
    notes = slots.notes()
    groups, name = notes["group"], notes["name"]
    if not len(groups):
        return {}
    encoded = columns.uuid_array(notes["ids"]).dictionary_encode()
    topics, distinct = columns.numbers(encoded.indices, np.int64), columns.uuids(encoded.dictionary)
    numbered, order = np.unique(groups, return_inverse=True)
    places = topics * (len(numbered) + 1) + order
    now = slots.names_of(np.ascontiguousarray(distinct))
    tables: dict[str, Changed] = {}
    rows, has_next = _first_of_group(np.flatnonzero(notes["is_topic"]), topics, groups)
    was, is_named = name[rows], np.append(name[rows][1:], NOWHERE) if len(rows) else name[rows]
    became = np.where(has_next, is_named, now[topics[rows]])
    over_time = _TopicNames(places[rows], topics[rows], was, became, now)
    if len(rows):
        tables[TOPIC] = Changed(
            topic_table(names.take(was[was >= 0]), notes["ids"][rows[was >= 0]]),
            topic_table(names.take(became[became >= 0]), notes["ids"][rows[became >= 0]]),
            _numbered(was >= 0),
            _numbered(became >= 0),
            groups[rows],
        )
    keys = topics << 32 | notes["partition"].astype(np.uint32).astype(np.int64)
    rows, has_next = _first_of_group(np.flatnonzero(notes["is_topic"] == 0), keys, groups)
    if len(rows):
        changed = _partitions(slots, notes, rows, has_next)
        is_after = changed.now != NOWHERE
        numbers = over_time.names(topics[rows], places[rows], is_after=is_after)
        is_there = is_after | (changed.was != NOWHERE)
        named = Changed(**{**vars(changed), "topics": names.take(np.where(is_there, numbers, 0))})
        tables[PARTITION] = named.take(is_there)
    return tables


def _partitions(slots: TopicSlots, notes: dict[str, npt.NDArray[Any]], rows: Rows, has_next: Bools) -> Changed:
    was_there = notes["was_there"][rows] != 0
    last = rows[~has_next]
    are_there, held = slots.partitions_at(np.ascontiguousarray(notes["ids"][last]), notes["partition"][last])
    noted = rows[was_there]
    before = partition_table(slots.noted_partitions(noted), notes["ids"][noted])
    after = partition_table(held, notes["ids"][last[are_there]])
    was = _numbered(was_there)
    now = np.empty(len(rows), np.int64)
    now[has_next] = was[np.flatnonzero(has_next) + 1]
    of_held = _numbered(are_there)
    now[~has_next] = np.where(of_held == NOWHERE, NOWHERE, of_held + len(noted))
    both = pa.concat_tables([before, after]).combine_chunks()
    return Changed(both, both, was, now, notes["group"][rows])


def _first_of_group(rows: Rows, keys: Rows, groups: Rows) -> tuple[Rows, Bools]:
    """Return the first of some notes of each key and group, by key; and whether the next one has the same key."""
    rows = rows[np.argsort(keys[rows], kind="stable")]
    of_key, of_group = keys[rows], groups[rows]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (of_key[1:] != of_key[:-1]) | (of_group[1:] != of_group[:-1])
    rows, of_key = rows[is_first], of_key[is_first]
    return rows, np.append(of_key[1:] == of_key[:-1], np.zeros(min(len(rows), 1), bool))


def _numbered(is_there: Bools) -> Rows:
    """Return a number for each place that has something, one after the other; ``NOWHERE`` for the others."""
    return np.where(is_there, np.cumsum(is_there) - 1, NOWHERE)
