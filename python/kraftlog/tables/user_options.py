"""Options as users give them, made into those that readers take."""

from __future__ import annotations

from datetime import datetime

from kraftlog.codec.options import NO_BOUND, ReadOptions, milliseconds
from kraftlog.disk.remote_path import PathLike
from kraftlog.messages.catalog import BUILT_IN, Catalog


def read_options(
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: datetime | str | int | None = None,
    end_timestamp: datetime | str | int | None = None,
    **others: object,
) -> ReadOptions:
    """Return ``ReadOptions``; bounds may be None, timestamps datetimes or ISO 8601 text."""
    return ReadOptions(
        start_offset=-NO_BOUND if start_offset is None else start_offset,
        end_offset=NO_BOUND if end_offset is None else end_offset,
        start_timestamp=-NO_BOUND if start_timestamp is None else milliseconds(start_timestamp),
        end_timestamp=NO_BOUND if end_timestamp is None else milliseconds(end_timestamp),
        **others,  # type: ignore[arg-type]
    )


def catalog_of(definitions: PathLike | None) -> Catalog:
    """Return the messages that this package knows, and in their place those of a folder of Kafka's JSON definitions."""
    if definitions is None:
        return BUILT_IN
    from kraftlog.messages import kafka_json

    return BUILT_IN.with_definitions(kafka_json.load_folder(definitions))
