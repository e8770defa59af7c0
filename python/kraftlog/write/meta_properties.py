"""``meta.properties``: the identity of a log directory of a KRaft node."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.durable import write_file
from kraftlog.layout.checkpoints import META_PROPERTIES
from kraftlog.metadata.uuids import uuid_text


def write_meta_properties(log_directory: Path, cluster_id: str, node_id: int, directory_id: bytes) -> dict[str, str]:
    """Write the identity of a log directory, and return its rows."""
    rows = {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(node_id),
        "directory.id": uuid_text(directory_id),
    }
    write_file(log_directory / META_PROPERTIES, "".join(f"{key}={value}\n" for key, value in rows.items()).encode())
    return rows
