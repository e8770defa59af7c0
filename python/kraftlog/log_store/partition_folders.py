"""Folders of partitions: made with their topic id, removed in Kafka's steps."""

from __future__ import annotations

from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.layout.names import PARTITION_METADATA
from kraftlog.metadata.uuids import uuid_bytes, uuid_text

LONGEST_FOLDER_NAME = 255


def topic_id_of(folder: Path) -> bytes | None:
    """Return the topic id in the folder of a partition; None if it has none."""
    path = folder / PARTITION_METADATA
    if disk().entry(path) is None:
        return None
    rows = dict(line.split(": ", 1) for line in disk().read_bytes(path).decode().splitlines() if ": " in line)
    try:
        return uuid_bytes(rows["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: expected topic_id, found none") from error


def make_partition_folder(folder: Path, topic_id: bytes, *, was_clean: bool = False) -> None:
    """Make the folder of a partition, and the file with its topic id.

    A folder of an earlier topic of the same name, which a crash has left, is removed.

    Parameters
    ----------
    folder : Path
    topic_id : bytes
    was_clean : bool
        Whether the log directory was closed cleanly: an existing folder is then on disk.
    """
    path, content = folder / PARTITION_METADATA, f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()
    if disk().entry(path) is not None:
        if disk().read_bytes(path).strip() != content:
            remove_partition_folder(folder, topic_id)
        elif was_clean:
            return
    disk().make_folder(folder)
    if disk().entry(path) is None:
        write_file(path, content)


def remove_partition_folder(folder: Path, unique: bytes) -> None:
    """Remove the folder of a partition: first rename it, in one step, to a name with the suffix ``-delete``."""
    name, _, number = folder.name.rpartition("-")
    ending = f"-{number}.{unique.hex()}-delete"
    doomed = folder.with_name(f"{name[: LONGEST_FOLDER_NAME - len(ending)]}{ending}")
    disk().rename(folder, doomed)
    disk().sync_folder(folder.parent)
    disk().remove_tree(doomed)
