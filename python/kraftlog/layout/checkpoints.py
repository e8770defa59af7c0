"""The small text files of a log directory and of a partition's folder: offsets, leader epochs and properties."""

from __future__ import annotations

from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.names import PARTITION_METADATA

LOG_START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"

_VERSION = 0


def read_offset_checkpoint(path: LogPath) -> dict[tuple[str, int], int]:
    """Read a checkpoint of a log directory, such as ``log-start-offset-checkpoint``: offsets by topic and partition.

    Raises
    ------
    OSError
        When the file cannot be read.
    CorruptRecordError
        When it is not in Kafka's format.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kraftlog.layout.checkpoints import read_offset_checkpoint
    >>> read_offset_checkpoint(Path("tests/golden/deleted_records/log/log-start-offset-checkpoint"))
    {('orders-del-7', 0): 91}
    """
    rows = _rows(path, 3)
    return {(topic, _number(path, at, partition)): _number(path, at, offset) for at, (topic, partition, offset) in rows}


def read_leader_epochs(path: LogPath) -> list[tuple[int, int]]:
    """Read ``leader-epoch-checkpoint``: pairs of epoch and its first offset.

    Raises
    ------
    OSError
        When the file cannot be read.
    CorruptRecordError
        When it is not in Kafka's format.
    """
    return [(_number(path, at, epoch), _number(path, at, offset)) for at, (epoch, offset) in _rows(path, 2)]


def read_properties(path: LogPath) -> dict[str, str]:
    """Read ``meta.properties`` (``key=value``) or ``partition.metadata`` (``key: value``).

    Raises
    ------
    OSError
        When the file cannot be read.
    CorruptRecordError
        When a line is not of that form.
    """
    separator = ":" if path.name == PARTITION_METADATA else "="
    properties = {}
    for line in _lines(path):
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(separator)
            if not found:
                raise CorruptRecordError(f"{path.name}: expected {separator!r} in the line {line!r}")
            properties[key.strip()] = value.strip()
    return properties


def _rows(path: LogPath, width: int) -> list[tuple[int, list[str]]]:
    """Return the entries of a checkpoint as words, each with the number of its line.

    The first line is the version, the second the number of entries. A broker creates the file empty and writes it
    later.
    """
    lines = _lines(path)
    if not lines:
        return []
    version = lines[0].strip()
    if version != str(_VERSION):
        raise CorruptRecordError(f"{path.name}: line 1: expected version {_VERSION}, found {version!r}")
    rows = [(number, line.split()) for number, line in enumerate(lines[2:], 3) if line.strip()]
    expected = _number(path, 2, lines[1]) if len(lines) > 1 else 0
    if len(lines) < 2 or expected != len(rows):
        entries = f"line 2: expected {expected} entries, found {len(rows)}"
        raise CorruptRecordError(f"{path.name}: {'expected line 2, found none' if len(lines) < 2 else entries}")
    for number, row in rows:
        if len(row) != width:
            raise CorruptRecordError(f"{path.name}: line {number}: expected {width} words, found {len(row)}")
    return rows


def _lines(path: LogPath) -> list[str]:
    try:
        return disk().read_bytes(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptRecordError(f"{path.name}: byte {error.start}: expected UTF-8") from None


def _number(path: LogPath, line: int, word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        raise CorruptRecordError(f"{path.name}: line {line}: expected a number, found {word!r}") from None
    if not -(2**63) <= number < 2**63:
        raise CorruptRecordError(f"{path.name}: line {line}: {word} does not fit 64 bits")
    return number
