"""High watermarks that the files of replicas prove."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kraftlog.errors import Fault
from kraftlog.layout.checkpoints import HIGH_WATERMARKS
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import Partition, Replica, ReplicaKind
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.tables.lines import Lines
from kraftlog.topics import CLUSTER_METADATA

NO_PROOF = "nothing proves more than the log start offset"


class HighWatermark(NamedTuple):
    """The offset up to which records of a log are committed.

    Attributes
    ----------
    at_least, at_most : int
        Records before the first offset are committed, records from the second on are not.
    why : str
        The proof of the first offset.
    """

    at_least: int
    at_most: int
    why: str


@dataclass(frozen=True)
class Held:
    """Bounds of the offset up to which one voting node has the records of a log."""

    at_least: int
    at_most: int


def held_by(needed: int, each: Iterable[Held]) -> Held:
    """Return the offset up to which a number of nodes have the records.

    Examples
    --------
    >>> from kraftlog.tables.high_watermarks import Held, held_by
    >>> held_by(2, [Held(52, 52), Held(47, 47), Held(0, 52)])
    Held(at_least=47, at_most=52)
    """
    known = list(each)
    at_least, at_most = (
        sorted(offsets, reverse=True) for offsets in ([one.at_least for one in known], [one.at_most for one in known])
    )
    return Held(at_least[needed - 1], at_most[needed - 1])


class HighWatermarks:
    """The high watermarks of the lines of partitions, computed on request.

    They are those of the time at which the files, including the metadata log, were on the disks of their nodes.

    Parameters
    ----------
    lines : Lines
    faults : list of Fault
        Receives faults.
    """

    def __init__(self, lines: Lines, faults: list[Fault]) -> None:
        self._lines = lines
        self._faults = faults
        self._checkpoints = ReplicaCheckpoints(faults)

    def of(self, segment: Segment, end_offset: int) -> HighWatermark:
        """Return the high watermark of a line.

        Parameters
        ----------
        segment : Segment
            A segment of the line.
        end_offset : int
            End of the line.
        """
        partition = self._lines.partition_of(segment)
        start = min(partition.line.start_offset, end_offset)
        if partition.topic == CLUSTER_METADATA:
            at_least, at_most, why = self._of_quorum(partition, start, end_offset)
        else:
            at_least, at_most, why = self._of_isr(partition, start, end_offset)
        said = self._checkpointed(partition, end_offset)
        if said > at_least:
            at_least, why = said, f"{HIGH_WATERMARKS} says so"
        return HighWatermark(max(start, min(at_least, at_most)), max(start, at_most), why)

    def _of_isr(self, partition: Partition, start: int, end_offset: int) -> HighWatermark:
        """Return the offset up to which all in-sync replicas have the records.

        With fewer in-sync replicas than ``min.insync.replicas`` a leader does not advance the high watermark (KIP-966):
        their records do not count as committed.
        """
        isr = self._lines.isr_of(partition)
        if not isr:
            return HighWatermark(start, end_offset, NO_PROOF)
        held = held_by(len(isr), self._each(partition, isr, start, end_offset))
        if held.at_least == start or len(isr) < self._lines.min_insync_replicas_of(partition):
            return HighWatermark(start, held.at_most, NO_PROOF)
        return HighWatermark(*self._pair(held), f"all replicas in sync have it: {_text(isr)}")

    def _of_quorum(self, partition: Partition, start: int, end_offset: int) -> HighWatermark:
        """Return the offset up to which a majority of the voters has the records.

        A majority commits records of the last leader's epoch. Records of an earlier epoch may still be overwritten,
        unless all voters have them.
        """
        from kraftlog.metadata_log.voters import voters_of

        voters = voters_of(partition.segments, self._faults)
        if not voters:
            return HighWatermark(start, end_offset, NO_PROOF)
        each = self._each(partition, voters, start, end_offset)
        majority, whole = held_by(len(voters) // 2 + 1, each), held_by(len(voters), each)
        epochs = partition.line.lineage.epochs
        if epochs and majority.at_least > epochs[-1].start_offset:
            return HighWatermark(*self._pair(majority), f"a majority of the voters has it: {_text(voters)}")
        why = NO_PROOF if whole.at_least == start else f"all voters have it: {_text(voters)}"
        return HighWatermark(whole.at_least, majority.at_most, why)

    @staticmethod
    def _pair(held: Held) -> tuple[int, int]:
        return held.at_least, held.at_most

    def _each(self, partition: Partition, nodes: frozenset[int], start: int, end_offset: int) -> list[Held]:
        """Return the bounds of each node; a node without a directory among the files may have no records or all."""
        return [
            self._held([one for one in partition.replicas if _is_of(one, node)], partition.line, start, end_offset)
            for node in sorted(nodes)
        ]

    def _held(self, copies: list[Replica], line: Replica, start: int, end_offset: int) -> Held:
        """Return the bounds of one node; of several copies of its directory, the newest one is unknown."""
        at_least, at_most = [], []
        for one in copies:
            agreed = end_offset if one is line else one.agrees_until(line)
            end = min(one.end.end_offset, end_offset)
            at_least.append(start if agreed is None else min(agreed, end))
            at_most.append(end if agreed is None else min(agreed, end))
        return Held(min(at_least, default=start), max(at_most, default=end_offset))

    def _checkpointed(self, partition: Partition, end_offset: int) -> int:
        """Return the greatest offset of the line that a broker has recorded as replicated; otherwise -1."""
        found = -1
        for one in partition.replicas:
            said = self._checkpoints.high_watermark(one)
            agreed = end_offset if one is partition.line else one.agrees_until(partition.line)
            if said is not None and agreed is not None:
                found = max(found, min(said, agreed, end_offset))
        return found


def _is_of(replica: Replica, node: int) -> bool:
    return replica.kind is ReplicaKind.LIVE and replica.node_id == node


def _text(nodes: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(nodes)))
