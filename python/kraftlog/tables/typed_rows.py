"""Records with decoded keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from kraftlog import schema
from kraftlog.tables.read import Read
from kraftlog.tables.stage import Source
from kraftlog.values.typed import added_columns
from kraftlog.values.typed_options import ResolvedTypes


class Typed:
    """Decodes keys and values.

    Parameters
    ----------
    types : ResolvedTypes
    """

    def __init__(self, types: ResolvedTypes) -> None:
        self._types = types

    def rows(self, read: Read, source: Source) -> Iterator[pa.RecordBatch]:
        """Return the decoded rows; errors are reported at the end."""
        records = self._types.records(read.schema.names, strict=read.options.strict)
        yield from records.rows(source(replace(read, schema=schema.RECORDS.select(records.reads))), read.faults)


def typed_table(types: ResolvedTypes) -> schema.TableSchema:
    """Return the table ``records`` with the types that keys and values have, and what is wrong with them."""
    added = added_columns(types.formats)
    every = types.records([*schema.RECORDS.shown, *added, *schema.RECORDS.on_request], strict=False).schema
    columns = dict(zip(every.names, every.types, strict=True))
    later = {name: columns.pop(name) for name in schema.RECORDS.on_request}
    return replace(schema.RECORDS, shown=columns, on_request=later)
