"""The version in which a message is written by default (KIP-915)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.definition import Definition, Field
from kraftlog.messages.differing import differs


def written_version(definition: Definition, columns: pa.RecordBatch | pa.Table) -> int:
    """Return the version to write: one that older releases can read, unless a newer one is needed.

    Parameters
    ----------
    definition : Definition
    columns : pyarrow.RecordBatch or pyarrow.Table
        A column for each field; missing ones have their defaults.

    Returns
    -------
    int
        The highest version that is not flexible and has all fields whose values are not their defaults; else the lowest
        flexible one that has them; else the last one. Of a message without such versions, as those of the metadata
        log, the last one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kraftlog.messages.catalog import BUILT_IN
    >>> commit = pa.table({"offset": [7], "leader_epoch": pa.array([2], pa.int32())})
    >>> written_version(BUILT_IN.messages["OffsetCommitValue"], commit)
    3
    >>> with_id = commit.append_column("topic_id", pa.array(["xxmuDHBfSWqUkjNiXl8dFQ"]))
    >>> written_version(BUILT_IN.messages["OffsetCommitValue"], with_id)
    4
    """
    versions = range(definition.versions.first, definition.versions.last + 1)
    fixed = [version for version in versions if version not in definition.flexible]
    if not fixed:
        return definition.versions.last
    needed = [field for field in definition.fields if _is_needed(field, columns)]
    able = [version for version in versions if all(version in field.versions for field in needed)]
    if not able:
        return definition.versions.last
    return max(set(able) & set(fixed), default=min(able))


def _is_needed(field: Field, columns: pa.RecordBatch | pa.Table) -> bool:
    """Whether a field has a value that is not its default."""
    if field.column not in columns.schema.names:
        return False
    return bool(pc.any(differs(field, columns.column(field.column)), min_count=0).as_py())
