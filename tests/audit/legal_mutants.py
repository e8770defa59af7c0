"""Which mutants of logs Kafka might have written itself, by their place, and the rule of Kafka that allows each.

These rules look at the batches next to a mutant only; they share nothing with the audit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from log_mutants import CONTROL, TRANSACTIONAL, Mutant, fields_of

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

_STATUS_AT = 16  # in a value of __transaction_state: behind version, producer id, epoch and timeout
_EMPTY, _ONGOING, *_COMPLETE = 0, 1, 4, 5


class Rule(NamedTuple):
    """Why Kafka might have written a mutant.

    Attributes
    ----------
    reason : str
    kinds : set of str
    holds : callable
        Whether it is so at the place of a mutant.
    """

    reason: str
    kinds: set[str]
    holds: Callable[[Mutant], bool]


def _control_type(marker: bytes) -> int:
    """Return the type in the key of a marker."""
    (key,) = kraftlog.decode(marker, columns=["key"], include_control=True).to_table()["key"].to_pylist()
    return int.from_bytes(key[2:4], "big")


@cache
def _keys(batch: bytes) -> frozenset[bytes]:
    return frozenset(kraftlog.decode(batch, columns=["key"]).to_table()["key"].to_pylist())


def _status(batch: bytes) -> int | None:
    (value,) = kraftlog.decode(batch, columns=["value"]).to_table()["value"].to_pylist()
    return None if value is None else value[_STATUS_AT]


def _is_compacted(mutant: Mutant) -> bool:
    return mutant.topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)


def _is_last(mutant: Mutant) -> bool:
    return mutant.number == len(mutant.batches) - 1


def _epochs_increase(mutant: Mutant) -> bool:
    epochs = [epoch for some in HeaderScan(mutant.data).headers() for epoch in some["partition_leader_epoch"].tolist()]
    return epochs == sorted(epochs)


def _is_of_other_writer(mutant: Mutant) -> bool:
    """Whether a batch and the next one are not of one producer, group or transactional id."""
    batch, following = mutant.batches[mutant.number : mutant.number + 2]
    producers = {fields_of(one)["producer_id"] for one in (batch, following)}
    if producers != {-1}:
        return len(producers) == 2
    return not _is_compacted(mutant) or not _keys(batch) & _keys(following)


def _places_of_key(mutant: Mutant) -> tuple[list[int], int]:
    """Return the batches with the transactional id of a mutant, and which of them it is."""
    key = _keys(mutant.batches[mutant.number])
    numbers = [number for number, batch in enumerate(mutant.batches) if _keys(batch) == key]
    return numbers, numbers.index(mutant.number)


def _is_record_of_coordinator(mutant: Mutant) -> bool:
    return mutant.topic == TRANSACTION_STATE and mutant.what == "plain"


def _is_first_or_last_of_key(mutant: Mutant) -> bool:
    if not _is_record_of_coordinator(mutant):
        return False
    numbers, at = _places_of_key(mutant)
    return at in (0, len(numbers) - 1)


def _is_followed_by_more_partitions(mutant: Mutant) -> bool:
    if not _is_record_of_coordinator(mutant):
        return False
    numbers, at = _places_of_key(mutant)
    around = [_status(mutant.batches[number]) for number in numbers[at : at + 2]]
    return around == [_ONGOING, _ONGOING]


def _follows_last_of_key(mutant: Mutant) -> bool:
    """Whether a transactional id could have its record again after its last one."""
    if not _is_record_of_coordinator(mutant):
        return False
    numbers, at = _places_of_key(mutant)
    return at == len(numbers) - 1 or _status(mutant.batches[numbers[-1]]) is None


def _begins_after_an_end(mutant: Mutant) -> bool:
    """Whether a record initializes or begins, and the last one of its transactional id has the epoch and an end."""
    if not _is_record_of_coordinator(mutant):
        return False
    numbers, _ = _places_of_key(mutant)
    last = _status(mutant.batches[numbers[-1]])
    return _status(mutant.batches[mutant.number]) in (_EMPTY, _ONGOING) and last in (_EMPTY, *_COMPLETE)


def _is_between_like_transactions(mutant: Mutant) -> bool:
    """Whether a record goes from a transaction to the next or the one before it, and both end in the same way."""
    if mutant.topic != CONSUMER_OFFSETS:
        return False
    each = [fields_of(batch) for batch in mutant.batches]
    swapped = each[mutant.number : mutant.number + 2]
    of = {(one["producer_id"], one["producer_epoch"]) for one in swapped}
    markers = [
        _control_type(batch)
        for batch, one in zip(mutant.batches[mutant.number :], each[mutant.number :], strict=True)
        if one["attributes"] & CONTROL and {(one["producer_id"], one["producer_epoch"])} == of
    ]
    return len(of) == 1 and len(markers) > 1 and markers[0] == markers[1]


def _has_no_producer(mutant: Mutant) -> bool:
    attributes = fields_of(mutant.batches[mutant.number])["attributes"]
    return mutant.what == "plain" and not attributes & (CONTROL | TRANSACTIONAL)


RULES = [
    Rule(
        "clients set the times of records; readers of Kafka take the largest time of a header as it is",
        {"base_timestamp-1", "max_timestamp+1"},
        lambda mutant: mutant.what != "marker",
    ),
    Rule(
        "the leader epochs still increase: there may have been an election, which leader-epoch-checkpoint does not have"
        " before it is written",
        {"partition_leader_epoch-1", "partition_leader_epoch+1"},
        _epochs_increase,
    ),
    Rule(
        "batches of different producers, groups or transactional ids have no order",
        {"swapped"},
        _is_of_other_writer,
    ),
    Rule(
        "a client chooses the order of the offsets that a transaction commits",
        {"swapped"},
        lambda mutant: (
            mutant.topic == CONSUMER_OFFSETS
            and not any(fields_of(one)["attributes"] & CONTROL for one in mutant.batches[mutant.number :][:2])
        ),
    ),
    Rule(
        "a transaction may add the topic and commit no offset, and the next one may commit several times; the clock of"
        " the broker may be set back",
        {"swapped"},
        _is_between_like_transactions,
    ),
    Rule(
        "a cleaner removes records of groups whose keys come again, and followers copy the gaps of offsets",
        {"gone"},
        lambda mutant: mutant.topic == CONSUMER_OFFSETS and mutant.what in ("transactional", "marker"),
    ),
    Rule(
        "a cleaner removes the first records of a transactional id, and the last one may not have been written",
        {"gone"},
        _is_first_or_last_of_key,
    ),
    Rule(
        "a client may add all partitions of a transaction at once",
        {"gone"},
        _is_followed_by_more_partitions,
    ),
    Rule(
        "no file says that the topic is not compacted: the offset between the last two batches may have been cleaned",
        {"base_offset+1", "last_offset_delta+1"},
        lambda mutant: _is_last(mutant) and _has_no_producer(mutant),
    ),
    Rule(
        "a coordinator writes a record again when it does not know whether the first one was written",
        {"again"},
        _follows_last_of_key,
    ),
    Rule(
        "the clock of another coordinator may be behind: a record that begins a transaction may have an earlier time",
        {"again"},
        _begins_after_an_end,
    ),
    Rule(
        "brokers do not compare the sequences of batches that a group coordinator writes",
        {"base_sequence+1"},
        lambda mutant: mutant.topic == CONSUMER_OFFSETS and mutant.what == "transactional",
    ),
]


def rule_of(mutant: Mutant) -> Rule | None:
    """Return the rule by which Kafka might have written a mutant; None for those that an audit has to find."""
    return next((rule for rule in RULES if mutant.kind in rule.kinds and rule.holds(mutant)), None)
