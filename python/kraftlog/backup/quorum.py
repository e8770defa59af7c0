"""The controllers of a new quorum, and the metadata that they start from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from kraftlog.disk.disk import disk
from kraftlog.messages.one_message import encode_message
from kraftlog.metadata.image import TYPES, Image
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.batches import QuorumRecords
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.meta_properties import write_meta_properties
from kraftlog.write.partition_log import PartitionLog

CONTROLLER_LISTENER = "CONTROLLER"
DYNAMIC, STATIC = "dynamic", "static"
QUORUMS = (STATIC, DYNAMIC)
_KRAFT_VERSION = 1  # since it, voters are in the metadata log
_ADDRESS = re.compile(r"(?P<node_id>[0-9]+)@(?P<host>\[[^\]]+\]|[^:@]+):(?P<port>[0-9]+)")


@dataclass(frozen=True)
class Voter:
    """A controller of a quorum.

    Attributes
    ----------
    node_id : int
    host, port : str, int
        Of its listener ``CONTROLLER``.
    directory_id : bytes
        Of the directory with its metadata log.
    """

    node_id: int
    host: str
    port: int
    directory_id: bytes

    @classmethod
    def of(cls, text: str, directory_id: bytes) -> Voter:
        """Read ``ID@HOST:PORT``.

        Raises
        ------
        ValueError

        Examples
        --------
        >>> from kraftlog.backup.quorum import Voter
        >>> voter = Voter.of("3@controller-3.example.com:9093", bytes(16))
        >>> voter.node_id, voter.host, voter.port
        (3, 'controller-3.example.com', 9093)
        """
        found = _ADDRESS.fullmatch(text)
        if found is None or not 0 < int(found["port"]) < 2**16 or int(found["node_id"]) >= 2**31:
            raise ValueError(f"voter {text!r}: expected ID@HOST:PORT, as 1@localhost:9093")
        return cls(int(found["node_id"]), found["host"], int(found["port"]), directory_id)

    def __str__(self) -> str:
        return f"{self.node_id}@{self.host}:{self.port}"


def quorum_records(voters: Sequence[Voter]) -> QuorumRecords:
    """Return the control records of a snapshot that make the voters those of a dynamic quorum."""
    rows = [
        {
            "voter_id": voter.node_id,
            "voter_directory_id": uuid_text(voter.directory_id),
            "endpoints": [{"name": CONTROLLER_LISTENER, "host": voter.host.strip("[]"), "port": voter.port}],
            "kraft_version_feature": {"min_supported_version": 0, "max_supported_version": _KRAFT_VERSION},
        }
        for voter in voters
    ]
    version = encode_message("KRaftVersionRecord", 0, {"version": 0, "kraft_version": _KRAFT_VERSION})
    return (
        ("KRAFT_VERSION", version),
        ("KRAFT_VOTERS", encode_message("VotersRecord", 0, {"version": 0, "voters": rows})),
    )


def quorum_properties(voters: Sequence[Voter], quorum: str) -> dict[str, str]:
    """Return the properties by which nodes find the voters."""
    if quorum == STATIC:
        return {"controller.quorum.voters": ",".join(map(str, voters))}
    return {"controller.quorum.bootstrap.servers": ",".join(f"{voter.host}:{voter.port}" for voter in voters)}


def with_records(image: Image, records: Mapping[str, pa.Table]) -> Image:
    """Return an image with the records of another one, but for some types.

    Parameters
    ----------
    image : Image
    records : mapping of str to pyarrow.Table
        Records by their types, in the columns of ``Image.tables``.
    """
    changed = Image.empty()
    tables = image.tables([name for name in TYPES if name not in records]) | dict(records)
    for name in TYPES:
        rows = tables[name].combine_chunks()
        offsets = pa.array(range(changed.offset + 1, changed.offset + 1 + rows.num_rows), pa.int64())
        for batch in rows.add_column(0, pa.field("offset", pa.int64(), nullable=False), offsets).to_batches():
            changed.apply({name: batch})
    return changed


def of_voters(at: ImageAt, voters: Sequence[Voter], quorum: str) -> ImageAt:
    """Return an image for other controllers: their registrations are left out, as they register themselves."""
    controllers = at.image.tables(["RegisterControllerRecord"])["RegisterControllerRecord"]
    image = with_records(at.image, {"RegisterControllerRecord": controllers.slice(0, 0)})
    return replace(at, image=image, quorum=quorum_records(voters) if quorum == DYNAMIC else ())


def write_controller(directory: Path, at: ImageAt, cluster_id: str, node_id: int, directory_id: bytes) -> None:
    """Write the log directory from which a controller starts: its identity, the image as a snapshot, an empty log."""
    disk().make_folder(directory)
    folder = directory / f"{CLUSTER_METADATA}-0"
    disk().make_new_folder(folder)
    write_image(folder, at)
    PartitionLog(find_log_end(folder, start_offset=at.offset + 1), LogOptions(fsync="close")).close()
    write_meta_properties(directory, cluster_id, node_id, directory_id)


def properties_text(properties: Mapping[str, object], comments: Iterable[str] = ()) -> str:
    """Return the text of a file of properties."""
    lines = [*(f"# {line}" for line in comments), *(f"{name}={value}" for name, value in properties.items())]
    return "".join(f"{line}\n" for line in lines)
