"""Records with typed keys and values; a filter is on the columns that they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.dataset as ds

from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.stream import Stream
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.filtered import Filtered
from kraftlog.values.typed_options import ResolvedTypes

Scan = Callable[[Discovery, Sequence[str], ReadOptions], Stream]


def typed_rows(
    found: Discovery,
    types: ResolvedTypes,
    columns: Sequence[str] | None,
    options: ReadOptions,
    filter: ds.Expression | None,
    scan: Scan,
) -> Stream:
    """Stream records as they are typed.

    Parameters
    ----------
    found : Discovery
    types : ResolvedTypes
    columns : sequence of str or None
        Of the table ``records``, with ``key_error`` and ``value_error``.
    options : ReadOptions
    filter : pyarrow.compute.Expression or None
        On the typed columns. Partitions, offsets and times that it rules out are not read.
    scan : callable
        Returns the records of some files, with these columns as bytes.
    """
    shown = types.records(columns, strict=options.strict)
    if filter is None:
        return shown.stream(lambda names: scan(found, names, options))
    filtered = Filtered(filter, replace(TABLES["records"], columns=typed_table(types)), shown.schema.names)

    def produce(faults: list[Fault]) -> Iterator[pa.RecordBatch]:
        def read(some: Discovery, wanted: pa.Schema, bounds: ReadOptions) -> Iterator[pa.RecordBatch]:
            records = types.records(wanted.names, strict=options.strict)
            inner = records.stream(lambda names: scan(some, names, bounds))
            yield from inner.batches()
            faults.extend(inner.faults)
            made.notes.extend(inner.notes)

        return filtered.rows(found, options, read)

    made = Stream(shown.schema, produce)
    return made


def typed_table(types: ResolvedTypes) -> schema.TableSchema:
    """Return the table ``records`` with the types that keys and values have, and what is wrong with them."""
    errors = [f"{side}_error" for side in types.formats]
    every = types.records([*schema.RECORDS.shown, *errors, *schema.RECORDS.on_request], strict=False).schema
    columns = dict(zip(every.names, every.types, strict=True))
    later = {name: columns.pop(name) for name in schema.RECORDS.on_request}
    return replace(schema.RECORDS, shown=columns, on_request=later)
