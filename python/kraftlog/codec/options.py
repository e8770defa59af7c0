"""What a reader is asked for."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, SupportsIndex, TypeAlias, get_args

from kraftlog._native.memory import CACHE_BYTES
from kraftlog.codec.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kraftlog.codec.held_texts import HeldTexts
from kraftlog.types import IsolationLevel

NO_BOUND = 2**63 - 1
READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS = get_args(IsolationLevel)
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

TimestampLike: TypeAlias = datetime | str | SupportsIndex


def checked_integer(name: str, value: SupportsIndex, least: int, most: int) -> int:
    """Return an option that counts something.

    Raises
    ------
    TypeError
        When it is no integer.
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
    """Bounds and rules of one pass over record batches.

    Attributes
    ----------
    start_offset, end_offset : int
        Offsets read are in [start_offset, end_offset).
    start_timestamp, end_timestamp : int
        Milliseconds since the epoch; timestamps read are in [start_timestamp, end_timestamp).
    isolation_level : {"read_uncommitted", "read_committed"}
        Whether records of aborted and open transactions are left out.
    include_control : bool
        Whether records of control batches are shown.
    strict : bool
        Whether the first fault raises instead of being noted.
    check_crc : bool
        Whether the checksums of batches are compared.
    max_decompressed_bytes : int
        Most bytes that one batch may take after decompression.
    batch_rows, batch_bytes : int
        Size of a record batch that is returned: rows, or bytes of input.
    include_deleted : bool
        Whether records before the log start offset of a partition are shown, which consumers do not see.
    salvage : bool
        Whether batches are searched for behind damage, where no header says how to go on. What is found may lie inside
        of another batch's value. It is never part of ``read_committed``.
    show_secrets : bool
        Whether messages of the metadata log show salt and keys of SCRAM credentials, and passwords in configs, in raw
        keys and values, too. Every interface takes its default from here. The table ``records`` is of bytes as they are
        in the log; its redaction hides more.
    include_image : bool
        Whether changes of a metadata log begin with the image that they start from, as what was added.
    heal : bool
        Whether what the replica that is read lacks, or has damaged, is read from others that agree with it.
    holds : HeldTexts, optional
        Batches that do not hold these texts may be left out: their records are not looked at.
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
    holds: HeldTexts | None = None

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
        """Whether batches are searched for behind damage."""
        return self.salvage and self.isolation_level == READ_UNCOMMITTED

    @property
    def bounds_offsets(self) -> bool:
        """Whether some offsets are left out."""
        return self.start_offset != -NO_BOUND or self.end_offset != NO_BOUND

    @property
    def bounds_timestamps(self) -> bool:
        """Whether some timestamps are left out."""
        return self.start_timestamp != -NO_BOUND or self.end_timestamp != NO_BOUND

    def from_log_start(self, log_start_offset: int) -> ReadOptions:
        """Return the options for the log of one partition.

        Parameters
        ----------
        log_start_offset : int
            Before which records count as deleted; 0 where nothing was deleted.

        Returns
        -------
        ReadOptions
            ``start_offset`` is not before it, unless ``include_deleted`` says otherwise.

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


def milliseconds(moment: TimestampLike) -> int:
    """Return milliseconds since the epoch.

    Parameters
    ----------
    moment : datetime, str or int
        Text is ISO 8601; without a zone it is UTC, as a datetime without one is. An integer is what is returned.

    Raises
    ------
    ValueError
        When a text is no time.
    TypeError
        When it is of another type.

    Examples
    --------
    >>> from kraftlog.codec.options import milliseconds
    >>> milliseconds("2026-11-21T08:00:00Z") == milliseconds("2026-11-21 09:00+01:00") == 1795248000000
    True
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise ValueError(f"timestamp {moment!r} is not ISO 8601, such as 2026-11-21T08:00:00Z") from None
    if not isinstance(moment, datetime):
        try:
            return operator.index(moment)
        except TypeError:
            expected = "a datetime, ISO 8601 text such as 2026-11-21T08:00:00Z, or milliseconds since the epoch"
            raise TypeError(f"timestamp {moment!r} is not {expected}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
