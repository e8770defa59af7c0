"""The description of a job in EXPLAIN and in the log."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlog.codec.options import NO_BOUND
from kraftlog.spark.offsets import EARLIEST, LATEST, Position
from kraftlog.spark.parts import Part
from kraftlog.spark.request import Request
from kraftlog.spark.task import size_of

_WORDS = {EARLIEST: "earliest", LATEST: "latest"}
_SHOWN = 3  # paths, topics, partitions


def title(request: Request, parts: Sequence[Part]) -> str:
    """Return the table, the paths, the selection among them, and the number of bytes.

    Examples
    --------
    >>> from kraftlog.spark.options import parse_request
    >>> from kraftlog.spark.parts import plan_parts
    >>> request = parse_request({"path": "tests/golden/codecs/log", "subscribe": "codec-lz4", "startingOffsets": "341"})
    >>> title(request, plan_parts(request))
    'kraftlog records of tests/golden/codecs/log, topics codec-lz4, offsets from 341, 1 part of 31990 bytes'
    """
    words = [f"kraftlog {request.table} of {_some(request.shown_paths)}"]
    selection, options = request.selection, request.options
    if selection.topics is not None:
        words.append(f"topics {_some(selection.topics)}")
    if selection.pattern is not None:
        words.append(f"topics like {selection.pattern}")
    if selection.partitions is not None:
        words.append(f"partitions {_some([f'{topic}-{number}' for topic, number in sorted(selection.partitions)])}")
    for word, position, default in (
        ("from", request.interval.starting, Position(EARLIEST)),
        ("to", request.interval.ending, Position(LATEST)),
    ):
        if position != default:
            words.append(f"{'times' if position.is_timestamp else 'offsets'} {word} {_place(position)}")
    if options.isolation_level != "read_uncommitted":
        words.append(options.isolation_level)
    times = []
    if options.start_timestamp != -NO_BOUND:
        times.append(f"timestamp >= {options.start_timestamp}")
    if options.end_timestamp != NO_BOUND:
        times.append(f"timestamp < {options.end_timestamp}")
    if times:
        words.append(f"only {' and '.join(times)}")
    words.append(f"{len(parts)} part{'' if len(parts) == 1 else 's'} of {sum(map(size_of, parts))} bytes")
    return ", ".join(words)


def _place(position: Position) -> str:
    if position.each:
        return _some([f"{topic}-{number}:{place}" for (topic, number), place in sorted(position.each.items())])
    everywhere = position.everywhere
    return str(everywhere) if position.is_timestamp else _WORDS.get(everywhere, str(everywhere))


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return " ".join(map(str, names[:_SHOWN])) + more
