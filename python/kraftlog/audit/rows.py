"""The table ``findings``."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.layout.discover import Discovery
from kraftlog.layout.names import printable
from kraftlog.layout.replica_directory import directory_of
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read


def finding_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``findings``, the worst finding first."""
    evidence = Evidence(read.files, read, time.time_ns() // 1_000_000, _directories(read.files))
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


def _directories(files: Discovery) -> list[str]:
    """Return the log directories and remote tiers of files, as the user named them."""
    folders = {one.folder: one for one in files.segments}
    named = [directory_of(one) if one.stored or not folder.name else folder.parent for folder, one in folders.items()]
    return list(dict.fromkeys(printable(str(one)) for one in named))
