"""The rows of each table, by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.replica_directory import replica_of_unread
from kraftlog.layout.unread import NOTHING_LOST, Unread
from kraftlog.messages.catalog import BUILT_IN, Catalog
from kraftlog.read.partitions import is_metadata, topics_of
from kraftlog.read.ranges import Range, plan
from kraftlog.read.records import Progress, read_ranges
from kraftlog.stream import errors_table
from kraftlog.tables.deleted_records import notes_of_deleted
from kraftlog.topics import CLUSTER_METADATA, CONSUMER_OFFSETS, SCHEMAS, TRANSACTION_STATE

if TYPE_CHECKING:
    from kraftlog.metadata.diff.change_filter import ChangeFilter

PARALLEL_RANGE_BYTES = 16 << 20

# Module and function of the tables that are made of segments. Each is imported when its table is read.
_BY_SEGMENTS = {
    "batches": ("file_tables", "batch_rows"),
    "transactions": ("transaction_tables", "transaction_rows"),
    "metadata_transactions": ("transaction_tables", "metadata_transaction_rows"),
    "metadata_changes": ("change_tables", "metadata_change_rows"),
    "producers": ("producer_tables", "producer_rows"),
    "hanging_transactions": ("hanging", "hanging_rows"),
    "offsets": ("coordinator_tables", "offset_rows"),
    "groups": ("coordinator_tables", "group_rows"),
    "transactional_ids": ("coordinator_tables", "transactional_id_rows"),
    "schemas": ("schema_table", "schema_rows"),
}

# They show what is on disk, also what was deleted for consumers.
TABLES_OF_FILES = (
    "segments",
    "batches",
    "replicas",
    "index_entries",
    "errors",
    "metadata_transactions",
    "metadata_changes",
)

# They show each replica of a partition; others read the line, or, where more than that counts, choose it themselves.
TABLES_OF_REPLICAS = ("segments", "batches", "replicas", "index_entries", "errors")
CHOOSING_TABLES = ("hanging_transactions",)

FOLDED_TOPICS = {
    "offsets": CONSUMER_OFFSETS,
    "groups": CONSUMER_OFFSETS,
    "transactional_ids": TRANSACTION_STATE,
    "schemas": SCHEMAS,
}


@dataclass(frozen=True)
class Pass:
    """How a table is read, and where what cannot be read is noted."""

    options: ReadOptions
    faults: list[Fault]
    notes: list[str]
    workers: int = 1
    range_bytes: int | None = None
    on_progress: Progress | None = None
    where: ChangeFilter | None = None


def table_schema(table: str, catalog: Catalog = BUILT_IN) -> schema.TableSchema:
    """Return what a table consists of.

    Raises
    ------
    ValueError
        When there is no such table, nor a type of message of that name.
    """
    found = schema.TABLES.get(table)
    if found is None:
        from kraftlog.tables.message_tables import type_schema

        found = type_schema(table, catalog)
    if found is None:
        raise ValueError(f"table {table!r} is not one of {', '.join(schema.TABLES)}, nor a type of message")
    return found


def check_type(name: str, catalog: Catalog) -> str:
    """Return the name of a type of message.

    Raises
    ------
    ValueError
        When there is no such type.
    """
    from kraftlog.tables.message_tables import type_names

    if name not in (known := type_names(catalog)):
        raise ValueError(f"{name!r} is not a type of message; there are {', '.join(known)}")
    return name


def table_rows(
    found: Discovery, catalog: Catalog, table: str, arrow_schema: pa.Schema, how: Pass
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table; folders that could not be listed are faults of every table."""
    if table in TABLES_OF_FILES:
        how = replace(how, options=replace(how.options, include_deleted=True))
    options, faults, segments = how.options, how.faults, found.segments
    note_unreadable(found, faults, strict=options.strict)
    if table in ("records", "messages") or table not in schema.TABLES:
        how.notes.extend(notes_of_deleted(segments, options))
    if options.salvage and not options.searches:
        how.notes.append("nothing is salvaged: what is found behind damage is never part of read_committed")
    if table == "records":
        size = how.range_bytes or PARALLEL_RANGE_BYTES if how.workers > 1 else None
        parts = record_ranges(found, options, size, arrow_schema.names, faults, how.notes, follows=how.workers == 1)
        return read_ranges(parts, arrow_schema, options, faults, how.workers, how.on_progress, how.notes)
    if table == "messages" or table not in schema.TABLES:
        from kraftlog.tables.message_tables import message_rows, type_rows

        rows = message_rows if table == "messages" else partial(type_rows, table)
        return rows(segments, arrow_schema, options, faults, how.notes, how.workers, how.on_progress, catalog)
    if table in FOLDED_TOPICS and not any(segment.topic == FOLDED_TOPICS[table] for segment in segments):
        how.notes.append(f"no {FOLDED_TOPICS[table]} among {', '.join(topics_of(segments))}")
    if table == "metadata_changes" and not any(map(is_metadata, segments)):
        how.notes.append(f"no {CLUSTER_METADATA} among {', '.join(topics_of(segments))}")
    if table in _BY_SEGMENTS:
        chosen = {} if how.where is None else {"where": how.where}
        return _function(*_BY_SEGMENTS[table])(segments, arrow_schema, options, faults, how.on_progress, **chosen)
    if table == "segments":
        return _function("file_tables", "segment_rows")(found, arrow_schema, options, faults, how.on_progress)
    if table == "replicas":
        rows = _function("replica_table", "replica_rows")
        return rows(found, arrow_schema, options, faults, how.notes, how.workers, how.on_progress)
    if table == "index_entries":
        return _function("file_tables", "index_rows")(segments, arrow_schema, options, faults)
    return _error_rows(found, catalog, arrow_schema, how)


