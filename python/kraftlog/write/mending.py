"""What a partition's folder lacks or has damaged, written into it from replicas that agree with it.

Every log file that changes is written anew and takes the place of the one before, at once. Its index files are removed
first: a broker, and ``recover``, make the index files of a segment that has no ``.index``. So each step leaves a log
that is as good as before, or better, and the same command goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.durable import new_file
from kraftlog.errors import Fault
from kraftlog.layout.checkpointed_offsets import CheckpointedOffsets
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.layout.names import printable
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.read.healing import Graft, HealedLine, healed_line
from kraftlog.read.held_offsets import held_offsets
from kraftlog.read.partitions import Partition, Replica, replicas_of
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.write.log_files import segment_file
from kraftlog.write.recovery_action import Action, refuse, remove

PIECE_BYTES = 1 << 20
STRETCHES_SHOWN = 3
MOST_BYTES = 2**31 - 1  # of a log file, and of offsets in it


@dataclass
class _File:
    """A log file as it is to be: the segments, or stretches of them, that it is made of."""

    base_offset: int
    pieces: list[Segment] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Mending:
    """What is written into one folder.

    Parameters
    ----------
    folder : PartitionFolder
    sources : iterable of Segment
        Of other replicas, of any partitions.
    checkpointed : CheckpointedOffsets
        Of its log directory: where its log starts, and up to which offset its index files show what is missing.

    Raises
    ------
    ValueError
        When a replica is of another topic or cluster.
    """

    def __init__(self, folder: PartitionFolder, sources: Iterable[Segment], checkpointed: CheckpointedOffsets) -> None:
        self._folder = folder
        self._path = Path(str(folder.path))
        start, settled = checkpointed
        self._segments = [
            replace(one, log_start_offset=start, settled_offset=0 if one.is_swap else settled)
            for one in folder.segments
        ]
        self._line = HealedLine(tuple(self._segments))
        self._agreeing = 0
        of = {one.topic_partition for one in self._segments}
        of_partition = [one for one in sources if one.topic_partition is not None and one.topic_partition in of]
        others = [one for replicas in replicas_of(of_partition) for one in replicas]
        others = [one for one in others if one.folder.absolute() != self._path.absolute()]
        if not others:
            return
        own = Replica(self._segments)
        for one in others:
            _check_identity(own, one)
        checkpoints = ReplicaCheckpoints([])
        partition = Partition([own, *others], line=own)
        cleaned = {one: checkpoints.cleaned_until(one) for one in partition.replicas}
        self._agreeing = len(partition.agreeing)
        self._line = healed_line(partition, cleaned, check_crc=True, salvages=False)

    def actions(self) -> Iterator[Action]:
        """Return what is to be done, in this order; nothing where the folder lacks nothing that the others have."""
        if not self._line.grafts:
            return
        if self._folder.replacements:
            first = self._folder.replacements[0].swap
            yield refuse(first.local_path, first.size, "recover the folder without --from first: a cleaner was stopped")
            return
        files = _files(self._line, self._segments)
        there = {segment.base_offset: segment for segment in self._segments}
        ahead = [one for one in files if one.base_offset < (self._segments[0].base_offset or 0)]
        # those before the log begins from the last one on, so that the log has no hole at any moment
        for file in [*reversed(ahead), *(one for one in files if one not in ahead)]:
            yield from self._write(file, there.get(file.base_offset))
        names = {file.base_offset for file in files}
        for base_offset, segment in there.items():
            if base_offset not in names:
                yield from self._remove_index_files(segment)
                yield remove(segment.local_path, segment.size, "other replicas have what was in it")

    def damage(self) -> Iterator[Action]:
        """Return the log files that are still damaged after these actions."""
        sizes = {_path_of(segment): segment.size for segment in self._segments}
        for piece in self._line.segments:
            path = _path_of(piece)
            if path in sizes:
                faults: list[Fault] = []
                held_offsets(piece, faults, check_crc=True)
                yield from (refuse(path, sizes[path], fault.message) for fault in faults)

    def notes(self) -> Iterator[str]:
        """Return notes on offsets that are still missing after these actions, and on a folder without a source."""
        if not self._segments:
            return
        of = printable(str(self._segments[0].topic_partition))
        if not self._agreeing:
            yield f"{of}: no replica that --from names agrees with it"
        missing = self._line.missing
        if missing:
            shown = [f"{one.first_offset} to {one.end_offset - 1}" for one in missing[:STRETCHES_SHOWN]]
            more = f" and {len(missing) - len(shown)} more ranges" if len(missing) > len(shown) else ""
            yield f"{of}: no replica has offsets {', '.join(shown)}{more}"

    def _write(self, file: _File, there: Segment | None) -> Iterator[Action]:
        if there is not None and [(_path_of(one), one.size) for one in file.pieces] == [(_path_of(there), there.size)]:
            return
        path = segment_file(self._path, file.base_offset)
        span = max((piece.base_offset or 0) for piece in file.pieces) - file.base_offset
        if file.size > MOST_BYTES or span > MOST_BYTES:
            yield refuse(path, file.size, f"{file.size} bytes and {span} offsets do not fit one segment")
            return
        if there is not None:
            yield from self._remove_index_files(there)
        yield Action(
            path,
            "write",
            None if there is None else there.size,
            file.size,
            "; ".join(_reasons(file, self._line.grafts)),
            pieces=tuple(file.pieces),
        )

    def _remove_index_files(self, segment: Segment) -> Iterator[Action]:
        for kind in sorted(ENTRY_TYPES.keys() & segment.beside.keys()):
            path = Path(str(segment.beside[kind]))
            yield remove(path, self._folder.entries[path.name].size or 0, "made anew")


def _check_identity(own: Replica, other: Replica) -> None:
    for what, one, another in (
        ("topic id", own.topic_id, other.topic_id),
        ("cluster id", own.cluster_id, other.cluster_id),
    ):
        if one is not None and another is not None and one != another:
            both = f"{one} in {own.folder} and {another} in {other.folder}"
            raise ValueError(f"a folder is mended from replicas of the same partition alone: {what} {both}")
    if not other.is_read:
        raise ValueError(f"{other.folder}: a folder that Kafka marked {other.kind} mends no other")


def _files(line: HealedLine, own: Sequence[Segment]) -> list[_File]:
    """Return the log files that a line becomes.

    Stretches of others are in the file of the damage that they replace, or in the one whose offsets they have by its
    name. What is of no file becomes new ones.
    """
    sizes = {_path_of(segment): segment.size for segment in own}
    ends = {(_path_of(one.segment), one.start): one.offsets.end_offset for one in line.grafts}
    files: list[_File] = []
    path, others = Path(), list[Segment]()
    for piece in line.segments:
        if (source := _path_of(piece)) not in sizes:
            others.append(piece)
        elif source == path:
            files[-1].pieces += [*others, piece]
            others = []
        else:
            named = piece.file_base_offset or 0
            behind = [one for one in others if (one.base_offset or 0) < named]
            _add(files, behind, sizes.get(path, 0))
            begins = max([named, *(ends[_place_of(one)] for one in behind)])
            files.append(_File(begins, [*others[len(behind) :], piece]))
            path, others = source, []
    _add(files, others, sizes.get(path, 0))
    return files


def _add(files: list[_File], others: Sequence[Segment], most_bytes: int) -> None:
    """Add stretches to the last file, as long as it does not get larger than it was; then to new ones."""
    path = None if files else Path()
    for piece in others:
        fits = files[-1].size + piece.size <= most_bytes if path is None else path == _path_of(piece)
        if fits:
            files[-1].pieces.append(piece)
        else:
            path = _path_of(piece)
            files.append(_File(piece.base_offset or 0, [piece]))


def _place_of(piece: Segment) -> tuple[Path, int]:
    return _path_of(piece), piece.first_byte or 0


def _path_of(piece: Segment) -> Path:
    """Return the file that a segment, or a stretch of one, is in."""
    return Path(str(piece.path)).absolute()


def _reasons(file: _File, grafts: Sequence[Graft]) -> Iterator[str]:
    pieces = {_place_of(piece) for piece in file.pieces}
    for one in grafts:
        if (_path_of(one.segment), one.start) in pieces:
            first, last = one.offsets.first_offset, one.offsets.end_offset - 1
            what = f"offset {first}" if first == last else f"offsets {first} to {last}"
            yield f"{what} from {printable(str(one.replica.directory))}: {one.why}"


def write_pieces(path: Path, pieces: Iterable[Segment]) -> None:
    """Write a log file of stretches of others; it takes its name when it is on disk."""
    with new_file(path) as file:
        for piece in pieces:
            with closing(disk().open(piece.path, piece.size)) as source:
                for position in range(0, piece.size, PIECE_BYTES):
                    file.append(source.read(position, min(position + PIECE_BYTES, piece.size)))
