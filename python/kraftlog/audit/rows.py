"""The table ``findings``."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read


def finding_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``findings``, the worst finding first."""
    evidence = Evidence.of(read.files, read)
    read.notes.extend(evidence.lines.metadata_notes)
    each = findings(evidence)
    if each:
        columns = [pa.array([_value(one, field.name) for one in each], field.type) for field in read.schema]
        yield rows_of(columns, read.schema, len(each))


def _value(one: Finding, column: str) -> object:
    match column:
        case "code":
            return one.code.name
        case "severity":
            return str(one.code.severity)
        case "meaning":
            return one.code.meaning
    return getattr(one, column)
