"""The table ``findings``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kraftlog.audit.against import findings_against
from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery, discover
from kraftlog.schema import FINDINGS
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read


def finding_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``findings``, the worst finding first.

    Raises
    ------
    ValueError
        If a folder is on both sides of ``against``, or no topic.
    """
    if read.options.against:
        each = _against(read, discover(read.options.against))
    else:
        each = findings(Evidence.of(read.files, read))
    if each:
        rows = [row_of(one) for one in each]
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in read.schema]
        yield rows_of(columns, read.schema, len(each))


def _against(read: Read, other: Discovery) -> Sequence[Finding]:
    """Return the differences of another cluster; faults name the log directory: partitions have the same names."""
    folders = {one.folder.resolve() for one in other.segments}
    same = next((one.folder for one in read.files.segments if one.folder.resolve() in folders), None)
    if same is not None:
        raise ValueError(f"{same} is on both sides: --against takes the directories of another cluster, or a copy")
    apart = replace(read, faults=[])
    each = findings_against(Evidence.of(read.files, apart), Evidence.of(other, apart))
    read.add(*map(_with_directory, apart.faults))
    return each


def _with_directory(fault: Fault) -> Fault:
    """Return a fault whose message begins with the path of the file."""
    of = f"{fault.topic}-{fault.partition}/"
    is_named = fault.replica is not None and fault.message.startswith(of)
    return replace(fault, message=f"{fault.replica}/{fault.message}") if is_named else fault


def row_of(finding: Finding) -> dict[str, Any]:
    """Return a finding as a row of the table, with the columns on request."""
    code = finding.code
    row = {"code": code.name, "severity": str(code.severity), "meaning": code.meaning}
    return {name: row.get(name, getattr(finding, name, None)) for name in (*FINDINGS.shown, *FINDINGS.on_request)}
