"""The visible records of a metadata log, typed, as an image takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.metadata_markers import MARKER_NAMES
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.messages.arrow_types import UUID_BINARY
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import METADATA
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.typed_pass import Typed
from kraftlog.metadata_log.batches import Batches
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.read.messages import faults_of_messages
from kraftlog.read.metadata_scan import MetadataScan
from kraftlog.read.records import Progress, read_range

_COLUMNS = schema.RECORDS.select(["value", "offset", "visible_at"])
_MARKERS = frozenset(MARKER_NAMES.values())
_NEVER = -1
_BATCH_BYTES = 3 * ReadOptions.batch_bytes  # measured: with less a sixth more time, with more only more memory


@dataclass(frozen=True)
class Visible:
    """The visible records of a chunk.

    Attributes
    ----------
    typed : dict of str to Typed
        By type.
    offsets, visible_at : numpy.ndarray of int64
        Of each record of the chunk: its own, and the one at which it became visible; -1 for markers.
    """

    typed: dict[str, Typed]
    offsets: npt.NDArray[np.int64]
    visible_at: npt.NDArray[np.int64]

    def tables(self, wanted: npt.NDArray[np.bool_]) -> dict[str, pa.RecordBatch]:
        """Return those of the chunk's records that are wanted, as ``Image.apply`` takes them."""
        at = np.flatnonzero(wanted)
        first, end = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
        are_together = end - first == len(at)
        found = {}
        for name, typed in self.typed.items():
            begin, stop = np.searchsorted(typed.rows, (first, end)).tolist()
            rows = typed.rows[begin:stop]
            batch = typed.fields.slice(begin, stop - begin).add_column(0, "offset", pa.array(self.offsets[rows]))
            found[name] = batch if are_together else batch.filter(pa.array(wanted[rows]))
        return found


class Replay:
    """Reads a metadata log, or a snapshot, while one scan ahead of it decides about transactions.

    Parameters
    ----------
    log : MetadataLog
    start, end : int
        Offsets [start, end) of the records.
    batches : Batches
        Is shown the batches of the log.
    is_start_known : bool
        Whether no transaction is open at ``start``, where a snapshot ends; else the scan starts at the last snapshot
        before it, or where the log starts.
    """

    def __init__(
        self, log: MetadataLog, start: int, end: int, batches: Batches, *, is_start_known: bool = False
    ) -> None:
        self.batches = batches
        self._bounds = start, end
        first = log.segments[0].base_offset
        is_bound = first is None or start > first  # else no record need be compared with it
        self._options = ReadOptions(
            start_offset=start if is_bound else -NO_BOUND, end_offset=end, batch_bytes=_BATCH_BYTES
        )
        self._log = log
        self._start = start if is_start_known else log.known_start(start)

    def visible(
        self, faults: list[Fault], on_progress: Progress | None = None, *, range_bytes: int | None = None
    ) -> Iterator[Visible]:
        """Return the records that are visible to readers of a committed log; faults receives what is wrong."""
        self.scan = MetadataScan(
            self._log.segments, faults, start_offset=self._start, bounds=self._bounds, observe=self.batches.see
        )
        reader = MessageReader(BUILT_IN.formats[METADATA], UUID_BINARY)
        for part in self.scan.ranges(self._options, range_bytes):
            for records in read_range(part, _COLUMNS, self._options, faults, on_progress):
                messages = reader.read(None, records.column("value"))
                every = messages.every_typed()
                if _hides_more_than_markers(records, every, messages.faults):
                    records = records.filter(records.column("visible_at").is_valid())
                    if not records.num_rows:
                        continue
                    messages = reader.read(None, records.column("value"))
                    every = messages.every_typed()
                typed = {name: one for name, one in every.items() if name not in _MARKERS}
                faults += faults_of_messages(part.segment, records, messages.faults)
                visible_at = records.column("visible_at").fill_null(_NEVER).to_numpy()
                yield Visible(typed, records.column("offset").to_numpy(), visible_at)


def _hides_more_than_markers(records: pa.RecordBatch, every: Mapping[str, Typed], faults: Mapping[int, str]) -> bool:
    """Return whether records are aborted or open, or hidden ones have faults, which then do not count."""
    visible_at = records.column("visible_at")
    of_markers = [every[name].rows for name in _MARKERS if name in every]
    markers = np.concatenate([np.empty(0, np.int64), *of_markers])
    hidden = visible_at.null_count
    are_markers = len(markers) == hidden == visible_at.take(pa.array(markers)).null_count
    return hidden > 0 and (not are_markers or bool(faults))
