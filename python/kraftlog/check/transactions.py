"""What does not hold of transactions: files beside the log that differ from it, odd batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.layout.discover import Segment
from kraftlog.layout.index_files import ENTRY_TYPES, read_index
from kraftlog.layout.rebuild import Rebuild
from kraftlog.layout.small_files import read_producer_snapshot
from kraftlog.read.partitions import by_partition, is_metadata, producers_before
from kraftlog.read.records import located, open_segment
from kraftlog.topics import COORDINATOR_TOPICS
from kraftlog.transactions.producer_state import ProducerState
from kraftlog.transactions.sequences import SequenceCheck

_COMPARED = ("producer_epoch", "last_sequence", "last_offset", "current_transaction_first_offset", "coordinator_epoch")


def sequence_faults(segments: list[Segment]) -> Iterator[Fault]:
    """Return batches of producers that a broker would not have accepted."""
    for group in by_partition(segments):
        check = SequenceCheck(compare_sequences=group[0].topic not in COORDINATOR_TOPICS)
        for segment in group:
            for headers in HeaderScan(open_segment(segment, [], strict=False), check_crc=True).headers():
                for odd in check.add(headers[headers["crc_ok"] != 0]):
                    message = f"batch at byte {odd.position}: {odd.what}"
                    yield located(segment, Fault(odd.error, message, odd.position, base_offset=odd.base_offset))


def beside_faults(segments: list[Segment]) -> Iterator[Fault]:
    """Return what ``.txnindex`` and ``.snapshot`` files say that the log does not.

    Of a log that lacks records, because its beginning was deleted or the cleaner was there, these files may know more.
    Behind damage nothing is compared.
    """
    for group in by_partition(segments):
        first = group[0]
        if is_metadata(first) or first.state or first.base_offset is None:
            continue
        rebuild = Rebuild(first.base_offset, INDEX_INTERVAL_BYTES)
        rebuild.begin_with(producers_before(first, []) or [])
        for segment in group:
            yield from _compare_snapshot(segment, rebuild, segment.base_offset or 0)
            try:
                rebuilt = rebuild.segment(open_segment(segment, [], strict=False), segment.base_offset or 0)
            except ValueError:
                break  # offsets that the segment cannot hold; other checks name them
            if rebuilt.fault is not None:
                break
            yield from _compare_index(segment, rebuilt.files.get("txnindex", b""), is_complete=rebuild.is_complete)
        else:
            yield from _compare_snapshot(group[-1], rebuild, rebuild.next_offset)


def _compare_index(segment: Segment, expected: bytes, *, is_complete: bool) -> Iterator[Fault]:
    path = segment.beside.get("txnindex")
    entries = np.frombuffer(expected, ENTRY_TYPES["txnindex"]).tolist()
    if path is None:
        if entries and "index" in segment.beside:  # a log file that was copied alone has no index files at all
            yield located(segment, Fault("txnindex_mismatch", f"no .txnindex, but {len(entries)} aborted transactions"))
        return
    faults: list[Fault] = []
    try:
        columns = read_index(path, "txnindex", segment.base_offset or 0, faults)
    except OSError as error:
        yield located(segment, Fault("unreadable_file", f"{path.name}: {error.strerror}"))
        return
    found = set(zip(*(columns[name].tolist() for name in ENTRY_TYPES["txnindex"].names or ()), strict=True))
    for entry in entries:
        if entry not in found:
            yield located(segment, Fault("txnindex_mismatch", f"{path.name}: no entry for {_described(entry)}"))
    if is_complete:
        for entry in sorted(found - set(entries)):
            what = f"an entry for {_described(entry)}, which the log has not"
            yield located(segment, Fault("txnindex_mismatch", f"{path.name}: {what}"))


def _described(entry: tuple[int, ...]) -> str:
    _, producer_id, first_offset, last_offset, last_stable_offset = entry
    return (
        f"the aborted transaction of producer {producer_id} from offset {first_offset} to {last_offset}"
        f" with last_stable_offset {last_stable_offset}"
    )


def _compare_snapshot(segment: Segment, rebuild: Rebuild, offset: int) -> Iterator[Fault]:
    """Compare the snapshot of an offset with the producers of the log up to there.

    Producers that only the log knows may have expired.
    """
    path = segment.path.with_name(f"{offset:020d}.snapshot")
    if disk().entry(path) is None or not rebuild.is_complete:
        return
    try:
        found = {state.producer_id: state for state in read_producer_snapshot(path)}
    except (OSError, CorruptRecordError) as error:
        yield located(segment, Fault("bad_snapshot", str(error)))
        return
    known = {state.producer_id: state for state in rebuild.producers()}
    for producer_id, state in sorted(found.items()):
        what = _difference(state, known.get(producer_id))
        if what:
            yield located(segment, Fault("snapshot_mismatch", f"{path.name}: producer {producer_id}: {what}"))


def _difference(found: ProducerState, known: ProducerState | None) -> str:
    if known is None:
        return "not in the log"
    return ", ".join(
        f"{name} {getattr(found, name)}, but {getattr(known, name)} by the log"
        for name in _COMPARED
        if getattr(found, name) != getattr(known, name)
    )
