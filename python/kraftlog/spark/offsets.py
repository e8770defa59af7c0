"""Where reading begins and ends in each partition, in the forms of Spark's Kafka source.

``startingOffsets`` and ``endingOffsets`` are ``earliest``, ``latest``, a number for all partitions, or JSON such as
``{"orders": {"0": 23, "1": -2}}``, where -2 means earliest and -1 latest. ``startingTimestamp`` and ``endingTimestamp``
are milliseconds for all partitions, ``startingOffsetsByTimestamp`` and ``endingOffsetsByTimestamp`` the same as JSON by
partition; they mean the offset of the first record with that timestamp or a later one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_headers
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.table import Table
from kraftlog.times import milliseconds

EARLIEST, LATEST = -2, -1
MOST = 2**63 - 1  # the maximum of offsets and timestamps
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
Partition = tuple[str, int]


@dataclass(frozen=True)
class Position:
    """A place in every partition.

    Attributes
    ----------
    everywhere : int
        An offset, ``EARLIEST`` or ``LATEST``, for all partitions when ``each`` is empty.
    each : dict
        Offsets of single partitions.
    is_timestamp : bool
        Whether these are milliseconds since the epoch.
    or_latest : bool
        Whether a timestamp later than all records means the end of the log; otherwise it is an error.
    """

    everywhere: int = EARLIEST
    each: Mapping[Partition, int] = field(default_factory=dict)
    is_timestamp: bool = False
    or_latest: bool = False

    def mentions(self, place: int) -> bool:
        """Whether it is ``EARLIEST`` or ``LATEST`` anywhere."""
        return not self.is_timestamp and place in (self.each.values() if self.each else (self.everywhere,))

    def at(self, partition: Partition) -> int:
        """Return the place that is set for a partition."""
        return self.each.get(partition, self.everywhere)

    def of(self, topic: str | None, partition: int | None, segments: list[Segment]) -> int:
        """Return the offset in one partition, ``EARLIEST`` or ``LATEST``.

        Raises
        ------
        ValueError
            When there is no offset for the partition, or no record has that timestamp or a later one.
        """
        name = f"{topic}-{partition}"
        if self.each and (topic, partition) not in self.each:
            given = ", ".join(sorted(f"{topic}-{number}" for topic, number in self.each))
            raise ValueError(f"expected an offset for {name}, found only {given}; -2 means earliest, -1 latest")
        place = self.each[topic, partition] if self.each and topic is not None and partition is not None else None
        place = self.everywhere if place is None else place
        if not self.is_timestamp:
            return place
        found = first_offset_at(segments, place)
        if found is None and not self.or_latest:
            raise ValueError(f"{name}: no record has timestamp {place} or a later one")
        return LATEST if found is None else found


@dataclass(frozen=True)
class Interval:
    """Where a job starts and stops reading."""

    starting: Position = Position(EARLIEST)
    ending: Position = Position(LATEST)

    def within(self, options: ReadOptions, segments: list[Segment]) -> ReadOptions:
        """Return the options of a partition, with its bounds of offset."""
        topic, partition = segments[0].topic, segments[0].partition
        start = self.starting.of(topic, partition, segments)
        end = self.ending.of(topic, partition, segments)
        if end >= 0 and start > end:
            raise ValueError(f"{topic}-{partition}: the start offset {start} is after the end offset {end}")
        return replace(
            options,
            start_offset=-NO_BOUND if start == EARLIEST else end_offset(segments) if start == LATEST else start,
            end_offset=NO_BOUND if end == LATEST else -NO_BOUND if end == EARLIEST else end,
        )

    def check_order(self) -> None:
        """Raise when it starts after its end, as far as the options tell that.

        Raises
        ------
        ValueError
            Names both places, and the partition.
        """
        start, end = self.starting, self.ending
        if start.is_timestamp != end.is_timestamp:
            return
        kind = "timestamp" if start.is_timestamp else "offset"
        for partition in sorted(
            start.each.keys() & end.each.keys() if start.each and end.each else start.each or end.each
        ):
            _check_order(f"{partition[0]}-{partition[1]}: the", kind, start.at(partition), end.at(partition))
        if not start.each and not end.each:
            _check_order("the", kind, start.everywhere, end.everywhere)

    def of_fold(self, options: ReadOptions, table: Table) -> ReadOptions:
        """Return the options of a table that is folded over all partitions: it ends at one offset, or at the end.

        Raises
        ------
        ValueError
            For bounds that do not apply to such a table.
        """
        self.check_start(table)
        if self.ending == Position(LATEST):
            return options
        if "at" not in table.option_names or self.ending.each or self.ending.is_timestamp:
            takers = ", ".join(name for name, one in TABLES.items() if "at" in one.option_names)
            raise ValueError(f"the table {table.name} has no such ending; {takers} take one")
        return replace(options, end_offset=self.ending.everywhere)

    def check_start(self, table: Table) -> None:
        """Raise when a start is set for a table that does not support one.

        Raises
        ------
        ValueError
            Names the table.
        """
        if "start_offset" not in table.option_names and self.starting != Position(EARLIEST):
            raise ValueError(f"the table {table.name} takes no starting offset; it starts where the log does")

    def check_partitions(self, there: set[tuple[str | None, int | None]]) -> None:
        """Raise when options have offsets for partitions that are not read.

        Raises
        ------
        ValueError
            Names them.
        """
        given = self.starting.each.keys() | self.ending.each.keys()
        missing = sorted(f"{topic}-{partition}" for topic, partition in given - there)
        if missing:
            raise ValueError(f"offsets are set for {', '.join(missing)}, which the job does not read")


def _check_order(which: str, kind: str, start: int, end: int) -> None:
    if start > end >= 0:
        raise ValueError(f"{which} start {kind} {start} is after the end {kind} {end}")


def first_offset_at(segments: list[Segment], timestamp: int) -> int | None:
    """Return the offset of the first record with a timestamp in milliseconds or a later one; None if there is none."""
    rows = Log(Discovery(list(segments))).records(["offset"], start_timestamp=timestamp, include_control=True)
    for batch in rows.batches():
        if batch.num_rows:
            return int(batch.column(0)[0].as_py())
    return None


def end_offset(segments: list[Segment]) -> int:
    """Return the offset after the last sound batch of a partition.

    Raises
    ------
    CorruptRecordError
        When a segment that may have it cannot be read.
    """
    for segment in reversed(segments):
        last = None
        faults: list[Fault] = []
        for headers in segment_headers(segment, faults):
            last = int(last_offsets(headers).max())
        for fault in faults:
            if fault.error == "unreadable_file":
                raise error_from_fault(fault)
        if last is not None:
            return last + 1
    return segments[0].base_offset or 0


def parse_interval(given: Mapping[str, str], *, is_streaming: bool = False) -> Interval:
    """Parse the options, whose names are in lower case; an option by timestamp takes precedence.

    Raises
    ------
    ValueError
        When a value is invalid, or does not apply: a batch query cannot start at the latest offset.
    """
    starting = _position(given, "starting", Position(LATEST if is_streaming else EARLIEST))
    ending = _position(given, "ending", Position(LATEST))
    if not is_streaming and starting.mentions(LATEST):
        raise ValueError("option startingOffsets: a batch cannot start at the latest offset")
    if ending.mentions(EARLIEST):
        raise ValueError("option endingOffsets: nothing lies before the earliest offset")
    interval = Interval(starting, ending)
    interval.check_order()
    return interval


def _position(given: Mapping[str, str], side: str, default: Position) -> Position:
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ValueError(f"option startingOffsetsByTimestampStrategy is {strategy!r}, not error or latest")
    or_latest = side == "ending" or strategy == "latest"
    name = f"{side}Timestamp"
    if name.lower() in given:
        return Position(_number(name, given[name.lower()]), is_timestamp=True, or_latest=or_latest)
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in given:
        return Position(each=_json(name, given[name.lower()]), is_timestamp=True, or_latest=or_latest)
    name = f"{side}Offsets"
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() in _WORDS:
        return Position(_WORDS[text.lower()])
    if text.lstrip().startswith("{"):
        return Position(each=_json(name, text))
    return Position(_number(name, text))


def _number(name: str, text: str) -> int:
    if not is_number(text):
        form = "milliseconds" if name.endswith("Timestamp") else "earliest, latest, a number or JSON"
        raise ValueError(f"option {name} is {text!r}, not {form}")
    if int(text) > MOST:
        raise ValueError(f"option {name} is {text}, more than {MOST}")
    return _checked(name, int(text))


def _checked(name: str, number: int) -> int:
    """Return a number; one of an option of timestamps has to be milliseconds."""
    try:
        return milliseconds(number) if name.endswith("Timestamp") else number
    except ValueError as error:
        raise ValueError(f"option {name}: {error}") from None


def is_number(text: str) -> bool:
    """Whether a text is only digits."""
    return text.isascii() and text.isdigit()


def _json(name: str, text: str) -> dict[Partition, int]:
    try:
        topics = json.loads(text)
        places = {(topic, int(number)): place for topic, of in topics.items() for number, place in of.items()}
    except (ValueError, AttributeError, TypeError):
        places = {}
    least, example = (0, '{"0": 1767225600000}') if name.endswith("Timestamp") else (EARLIEST, '{"0": 23, "1": -2}')
    if not places or any(type(place) is not int or not least <= place <= MOST for place in places.values()):
        raise ValueError(f'option {name} is {text!r}, not like {{"orders": {example}}}')
    return {partition: _checked(name, place) for partition, place in places.items()}
