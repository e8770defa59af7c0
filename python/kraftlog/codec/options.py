"""Options of a reader."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any, Final, SupportsIndex, get_args

from kraftlog._native.memory import CACHE_BYTES
from kraftlog.codec.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kraftlog.codec.held_texts import HeldTexts
from kraftlog.types import IsolationLevel

NO_BOUND = 2**63 - 1
READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS = get_args(IsolationLevel)
EARLIEST, LATEST, MAX_TIMESTAMP = TIMES = ("earliest", "latest", "max-timestamp")
MOST_DECOMPRESSED_BYTES = 2**31 - 1  # no batch holds more, as Arrow counts the bytes of a column in 32 bits
_FLAGS = (
    "include_control",
    "strict",
    "check_crc",
    "include_deleted",
    "salvage",
    "show_secrets",
    "include_image",
    "heal",
    "committed_only",
    "from_headers",
)
_BOUNDS = {
    "batch_rows": (1, 2**31 - 2),
    "batch_bytes": (1, 512 << 20),
    "max_decompressed_bytes": (1, MOST_DECOMPRESSED_BYTES),
    "start_offset": (-NO_BOUND - 1, NO_BOUND),
    "end_offset": (-NO_BOUND - 1, NO_BOUND),
    "start_timestamp": (-NO_BOUND - 1, NO_BOUND),
    "end_timestamp": (-NO_BOUND - 1, NO_BOUND),
}


def checked_integer(name: str, value: SupportsIndex, least: int, most: int) -> int:
    """Return an integer option.

    Raises
    ------
    TypeError
        When it is not an integer.
    ValueError
        When it is not between ``least`` and ``most``.

    Examples
    --------
    >>> from kraftlog.codec.options import checked_integer
    >>> checked_integer("batch_rows", 5, 1, 10)
    5
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} {value!r} is not an integer") from None
    if least <= number <= most:
        return number
    if most == NO_BOUND and least == -NO_BOUND - 1:
        raise ValueError(f"{name} {number} does not fit 64 bits")
    raise ValueError(f"{name} {number} is not between {least} and {most}")


@dataclass(frozen=True)
class ReadOptions:
    """Bounds and filters of one pass over record batches.

    Attributes
    ----------
    start_offset, end_offset : int
        Offsets in [start_offset, end_offset).
    start_timestamp, end_timestamp : int
        Timestamps in [start_timestamp, end_timestamp), in milliseconds since the epoch.
    isolation_level : {"read_uncommitted", "read_committed"}
        ``read_committed`` leaves out records of aborted and open transactions.
    include_control : bool
        Whether to include records of control batches.
    strict : bool
        Whether to raise at the first fault.
    check_crc : bool
        Whether to verify the checksums of batches; ``read_committed`` always does.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes.
    batch_rows, batch_bytes : int
        Size of a record batch: rows, or bytes of input.
    include_deleted : bool
        Whether to include records before the log start offset of a partition, which consumers do not see.
    salvage : bool
        Whether to search for batches after damage that leaves no header at which to continue. A batch found in this way
        may be part of another batch's value. Its records are never part of ``read_committed``.
    show_secrets : bool
        Whether messages of the metadata log show salts and keys of SCRAM credentials, and passwords in configs, also in
        raw keys and values. All interfaces take their default from here. The table ``records`` contains the bytes of
        the log; redaction hides more.
    include_image : bool
        Whether changes of a metadata log begin with the initial image, as added entries.
    heal : bool
        Whether to read missing or damaged offsets of the replica from replicas that agree with it.
    committed_only : bool
        Whether each partition ends at the high watermark that its files prove.
    time : str or int
        Which offset of a partition is asked for: one of ``TIMES``, or that of a time, in milliseconds.
    from_headers : bool
        Whether a compressed batch is not decompressed if its checksum matches and its header tells all that is read of
        it: a record for each of its offsets. If its records contradict its header, that is not noticed.
    holds : HeldTexts, optional
        Batches without these texts may be left out; their records are not decoded.
    against : tuple of paths
        Of another cluster, with which an audit compares.
    """

    start_offset: int = -NO_BOUND
    end_offset: int = NO_BOUND
    start_timestamp: int = -NO_BOUND
    end_timestamp: int = NO_BOUND
    isolation_level: IsolationLevel = READ_UNCOMMITTED
    include_control: bool = False
    strict: bool = False
    check_crc: bool = True
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    batch_rows: int = 1 << 16
    batch_bytes: int = CACHE_BYTES // 4 * 7  # measured: below, each chunk costs more; above, most is read from memory
    include_deleted: bool = False
    salvage: bool = False
    show_secrets: bool = False
    include_image: bool = False
    heal: bool = True
    committed_only: bool = False
    time: str | int = LATEST
    from_headers: bool = False
    holds: HeldTexts | None = None
    against: tuple[Any, ...] = field(default=(), repr=False)  # a URI may hold a password

    def __post_init__(self) -> None:
        if self.isolation_level not in ISOLATION_LEVELS:
            raise ValueError(f"isolation_level {self.isolation_level!r} is not one of {', '.join(ISOLATION_LEVELS)}")
        for name, (least, most) in _BOUNDS.items():
            checked_integer(name, getattr(self, name), least, most)
        for name in _FLAGS:
            if getattr(self, name) not in (True, False):  # the text "false" would be true
                raise TypeError(f"{name} {getattr(self, name)!r} is neither True nor False")

    @property
    def searches(self) -> bool:
        """Whether to search for batches after damage."""
        return self.salvage and self.isolation_level == READ_UNCOMMITTED

    @property
    def checks_crc(self) -> bool:
        """Whether to verify the checksums of batches.

        ``read_committed`` always does: without the marker that aborts them, or with another producer in the header of
        their batch, aborted records look committed.
        """
        return self.check_crc or self.isolation_level == READ_COMMITTED

    @property
    def bounds_offsets(self) -> bool:
        """Whether there are bounds of offsets."""
        return self.start_offset != -NO_BOUND or self.end_offset != NO_BOUND

    @property
    def bounds_timestamps(self) -> bool:
        """Whether there are bounds of timestamps."""
        return self.start_timestamp != -NO_BOUND or self.end_timestamp != NO_BOUND

    def from_log_start(self, log_start_offset: int) -> ReadOptions:
        """Return the options for the log of one partition.

        Parameters
        ----------
        log_start_offset : int
            Offset before which records count as deleted; 0 if nothing was deleted.

        Returns
        -------
        ReadOptions
            ``start_offset`` is not before it, except with ``include_deleted``.

        Examples
        --------
        >>> from kraftlog.codec.options import ReadOptions
        >>> ReadOptions(start_offset=5).from_log_start(91).start_offset
        91
        >>> ReadOptions(start_offset=5, include_deleted=True).from_log_start(91).start_offset
        5
        """
        if self.include_deleted or log_start_offset <= max(0, self.start_offset):
            return self
        return replace(self, start_offset=log_start_offset)
