"""The voters of the metadata quorum, from the files of one node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kraftlog.codec.control import decode_control
from kraftlog.codec.decode import decode
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, RecordError
from kraftlog.layout.segment import Segment
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.read.segment_reader import segment_file, segment_headers

QUORUM_STATE = "quorum-state"
_NAMES_VOTERS = [CONTROL_TYPES.index(name) for name in ("LEADER_CHANGE", "KRAFT_VOTERS")]


def voters_of(segments: Sequence[Segment], faults: list[Fault]) -> frozenset[int] | None:
    """Return the node ids of the voters; None if no file names them.

    The last record of the log that names them counts: a new leader's LeaderChangeMessage, or a VotersRecord (KIP-853),
    which is in force as soon as it is appended. When snapshots have replaced these records, a VotersRecord is in the
    snapshot. A quorum with voters in the nodes' configuration has them in ``quorum-state`` instead.

    Parameters
    ----------
    segments : sequence of Segment
        Segments of one replica of the metadata log, in order.
    faults : list of Fault
        Receives what cannot be read.
    """
    log = MetadataLog(segments)
    for segment in (*reversed(log.segments), *(snapshot.segment for snapshot in log.snapshots[:1])):
        named = list(_named(segment, faults))
        if named:
            return frozenset(named[-1])
    return _of_quorum_state(log.segments[-1].folder.absolute() / QUORUM_STATE, faults)


def _named(segment: Segment, faults: list[Fault]) -> Iterator[Iterable[int]]:
    """Return the voters in each control record of the last batch with such records."""
    last = None
    for headers in segment_headers(segment, faults, check_control=True):
        at = np.flatnonzero(np.isin(headers["control_type"], _NAMES_VOTERS) & (headers["crc_ok"] != 0))
        last = headers[at[-1:]].copy() if len(at) else last
    if last is None:
        return
    with segment_file(segment, faults, strict=False) as file:
        batch = file.read(int(last["position"][0]), int(ends(last)[0]))
    for row in decode(batch, columns=["key", "value"], include_control=True).to_table().to_pylist():
        try:
            fields = decode_control(row["key"] or b"", row["value"]).fields
        except RecordError as error:
            faults.append(Fault("bad_record", f"{segment.path}: {error}", topic=segment.topic, partition=0))
            continue
        if "voters" in fields:
            yield [voter["voterId"] for voter in fields["voters"]]


def _of_quorum_state(path: LogPath, faults: list[Fault]) -> frozenset[int] | None:
    try:
        if disk().entry(path) is None:
            return None
        voters = json.loads(disk().read_bytes(path)).get("currentVoters")  # none since KIP-853
        return None if voters is None else frozenset(voter["voterId"] for voter in voters)
    except OSError as error:
        faults.append(Fault("unreadable_file", f"{path}: {error.strerror or error}"))
    except (ValueError, KeyError, TypeError, AttributeError):
        faults.append(Fault("bad_checkpoint", f"{path.parent}: {path.name} is not JSON with voters"))
    return None
