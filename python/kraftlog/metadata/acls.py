"""The ids of ACLs: Kafka refuses a record that removes an unknown one."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kraftlog.errors import Fault
from kraftlog.metadata import schemas
from kraftlog.metadata.record_types import ACLS
from kraftlog.metadata.uuids import uuid_text

ENTRY, REMOVE = ACLS.name, ACLS.remover


def apply(ids: set[bytes], batches: Mapping[str, pa.RecordBatch], faults: list[Fault]) -> None:
    """Add and remove the ids of a chunk's ACLs."""
    records = [
        (offset, name, uuid)
        for name in (ENTRY, REMOVE)
        if name in batches
        for offset, uuid in zip(
            schemas.offsets_of(batches[name]).tolist(),
            schemas.column_of(batches[name], name, "id").to_pylist(),
            strict=True,
        )
    ]
    for offset, name, uuid in sorted(records, key=lambda record: record[0]):
        if name == ENTRY:
            ids.add(uuid)
        elif uuid in ids:
            ids.remove(uuid)
        else:
            message = f"offset {offset}: {REMOVE} of ACL {uuid_text(uuid)}: there is no such ACL"
            faults.append(Fault("unknown_acl", message, base_offset=offset))
