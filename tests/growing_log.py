"""A partition's folder that grows, with a plain twin that knows what readers may see of it."""

from __future__ import annotations

from pathlib import Path

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.transactions.producer_state import ProducerStates
from transactions.model import ProducerModel

PLAIN = -1  # what stands for a producer id where there is none


class GrowingPartition:
    """Writes batch after batch, and a torn one on request.

    Attributes
    ----------
    folder : Path
        Of the partition.
    model : ProducerModel
        Says which offsets a read_committed reader sees, and where the last stable offset is.
    """

    def __init__(self, log_directory: Path, topic: str = "orders", partition: int = 0, base_offset: int = 0) -> None:
        self.folder = log_directory / f"{topic}-{partition}"
        self.folder.mkdir(parents=True)
        self.model = ProducerModel(next_offset=base_offset)
        self._written = 0
        self.roll()

    @property
    def segment(self) -> Path:
        """The last segment."""
        return max(self.folder.glob("*.log"))

    def append(self, records: int, producer_id: int = PLAIN) -> None:
        """Append a batch; with a producer it is transactional."""
        self.model.data(producer_id, records, transactional=producer_id != PLAIN)
        self._write(len(self.model.log))

    def commit(self, producer_id: int) -> None:
        """Append the marker that commits a producer's transaction."""
        self.model.marker(producer_id, "COMMIT")
        self._write(len(self.model.log))

    def abort(self, producer_id: int) -> None:
        """Append the marker that aborts a producer's transaction."""
        self.model.marker(producer_id, "ABORT")
        self._write(len(self.model.log))

    def append_torn(self, records: int) -> None:
        """Append half a batch; the next batch is preceded by the other half."""
        before = len(self.model.log)
        self.model.data(PLAIN, records, transactional=False)
        self._write((before + len(self.model.log)) // 2)

    def complete(self) -> None:
        """Write what is missing of a torn batch."""
        self._write(len(self.model.log))

    def roll(self) -> None:
        """Go on in a new segment; the snapshot of producers beside it says what is open."""
        base_offset = self.model.next_offset
        states = ProducerStates()
        for headers in HeaderScan(self.model.log).headers():
            states.add(headers)
        (self.folder / f"{base_offset:020d}.snapshot").write_bytes(producer_snapshot_bytes(states.states()))
        (self.folder / f"{base_offset:020d}.log").touch()

    def retain(self, segments: int) -> None:
        """Remove all but the last segments, as retention does."""
        for log in sorted(self.folder.glob("*.log"))[:-segments]:
            log.with_suffix(".snapshot").unlink()
            log.unlink()

    def _write(self, end: int) -> None:
        with self.segment.open("ab") as log:
            log.write(self.model.log[self._written : end])
        self._written = end
