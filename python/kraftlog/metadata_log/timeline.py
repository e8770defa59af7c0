"""Events of a cluster, from its metadata log: changes of the image, and records that do not change it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kraftlog.codec.control import decode_control
from kraftlog.codec.decode import decode
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import CONTROL_TYPES, Headers
from kraftlog.codec.markers import MarkerBlock
from kraftlog.codec.metadata_markers import read_marker
from kraftlog.codec.options import NO_BOUND
from kraftlog.codec.transaction_view import TRANSACTION_STATES
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.metadata.changed import Changed
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.timeline.happenings import Burst, Happening
from kraftlog.metadata_log.changes import ChangeReader, Changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.read.metadata_scan import MetadataScan
from kraftlog.types import InputFile

SECOND = 1000  # milliseconds
_OF_QUORUM = [CONTROL_TYPES.index(name) for name in ("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS")]
_ABORTED = TRANSACTION_STATES.index("aborted")


class At(NamedTuple):
    """An event and its time: milliseconds, -1 if unknown."""

    timestamp: int
    what: Happening


def timeline(
    log: MetadataLog, before: ImageAt, offset: int | None, faults: list[Fault], where: ChangeFilter | None = None
) -> Iterator[At]:
    """Return the events after an image, in the order of offsets; equal changes of one second are merged.

    Parameters
    ----------
    log : MetadataLog
        Not a snapshot.
    before : ImageAt
    offset : int or None
        Last offset to apply; None for the end of the log.
    faults : list of Fault
    where : ChangeFilter, optional
        Only events of these topics and brokers; events of the log itself are left out.
    """
    reader = ChangeReader(before)
    return timeline_behind(log, reader, log.known_start(before.offset + 1), offset, faults, where)


def timeline_behind(
    log: MetadataLog,
    reader: ChangeReader,
    known_start: int | None,
    offset: int | None,
    faults: list[Fault],
    where: ChangeFilter | None = None,
) -> Iterator[At]:
    """Return the events after a reader's position, as ``timeline`` does.

    Parameters
    ----------
    log : MetadataLog
    reader : ChangeReader
    known_start : int or None
        An offset up to that position at which no transaction is open; None for the start of the log.
    offset : int or None
    faults : list of Fault
    where : ChangeFilter, optional
    """
    end = NO_BOUND if offset is None else offset + 1
    of_log = list(_of_log(log, known_start, reader.offset + 1, end)) if where is None else []
    change_filter = where or ChangeFilter()
    second, burst, stamps = None, Burst(where=change_filter), dict[int, int]()
    for steps in reader.read(log, offset, faults):
        for some in _by_second(steps):
            of_steps = int(some.timestamps[0]) // SECOND
            if of_steps != second:
                yield from _whole(burst, stamps, of_log)
                second, burst, stamps = of_steps, Burst(where=change_filter), {}
            burst.take(some.changed)
            stamps |= dict(zip(some.offsets.tolist(), some.timestamps.tolist(), strict=True))
    yield from _whole(burst, stamps, of_log)
    yield from of_log


def _whole(burst: Burst, stamps: dict[int, int], of_log: list[At]) -> Iterator[At]:
    """Return the events of a burst, and remove and return those of the log up to its end."""
    happenings = [At(stamps[one.offset], one) for one in burst.happenings()]
    last = max(stamps, default=-1)
    before = [one for one in of_log if one.what.offset <= last]
    del of_log[: len(before)]
    yield from sorted([*before, *happenings], key=lambda one: one.what.offset)


def _by_second(steps: Changes) -> Iterator[Changes]:
    """Split steps where the second of their timestamps changes."""
    seconds = steps.timestamps // SECOND
    cuts = [0, *(np.flatnonzero(np.diff(seconds)) + 1).tolist(), len(seconds)]
    if len(cuts) <= 2 and len(seconds):
        yield steps
        return
    in_order: dict[str, Changed] = {
        name: one.take(np.argsort(one.groups, kind="stable")) for name, one in steps.changed.items()
    }
    for start, end in pairwise(cuts) if len(seconds) else ():
        first, last = int(steps.offsets[start]), int(steps.offsets[end - 1])
        changed = {}
        for name, one in in_order.items():
            begin, stop = np.searchsorted(one.groups, (first, last + 1)).tolist()
            if stop > begin:
                changed[name] = one.take(np.arange(begin, stop))
        yield Changes(steps.offsets[start:end], steps.epochs[start:end], steps.timestamps[start:end], changed)


def _of_log(log: MetadataLog, known_start: int | None, start: int, end: int) -> Iterator[At]:
    """Return new leaders and voters of the quorum, and aborted transactions, at offsets [start, end)."""
    before: list[At] = []
    block: list[Headers] = []

    def see(file: InputFile, batches: MarkerBlock) -> None:
        headers = batches.headers
        block[:] = [headers]
        control = headers[np.isin(headers["control_type"], _OF_QUORUM)]
        places = zip(control["position"].tolist(), ends(control).tolist(), control, strict=True)
        for position, stop, header in places:
            rows = decode(file.read(position, stop), columns=["offset", "key", "value"], include_control=True)
            for row in rows.to_table().to_pylist():
                said = _of_control(row["key"], row["value"], int(header["partition_leader_epoch"]))
                if said and start <= row["offset"] < end:
                    what = Happening(row["offset"], row["offset"], *said)
                    before.append(At(int(header["max_timestamp"]), what))

    for step in MetadataScan(log.segments, [], start_offset=known_start, observe=see).found():
        rows = step.transactions
        for row, begin, last in zip(rows, step.begin_values, step.end_values, strict=True):
            if row["state"] == _ABORTED and start <= row["end_offset"] < end:
                at = int(row["end_offset"])
                reason = _text(last)
                message = f"metadata transaction {_text(begin) or '(without a name)'} aborted"
                message += f": {reason}" if reason else ""
                message += f", begun at {row['begin_offset']}" if row["begin_offset"] >= 0 else ""
                before.append(At(_timestamp(block[0], at), Happening(at, at, "aborted_transaction", message)))
        before.sort(key=lambda one: one.what.offset)
        yield from before
        before.clear()


def _of_control(key: bytes | None, value: bytes | None, epoch: int) -> tuple[str, str] | None:
    try:
        record = decode_control(key or b"", value)
    except InvalidRecordError:
        return None  # reading records reports the fault
    if record.control_type == "LEADER_CHANGE":
        return "controller", f"controller {record.fields['leaderId']} is the active controller, epoch {epoch}"
    if record.control_type == "KRAFT_VOTERS":
        voters = ", ".join(str(voter["voterId"]) for voter in record.fields["voters"])
        return "voters", f"voters of the metadata quorum: {voters}"
    return "voters", f"kraft.version {record.fields['kRaftVersion']}"


def _timestamp(headers: Headers, offset: int) -> int:
    at = int(np.searchsorted(headers["base_offset"], offset, "right")) - 1
    return int(headers["max_timestamp"][at]) if at >= 0 else -1


def _text(marker: bytes | None) -> str | None:
    try:
        parsed = None if marker is None else read_marker(marker)
    except InvalidRecordError:
        return None
    return parsed.text if parsed else None
