"""Conversion of options given by users to those of readers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, SupportsIndex

from kraftlog.codec.options import LATEST, NO_BOUND, TIMES, ReadOptions, checked_integer
from kraftlog.disk.remote_path import PathLike, log_path
from kraftlog.layout.discover import LogPaths, each_path
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.times import milliseconds, text_of


def read_options(
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: datetime | str | int | None = None,
    end_timestamp: datetime | str | int | None = None,
    time: datetime | str | int = LATEST,
    against: LogPaths = (),
    **others: object,
) -> ReadOptions:
    """Return ``ReadOptions``; bounds may be None, timestamps datetimes or text that ``milliseconds`` reads.

    Raises
    ------
    ValueError
        For an offset below 0, and for a start after the end.

    Examples
    --------
    >>> from kraftlog.tables.user_options import read_options
    >>> read_options(start_timestamp="2026-11-21", end_timestamp="2026-11-20")
    Traceback (most recent call last):
    ValueError: the start time 2026-11-21T00:00:00Z is after the end time 2026-11-20T00:00:00Z
    """
    options = ReadOptions(
        start_offset=-NO_BOUND if start_offset is None else start_offset,
        end_offset=NO_BOUND if end_offset is None else end_offset,
        start_timestamp=-NO_BOUND if start_timestamp is None else milliseconds(start_timestamp),
        end_timestamp=NO_BOUND if end_timestamp is None else milliseconds(end_timestamp),
        time=_checked_time(time),
        against=tuple(log_path(path) for path in each_path(against)),
        **others,  # type: ignore[arg-type]
    )
    for name, given in ("start", start_offset), ("end", end_offset):
        if given is not None and given < 0:
            raise ValueError(f"the {name} offset {given} is negative: offsets of a log begin at 0")
    if options.start_offset > options.end_offset:
        raise ValueError(f"the start offset {start_offset} is after the end offset {end_offset}")
    if options.start_timestamp > options.end_timestamp:
        start, end = text_of(options.start_timestamp), text_of(options.end_timestamp)
        raise ValueError(f"the start time {start} is after the end time {end}")
    return options


def _checked_time(time: datetime | str | int) -> str | int:
    if isinstance(time, str) and time in TIMES:
        return time
    try:
        return milliseconds(time)
    except ValueError:
        expected = f"one of {', '.join(TIMES)}, nor a datetime or milliseconds"
        raise ValueError(f"time {time!r} is not {expected}") from None


def given_numbers(option: str, numbers: SupportsIndex | Iterable[SupportsIndex] | None) -> list[int] | None:
    """Return numbers of partitions or brokers; a single number is accepted as a list.

    Raises
    ------
    TypeError
        When one is not an integer.

    Examples
    --------
    >>> from kraftlog.tables.user_options import given_numbers
    >>> given_numbers("partitions", ["1"])
    Traceback (most recent call last):
    TypeError: partitions '1' is not an integer
    """
    if numbers is None:
        return None
    given: Any = numbers
    each = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    return [checked_integer(option, one, -NO_BOUND - 1, NO_BOUND) for one in each]


def catalog_of(definitions: PathLike | None) -> Catalog:
    """Return the built-in message definitions, with those of a folder of Kafka's JSON definitions in their place."""
    if definitions is None:
        return BUILT_IN
    from kraftlog.messages import kafka_json

    return BUILT_IN.with_definitions(kafka_json.load_folder(definitions))
