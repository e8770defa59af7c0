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
from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass
from kraftlog.schema import FINDINGS
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read


def finding_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``findings``, the worst finding first."""
    yield from _rows(findings(Evidence.of(read.files, read)), read.schema)


def rows_against(own: Discovery, other: Discovery, read: Pass) -> Iterator[pa.RecordBatch]:
    """Return the differences of another cluster from this one, as rows of the table ``findings``.

    Parameters
    ----------
    own, other : Discovery
        Files of both.
    read : Pass
        Receives faults of both, with their log directories: partitions have the same names.

    Raises
    ------
    ValueError
        If a folder is in both, or no topic.
    """
    folders = {one.folder.resolve() for one in other.segments}
    same = next((one.folder for one in own.segments if one.folder.resolve() in folders), None)
    if same is not None:
        raise ValueError(f"{same} is on both sides: --against takes the directories of another cluster, or a copy")
    columns = FINDINGS.select([*FINDINGS.shown, *FINDINGS.on_request])
    apart = replace(read, faults=[])
    found = findings_against(Evidence.of(own, apart), Evidence.of(other, apart))
    read.add(*map(_with_directory, apart.faults))
    yield from _rows(found, columns)


def _with_directory(fault: Fault) -> Fault:
    """Return a fault whose message begins with the path of the file."""
    of = f"{fault.topic}-{fault.partition}/"
    is_named = fault.replica is not None and fault.message.startswith(of)
    return replace(fault, message=f"{fault.replica}/{fault.message}") if is_named else fault


def _rows(each: Sequence[Finding], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if each:
        rows = [row_of(one) for one in each]
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
        yield rows_of(columns, schema, len(each))


def row_of(finding: Finding) -> dict[str, Any]:
    """Return a finding as a row of the table, with the columns on request."""
    code = finding.code
    row = {"code": code.name, "severity": str(code.severity), "meaning": code.meaning}
    return {name: row.get(name, getattr(finding, name, None)) for name in (*FINDINGS.shown, *FINDINGS.on_request)}