def _function(module: str, name: str) -> Callable[..., Iterator[pa.RecordBatch]]:
    function: Callable[..., Iterator[pa.RecordBatch]] = getattr(import_module(f"kraftlog.tables.{module}"), name)
    return function


def record_ranges(
    found: Discovery,
    options: ReadOptions,
    range_bytes: int | None,
    columns: Sequence[str],
    faults: list[Fault],
    notes: list[str],
    *,
    follows: bool = False,
) -> Iterator[Range]:
    """Return the byte ranges that hold what the options ask for; each starts at a batch boundary."""
    from kraftlog.read.committed_ranges import needs_transactions, ranges_with_transactions

    if needs_transactions(options, columns):
        return ranges_with_transactions(found.segments, options, range_bytes, columns, faults, notes, follows=follows)
    return plan(found.segments, options, range_bytes)


def left_alone(found: Discovery) -> list[Fault]:
    """Return the files and folders that are not read, as rows of the ``errors`` table with error ``not_read``."""
    return [_as_row(item) for item in found.unread if not item.is_fault]


def not_needed(found: Discovery) -> list[Fault]:
    """Return what is wrong and no reader needs: orphans and duplicates of a remote tier, folders that stop a broker."""
    return [_as_row(item) for item in found.unread if item.error in NOTHING_LOST]


def _error_rows(found: Discovery, catalog: Catalog, arrow_schema: pa.Schema, how: Pass) -> Iterator[pa.RecordBatch]:
    from kraftlog.check.partitions import check_segments
    from kraftlog.tables.message_tables import note_bad_messages

    options, faults = how.options, how.faults
    checks = check_segments(found.segments, options, compares=False, workers=how.workers, on_progress=how.on_progress)
    for fault in checks:
        faults.append(fault)
    note_bad_messages(found.segments, options, faults, how.workers, catalog)
    table = errors_table([*faults, *left_alone(found)], arrow_schema.names)
    yield from table.to_batches()


def note_unreadable(found: Discovery, faults: list[Fault], *, strict: bool) -> None:
    """Note the folders that could not be listed, or raise for the first."""
    for fault in unreadable(found):
        if strict:
            raise error_from_fault(fault)
        faults.append(fault)


def unreadable(found: Discovery) -> list[Fault]:
    """Return the folders that could not be listed."""
    return [_as_row(item) for item in found.unread if item.is_fault]


def _as_row(item: Unread) -> Fault:
    return Fault(
        item.error,
        f"{item.name}: {item.reason}" if item.is_fault else f"{item.name}: not read: {item.reason}",
        size_in_bytes=item.size,
        topic=item.topic,
        partition=item.partition,
        segment_base_offset=item.base_offset,
        replica=replica_of_unread(item),
    )
